/*
 * The CUDA runtime's own functions: the vendor's allocator, or memshim if it is preloaded. Streams make no
 * difference to cudaMalloc.
 */
#include <stdio.h>
#include <time.h>

#include "alloc.h"
#include "vendor/abi/cuda_runtime.h"
#include "vendor/abi/cuda_runtime_fn.h"

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

/* --- in the order of streams: made at the start, so that no figure has that in it */

static cudaStream_t streams[BENCH_STREAMS_MAX];

static int start_streams(void)
{
    int status = start();

    for (unsigned i = 1; i < BENCH_STREAMS_MAX && status == 0; i++)
        if (cudaStreamCreateWithFlags(&streams[i], cudaStreamNonBlocking) != cudaSuccess)
            status = -1;
    return status;
}

/* Each stream stands still until the process ends: nothing that is freed is ever over, as for a host that is
 * far ahead. */
static void stand_still(void *unused)
{
    const struct timespec long_time = {3600, 0};
    (void)unused;

    nanosleep(&long_time, NULL);
}

static int start_streams_held(void)
{
    int status = start_streams();

    for (unsigned i = 0; i < BENCH_STREAMS_MAX && status == 0; i++)
        if (cudaLaunchHostFunc(streams[i], stand_still, NULL) != cudaSuccess)
            status = -1;
    return status;
}

static void *take_on(size_t bytes, unsigned stream)
{
    void *block = NULL;

    return cudaMallocAsync(&block, bytes, streams[stream]) == cudaSuccess ? block : NULL;
}

static void give_on(void *block, size_t bytes, unsigned stream)
{
    (void)bytes;
    if (cudaFreeAsync(block, streams[stream]) != cudaSuccess)
        bench_die("a block cannot be freed");
}

static void *stream_of(unsigned stream)
{
    return streams[stream];
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
    {"runtime", start, start_thread, take, give, NULL, NULL},
    {"runtime-async", start_streams, start_thread, take_on, give_on, NULL, stream_of},
    {"runtime-async-held", start_streams_held, start_thread, take_on, give_on, NULL, stream_of},
    {"runtime-default-async", start, start_thread, take_async, give_async, NULL, NULL},
    {NULL, NULL, NULL, NULL, NULL, NULL, NULL},
};
