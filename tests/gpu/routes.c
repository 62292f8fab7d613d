/*
 * routes: which driver functions a call of the CUDA runtime reaches, "NAME_reaches FUNCTION,FUNCTION..." a
 * line.
 *
 * Run by `facts` with proxy/libcuda.so.1 before the driver on the search path. It knows the runtime alone,
 * shared or, as routes_static, linked in. Each call is made once before it is looked at, since first calls do
 * more.
 */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>

#include "vendor/abi/cuda_runtime.h"
#include "vendor/abi/cuda_runtime_fn.h"
#include "kernels.h"

#define MIB (1UL << 20)

static void (*begin)(void);
static void (*take)(char *text, size_t size);
static unsigned (*calls)(const char *name);
static void *memory, *pinned;
static cudaStream_t stream;
static cudaKernel_t kernel;
static char bytes[4096];

/* Looks at the second call only. `step` prepares what the call needs, and puts it away again. */
static void look(const char *name, int (*call)(void), int (*step)(void))
{
    char text[2048];
    int status = 0;

    for (int i = 0; i < 2 && status == 0; i++) {
        cudaDeviceSynchronize();
        begin();
        status = call();
        take(text, sizeof text);
        if (step)
            step();
    }
    if (status == 0)
        printf("%s_reaches %s\n", name, text);
    else
        printf("%s_reaches - it answers %d\n", name, status);
}

static int call_malloc(void)
{
    return cudaMalloc(&memory, MIB);
}

static int call_free(void)
{
    return cudaFree(memory);
}

static int call_malloc_async(void)
{
    return cudaMallocAsync(&memory, MIB, stream);
}

static int call_free_async(void)
{
    return cudaFreeAsync(memory, stream);
}

static int call_malloc_host(void)
{
    return cudaMallocHost(&pinned, MIB);
}

static int call_free_host(void)
{
    return cudaFreeHost(pinned);
}

static int call_managed(void)
{
    return cudaMallocManaged(&memory, MIB, cudaMemAttachGlobal);
}

static int call_pitch(void)
{
    size_t pitch;

    return cudaMallocPitch(&memory, &pitch, 1000, 100);
}

static int call_copy(void)
{
    return cudaMemcpy(memory, bytes, sizeof bytes, cudaMemcpyHostToDevice);
}

static int call_copy_async(void)
{
    return cudaMemcpyAsync(memory, bytes, sizeof bytes, cudaMemcpyHostToDevice, stream);
}

static int call_set(void)
{
    return cudaMemset(memory, 1, MIB);
}

static int call_launch(void)
{
    dim3 one = {1, 1, 1};

    return cudaLaunchKernel((const void *)kernel, one, one, NULL, 0, stream);
}

static int call_synchronize(void)
{
    return cudaDeviceSynchronize();
}

static int call_info(void)
{
    size_t left, total;

    return cudaMemGetInfo(&left, &total);
}

static int call_attributes(void)
{
    struct cudaPointerAttributes attributes;

    return cudaPointerGetAttributes(&attributes, memory);
}

static int call_reset(void)
{
    return cudaDeviceReset();
}

static void look_at_launch(void)
{
    cudaLibrary_t library;
    int status = cudaLibraryLoadData(&library, kit_ptx, NULL, NULL, 0, NULL, NULL, 0);

    if (status == 0)
        status = cudaLibraryGetKernel(&kernel, library, "memsim_nothing");
    if (status == 0)
        look("cudaLaunchKernel", call_launch, NULL);
    else
        printf("cudaLaunchKernel_reaches - the kernel cannot be loaded: status %d\n", status);
}

static void look_at_memory(void)
{
    look("cudaMalloc", call_malloc, call_free);
    call_malloc();
    look("cudaFree", call_free, call_malloc);
    look("cudaMemcpy", call_copy, NULL);
    look("cudaMemcpyAsync", call_copy_async, NULL);
    look("cudaMemset", call_set, NULL);
    look("cudaPointerGetAttributes", call_attributes, NULL);
    call_free();
    look("cudaMallocAsync", call_malloc_async, call_free_async);
    call_malloc_async();
    look("cudaFreeAsync", call_free_async, call_malloc_async);
    call_free_async();
    look("cudaMallocHost", call_malloc_host, call_free_host);
    call_malloc_host();
    look("cudaFreeHost", call_free_host, call_malloc_host);
    call_free_host();
    look("cudaMallocManaged", call_managed, call_free);
    look("cudaMallocPitch", call_pitch, call_free);
}

int main(void)
{
    int status = cudaFree(NULL);
    void *proxy = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);

    if (proxy) {
        *(void **)&begin = dlsym(proxy, "routes_begin");
        *(void **)&take = dlsym(proxy, "routes_take");
        *(void **)&calls = dlsym(proxy, "routes_calls");
    }
    if (status != 0 || !begin || !take || !calls) {
        printf("none %s: status %d\n",
               begin ? "the runtime does not start" : "the runtime did not open the proxy", status);
        return 1;
    }
    status = cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
    if (status != 0) {
        printf("none no stream: status %d\n", status);
        return 1;
    }
    look_at_memory();
    look_at_launch();
    look("cudaDeviceSynchronize", call_synchronize, NULL);
    look("cudaMemGetInfo", call_info, NULL);
    printf("export_tables_asked %u\n", calls("cuGetExportTable"));
    look("cudaDeviceReset", call_reset, NULL);
    return 0;
}
