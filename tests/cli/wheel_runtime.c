/* wheel_runtime.c - a made-up CUDA runtime as a wheel carries it: under a name with a hash, with the version
 * node of the real one. Its version gives it away, and it has no memory. */
int cudaRuntimeGetVersion(int *version_p);
int cudaMalloc(void **pointer_p, unsigned long bytes);
int cudaFree(void *pointer);

int cudaRuntimeGetVersion(int *version_p)
{
    *version_p = 7;
    return 0;
}

int cudaMalloc(void **pointer_p, unsigned long bytes)
{
    *pointer_p = bytes ? (void *)pointer_p : 0;
    return 0;
}

int cudaFree(void *pointer)
{
    (void)pointer;
    return 0;
}
