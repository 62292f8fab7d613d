/*
 * ncclMemAlloc and ncclMemFree, by the vendor's own sequence of driver calls: memory by handle in the
 * recommended granularity, which can be shared as a file descriptor, mapped at an address of its own and open
 * to every device that can reach this one; where that is not to be had (NCCL_CUMEM_ENABLE=0, no size, no
 * pointer), ordinary device memory. More may be given than was asked for, and nobody is told how much.
 */
#include <stdlib.h>
#include <string.h>

#include "sim/nccl/nccl.h"

enum { DEVICES = 64 };

static int attribute(CUdevice_attribute which, CUdevice device)
{
    int value = 0;

    return SIM_DRV(cuDeviceGetAttribute, &value, which, device) == CUDA_SUCCESS ? value : 0;
}

static bool uses_handles(CUdevice device)
{
    const char *wanted = secure_getenv("NCCL_CUMEM_ENABLE");

    if (wanted && *wanted == '0')
        return false;
    return attribute(CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, device) != 0;
}

static size_t rounded(size_t bytes, size_t granularity)
{
    return (bytes + granularity - 1) / granularity * granularity;
}

static CUresult create(CUdevice device, size_t *bytes_p, size_t *granularity_p,
                       CUmemGenericAllocationHandle *handle_p)
{
    CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                .requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
                                .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = device}};
    size_t asked = *bytes_p;
    CUresult status;

    if (attribute(CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_FABRIC_SUPPORTED, device))
        prop.requestedHandleTypes |= CU_MEM_HANDLE_TYPE_FABRIC;
    if (attribute(CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WITH_CUDA_VMM_SUPPORTED, device))
        prop.allocFlags.gpuDirectRDMACapable = 1;
    for (;;) {
        status = SIM_DRV(cuMemGetAllocationGranularity, granularity_p, &prop,
                         CU_MEM_ALLOC_GRANULARITY_RECOMMENDED);
        if (status != CUDA_SUCCESS)
            return status;
        *bytes_p = rounded(asked, *granularity_p);
        status = SIM_DRV(cuMemCreate, handle_p, *bytes_p, &prop, 0);
        bool fabric = (prop.requestedHandleTypes & CU_MEM_HANDLE_TYPE_FABRIC) != 0;
        if (!fabric || (status != CUDA_ERROR_NOT_PERMITTED && status != CUDA_ERROR_NOT_SUPPORTED))
            return status;
        prop.requestedHandleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
    }
}

/* Who may touch it: its own device, and every one that can reach that. */
static unsigned describe_access(CUdevice device, CUmemAccessDesc *access)
{
    unsigned count = 0;
    int devices = 0;

    SIM_DRV(cuDeviceGetCount, &devices);
    for (int i = 0; i < devices && i < DEVICES; i++) {
        int reachable = i == device;

        if (!reachable && SIM_DRV(cuDeviceCanAccessPeer, &reachable, i, device) != CUDA_SUCCESS)
            reachable = 0;
        if (reachable)
            access[count++] = (CUmemAccessDesc){.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = i},
                                                .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    }
    return count;
}

static CUresult map(CUdevice device, size_t bytes, size_t granularity, CUmemGenericAllocationHandle handle,
                    CUdeviceptr *address_p)
{
    CUmemAccessDesc access[DEVICES];
    CUdeviceptr address = 0;
    CUresult status = SIM_DRV(cuMemAddressReserve, &address, bytes, granularity, 0, 0);

    if (status != CUDA_SUCCESS)
        return status;
    status = SIM_DRV(cuMemMap, address, bytes, 0, handle, 0);
    if (status == CUDA_SUCCESS) {
        status = SIM_DRV(cuMemSetAccess, address, bytes, access, describe_access(device, access));
        if (status != CUDA_SUCCESS)
            SIM_DRV(cuMemUnmap, address, bytes);
    }
    if (status != CUDA_SUCCESS)
        SIM_DRV(cuMemAddressFree, address, bytes);
    *address_p = address;
    return status;
}

/* As the runtime's cudaMalloc answers. */
static ncclResult_t alloc_plainly(void **pointer_p, size_t bytes)
{
    CUdeviceptr address = 0;

    if (!pointer_p)
        return sim_cuda(CUDA_ERROR_INVALID_VALUE);
    if (bytes)
        SIM_TRY(sim_cuda(SIM_DRV(cuMemAlloc_v2, &address, bytes)));
    *pointer_p = (void *)(uintptr_t)address;
    return ncclSuccess;
}

SIM_NCCL(ncclResult_t, MemAlloc, (void **pointer_p, size_t bytes))
{
    CUmemGenericAllocationHandle handle;
    CUdeviceptr address = 0;
    size_t granularity;
    CUdevice device;
    CUresult status;

    SIM_TRY(sim_device(&device));
    if (!pointer_p || !bytes || !uses_handles(device))
        return alloc_plainly(pointer_p, bytes);
    SIM_TRY(sim_cuda(create(device, &bytes, &granularity, &handle)));
    status = map(device, bytes, granularity, handle, &address);
    if (status != CUDA_SUCCESS) {
        SIM_DRV(cuMemRelease, handle);
        return sim_cuda(status);
    }
    *pointer_p = (void *)(uintptr_t)address;
    return ncclSuccess;
}

/* The handle, once more, tells memory by handle from the other; both references go, and with the mapping the
 * memory. */
static CUresult free_mapped(CUdeviceptr address, CUmemGenericAllocationHandle handle)
{
    size_t bytes = 0;
    CUresult status = SIM_DRV(cuMemRelease, handle);

    if (status == CUDA_SUCCESS)
        status = SIM_DRV(cuMemGetAddressRange_v2, NULL, &bytes, address);
    if (status == CUDA_SUCCESS)
        status = SIM_DRV(cuMemUnmap, address, bytes);
    if (status == CUDA_SUCCESS)
        status = SIM_DRV(cuMemRelease, handle);
    return status == CUDA_SUCCESS ? SIM_DRV(cuMemAddressFree, address, bytes) : status;
}

static CUresult free_any(CUdeviceptr address, CUdevice device)
{
    CUmemGenericAllocationHandle handle;

    if (uses_handles(device) &&
        SIM_DRV(cuMemRetainAllocationHandle, &handle, (void *)(uintptr_t)address) == CUDA_SUCCESS)
        return free_mapped(address, handle);
    return SIM_DRV(cuMemFree_v2, address);
}

SIM_NCCL(ncclResult_t, MemFree, (void *pointer))
{
    CUdeviceptr address = (uintptr_t)pointer;
    CUcontext context, ours;
    CUdevice device;
    int ordinal = 0;
    CUresult status;

    SIM_TRY(sim_device(&device));
    if (!pointer)
        return ncclSuccess;
    SIM_TRY(sim_cuda(SIM_DRV(cuPointerGetAttribute, &ordinal, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, address)));
    if (ordinal == device)
        return sim_cuda(free_any(address, device));
    SIM_TRY(sim_context_of(ordinal, &context));
    SIM_TRY(sim_cuda(SIM_DRV(cuCtxPushCurrent_v2, context)));
    status = free_any(address, ordinal);
    SIM_DRV(cuCtxPopCurrent_v2, &ours);
    return sim_cuda(status);
}
