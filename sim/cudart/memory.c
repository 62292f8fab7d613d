/*
 * Device, managed and pinned host memory: allocate, free, register, ask. Each call checks what the runtime
 * itself checks, makes sure of a context and asks the driver; nothing is kept here.
 */
#include <stdint.h>
#include <string.h>

#include "sim/cudart/runtime.h"

/* Elements are at most 4 bytes as far as the pitch is concerned, as with the real runtime. */
enum { PITCH_ELEMENT_BYTES = 4 };

SIM_API cudaError_t cudaMalloc(void **pointer, size_t bytes)
{
    SIM_TRY(sim_context());
    SIM_CHECK(pointer, cudaErrorInvalidValue);
    if (bytes == 0) {
        *pointer = NULL;
        return cudaSuccess;
    }
    SIM_TRY(
        SIM_DRV(cuMemAlloc_v2, (CUdeviceptr *)pointer, bytes)); /* which writes there, also where it fails */
    return cudaSuccess;
}

SIM_API cudaError_t cudaFree(void *pointer)
{
    SIM_TRY(sim_context());
    if (pointer)
        SIM_TRY(SIM_DRV(cuMemFree_v2, sim_devptr(pointer)));
    return cudaSuccess;
}

SIM_API cudaError_t cudaMallocPitch(void **pointer, size_t *pitch, size_t width, size_t height)
{
    CUdeviceptr address;
    size_t granted;

    SIM_TRY(sim_context());
    SIM_CHECK(pointer && pitch, cudaErrorInvalidValue);
    if (width == 0 || height == 0) {
        *pointer = NULL;
        *pitch = 0;
        return cudaSuccess;
    }
    SIM_TRY(SIM_DRV(cuMemAllocPitch_v2, &address, &granted, width, height, PITCH_ELEMENT_BYTES));
    *pointer = sim_pointer(address);
    *pitch = granted;
    return cudaSuccess;
}

SIM_API cudaError_t cudaMalloc3D(struct cudaPitchedPtr *pitched, struct cudaExtent extent)
{
    size_t pitch = 0, rows;
    void *pointer = NULL;

    SIM_TRY(sim_context());
    SIM_CHECK(pitched, cudaErrorInvalidValue);
    SIM_CHECK(!__builtin_mul_overflow(extent.height, extent.depth, &rows), cudaErrorMemoryAllocation);
    SIM_TRY(cudaMallocPitch(&pointer, &pitch, extent.width, rows));
    pitched->ptr = pointer;
    pitched->pitch = pitch;
    pitched->xsize = extent.width;
    pitched->ysize = extent.height;
    return cudaSuccess;
}

SIM_API cudaError_t cudaMallocManaged(void **pointer, size_t bytes, unsigned int flags)
{
    CUdeviceptr address;

    SIM_TRY(sim_context());
    SIM_CHECK(pointer, cudaErrorInvalidValue);
    if (bytes == 0) {
        *pointer = NULL;
        return cudaSuccess;
    }
    SIM_CHECK(flags == cudaMemAttachGlobal || flags == cudaMemAttachHost, cudaErrorInvalidValue);
    SIM_TRY(SIM_DRV(cuMemAllocManaged, &address, bytes, flags));
    *pointer = sim_pointer(address);
    return cudaSuccess;
}

static cudaError_t host_alloc(void **pointer, size_t bytes, unsigned int flags)
{
    void *memory;

    SIM_TRY(sim_context());
    SIM_CHECK(pointer, cudaErrorInvalidValue);
    if (bytes == 0) {
        *pointer = NULL;
        return cudaSuccess;
    }
    SIM_TRY(SIM_DRV(cuMemHostAlloc, &memory, bytes, flags));
    *pointer = memory;
    return cudaSuccess;
}

/* The real one also asks for cuMemHostAlloc here, never for cuMemAllocHost. */
SIM_API cudaError_t cudaMallocHost(void **pointer, size_t bytes)
{
    return host_alloc(pointer, bytes, cudaHostAllocDefault);
}

SIM_API cudaError_t cudaHostAlloc(void **pointer, size_t bytes, unsigned int flags)
{
    return host_alloc(pointer, bytes, flags);
}

SIM_API cudaError_t cudaFreeHost(void *pointer)
{
    SIM_TRY(sim_context());
    if (pointer)
        SIM_TRY(SIM_DRV(cuMemFreeHost, pointer));
    return cudaSuccess;
}

SIM_API cudaError_t cudaHostRegister(void *pointer, size_t bytes, unsigned int flags)
{
    SIM_TRY(sim_context());
    SIM_TRY(SIM_DRV(cuMemHostRegister_v2, pointer, bytes, flags));
    return cudaSuccess;
}

SIM_API cudaError_t cudaHostUnregister(void *pointer)
{
    SIM_TRY(sim_context());
    SIM_TRY(SIM_DRV(cuMemHostUnregister, pointer));
    return cudaSuccess;
}

SIM_API cudaError_t cudaHostGetDevicePointer(void **device, void *host, unsigned int flags)
{
    CUdeviceptr address;

    SIM_TRY(sim_context());
    SIM_CHECK(device, cudaErrorInvalidValue);
    SIM_TRY(SIM_DRV(cuMemHostGetDevicePointer_v2, &address, host, flags));
    *device = sim_pointer(address);
    return cudaSuccess;
}

SIM_API cudaError_t cudaHostGetFlags(unsigned int *flags, void *host)
{
    SIM_TRY(sim_context());
    SIM_CHECK(flags, cudaErrorInvalidValue);
    SIM_TRY(SIM_DRV(cuMemHostGetFlags, flags, host));
    return cudaSuccess;
}

SIM_API cudaError_t cudaMemGetInfo(size_t *free_bytes, size_t *total_bytes)
{
    SIM_TRY(sim_context());
    SIM_CHECK(free_bytes && total_bytes, cudaErrorInvalidValue);
    SIM_TRY(SIM_DRV(cuMemGetInfo_v2, free_bytes, total_bytes));
    return cudaSuccess;
}

static enum cudaMemoryType memory_type(CUmemorytype type, unsigned managed)
{
    if (managed)
        return cudaMemoryTypeManaged;
    if (type == CU_MEMORYTYPE_HOST)
        return cudaMemoryTypeHost;
    if (type == CU_MEMORYTYPE_DEVICE)
        return cudaMemoryTypeDevice;
    return cudaMemoryTypeUnregistered;
}

SIM_API cudaError_t cudaPointerGetAttributes(struct cudaPointerAttributes *attributes, const void *pointer)
{
    CUpointer_attribute wanted[] = {
        CU_POINTER_ATTRIBUTE_MEMORY_TYPE,    CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL,
        CU_POINTER_ATTRIBUTE_DEVICE_POINTER, CU_POINTER_ATTRIBUTE_HOST_POINTER,
        CU_POINTER_ATTRIBUTE_IS_MANAGED,
    };
    /* Attributes that do not apply are left alone or zeroed by the driver: start from "unknown to it". */
    CUmemorytype type = (CUmemorytype)0;
    int ordinal = cudaInvalidDeviceId;
    CUdeviceptr device = 0;
    void *host = NULL;
    unsigned managed = 0;
    void *values[] = {&type, &ordinal, &device, &host, &managed};
    struct cudaPointerAttributes found;

    SIM_TRY(sim_context());
    SIM_CHECK(attributes, cudaErrorInvalidValue);
    SIM_TRY(SIM_DRV(cuPointerGetAttributes, 5, wanted, values, sim_devptr(pointer)));
    memset(&found, 0, sizeof(found));
    found.type = memory_type(type, managed);
    if (found.type == cudaMemoryTypeUnregistered) {
        found.device = cudaInvalidDeviceId;
        found.hostPointer = host;
    } else {
        found.device = ordinal;
        found.devicePointer = sim_pointer(device);
        found.hostPointer = host;
    }
#if SIM_CUDART == 12
    /* CUDA 12's structure ends before the reserved words. */
    memcpy(attributes, &found, sizeof(struct cudaPointerAttributes_12));
#else
    *attributes = found;
#endif
    return cudaSuccess;
}
