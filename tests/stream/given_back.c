/*
 * given_back.c - a pool that is destroyed while its stream is held, which is then let go and only asked,
 * never waited for: what does the device have by then? Prints "before MIB" and "after MIB", as cudaMemGetInfo
 * says.
 */
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "vendor/abi/cuda_driver.h"
#include "vendor/abi/cuda_driver_fn.h"
#include "vendor/abi/cuda_runtime.h"
#include "vendor/abi/cuda_runtime_fn.h"

static void must(int status, const char *what)
{
    if (status == 0)
        return;
    fprintf(stderr, "given_back: %s: %d\n", what, status);
    exit(1);
}

static size_t free_mib(void)
{
    size_t left, total;

    must((int)cudaMemGetInfo(&left, &total), "cudaMemGetInfo");
    return left >> 20;
}

int main(void)
{
    struct cudaMemPoolProps props = {.allocType = cudaMemAllocationTypePinned,
                                     .location = {cudaMemLocationTypeDevice, 0}};
    volatile uint32_t *flag;
    CUdeviceptr device_flag;
    cudaMemPool_t pool;
    cudaStream_t stream;
    cudaEvent_t event;
    void *p;

    must((int)cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "cudaStreamCreate");
    must((int)cudaEventCreateWithFlags(&event, cudaEventDisableTiming), "cudaEventCreate");
    must((int)cuMemHostAlloc((void **)&flag, sizeof *flag, CU_MEMHOSTALLOC_DEVICEMAP), "cuMemHostAlloc");
    must((int)cuMemHostGetDevicePointer_v2(&device_flag, (void *)flag, 0), "cuMemHostGetDevicePointer");
    *flag = 0;
    must((int)cudaMemPoolCreate(&pool, &props), "cudaMemPoolCreate");
    printf("before %zu\n", free_mib());
    must((int)cudaMallocFromPoolAsync(&p, (size_t)200 << 20, pool, stream), "cudaMallocFromPoolAsync");
    must((int)cuStreamWaitValue32_v2((CUstream)stream, device_flag, 1, CU_STREAM_WAIT_VALUE_EQ), "hold");
    must((int)cudaFreeAsync(p, stream), "cudaFreeAsync");
    must((int)cudaMemPoolDestroy(pool), "cudaMemPoolDestroy");
    must((int)cudaEventRecord(event, stream), "cudaEventRecord");
    __atomic_store_n(flag, 1, __ATOMIC_RELEASE);
    while (cudaEventQuery(event) == cudaErrorNotReady)
        sched_yield();
    printf("after %zu\n", free_mib());
    return 0;
}
