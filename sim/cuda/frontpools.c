/*
 * The end of all pools of a device, where another vendor's reset ends them (front.h). Lock: memory.
 */
#include "sim/cuda/front.h"
#include "sim/cuda/memory/pool.h"

static CUdeviceptr block_of(const struct sim_device *device)
{
    CUdeviceptr address = 0;

    sim_memory_read_lock();
    for (struct sim_block *block = sim_block_next(NULL); block && !address; block = sim_block_next(block))
        if (block->kind == SIM_BLOCK_POOL && block->pool->device == device && !block->freed &&
            !block->claimed)
            address = block->range.start;
    sim_memory_unlock();
    return address;
}

static struct CUmemPoolHandle_st *made_pool_of(const struct sim_device *device)
{
    struct CUmemPoolHandle_st *pool;

    sim_memory_read_lock();
    for (pool = sim_pools; pool; pool = pool->next)
        if (pool->device == device && !pool->is_default && !pool->retired)
            break;
    sim_memory_unlock();
    return pool;
}

static void begin_anew(struct CUmemPoolHandle_st *pool)
{
    sim_memory_write_lock();
    pool->threshold = 0;
    pool->follow_events = pool->opportunistic = pool->internal = 1;
    pool->readable = pool->writable = 1U << pool->device->ordinal;
    sim_pool_trim(pool, 0);
    pool->reserved_high = pool->reserved;
    pool->used_high = pool->used;
    sim_memory_unlock();
}

void sim_front_end_pools(int ordinal)
{
    struct sim_device *device = sim_device(ordinal);
    struct CUmemPoolHandle_st *pool;
    CUdeviceptr address;

    if (!device)
        return;
    cuCtxSynchronize();
    while ((address = block_of(device)) && cuMemFree_v2(address) == CUDA_SUCCESS)
        continue;
    cuCtxSynchronize();
    while ((pool = made_pool_of(device)) && cuMemPoolDestroy(pool) == CUDA_SUCCESS)
        continue;
    pool = atomic_load(&device->default_pool);
    if (pool)
        begin_anew(pool);
}
