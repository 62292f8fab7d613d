/*
 * A library that gives memory back when the process is nearly gone: in its destructor, or where its user
 * says.
 *
 * late_take() takes FOUR blocks of 4096 bytes, late_give_back() frees three.
 */
#include <stdlib.h>

#include "vendor/abi/cuda_driver.h"
#include "vendor/abi/cuda_driver_fn.h"

enum { FOUR = 4, BYTES = 4096 };

int late_take(void);
void late_give_back(void);

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

void late_give_back(void)
{
    for (int i = 1; i < FOUR; i++)
        cuMemFree_v2(kept[i]);
}

__attribute__((destructor)) static void end(void)
{
    if (!getenv("LATE"))
        late_give_back();
}
