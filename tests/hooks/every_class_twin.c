/*
 * every_class_twin.c - stream-ordered calls as a program makes them that was compiled for a default stream
 * per thread.
 *
 * The vendor's header renames the calls then; without it the renamed functions are called by name. Their
 * stream 0 is the calling thread's own, which has the number 2.
 */
#define CUDA_API_PER_THREAD_DEFAULT_STREAM 1
#include "tests/hooks/every_class.h"

#ifndef WITH_VENDOR_HEADERS
#define cudaMallocAsync         cudaMallocAsync_ptsz
#define cudaMallocFromPoolAsync cudaMallocFromPoolAsync_ptsz
#define cudaFreeAsync           cudaFreeAsync_ptsz
#define cuMemAllocAsync         cuMemAllocAsync_ptsz
#define cuMemFreeAsync          cuMemFreeAsync_ptsz
#endif

void per_thread_twin(cudaMemPool_t pool)
{
    void *p, *q, *freed;
    CUdeviceptr d, e;
    int a, b;

    TAKE(DEVICE, "cudaMallocAsync_ptsz", 70001, 2, cudaMallocAsync(&p, 70001, 0));
    TAKE(DEVICE, "cudaMallocFromPoolAsync_ptsz", 70002, 2, cudaMallocFromPoolAsync(&q, 70002, pool, 0));
    a = TAKE(DEVICE, "cudaMallocAsync_ptsz", 70003, 2, cudaMallocAsync(&freed, 70003, 0));
    TAKE(DEVICE, "cuMemAllocAsync_ptsz", 70004, 2, cuMemAllocAsync(&d, 70004, 0));
    b = TAKE(DEVICE, "cuMemAllocAsync_ptsz", 70005, 2, cuMemAllocAsync(&e, 70005, 0));
    DROP(a, cudaFreeAsync(freed, 0));
    DROP(b, cuMemFreeAsync(e, 0));
}
