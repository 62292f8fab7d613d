/*
 * The CUDA runtime's own functions: the vendor's allocator, or memshim if it is preloaded. Streams make no
 * difference to cudaMalloc.
 */
#include <stdio.h>

#include "alloc.h"
#include "gpu/abi/cuda_runtime.h"
#include "gpu/abi/cuda_runtime_fn.h"

static int start(void)
{
    cudaError_t status = cudaSetDevice(0);

    if (status == cudaSuccess)
        return 0;
    fprintf(stderr, "alloc: the GPU does not answer: %s\n", cudaGetErrorString(status));
    return -1;
}

static void start_thread(void)
{
    if (cudaSetDevice(0) != cudaSuccess)
        bench_die("a thread cannot use the device");
}

static void *take(size_t bytes, unsigned stream)
{
    void *block = NULL;

    (void)stream;
    return cudaMalloc(&block, bytes) == cudaSuccess ? block : NULL;
}

static void give(void *block, size_t bytes, unsigned stream)
{
    (void)bytes;
    (void)stream;
    if (cudaFree(block) != cudaSuccess)
        bench_die("a block cannot be freed");
}

/* Only the default stream has a handle here that others know. */
static void *take_async(size_t bytes, unsigned stream)
{
    void *block = NULL;

    (void)stream;
    return cudaMallocAsync(&block, bytes, NULL) == cudaSuccess ? block : NULL;
}

static void give_async(void *block, size_t bytes, unsigned stream)
{
    (void)bytes;
    (void)stream;
    if (cudaFreeAsync(block, NULL) != cudaSuccess)
        bench_die("a block cannot be freed");
}

const struct bench_allocator bench_allocators[] = {
    {"runtime", start, start_thread, take, give},
    {"runtime-default-async", start, start_thread, take_async, give_async},
    {NULL, NULL, NULL, NULL, NULL},
};
