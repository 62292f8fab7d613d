/*
 * A library that gives memory back when the process is nearly gone: its destructor runs after that of
 * whatever was preloaded before it, and so after memshim's report.
 *
 * late_take() takes FOUR blocks of 4096 bytes, the destructor frees three.
 */
#include "gpu/abi/cuda_driver.h"
#include "gpu/abi/cuda_driver_fn.h"

enum { FOUR = 4, BYTES = 4096 };

int late_take(void);

static CUdeviceptr kept[FOUR];

int late_take(void)
{
    CUcontext context;

    if (cuInit(0) != CUDA_SUCCESS || cuDevicePrimaryCtxRetain(&context, 0) != CUDA_SUCCESS ||
        cuCtxSetCurrent(context) != CUDA_SUCCESS)
        return 1;
    for (int i = 0; i < FOUR; i++) {
        if (cuMemAlloc_v2(&kept[i], BYTES) != CUDA_SUCCESS)
            return 1;
    }
    return 0;
}

__attribute__((destructor)) static void give_back(void)
{
    for (int i = 1; i < FOUR; i++)
        cuMemFree_v2(kept[i]);
}
