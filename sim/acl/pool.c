/*
 * Memory pools and stream-ordered calls: the rooms below have pools of the same attributes. No lock of its
 * own.
 */
#include <string.h>

#include "sim/acl/acl.h"

ACL_API(aclrtMemPoolCreate)(aclrtMemPool *pool_p, const aclrtMemPoolProps *props)
{
    ACL_ENTER(aclrtMemPoolCreate);
    CUmemPoolProps below = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED};
    CUmemoryPool pool;

    ACL_CHECK(pool_p && props && props->allocType == ACL_MEM_ALLOCATION_TYPE_PINNED &&
                  props->handleType == ACL_MEM_HANDLE_TYPE_NONE &&
                  props->location.type == ACL_MEM_LOCATION_TYPE_DEVICE,
              ACL_ERROR_INVALID_PARAM);
    ACL_CHECK(sim_device((int)props->location.id), ACL_ERROR_RT_INVALID_DEVICEID);
    below.location = (CUmemLocation){CU_MEM_LOCATION_TYPE_DEVICE, (int)props->location.id};
    below.maxSize = props->maxSize;
    ACL_TRY(acl_status(cuMemPoolCreate(&pool, &below)));
    *pool_p = pool;
    return ACL_SUCCESS;
}

ACL_API(aclrtMemPoolDestroy)(aclrtMemPool pool)
{
    ACL_ENTER(aclrtMemPoolDestroy);
    ACL_CHECK(pool, ACL_ERROR_INVALID_PARAM);
    return acl_status(cuMemPoolDestroy(pool));
}

ACL_API(aclrtMemPoolMallocAsync)(void **address_p, size_t bytes, aclrtMemPool pool, aclrtStream stream)
{
    ACL_ENTER(aclrtMemPoolMallocAsync);
    CUdeviceptr address;

    ACL_CHECK(address_p && bytes && pool, ACL_ERROR_INVALID_PARAM);
    ACL_CHECK(acl_stream_valid(stream), ACL_ERROR_RT_INVALID_HANDLE);
    ACL_TRY(acl_context());
    ACL_TRY(acl_status(cuMemAllocFromPoolAsync(&address, bytes, pool, stream)));
    *address_p = (void *)(uintptr_t)address;
    return ACL_SUCCESS;
}

ACL_API(aclrtMemPoolFreeAsync)(void *address, aclrtStream stream)
{
    ACL_ENTER(aclrtMemPoolFreeAsync);
    ACL_CHECK(address, ACL_ERROR_INVALID_PARAM);
    ACL_CHECK(acl_stream_valid(stream), ACL_ERROR_RT_INVALID_HANDLE);
    sim_memory_read_lock();
    struct sim_block *block = sim_block_base((uintptr_t)address);
    bool ours = block && block->kind == SIM_BLOCK_POOL;
    sim_memory_unlock();
    ACL_CHECK(ours, ACL_ERROR_RT_PARAM_INVALID);
    return acl_status(cuMemFreeAsync((uintptr_t)address, stream));
}

ACL_API(aclrtMemPoolSetAttr)(aclrtMemPool pool, aclrtMemPoolAttr attr, void *value)
{
    ACL_ENTER(aclrtMemPoolSetAttr);
    ACL_CHECK(pool && value, ACL_ERROR_INVALID_PARAM);
    return acl_status(cuMemPoolSetAttribute(pool, (CUmemPool_attribute)attr, value));
}

ACL_API(aclrtMemPoolGetAttr)(aclrtMemPool pool, aclrtMemPoolAttr attr, void *value)
{
    ACL_ENTER(aclrtMemPoolGetAttr);
    ACL_CHECK(pool && value, ACL_ERROR_INVALID_PARAM);
    return acl_status(cuMemPoolGetAttribute(pool, (CUmemPool_attribute)attr, value));
}

ACL_API(aclrtMemPoolTrimTo)(aclrtMemPool pool, size_t keep_bytes)
{
    ACL_ENTER(aclrtMemPoolTrimTo);
    ACL_CHECK(pool, ACL_ERROR_INVALID_PARAM);
    return acl_status(cuMemPoolTrimTo(pool, keep_bytes));
}
