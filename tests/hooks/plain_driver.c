/*
 * plain_driver.c - the smallest driver that an allocation needs: no lock, no thread, no allocation, nothing
 * that can be cancelled. What goes wrong on it in a signal handler or a cancelled thread is memshim's fault
 * alone.
 *
 * It has no lookup function and no context numbers: memshim must get along with a driver that is old.
 * Addresses count up and are never used twice. errno is left alone, except by cuMemFree_v2 of address 1,
 * which sets it. An allocation of 0xcace1 bytes is a cancellation point, as a driver that sleeps or reads in
 * it would be.
 */
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "vendor/abi/cuda_driver_fn.h"

static atomic_ullong next_address = 0x700000000000;
static atomic_int live;
static char context_object, event_object;
static atomic_ullong sizes[1 << 16]; /* of the latest allocations */

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

static atomic_ullong *size_of(CUdeviceptr p)
{
    return &sizes[(p >> 9) % (sizeof(sizes) / sizeof(sizes[0]))];
}

CUresult cuMemGetAddressRange_v2(CUdeviceptr *base, size_t *bytes, CUdeviceptr p)
{
    *base = p;
    *bytes = *size_of(p);
    return CUDA_SUCCESS;
}

CUresult cuMemGetInfo_v2(size_t *free_bytes, size_t *total)
{
    *free_bytes = *total = (size_t)1 << 40;
    return CUDA_SUCCESS;
}

CUresult cuEventCreate(CUevent *event, unsigned int flags)
{
    (void)flags;
    *event = (CUevent)&event_object;
    return CUDA_SUCCESS;
}

CUresult cuEventDestroy_v2(CUevent event)
{
    (void)event;
    return CUDA_SUCCESS;
}

CUresult cuEventQuery(CUevent event)
{
    (void)event;
    return CUDA_SUCCESS;
}

CUresult cuCtxRecordEvent(CUcontext context, CUevent event)
{
    (void)context;
    (void)event;
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
    /* what is large is aligned, as on hardware */
    size_t unit = bytes < (size_t)1 << 20 ? 512 : (size_t)2 << 20;
    *p = (atomic_fetch_add(&next_address, ((bytes + 511) & ~(size_t)511) + unit - 512) + unit - 1) & -unit;
    *size_of(*p) = bytes;
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
