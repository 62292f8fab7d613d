/*
 * Questions about memory. No lock of its own.
 */
#include "sim/acl/acl.h"

ACL_API(aclrtGetMemInfo)(aclrtMemAttr attr, size_t *free_p, size_t *total_p)
{
    ACL_ENTER(aclrtGetMemInfo);
    ACL_CHECK(free_p && total_p && (unsigned)attr <= ACL_MEM_P2P_HUGE1G, ACL_ERROR_INVALID_PARAM);
    ACL_TRY(acl_context());
    return acl_status(cuMemGetInfo_v2(free_p, total_p));
}

ACL_API(aclrtMemGetAddressRange)(void *address, void **base_p, size_t *bytes_p)
{
    ACL_ENTER(aclrtMemGetAddressRange);
    CUdeviceptr base;
    size_t bytes;

    ACL_CHECK(address && base_p && bytes_p, ACL_ERROR_INVALID_PARAM);
    ACL_TRY(acl_status(cuMemGetAddressRange_v2(&base, &bytes, (uintptr_t)address)));
    *base_p = (void *)(uintptr_t)base;
    *bytes_p = bytes;
    return ACL_SUCCESS;
}

ACL_API(aclrtPointerGetAttributes)(const void *address, aclrtPtrAttributes *attributes)
{
    ACL_ENTER(aclrtPointerGetAttributes);
    aclrtPtrAttributes found = {.location = {0, ACL_MEM_LOCATION_TYPE_UNREGISTERED}};

    ACL_CHECK(address && attributes, ACL_ERROR_INVALID_PARAM);
    sim_memory_read_lock();
    const struct sim_block *block = sim_block_at((uintptr_t)address);
    if (block && !block->freed && !block->claimed) {
        bool host = block->device == SIM_HOST;
        found.location.type = block->kind == SIM_BLOCK_MANAGED ? ACL_MEM_LOCATION_TYPE_MANAGED
                              : host                           ? ACL_MEM_LOCATION_TYPE_HOST
                                                               : ACL_MEM_LOCATION_TYPE_DEVICE;
        found.location.id = host ? 0 : (uint32_t)block->device;
        found.pageSize = host ? 4096 : (uint32_t)sim_config.granularity_bytes;
    }
    sim_memory_unlock();
    *attributes = found;
    return ACL_SUCCESS;
}
