/*
 * Reserved addresses, mappings of whole handles onto them, and who may touch them. The handle's own device
 * may as soon as it is mapped. No lock of its own; the table of handles is locked over each change of it.
 */
#include "sim/acl/acl.h"

static aclError reserve(void **address_p, size_t bytes, size_t alignment, void *wanted, uint64_t flags)
{
    CUdeviceptr address;

    ACL_CHECK(address_p && bytes && !alignment && flags <= 1, ACL_ERROR_INVALID_PARAM);
    size_t granule = sim_config.granularity_bytes, rounded = (bytes + granule - 1) / granule * granule;
    ACL_CHECK(rounded >= bytes, ACL_ERROR_RT_MEMORY_ALLOCATION);
    ACL_TRY(acl_context());
    ACL_TRY(acl_status(cuMemAddressReserve(&address, rounded, 0, (uintptr_t)wanted, 0)));
    *address_p = (void *)(uintptr_t)address;
    return ACL_SUCCESS;
}

ACL_API(aclrtReserveMemAddress)
(void **address_p, size_t bytes, size_t alignment, void *wanted, uint64_t flags)
{
    ACL_ENTER(aclrtReserveMemAddress);
    return reserve(address_p, bytes, alignment, wanted, flags);
}

ACL_API(aclrtReserveMemAddressNoUCMemory)
(void **address_p, size_t bytes, size_t alignment, void *wanted, uint64_t flags)
{
    ACL_ENTER(aclrtReserveMemAddressNoUCMemory);
    ACL_CHECK(wanted, ACL_ERROR_INVALID_PARAM); /* the address is the caller's to choose */
    return reserve(address_p, bytes, alignment, wanted, flags);
}

ACL_API(aclrtReleaseMemAddress)(void *address)
{
    ACL_ENTER(aclrtReleaseMemAddress);
    size_t bytes = 0;

    ACL_CHECK(address, ACL_ERROR_INVALID_PARAM);
    sim_memory_read_lock();
    const struct sim_range *range = sim_range_find(sim_windows, (uintptr_t)address);
    if (range && range->start == (uintptr_t)address)
        bytes = range->bytes;
    sim_memory_unlock();
    ACL_CHECK(bytes, ACL_ERROR_RT_PARAM_INVALID);
    return acl_status(cuMemAddressFree((uintptr_t)address, bytes));
}

/* Lets one location touch a mapping. */
static CUresult permit(uintptr_t address, size_t bytes, const aclrtMemLocation *location,
                       aclrtMemAccessFlags flags)
{
    CUmemAccessDesc desc = {.flags = (CUmemAccess_flags)flags};

    return acl_location(location, &desc.location) ? cuMemSetAccess(address, bytes, &desc, 1)
                                                  : CUDA_ERROR_INVALID_VALUE;
}

static aclError map(void *address, size_t bytes, size_t offset, aclrtDrvMemHandle handle, uint64_t flags,
                    bool open)
{
    CUresult status = CUDA_SUCCESS;

    ACL_CHECK(address && bytes && handle && !flags, ACL_ERROR_INVALID_PARAM);
    ACL_CHECK((uintptr_t)address % sim_config.granularity_bytes == 0, ACL_ERROR_RT_ADDR_UNALIGNED);
    ACL_TRY(acl_context());
    acl_physical_lock();
    struct acl_physical *physical = acl_physical_find(handle);
    bool whole = physical && !offset && bytes == physical->bytes;
    if (whole)
        status = cuMemMap((uintptr_t)address, bytes, 0, physical->number, 0);
    if (whole && status == CUDA_SUCCESS) {
        physical->maps++;
        if (open)
            permit((uintptr_t)address, bytes, &physical->prop.location, ACL_RT_MEM_ACCESS_FLAGS_READWRITE);
    }
    acl_physical_unlock();
    ACL_CHECK(physical, ACL_ERROR_RT_INVALID_HANDLE);
    if (status == CUDA_ERROR_NOT_SUPPORTED) /* CUDA's word for a place where something is mapped */
        status = CUDA_ERROR_INVALID_VALUE;
    return whole ? acl_status(status) : ACL_ERROR_RT_PARAM_INVALID;
}

ACL_API(aclrtMapMem)(void *address, size_t bytes, size_t offset, aclrtDrvMemHandle handle, uint64_t flags)
{
    ACL_ENTER(aclrtMapMem);
    return map(address, bytes, offset, handle, flags, true);
}

ACL_API(aclrtMemMapNoAccess)
(void *address, size_t bytes, size_t offset, aclrtDrvMemHandle handle, uint64_t flags)
{
    ACL_ENTER(aclrtMemMapNoAccess);
    return map(address, bytes, offset, handle, flags, false);
}

/* The mapping that begins at an address; 0 if none does. */
static size_t mapped_bytes(const void *address)
{
    size_t bytes = 0;

    sim_memory_read_lock();
    const struct sim_block *block = sim_block_base((uintptr_t)address);
    if (block && block->kind == SIM_BLOCK_MAPPED)
        bytes = block->range.bytes;
    sim_memory_unlock();
    return bytes;
}

ACL_API(aclrtUnmapMem)(void *address)
{
    ACL_ENTER(aclrtUnmapMem);
    ACL_CHECK(address, ACL_ERROR_INVALID_PARAM);
    ACL_TRY(acl_context());
    acl_physical_lock();
    size_t bytes = mapped_bytes(address);
    struct acl_physical *physical = bytes ? acl_physical_at(address) : NULL;
    CUresult status = physical ? cuMemUnmap((uintptr_t)address, bytes) : CUDA_ERROR_INVALID_VALUE;
    if (status == CUDA_SUCCESS) {
        physical->maps--;
        acl_physical_settle(physical);
    }
    acl_physical_unlock();
    return acl_status(status);
}

ACL_API(aclrtMemSetAccess)(void *address, size_t bytes, aclrtMemAccessDesc *descs, size_t count)
{
    ACL_ENTER(aclrtMemSetAccess);
    ACL_CHECK(address && bytes && descs && count, ACL_ERROR_INVALID_PARAM);
    for (size_t i = 0; i < count; i++)
        ACL_TRY(acl_status(permit((uintptr_t)address, bytes, &descs[i].location, descs[i].flags)));
    return ACL_SUCCESS;
}

ACL_API(aclrtMemGetAccess)(void *address, aclrtMemLocation *location, uint64_t *flags_p)
{
    ACL_ENTER(aclrtMemGetAccess);
    CUmemLocation below;
    unsigned long long flags;

    ACL_CHECK(address && location && flags_p && acl_location(location, &below), ACL_ERROR_INVALID_PARAM);
    ACL_TRY(acl_status(cuMemGetAccess(&flags, &below, (uintptr_t)address)));
    *flags_p = flags;
    return ACL_SUCCESS;
}
