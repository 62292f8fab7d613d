/*
 * Memory pools and stream-ordered allocation. The runtime's structures and the driver's are the same bytes,
 * so that handles, properties, locations and access descriptors pass through unchanged.
 */
#include "sim/cudart/runtime.h"

_Static_assert(sizeof(struct cudaMemPoolProps) == sizeof(CUmemPoolProps), "pool properties have one layout");
_Static_assert(sizeof(struct cudaMemAccessDesc) == sizeof(CUmemAccessDesc),
               "access descriptors have one layout");
_Static_assert(sizeof(struct cudaMemLocation) == sizeof(CUmemLocation), "locations have one layout");
_Static_assert(sizeof(struct cudaMemPoolPtrExportData) == sizeof(CUmemPoolPtrExportData),
               "exports have one layout");

static cudaError_t malloc_async(int half, void **pointer, size_t bytes, cudaStream_t stream)
{
    CUdeviceptr address;

    SIM_TRY(sim_context());
    SIM_CHECK(pointer, cudaErrorInvalidValue);
    SIM_TRY(SIM_DRV_OF(half, cuMemAllocAsync, &address, bytes, stream));
    *pointer = sim_pointer(address);
    return cudaSuccess;
}

static cudaError_t malloc_from_pool_async(int half, void **pointer, size_t bytes, cudaMemPool_t pool,
                                          cudaStream_t stream)
{
    CUdeviceptr address;

    SIM_TRY(sim_context());
    SIM_CHECK(pointer, cudaErrorInvalidValue);
    SIM_TRY(SIM_DRV_OF(half, cuMemAllocFromPoolAsync, &address, bytes, pool, stream));
    *pointer = sim_pointer(address);
    return cudaSuccess;
}

static cudaError_t free_async(int half, void *pointer, cudaStream_t stream)
{
    SIM_TRY(sim_context());
    SIM_TRY(SIM_DRV_OF(half, cuMemFreeAsync, sim_devptr(pointer), stream));
    return cudaSuccess;
}

SIM_TWINS(cudaMallocAsync, _ptsz, malloc_async, (void **pointer, size_t bytes, cudaStream_t stream), pointer,
          bytes, stream)
SIM_TWINS(cudaMallocFromPoolAsync, _ptsz, malloc_from_pool_async,
          (void **pointer, size_t bytes, cudaMemPool_t pool, cudaStream_t stream), pointer, bytes, pool,
          stream)
SIM_TWINS(cudaFreeAsync, _ptsz, free_async, (void *pointer, cudaStream_t stream), pointer, stream)

SIM_API cudaError_t cudaDeviceGetDefaultMemPool(cudaMemPool_t *pool, int device)
{
    CUdevice handle;

    SIM_TRY(sim_runtime());
    SIM_CHECK(pool, cudaErrorInvalidValue);
    SIM_TRY(sim_device(device, &handle));
    SIM_TRY(SIM_DRV(cuDeviceGetDefaultMemPool, pool, handle));
    return cudaSuccess;
}

SIM_API cudaError_t cudaDeviceGetMemPool(cudaMemPool_t *pool, int device)
{
    CUdevice handle;

    SIM_TRY(sim_runtime());
    SIM_CHECK(pool, cudaErrorInvalidValue);
    SIM_TRY(sim_device(device, &handle));
    SIM_TRY(SIM_DRV(cuDeviceGetMemPool, pool, handle));
    return cudaSuccess;
}

SIM_API cudaError_t cudaDeviceSetMemPool(int device, cudaMemPool_t pool)
{
    CUdevice handle;

    SIM_TRY(sim_runtime());
    SIM_TRY(sim_device(device, &handle));
    SIM_TRY(SIM_DRV(cuDeviceSetMemPool, handle, pool));
    return cudaSuccess;
}

SIM_API cudaError_t cudaMemPoolCreate(cudaMemPool_t *pool, const struct cudaMemPoolProps *props)
{
    SIM_TRY(sim_context());
    SIM_CHECK(pool && props, cudaErrorInvalidValue);
    SIM_TRY(SIM_DRV(cuMemPoolCreate, pool, (const CUmemPoolProps *)props));
    return cudaSuccess;
}

SIM_API cudaError_t cudaMemPoolDestroy(cudaMemPool_t pool)
{
    SIM_TRY(sim_runtime());
    SIM_TRY(SIM_DRV(cuMemPoolDestroy, pool));
    return cudaSuccess;
}

SIM_API cudaError_t cudaMemPoolTrimTo(cudaMemPool_t pool, size_t keep_bytes)
{
    SIM_TRY(sim_runtime());
    SIM_TRY(SIM_DRV(cuMemPoolTrimTo, pool, keep_bytes));
    return cudaSuccess;
}

SIM_API cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t pool, enum cudaMemPoolAttr attr, void *value)
{
    SIM_TRY(sim_runtime());
    SIM_CHECK(value, cudaErrorInvalidValue);
    SIM_TRY(SIM_DRV(cuMemPoolSetAttribute, pool, (CUmemPool_attribute)attr, value));
    return cudaSuccess;
}

SIM_API cudaError_t cudaMemPoolGetAttribute(cudaMemPool_t pool, enum cudaMemPoolAttr attr, void *value)
{
    SIM_TRY(sim_runtime());
    SIM_CHECK(value, cudaErrorInvalidValue);
    SIM_TRY(SIM_DRV(cuMemPoolGetAttribute, pool, (CUmemPool_attribute)attr, value));
    return cudaSuccess;
}

SIM_API cudaError_t cudaMemPoolSetAccess(cudaMemPool_t pool, const struct cudaMemAccessDesc *descriptors,
                                         size_t count)
{
    SIM_TRY(sim_runtime());
    SIM_TRY(SIM_DRV(cuMemPoolSetAccess, pool, (const CUmemAccessDesc *)descriptors, count));
    return cudaSuccess;
}

SIM_API cudaError_t cudaMemPoolGetAccess(enum cudaMemAccessFlags *flags, cudaMemPool_t pool,
                                         struct cudaMemLocation *location)
{
    CUmemAccess_flags value;

    SIM_TRY(sim_runtime());
    SIM_CHECK(flags && location, cudaErrorInvalidValue);
    SIM_TRY(SIM_DRV(cuMemPoolGetAccess, &value, pool, (CUmemLocation *)location));
    *flags = (enum cudaMemAccessFlags)value;
    return cudaSuccess;
}

SIM_API cudaError_t cudaMemPoolExportToShareableHandle(void *handle, cudaMemPool_t pool,
                                                       enum cudaMemAllocationHandleType type,
                                                       unsigned int flags)
{
    SIM_TRY(sim_runtime());
    SIM_CHECK(handle, cudaErrorInvalidValue);
    SIM_TRY(SIM_DRV(cuMemPoolExportToShareableHandle, handle, pool, (CUmemAllocationHandleType)type, flags));
    return cudaSuccess;
}

SIM_API cudaError_t cudaMemPoolImportFromShareableHandle(cudaMemPool_t *pool, void *handle,
                                                         enum cudaMemAllocationHandleType type,
                                                         unsigned int flags)
{
    SIM_TRY(sim_context());
    SIM_CHECK(pool, cudaErrorInvalidValue);
    SIM_TRY(
        SIM_DRV(cuMemPoolImportFromShareableHandle, pool, handle, (CUmemAllocationHandleType)type, flags));
    return cudaSuccess;
}

SIM_API cudaError_t cudaMemPoolExportPointer(struct cudaMemPoolPtrExportData *data, void *pointer)
{
    SIM_TRY(sim_context());
    SIM_CHECK(data, cudaErrorInvalidValue);
    SIM_TRY(SIM_DRV(cuMemPoolExportPointer, (CUmemPoolPtrExportData *)data, sim_devptr(pointer)));
    return cudaSuccess;
}

SIM_API cudaError_t cudaMemPoolImportPointer(void **pointer, cudaMemPool_t pool,
                                             struct cudaMemPoolPtrExportData *data)
{
    CUdeviceptr address;

    SIM_TRY(sim_context());
    SIM_CHECK(pointer && data, cudaErrorInvalidValue);
    SIM_TRY(SIM_DRV(cuMemPoolImportPointer, &address, pool, (CUmemPoolPtrExportData *)data));
    *pointer = sim_pointer(address);
    return cudaSuccess;
}

#if SIM_CUDART >= 13
SIM_API cudaError_t cudaMemGetDefaultMemPool(cudaMemPool_t *pool, struct cudaMemLocation *location,
                                             enum cudaMemAllocationType type)
{
    SIM_TRY(sim_runtime());
    SIM_CHECK(pool && location, cudaErrorInvalidValue);
    SIM_TRY(SIM_DRV(cuMemGetDefaultMemPool, pool, (CUmemLocation *)location, (CUmemAllocationType)type));
    return cudaSuccess;
}

SIM_API cudaError_t cudaMemGetMemPool(cudaMemPool_t *pool, struct cudaMemLocation *location,
                                      enum cudaMemAllocationType type)
{
    SIM_TRY(sim_runtime());
    SIM_CHECK(pool && location, cudaErrorInvalidValue);
    SIM_TRY(SIM_DRV(cuMemGetMemPool, pool, (CUmemLocation *)location, (CUmemAllocationType)type));
    return cudaSuccess;
}

SIM_API cudaError_t cudaMemSetMemPool(struct cudaMemLocation *location, enum cudaMemAllocationType type,
                                      cudaMemPool_t pool)
{
    SIM_TRY(sim_runtime());
    SIM_CHECK(location, cudaErrorInvalidValue);
    SIM_TRY(SIM_DRV(cuMemSetMemPool, (CUmemLocation *)location, (CUmemAllocationType)type, pool));
    return cudaSuccess;
}
#endif
