/*
 * ordered_user.c - a program for ordered.py: ordered_user WHAT [WAY].
 *
 * again: does something first that WHAT names, then has late work in one stream, frees a block that it touches, and asks for
 * one like it: "again 1" if that is the same memory while the work is pending. join: another stream, which waits for nobody, writes to the
 * block that came again, by one WAY to the driver: "kept 1" if that is what it holds in the end. whose: where functions that submit
 * work are found. Knows nothing of memshim.
 */
#include <dlfcn.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "gpu/abi/cuda_driver.h"
#include "gpu/abi/cuda_driver_fn.h"
#include "gpu/abi/cuda_graph.h"
#include "gpu/abi/cuda_graph_fn.h"
#include "gpu/abi/cuda_runtime.h"
#include "gpu/abi/cuda_runtime_fn.h"

#define BYTES ((size_t)3 << 20)

typedef CUresult (*memset_func_t)(CUdeviceptr, unsigned char, size_t, CUstream);

static atomic_int open_now;

static void hold(void *unused)
{
    const struct timespec rest = {0, 1000000};
    (void)unused;

    for (int i = 0; i < 10000 && !atomic_load(&open_now); i++)
        nanosleep(&rest, NULL);
}

static void must(int status, const char *what)
{
    if (status == 0)
        return;
    printf("%s: status %d\n", what, status);
    exit(3);
}

static cudaStream_t new_stream(void)
{
    cudaStream_t stream = NULL;

    must(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "cudaStreamCreateWithFlags");
    return stream;
}

/* Late work on a block that is freed; the next block. */
static bool comes_again(cudaStream_t stream, void **next)
{
    void *p = NULL;

    must(cudaMalloc(&p, BYTES), "cudaMalloc");
    must(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
    must(cudaLaunchHostFunc(stream, hold, NULL), "cudaLaunchHostFunc");
    must(cudaMemsetAsync(p, 0x11, BYTES, stream), "cudaMemsetAsync");
    must(cudaFree(p), "cudaFree");
    must(cudaMalloc(next, BYTES), "cudaMalloc");
    return *next == p;
}

/* What submits work out of memshim's sight, or may. Statuses do not matter: the attempt is what is seen. */
static void do_first(const char *what)
{
    CUcontext other = NULL;
    CUevent event = NULL;
    CUgraph graph = NULL;
    CUgraphExec exec = NULL;
    CUdevResource all;
    CUdevResourceDesc some = NULL;
    CUgreenCtx green = NULL;

    if (strcmp(what, "next") == 0)
        (void)!dlsym(RTLD_NEXT, "cuLaunchHostFunc");
    else if (strcmp(what, "deepbind") == 0)
        dlopen("libm.so.6", RTLD_NOW | RTLD_DEEPBIND);
    else if (strcmp(what, "namespace") == 0)
        dlmopen(LM_ID_NEWLM, "libm.so.6", RTLD_NOW);
    else if (strcmp(what, "peer") == 0 && cuDevicePrimaryCtxRetain(&other, 1) == CUDA_SUCCESS)
        cuCtxEnablePeerAccess(other, 0);
    else if (strcmp(what, "context-wait") == 0 && cuEventCreate(&event, 0) == CUDA_SUCCESS &&
             cuCtxGetCurrent(&other) == CUDA_SUCCESS)
        cuCtxWaitEvent(other, event);
    else if (strcmp(what, "graph") == 0 && cuGraphCreate(&graph, 0) == CUDA_SUCCESS)
        cuGraphInstantiateWithFlags(&exec, graph, CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH);
    else if (strcmp(what, "green") == 0 && cuDeviceGetDevResource(0, &all, CU_DEV_RESOURCE_TYPE_SM) == CUDA_SUCCESS &&
             cuDevResourceGenerateDesc(&some, &all, 1) == CUDA_SUCCESS)
        cuGreenCtxCreate(&green, some, 0, CU_GREEN_CTX_DEFAULT_STREAM);
}

static int again(const char *what)
{
    void *next = NULL;

    must(cudaFree(NULL), "cudaFree");
    do_first(what);
    printf("again %d\n", comes_again(new_stream(), &next));
    atomic_store(&open_now, 1);
    must(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
    return 0;
}

/* The program's ways to one function. */
static memset_func_t way_to(const char *way)
{
    void *found = NULL;
    CUdriverProcAddressQueryResult result;

    if (strcmp(way, "dlsym") == 0)
        found = dlsym(dlopen("libcuda.so.1", RTLD_NOW), "cuMemsetD8Async");
    else if (strcmp(way, "default") == 0)
        found = dlsym(RTLD_DEFAULT, "cuMemsetD8Async");
    else if (strcmp(way, "lookup") == 0)
        must(cuGetProcAddress_v2("cuMemsetD8Async", &found, 12000, CU_GET_PROC_ADDRESS_DEFAULT, &result), "cuGetProcAddress");
    else if (strcmp(way, "runtime") == 0)
        must(cudaGetDriverEntryPointByVersion("cuMemsetD8Async", &found, 12000, cudaEnableDefault, NULL),
             "cudaGetDriverEntryPointByVersion");
    else
        return cuMemsetD8Async;
    return (memset_func_t)found;
}

static int join(const char *way)
{
    unsigned char *seen = malloc(BYTES);
    cudaStream_t stream = new_stream(), other = new_stream();
    void *next = NULL;
    size_t kept = 0;

    printf("again %d\n", comes_again(stream, &next));
    must(way_to(way)((CUdeviceptr)(uintptr_t)next, 0x22, BYTES, (CUstream)other), "cuMemsetD8Async");
    atomic_store(&open_now, 1);
    must(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
    must(cudaMemcpy(seen, next, BYTES, cudaMemcpyDeviceToHost), "cudaMemcpy");
    while (kept < BYTES && seen[kept] == 0x22)
        kept++;
    printf("kept %d\n", kept == BYTES);
    free(seen);
    return 0;
}

static const char *object_of(void *pointer)
{
    Dl_info info;
    const char *slash;

    if (!pointer || !dladdr(pointer, &info))
        return "nowhere";
    slash = strrchr(info.dli_fname, '/');
    return slash ? slash + 1 : info.dli_fname;
}

static int whose(void)
{
    static const char *const names[] = {"cuLaunchKernel", "cuMemcpyAsync", "cuStreamWaitEvent_ptsz", "cuGraphLaunch", "cuStreamQuery"};
    void *driver = dlopen("libcuda.so.1", RTLD_NOW), *found = NULL;

    must(cuInit(0), "cuInit");
    for (unsigned i = 0; i < sizeof names / sizeof names[0]; i++) {
        printf("%s: %s\n", names[i], object_of(dlsym(driver, names[i])));
        if (cuGetProcAddress_v2(names[i], &found, 12000, CU_GET_PROC_ADDRESS_DEFAULT, NULL) == CUDA_SUCCESS && found)
            printf("%s looked up: %s\n", names[i], object_of(found));
    }
    return 0;
}

int main(int argc, char **argv)
{
    if (argc == 3 && strcmp(argv[1], "again") == 0)
        return again(argv[2]);
    if (argc == 3 && strcmp(argv[1], "join") == 0)
        return join(argv[2]);
    if (argc == 2 && strcmp(argv[1], "whose") == 0)
        return whose();
    fprintf(stderr, "usage: ordered_user again WHAT | join WAY | whose\n");
    return 2;
}
