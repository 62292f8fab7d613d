/*
 * The attributes of a memory pool, asked for and set, and who may reach its memory. Lock: memory.
 */
#include "sim/cuda/memory/pool.h"

static int *policy(struct CUmemPoolHandle_st *pool, CUmemPool_attribute attribute)
{
    switch ((int)attribute) {
    case CU_MEMPOOL_ATTR_REUSE_FOLLOW_EVENT_DEPENDENCIES:
        return &pool->follow_events;
    case CU_MEMPOOL_ATTR_REUSE_ALLOW_OPPORTUNISTIC:
        return &pool->opportunistic;
    case CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES:
        return &pool->internal;
    default:
        return NULL;
    }
}

static CUresult get_attribute(struct CUmemPoolHandle_st *pool, CUmemPool_attribute attribute, void *value)
{
    const int *flag = policy(pool, attribute);
    uint64_t number;

    if (flag) {
        *(int *)value = *flag;
        return CUDA_SUCCESS;
    }
    switch ((int)attribute) {
    case CU_MEMPOOL_ATTR_RELEASE_THRESHOLD:
        number = pool->threshold;
        break;
    case CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT:
        number = pool->reserved;
        break;
    case CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH:
        number = pool->reserved_high;
        break;
    case CU_MEMPOOL_ATTR_USED_MEM_CURRENT:
        number = pool->used;
        break;
    case CU_MEMPOOL_ATTR_USED_MEM_HIGH:
        number = pool->used_high;
        break;
    default:
        return CUDA_ERROR_INVALID_VALUE;
    }
    *(cuuint64_t *)value = number;
    return CUDA_SUCCESS;
}

/* High-water marks can only be set back to what is current, by writing 0. */
static CUresult set_attribute(struct CUmemPoolHandle_st *pool, CUmemPool_attribute attribute,
                              const void *value)
{
    int *flag = policy(pool, attribute);

    if (flag) {
        *flag = *(const int *)value != 0;
        return CUDA_SUCCESS;
    }
    cuuint64_t number = *(const cuuint64_t *)value;
    if (attribute == CU_MEMPOOL_ATTR_RELEASE_THRESHOLD)
        pool->threshold = number;
    else if (attribute == CU_MEMPOOL_ATTR_RESERVED_MEM_HIGH && !number)
        pool->reserved_high = pool->reserved;
    else if (attribute == CU_MEMPOOL_ATTR_USED_MEM_HIGH && !number)
        pool->used_high = pool->used;
    else
        return CUDA_ERROR_INVALID_VALUE;
    return CUDA_SUCCESS;
}

SIM_API(cuMemPoolGetAttribute)(CUmemoryPool handle, CUmemPool_attribute attribute, void *value)
{
    SIM_ENTER(cuMemPoolGetAttribute);
    SIM_REFUSE_UNSAFE();
    struct CUmemPoolHandle_st *pool = value ? sim_object_get(handle, SIM_POOL) : NULL;

    if (!pool)
        return CUDA_ERROR_INVALID_VALUE;
    sim_memory_read_lock();
    CUresult status = get_attribute(pool, attribute, value);
    sim_memory_unlock();
    sim_object_put(pool);
    return status;
}

SIM_API(cuMemPoolSetAttribute)(CUmemoryPool handle, CUmemPool_attribute attribute, void *value)
{
    SIM_ENTER(cuMemPoolSetAttribute);
    struct CUmemPoolHandle_st *pool = value ? sim_object_get(handle, SIM_POOL) : NULL;

    if (!pool)
        return CUDA_ERROR_INVALID_VALUE;
    sim_memory_write_lock();
    CUresult status = set_attribute(pool, attribute, value);
    sim_memory_unlock();
    sim_object_put(pool);
    return status;
}

/* The owner's access cannot be taken away. */
static CUresult check_access(const struct CUmemPoolHandle_st *pool, const CUmemAccessDesc *desc)
{
    bool known = desc->flags == CU_MEM_ACCESS_FLAGS_PROT_NONE ||
                 desc->flags == CU_MEM_ACCESS_FLAGS_PROT_READ ||
                 desc->flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE;

    if (desc->location.type != CU_MEM_LOCATION_TYPE_DEVICE || !sim_device(desc->location.id) || !known)
        return CUDA_ERROR_INVALID_VALUE;
    if (pool->device && pool->device->ordinal == desc->location.id &&
        desc->flags != CU_MEM_ACCESS_FLAGS_PROT_READWRITE)
        return CUDA_ERROR_INVALID_DEVICE;
    return CUDA_SUCCESS;
}

static void set_bit(unsigned *mask, unsigned bit, bool on)
{
    *mask = on ? *mask | bit : *mask & ~bit;
}

SIM_API(cuMemPoolSetAccess)(CUmemoryPool handle, const CUmemAccessDesc *descs, size_t count)
{
    SIM_ENTER(cuMemPoolSetAccess);
    struct CUmemPoolHandle_st *pool = descs || !count ? sim_object_get(handle, SIM_POOL) : NULL;
    CUresult status = pool ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;

    for (size_t i = 0; i < count && status == CUDA_SUCCESS; i++)
        status = check_access(pool, &descs[i]);
    if (status == CUDA_SUCCESS) {
        sim_memory_write_lock();
        for (size_t i = 0; i < count; i++) {
            unsigned bit = 1U << descs[i].location.id;
            set_bit(&pool->readable, bit, descs[i].flags & CU_MEM_ACCESS_FLAGS_PROT_READ);
            set_bit(&pool->writable, bit, descs[i].flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
        }
        sim_pool_spread_access(pool);
        sim_memory_unlock();
    }
    if (pool)
        sim_object_put(pool);
    return status;
}

SIM_API(cuMemPoolGetAccess)(CUmemAccess_flags *flags_p, CUmemoryPool handle, CUmemLocation *location)
{
    SIM_ENTER(cuMemPoolGetAccess);
    bool good =
        flags_p && location && location->type == CU_MEM_LOCATION_TYPE_DEVICE && sim_device(location->id);
    struct CUmemPoolHandle_st *pool = good ? sim_object_get(handle, SIM_POOL) : NULL;

    if (!pool)
        return CUDA_ERROR_INVALID_VALUE;
    unsigned bit = 1U << location->id;
    sim_memory_read_lock();
    *flags_p = pool->writable & bit   ? CU_MEM_ACCESS_FLAGS_PROT_READWRITE
               : pool->readable & bit ? CU_MEM_ACCESS_FLAGS_PROT_READ
                                      : CU_MEM_ACCESS_FLAGS_PROT_NONE;
    sim_memory_unlock();
    sim_object_put(pool);
    return CUDA_SUCCESS;
}
