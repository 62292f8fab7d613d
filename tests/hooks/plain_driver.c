/*
 * plain_driver.c - the smallest driver that an allocation needs: no lock, no thread, no allocation, nothing that can be
 * cancelled. What goes wrong on it in a signal handler or a cancelled thread is memshim's fault alone.
 *
 * It has no lookup function and no context numbers: memshim must get along with a driver that is old. Addresses count
 * up and are never used twice. errno is left alone, except by cuMemFree_v2 of address 1, which sets it. An allocation of
 * 0xcace1 bytes is a cancellation point, as a driver that sleeps or reads in it would be.
 */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "gpu/abi/cuda_driver_fn.h"

static atomic_ullong next_address = 0x700000000000;
static atomic_int live;
static char context_object;

int plain_driver_live(void);

int plain_driver_live(void)
{
    return live;
}

CUresult cuInit(unsigned int flags)
{
    return flags ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

CUresult cuDriverGetVersion(int *version)
{
    *version = 11000;
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetCount(int *count)
{
    *count = 1;
    return CUDA_SUCCESS;
}

CUresult cuDeviceGet(CUdevice *device, int ordinal)
{
    *device = 0;
    return ordinal ? CUDA_ERROR_INVALID_DEVICE : CUDA_SUCCESS;
}

CUresult cuDeviceGetName(char *name, int length, CUdevice device)
{
    (void)device;
    if (length > 0)
        strncpy(name, "plain", (size_t)length);
    return CUDA_SUCCESS;
}

CUresult cuDeviceTotalMem_v2(size_t *bytes, CUdevice device)
{
    (void)device;
    *bytes = (size_t)1 << 40;
    return CUDA_SUCCESS;
}

CUresult cuCtxGetCurrent(CUcontext *context)
{
    *context = (CUcontext)&context_object;
    return CUDA_SUCCESS;
}

CUresult cuCtxGetDevice(CUdevice *device)
{
    *device = 0;
    return CUDA_SUCCESS;
}

CUresult cuMemAlloc_v2(CUdeviceptr *p, size_t bytes)
{
    if (bytes == 0xcace1)
        pthread_testcancel();
    if (!p || !bytes)
        return CUDA_ERROR_INVALID_VALUE;
    if (bytes >= (size_t)1 << 40)
        return CUDA_ERROR_OUT_OF_MEMORY;
    *p = atomic_fetch_add(&next_address, (bytes + 511) & ~(size_t)511);
    live++;
    return CUDA_SUCCESS;
}

CUresult cuMemFree_v2(CUdeviceptr p)
{
    if (p == 1) {
        errno = EXDEV;
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (p)
        live--;
    return CUDA_SUCCESS;
}
