/*
 * Mapping by handle. Until 5 the properties of an allocation are laid out otherwise; what cannot be reserved
 * is a lack of memory.
 */
#include "sim/hip/hip.h"

/* As the rooms have it; false for what HIP refuses. */
static bool read_prop(const hipMemAllocationProp *given, CUmemAllocationProp *prop_p)
{
    if (!given)
        return false;
    *prop_p = (CUmemAllocationProp){0};
    if (SIM_HIP < 6) {
        const hipMemAllocationProp5 *old = (const hipMemAllocationProp5 *)(const void *)given;
        prop_p->type = (CUmemAllocationType)old->type;
        prop_p->requestedHandleTypes = (CUmemAllocationHandleType)old->requestedHandleType;
        prop_p->location.type = (CUmemLocationType)old->location.type;
        prop_p->location.id = old->location.id;
    } else {
        prop_p->type = (CUmemAllocationType)given->type;
        prop_p->requestedHandleTypes = (CUmemAllocationHandleType)given->requestedHandleType;
        prop_p->location.type = (CUmemLocationType)given->location.type;
        prop_p->location.id = given->location.id;
    }
    return prop_p->type == CU_MEM_ALLOCATION_TYPE_PINNED &&
           prop_p->location.type == CU_MEM_LOCATION_TYPE_DEVICE;
}

HIP_API hipMemGetAllocationGranularity(size_t *bytes, const hipMemAllocationProp *given,
                                       hipMemAllocationGranularity_flags option)
{
    CUmemAllocationProp prop;

    HIP_ENTER_DEVICE(hipMemGetAllocationGranularity);
    if (!bytes || !read_prop(given, &prop))
        return hip_leave(hipErrorInvalidValue);
    return hip_leave(cuMemGetAllocationGranularity(bytes, &prop, (CUmemAllocationGranularity_flags)option));
}

HIP_API hipMemCreate(hipMemGenericAllocationHandle_t *handle, size_t size, const hipMemAllocationProp *given,
                     unsigned long long flags)
{
    CUmemGenericAllocationHandle made = 0;
    CUmemAllocationProp prop;

    HIP_ENTER_DEVICE(hipMemCreate);
    if (!handle || !size || flags || !read_prop(given, &prop))
        return hip_leave(hipErrorInvalidValue);
    if (prop.requestedHandleTypes > CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
        return hip_leave(hipErrorNotSupported);
    int status = (int)cuMemCreate(&made, size, &prop, 0);
    if (status == hipSuccess)
        *handle = (hipMemGenericAllocationHandle_t)(uintptr_t)made;
    return hip_leave(status);
}

HIP_API hipMemAddressReserve(void **ptr, size_t size, size_t alignment, void *address,
                             unsigned long long flags)
{
    CUdeviceptr made = 0;

    HIP_ENTER_DEVICE(hipMemAddressReserve);
    if (!ptr || flags)
        return hip_leave(hipErrorInvalidValue);
    int status = (int)cuMemAddressReserve(&made, size, alignment, hip_address(address), 0);
    if (status == hipSuccess)
        *ptr = (void *)(uintptr_t)made;
    return hip_leave(status == hipErrorInvalidValue ? (int)hipErrorOutOfMemory : status);
}

HIP_API hipMemRetainAllocationHandle(hipMemGenericAllocationHandle_t *handle, void *address)
{
    CUmemGenericAllocationHandle found = 0;

    HIP_ENTER_DEVICE(hipMemRetainAllocationHandle);
    if (!handle)
        return hip_leave(hipErrorInvalidValue);
    int status = (int)cuMemRetainAllocationHandle(&found, address);
    if (status == hipSuccess)
        *handle = (hipMemGenericAllocationHandle_t)(uintptr_t)found;
    return hip_leave(status);
}

HIP_API hipMemGetAllocationPropertiesFromHandle(hipMemAllocationProp *out,
                                                hipMemGenericAllocationHandle_t handle)
{
    CUmemAllocationProp prop;

    HIP_ENTER_DEVICE(hipMemGetAllocationPropertiesFromHandle);
    if (!out)
        return hip_leave(hipErrorInvalidValue);
    int status = (int)cuMemGetAllocationPropertiesFromHandle(&prop, (uintptr_t)handle);
    if (status != hipSuccess)
        return hip_leave(status);
    const hipMemLocation location = {(hipMemLocationType)prop.location.type, prop.location.id};
    if (SIM_HIP < 6)
        *(hipMemAllocationProp5 *)(void *)out = (hipMemAllocationProp5){
            .location = location,
            .requestedHandleType = (hipMemAllocationHandleType)prop.requestedHandleTypes,
            .type = (hipMemAllocationType)prop.type};
    else
        *out = (hipMemAllocationProp){.type = (hipMemAllocationType)prop.type,
                                      .location = location,
                                      .requestedHandleType =
                                          (hipMemAllocationHandleType)prop.requestedHandleTypes};
    return hip_leave(hipSuccess);
}

HIP_API hipMemImportFromShareableHandle(hipMemGenericAllocationHandle_t *handle, void *shareable,
                                        hipMemAllocationHandleType type)
{
    CUmemGenericAllocationHandle made = 0;

    HIP_ENTER_DEVICE(hipMemImportFromShareableHandle);
    if (!handle)
        return hip_leave(hipErrorInvalidValue);
    int status = (int)cuMemImportFromShareableHandle(&made, shareable, (CUmemAllocationHandleType)type);
    if (status == hipSuccess)
        *handle = (hipMemGenericAllocationHandle_t)(uintptr_t)made;
    return hip_leave(status);
}

HIP_AS(hipMemAddressFree, (void *ptr, size_t size), cuMemAddressFree(hip_address(ptr), size))
HIP_AS(hipMemRelease, (hipMemGenericAllocationHandle_t handle), cuMemRelease((uintptr_t)handle))
HIP_AS(hipMemMap,
       (void *ptr, size_t size, size_t offset, hipMemGenericAllocationHandle_t handle,
        unsigned long long flags),
       cuMemMap(hip_address(ptr), size, offset, (uintptr_t)handle, flags))
HIP_AS(hipMemUnmap, (void *ptr, size_t size), cuMemUnmap(hip_address(ptr), size))
HIP_AS(hipMemSetAccess, (void *ptr, size_t size, const hipMemAccessDesc *list, size_t count),
       cuMemSetAccess(hip_address(ptr), size, (const CUmemAccessDesc *)list, count))
HIP_AS(hipMemGetAccess, (unsigned long long *flags, const hipMemLocation *location, void *ptr),
       cuMemGetAccess(flags, (const CUmemLocation *)location, hip_address(ptr)))
HIP_AS(hipMemExportToShareableHandle,
       (void *shareable, hipMemGenericAllocationHandle_t handle, hipMemAllocationHandleType type,
        unsigned long long flags),
       cuMemExportToShareableHandle(shareable, (uintptr_t)handle, (CUmemAllocationHandleType)type, flags))
