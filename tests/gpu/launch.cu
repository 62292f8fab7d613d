/*
 * launch.cu: a kernel as nvcc compiles and launches it: which driver functions that reaches. Run by `facts` with
 * proxy/libcuda.so.1 before the driver on the search path; prints one line as `routes` does.
 */
#include <dlfcn.h>
#include <stdio.h>

__global__ void nothing(void)
{
}

int main(void)
{
    void (*begin)(void) = NULL;
    void (*take)(char *, size_t) = NULL;
    char text[2048];
    int status = 0;

    cudaFree(NULL);
    void *proxy = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
    if (proxy) {
        *(void **)&begin = dlsym(proxy, "routes_begin");
        *(void **)&take = dlsym(proxy, "routes_take");
    }
    if (!begin || !take)
        return 1;
    for (int i = 0; i < 2 && status == 0; i++) {
        begin();
        nothing<<<1, 1>>>();
        status = cudaGetLastError();
        take(text, sizeof text);
        cudaDeviceSynchronize();
    }
    if (status == 0)
        printf("compiled_launch_reaches %s\n", text);
    else
        printf("compiled_launch_reaches - it answers %d\n", status);
    return 0;
}
