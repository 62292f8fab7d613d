/* wheel_module.c - a made-up extension module: asks the runtime that its wheel carries, which it finds by a
 * DT_RPATH. */
#include <dlfcn.h>
#include <stddef.h>

int cudaRuntimeGetVersion(int *version_p);
int cudaMalloc(void **pointer_p, unsigned long bytes);
int cudaFree(void *pointer);
int ask(void);
int ask_beside(void);

/** The runtime's version; -1 if a block of 54321 bytes cannot be had and freed. */
int ask(void)
{
    int version = -1;
    void *block;

    if (cudaMalloc(&block, 54321) || cudaFree(block) || cudaRuntimeGetVersion(&version))
        return -1;
    return version;
}

/** Whether what lies where the DT_RPATH points can be opened by its name alone: 1 or 0. */
int ask_beside(void)
{
    return dlopen("libbeside.so", RTLD_NOW) != NULL;
}
