/* app.cu - a few runtime calls whose statuses are printed; built as C with the shared runtime and by nvcc with the static one. */
#include <cuda_runtime_api.h>
#include <stdio.h>

int main(void)
{
    void *p = (void *)0x1;
    int count = -1, runtime = -1, driver = -1;

    printf("malloc %d\n", cudaMalloc(&p, 1 << 20));
    printf("pointer %p\n", p);
    printf("count %d\n", cudaGetDeviceCount(&count));
    printf("null %d\n", cudaMalloc(NULL, 1));
    printf("free %d\n", cudaFree(0));
    printf("versions %d %d\n", cudaRuntimeGetVersion(&runtime), cudaDriverGetVersion(&driver));
    printf("%d %d\n", runtime, driver);
    printf("last %d %d\n", cudaGetLastError(), cudaPeekAtLastError());
    return 0;
}
