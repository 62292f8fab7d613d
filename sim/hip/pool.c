/*
 * Stream-ordered memory, and pools. The refusals are those of the runtime's source (clr): a free of nothing
 * is an error, and so is a pool that is not pinned memory of a device.
 */
#include <string.h>

#include "sim/hip/hip.h"

static int allocate(void **ptr, size_t size, CUmemoryPool pool, hipStream_t stream)
{
    CUdeviceptr address = 0;
    CUcontext context;
    int status;

    if (!ptr)
        return hipErrorInvalidValue;
    if (stream && cuStreamGetCtx(hip_stream(stream), &context) != CUDA_SUCCESS)
        return hipErrorInvalidHandle;
    if (!size) {
        *ptr = NULL;
        return hipSuccess;
    }
    status = (int)(pool ? cuMemAllocFromPoolAsync(&address, size, pool, hip_stream(stream))
                        : cuMemAllocAsync(&address, size, hip_stream(stream)));
    if (status == hipSuccess)
        *ptr = (void *)(uintptr_t)address;
    return status;
}

HIP_AS(hipMallocAsync, (void **ptr, size_t size, hipStream_t stream), allocate(ptr, size, NULL, stream))
HIP_AS(hipMallocFromPoolAsync, (void **ptr, size_t size, hipMemPool_t pool, hipStream_t stream),
       pool ? allocate(ptr, size, (CUmemoryPool)pool, stream) : (int)hipErrorInvalidValue)
HIP_AS(hipFreeAsync, (void *ptr, hipStream_t stream),
       ptr ? cuMemFreeAsync(hip_address(ptr), hip_stream(stream)) : CUDA_ERROR_INVALID_VALUE)

HIP_API hipDeviceGetDefaultMemPool(hipMemPool_t *pool, int device)
{
    HIP_ENTER_DEVICE(hipDeviceGetDefaultMemPool);
    return hip_leave(cuDeviceGetDefaultMemPool((CUmemoryPool *)pool, device));
}

HIP_API hipDeviceGetMemPool(hipMemPool_t *pool, int device)
{
    HIP_ENTER_DEVICE(hipDeviceGetMemPool);
    return hip_leave(cuDeviceGetMemPool((CUmemoryPool *)pool, device));
}

/* A pool of another device is an invalid device here. */
HIP_API hipDeviceSetMemPool(int device, hipMemPool_t pool)
{
    HIP_ENTER_DEVICE(hipDeviceSetMemPool);
    if (!pool)
        return hip_leave(hipErrorInvalidValue);
    int status = (int)cuDeviceSetMemPool(device, (CUmemoryPool)pool);
    return hip_leave(status == hipErrorInvalidValue ? (int)hipErrorInvalidDevice : status);
}

/* The structure of 5 has reserved bytes where the most that the pool may hold is later. */
HIP_API hipMemPoolCreate(hipMemPool_t *pool, const hipMemPoolProps *properties)
{
    CUmemPoolProps props;

    HIP_ENTER_DEVICE(hipMemPoolCreate);
    if (!pool || !properties || properties->allocType != hipMemAllocationTypePinned ||
        properties->location.type != hipMemLocationTypeDevice || properties->location.id < 0 ||
        properties->location.id >= hip_device_count())
        return hip_leave(hipErrorInvalidValue);
    _Static_assert(sizeof props == sizeof *properties, "they are laid out alike");
    memcpy(&props, properties, sizeof props);
    if (SIM_HIP < 6)
        props.maxSize = 0;
    memset((char *)&props + offsetof(CUmemPoolProps, maxSize) + sizeof props.maxSize, 0,
           sizeof props - offsetof(CUmemPoolProps, maxSize) - sizeof props.maxSize);
    return hip_leave(cuMemPoolCreate((CUmemoryPool *)pool, &props));
}

HIP_AS(hipMemPoolDestroy, (hipMemPool_t pool), cuMemPoolDestroy((CUmemoryPool)pool))
HIP_AS(hipMemPoolTrimTo, (hipMemPool_t pool, size_t keep), cuMemPoolTrimTo((CUmemoryPool)pool, keep))
HIP_AS(hipMemPoolSetAttribute, (hipMemPool_t pool, hipMemPoolAttr attribute, void *value),
       cuMemPoolSetAttribute((CUmemoryPool)pool, (CUmemPool_attribute)attribute, value))
HIP_AS(hipMemPoolGetAttribute, (hipMemPool_t pool, hipMemPoolAttr attribute, void *value),
       cuMemPoolGetAttribute((CUmemoryPool)pool, (CUmemPool_attribute)attribute, value))
HIP_AS(hipMemPoolSetAccess, (hipMemPool_t pool, const hipMemAccessDesc *list, size_t count),
       cuMemPoolSetAccess((CUmemoryPool)pool, (const CUmemAccessDesc *)list, count))
HIP_AS(hipMemPoolGetAccess, (hipMemAccessFlags * flags, hipMemPool_t pool, hipMemLocation *location),
       cuMemPoolGetAccess((CUmemAccess_flags *)flags, (CUmemoryPool)pool, (CUmemLocation *)location))
HIP_AS(hipMemPoolExportToShareableHandle,
       (void *handle, hipMemPool_t pool, hipMemAllocationHandleType type, unsigned flags),
       type == hipMemHandleTypeNone || flags
           ? CUDA_ERROR_INVALID_VALUE
           : cuMemPoolExportToShareableHandle(handle, (CUmemoryPool)pool, (CUmemAllocationHandleType)type, 0))
HIP_AS(hipMemPoolImportFromShareableHandle,
       (hipMemPool_t * pool, void *handle, hipMemAllocationHandleType type, unsigned flags),
       cuMemPoolImportFromShareableHandle((CUmemoryPool *)pool, handle, (CUmemAllocationHandleType)type,
                                          flags))
HIP_AS(hipMemPoolExportPointer, (hipMemPoolPtrExportData * data, void *ptr),
       cuMemPoolExportPointer((CUmemPoolPtrExportData *)data, hip_address(ptr)))

HIP_API hipMemPoolImportPointer(void **ptr, hipMemPool_t pool, hipMemPoolPtrExportData *data)
{
    CUdeviceptr address = 0;

    HIP_ENTER_DEVICE(hipMemPoolImportPointer);
    if (!ptr)
        return hip_leave(hipErrorInvalidValue);
    int status = (int)cuMemPoolImportPointer(&address, (CUmemoryPool)pool, (CUmemPoolPtrExportData *)data);
    if (status == hipSuccess)
        *ptr = (void *)(uintptr_t)address;
    return hip_leave(status);
}
