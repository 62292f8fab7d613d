/*
 * Device memory: the aclrtMalloc family, its padding and its policies, and what frees it. No lock of its
 * own. */
#include "sim/acl/acl.h"

#define UNIT    32UL
#define PADDING 32UL /* behind what is rounded to a unit; aclrtMallocAlign32 has none */

/* The bytes that are really taken: padded, or whole pages where a policy says so. False where it would
 * overflow. */
static bool granted(size_t bytes, aclrtMemMallocPolicy policy, bool pads, size_t *granted_p)
{
    size_t page = 0, rounded = bytes + UNIT - 1 + (pads ? PADDING : 0);

    if (policy == ACL_MEM_MALLOC_HUGE1G_ONLY || policy == ACL_MEM_MALLOC_HUGE1G_ONLY_P2P)
        page = 1UL << 30;
    else if (policy == ACL_MEM_MALLOC_HUGE_ONLY || policy == ACL_MEM_MALLOC_HUGE_ONLY_P2P)
        page = sim_config.granularity_bytes;
    if (rounded < bytes || bytes + page < bytes)
        return false;
    *granted_p = page ? (bytes + page - 1) / page * page : rounded / UNIT * UNIT;
    return true;
}

/* Of the driver's books: what was asked for is less than what the driver was asked for. */
static void note_padding(CUdeviceptr address, size_t padding)
{
    sim_memory_write_lock();
    struct sim_block *block = sim_block_base(address);
    if (block)
        block->padding = padding;
    sim_memory_unlock();
}

static aclError allocate(void **address_p, size_t bytes, aclrtMemMallocPolicy policy, bool pads)
{
    CUdeviceptr address;
    size_t taken;

    ACL_CHECK(address_p && bytes, ACL_ERROR_INVALID_PARAM);
    ACL_TRY(acl_context());
    ACL_CHECK(granted(bytes, policy, pads, &taken), ACL_ERROR_RT_MEMORY_ALLOCATION);
    ACL_TRY(acl_status(cuMemAlloc_v2(&address, taken)));
    note_padding(address, taken - bytes);
    *address_p = (void *)(uintptr_t)address;
    return ACL_SUCCESS;
}

ACL_API(aclrtMalloc)(void **address_p, size_t bytes, aclrtMemMallocPolicy policy)
{
    ACL_ENTER(aclrtMalloc);
    return allocate(address_p, bytes, policy, true);
}

ACL_API(aclrtMallocAlign32)(void **address_p, size_t bytes, aclrtMemMallocPolicy policy)
{
    ACL_ENTER(aclrtMallocAlign32);
    return allocate(address_p, bytes, policy, false);
}

ACL_API(aclrtMallocCached)(void **address_p, size_t bytes, aclrtMemMallocPolicy policy)
{
    ACL_ENTER(aclrtMallocCached);
    return allocate(address_p, bytes, policy, true);
}

ACL_API(aclrtMallocWithCfg)
(void **address_p, size_t bytes, aclrtMemMallocPolicy policy, aclrtMallocConfig *config)
{
    ACL_ENTER(aclrtMallocWithCfg);
    (void)config;
    return allocate(address_p, bytes, policy, true);
}

ACL_API(aclrtMallocForTaskScheduler)
(void **address_p, size_t bytes, aclrtMemMallocPolicy policy, aclrtMallocConfig *config)
{
    ACL_ENTER(aclrtMallocForTaskScheduler);
    (void)config;
    return allocate(address_p, bytes, policy, true);
}

ACL_API(aclrtMemAllocManaged)(void **address_p, uint64_t bytes, uint32_t flag)
{
    ACL_ENTER(aclrtMemAllocManaged);
    CUdeviceptr address;

    ACL_CHECK(address_p && bytes && flag == ACL_RT_MEM_ATTACH_GLOBAL, ACL_ERROR_INVALID_PARAM);
    ACL_TRY(acl_context());
    ACL_TRY(acl_status(cuMemAllocManaged(&address, bytes, CU_MEM_ATTACH_GLOBAL)));
    *address_p = (void *)(uintptr_t)address;
    return ACL_SUCCESS;
}

/* Frees at once, and waits for nobody: work that still touches the memory breaks, as on hardware. Managed
 * memory waits. */
static aclError release(void *address)
{
    enum sim_block_kind kind = 0;

    ACL_CHECK(address, ACL_ERROR_INVALID_PARAM);
    ACL_TRY(acl_context());
    sim_memory_write_lock();
    struct sim_block *block = sim_block_base((uintptr_t)address);
    if (block)
        kind = block->kind;
    if (kind == SIM_BLOCK_DEVICE)
        sim_heap_free(block);
    sim_memory_unlock();
    if (kind == SIM_BLOCK_MANAGED)
        return acl_status(cuMemFree_v2((uintptr_t)address));
    return kind == SIM_BLOCK_DEVICE ? ACL_SUCCESS : ACL_ERROR_RT_PARAM_INVALID;
}

ACL_API(aclrtFree)(void *address)
{
    ACL_ENTER(aclrtFree);
    return release(address);
}

ACL_API(aclrtFreeWithDevSync)(void *address)
{
    ACL_ENTER(aclrtFreeWithDevSync);
    ACL_CHECK(address, ACL_ERROR_INVALID_PARAM);
    ACL_TRY(acl_status(cuCtxSynchronize()));
    return release(address);
}
