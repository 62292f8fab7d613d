/*
 * Device memory. A free waits for everything that the owning device has to do, whichever stream it is in,
 * also where the memory is of a pool; unknown, inner and freed addresses are refused.
 */
#include <stdint.h>

#include "sim/hip/hip.h"

#define MOST (SIZE_MAX / 4)

/* Nothing is asked for: success, and no memory (clr, hipMalloc). */
static int allocate(void **ptr, size_t size)
{
    CUdeviceptr address = 0;
    int status;

    if (!ptr)
        return hipErrorInvalidValue;
    if (!size) {
        *ptr = NULL;
        return hipSuccess;
    }
    if (size > MOST)
        return hipErrorOutOfMemory;
    status = (int)cuMemAlloc_v2(&address, size);
    if (status == hipSuccess)
        *ptr = (void *)(uintptr_t)address;
    return status;
}

HIP_AS(hipMalloc, (void **ptr, size_t size), allocate(ptr, size))

HIP_API hipExtMallocWithFlags(void **ptr, size_t size, unsigned flags)
{
    HIP_ENTER_DEVICE(hipExtMallocWithFlags);
    /* of signals there are eight bytes at a time */
    if (flags > 3 || (flags == hipMallocSignalMemory && size != 8))
        return hip_leave(hipErrorInvalidValue);
    return hip_leave(allocate(ptr, size));
}

static int allocate_pitched(void **ptr, size_t *pitch, size_t width, size_t height)
{
    CUdeviceptr address = 0;
    int status;

    if (!ptr || !pitch)
        return hipErrorInvalidValue;
    if (!width || !height) {
        *ptr = NULL;
        return hipSuccess;
    }
    if (width > MOST || height > MOST / width)
        return hipErrorInvalidValue;
    status = (int)cuMemAllocPitch_v2(&address, pitch, width, height, 4);
    if (status == hipSuccess)
        *ptr = (void *)(uintptr_t)address;
    return status;
}

HIP_AS(hipMallocPitch, (void **ptr, size_t *pitch, size_t width, size_t height),
       allocate_pitched(ptr, pitch, width, height))

HIP_API hipMemAllocPitch(hipDeviceptr_t *ptr, size_t *pitch, size_t width, size_t height,
                         unsigned element_bytes)
{
    (void)element_bytes;
    HIP_ENTER_DEVICE(hipMemAllocPitch);
    return hip_leave(allocate_pitched(ptr, pitch, width, height));
}

HIP_API hipMalloc3D(hipPitchedPtr *pitched, hipExtent extent)
{
    void *ptr = NULL;
    size_t pitch = 0;

    HIP_ENTER_DEVICE(hipMalloc3D);
    if (!pitched || (extent.depth && extent.height > MOST / extent.depth))
        return hip_leave(hipErrorInvalidValue);
    int status = allocate_pitched(&ptr, &pitch, extent.width, extent.height * extent.depth);
    if (status == hipSuccess)
        *pitched = (hipPitchedPtr){ptr, pitch, extent.width, extent.height};
    return hip_leave(status);
}

HIP_API hipMallocManaged(void **ptr, size_t size, unsigned flags)
{
    CUdeviceptr address = 0;

    HIP_ENTER_DEVICE(hipMallocManaged);
    if (!ptr || !size || (flags != hipMemAttachGlobal && flags != hipMemAttachHost))
        return hip_leave(hipErrorInvalidValue);
    int status = (int)cuMemAllocManaged(&address, size, flags);
    if (status == hipSuccess)
        *ptr = (void *)(uintptr_t)address;
    return hip_leave(status);
}

/* The device that owns the memory; -1 if it is nobody's. */
static int owner_of(CUdeviceptr address)
{
    int ordinal = -1;

    if (cuPointerGetAttribute(&ordinal, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, address) != CUDA_SUCCESS)
        return -1;
    return ordinal;
}

HIP_API hipFree(void *ptr)
{
    CUdeviceptr address = hip_address(ptr), base = 0;
    size_t bytes = 0;

    HIP_ENTER_DEVICE(hipFree);
    if (!ptr)
        return hip_leave(hipSuccess);
    if (cuMemGetAddressRange_v2(&base, &bytes, address) != CUDA_SUCCESS || base != address)
        return hip_leave(hipErrorInvalidValue);
    int device = owner_of(address);
    int status = device >= 0 && device != hip_device() ? hip_bind_to(device) : hipSuccess;
    if (status == hipSuccess)
        status = (int)cuCtxSynchronize();
    if (status == hipSuccess)
        status = (int)cuMemFree_v2(address);
    hip_bind();
    return hip_leave(status);
}

HIP_AS(hipMemGetInfo, (size_t * free, size_t *total),
       free &&total ? cuMemGetInfo_v2(free, total) : CUDA_ERROR_INVALID_VALUE)

/* An address that is not found is another error before 6. */
HIP_API hipMemGetAddressRange(hipDeviceptr_t *base, size_t *size, hipDeviceptr_t ptr)
{
    CUdeviceptr start = 0;
    size_t bytes = 0;

    HIP_ENTER_DEVICE(hipMemGetAddressRange);
    if (cuMemGetAddressRange_v2(&start, &bytes, hip_address(ptr)) != CUDA_SUCCESS)
        return hip_leave(SIM_HIP < 6 ? hipErrorInvalidDevicePointer : hipErrorNotFound);
    if (base)
        *base = (void *)(uintptr_t)start;
    if (size)
        *size = bytes;
    return hip_leave(hipSuccess);
}

HIP_API hipMemPtrGetInfo(void *ptr, size_t *size)
{
    CUdeviceptr start = 0;

    HIP_ENTER_DEVICE(hipMemPtrGetInfo);
    if (!size)
        return hip_leave(hipErrorInvalidValue);
    return hip_leave(cuMemGetAddressRange_v2(&start, size, hip_address(ptr)) == CUDA_SUCCESS
                         ? hipSuccess
                         : hipErrorInvalidValue);
}
