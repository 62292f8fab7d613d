/*
 * origins.c - pools by where a program has them from, and what is asked of each first: the device's own by
 * its handle, another device's, one for hardware decompression, as RMM makes all of its own, one that can be
 * shared, one whose handle was tried before.
 *
 * Prints "what value" lines for same.py; which of them are served is told by the report: so each has a number
 * of requests of its own.
 */
#include <stdio.h>
#include <string.h>

#include "tests/hip/as_cuda.h"
#include "vendor/abi/cuda_driver.h"
#include "vendor/abi/cuda_driver_fn.h"
#include "vendor/abi/cuda_runtime.h"
#include "vendor/abi/cuda_runtime_fn.h"

#define SAY(name, ...) printf("%s %d\n", name, (int)(__VA_ARGS__))

static cudaStream_t stream;

/* How many of so many requests failed. */
static int ask(cudaMemPool_t pool, int requests)
{
    int failed = 0;
    void *p = NULL;

    for (int i = 0; i < requests; i++) {
        failed += cudaMallocFromPoolAsync(&p, 5000, pool, stream) != cudaSuccess;
        failed += cudaMemsetAsync(p, i, 5000, stream) != cudaSuccess;
        failed += cudaFreeAsync(p, stream) != cudaSuccess;
    }
    return failed;
}

static cudaMemPool_t make(unsigned short usage, enum cudaMemAllocationHandleType handles)
{
    struct cudaMemPoolProps props = {.allocType = cudaMemAllocationTypePinned,
                                     .location = {cudaMemLocationTypeDevice, 0},
                                     .usage = usage,
                                     .handleTypes = handles};
    cudaMemPool_t pool = NULL;

    SAY("make", cudaMemPoolCreate(&pool, &props));
    return pool;
}

int main(void)
{
    cudaMemPool_t pool = NULL, was;
    void *p = NULL;

    cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
    SAY("own.get", cudaDeviceGetDefaultMemPool(&pool, 0)); /* before any request without a pool */
    SAY("own", ask(pool, 10));
    SAY("other.get", cudaDeviceGetDefaultMemPool(&pool, 1));
    SAY("other.alloc", cudaMallocFromPoolAsync(&p, 5000, pool, stream));
    SAY("other.free", cudaFreeAsync(p, stream));
    pool = make(cudaMemPoolCreateUsageHwDecompress, cudaMemHandleTypeNone);
    SAY("decompress", ask(pool, 100));
    SAY("decompress.destroy", cudaMemPoolDestroy(pool));
    pool = make(0, cudaMemHandleTypePosixFileDescriptor);
    SAY("shared", ask(pool, 1000));
    SAY("shared.destroy", cudaMemPoolDestroy(pool));
    was = pool = make(0, cudaMemHandleTypeNone);
    SAY("again.destroy", cudaMemPoolDestroy(pool));
    /* a handle that is none, and may come back */
    SAY("again.alloc", cudaMallocFromPoolAsync(&p, 5000, was, stream));
    pool = make(0, cudaMemHandleTypeNone);
    SAY("again", ask(pool, 10000));
    SAY("again.destroy", cudaMemPoolDestroy(pool));
    SAY("synchronize", cudaStreamSynchronize(stream));
    return 0;
}
