/*
 * Memory pools and stream-ordered memory as programs call them.
 */
#include <string.h>

#include "pool.h"

/* --- allocating and freeing in stream order ---------------------------------------------------------------------- */

static CUresult alloc_on(struct CUmemPoolHandle_st *pool, CUdeviceptr *address_p, size_t bytes, struct sim_queue *queue)
{
    if (bytes)
        return sim_pool_alloc(pool, bytes, queue, address_p);
    *address_p = 0;
    return CUDA_SUCCESS;
}

static struct CUmemPoolHandle_st *current_pool(struct sim_device *device)
{
    struct CUmemPoolHandle_st *first = sim_pool_default(device);

    sim_memory_read_lock();
    struct CUmemPoolHandle_st *pool = device->current_pool ? device->current_pool : first;
    if (pool)
        sim_object_ref(pool);
    sim_memory_unlock();
    return pool;
}

static CUresult alloc(CUdeviceptr *address_p, size_t bytes, CUmemoryPool handle, bool from_pool, CUstream stream,
                      bool per_thread)
{
    struct sim_queue *queue;
    CUresult status = sim_stream_queue(stream, per_thread, &queue);

    if (status != CUDA_SUCCESS)
        return status;
    struct CUmemPoolHandle_st *pool = NULL;
    if (address_p)
        pool = from_pool ? sim_object_get(handle, SIM_POOL) : current_pool(queue->ctx->device);
    status = pool ? alloc_on(pool, address_p, bytes, queue)
                  : (address_p && !from_pool ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_ERROR_INVALID_VALUE);
    if (pool)
        sim_object_put(pool);
    sim_queue_put(queue);
    return status;
}

SIM_PAIR(cuMemAllocAsync, ptsz, (CUdeviceptr *address_p, size_t bytes, CUstream stream),
         alloc(address_p, bytes, NULL, false, stream, per_thread))
SIM_PAIR(cuMemAllocFromPoolAsync, ptsz, (CUdeviceptr *address_p, size_t bytes, CUmemoryPool pool, CUstream stream),
         alloc(address_p, bytes, pool, true, stream, per_thread))

struct free_op {
    struct sim_op op;
    struct sim_block *block;
};

static CUresult run_free(struct sim_op *op, struct sim_queue *queue)
{
    (void)queue;
    sim_memory_write_lock();
    sim_heap_free(((struct free_op *)op)->block);
    sim_memory_unlock();
    return CUDA_SUCCESS;
}

/* Plain device memory freed in stream order, as drivers accept it. */
static CUresult free_plain_later(struct sim_block *block, struct sim_queue *queue)
{
    struct free_op *op = sim_op_new(sizeof *op, run_free);

    if (!op)
        return CUDA_ERROR_OUT_OF_MEMORY;
    op->op.always = true;
    op->block = block;
    sim_queue_push(queue, &op->op);
    return CUDA_SUCCESS;
}

static CUresult free_on(CUdeviceptr address, struct sim_queue *queue)
{
    sim_memory_write_lock();
    struct sim_block *block = sim_block_base(address);
    bool ours = block && (block->kind == SIM_BLOCK_POOL || block->kind == SIM_BLOCK_DEVICE ||
                          block->kind == SIM_BLOCK_IMPORTED);
    if (ours)
        block->claimed = true;
    sim_memory_unlock();
    if (!ours)
        return CUDA_ERROR_INVALID_VALUE;
    if (block->kind == SIM_BLOCK_POOL)
        return sim_pool_free_later(block, queue);
    if (block->kind == SIM_BLOCK_DEVICE)
        return free_plain_later(block, queue);
    return sim_pool_drop_import(block, queue);
}

static CUresult free_async(CUdeviceptr address, CUstream stream, bool per_thread)
{
    struct sim_queue *queue;
    CUresult status = sim_stream_queue(stream, per_thread, &queue);

    if (status != CUDA_SUCCESS)
        return status;
    if (address)
        status = free_on(address, queue);
    sim_queue_put(queue);
    return status;
}

SIM_PAIR(cuMemFreeAsync, ptsz, (CUdeviceptr address, CUstream stream), free_async(address, stream, per_thread))

/* --- pools --------------------------------------------------------------------------------------------------------- */

static CUresult check_location(const CUmemPoolProps *props)
{
    switch ((int)props->location.type) {
    case CU_MEM_LOCATION_TYPE_DEVICE:
        return sim_device(props->location.id) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    case CU_MEM_LOCATION_TYPE_HOST_NUMA:
        return !props->location.id ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    case CU_MEM_LOCATION_TYPE_HOST:
        return !props->handleTypes ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    case CU_MEM_LOCATION_TYPE_NONE:
        return props->allocType == CU_MEM_ALLOCATION_TYPE_MANAGED ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    default:
        return CUDA_ERROR_INVALID_VALUE;
    }
}

static CUresult check_props(const CUmemPoolProps *props)
{
    static const unsigned char zero[sizeof props->reserved];
    bool known = props->allocType == CU_MEM_ALLOCATION_TYPE_PINNED || props->allocType == CU_MEM_ALLOCATION_TYPE_MANAGED;

    if (!known || props->win32SecurityAttributes || memcmp(props->reserved, zero, sizeof zero) ||
        (props->usage & ~CU_MEM_POOL_CREATE_USAGE_HW_DECOMPRESS))
        return CUDA_ERROR_INVALID_VALUE;
    if (props->handleTypes & ~(unsigned)CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
        return CUDA_ERROR_NOT_SUPPORTED;
    if (props->allocType == CU_MEM_ALLOCATION_TYPE_MANAGED && props->handleTypes)
        return CUDA_ERROR_INVALID_VALUE;
    return check_location(props);
}

SIM_API(cuMemPoolCreate)(CUmemoryPool *pool_p, const CUmemPoolProps *props)
{
    SIM_ENTER(cuMemPoolCreate);
    CUresult status = pool_p && props ? check_props(props) : CUDA_ERROR_INVALID_VALUE;

    if (status != CUDA_SUCCESS)
        return status;
    struct CUmemPoolHandle_st *pool = sim_pool_new(props, &status);
    if (!pool)
        return status;
    sim_object_publish(pool);
    *pool_p = pool;
    return CUDA_SUCCESS;
}

SIM_API(cuMemPoolDestroy)(CUmemoryPool handle)
{
    SIM_ENTER(cuMemPoolDestroy);
    struct CUmemPoolHandle_st *pool = sim_object_get(handle, SIM_POOL);

    if (!pool)
        return CUDA_ERROR_INVALID_VALUE;
    CUresult status = pool->is_default ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
    if (status == CUDA_SUCCESS && sim_object_retire(pool)) {
        sim_memory_write_lock();
        for (unsigned i = 0; i < sim_config.devices; i++)
            if (sim_devices[i].current_pool == pool)
                sim_devices[i].current_pool = NULL;
        sim_memory_unlock();
        sim_object_put(pool);
    }
    sim_object_put(pool);
    return status;
}

static CUresult get_default(CUmemoryPool *pool_p, CUdevice ordinal)
{
    struct sim_device *device = sim_device(ordinal);

    if (!device)
        return CUDA_ERROR_INVALID_DEVICE;
    if (!pool_p)
        return CUDA_ERROR_INVALID_VALUE;
    *pool_p = sim_pool_default(device);
    return *pool_p ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

static CUresult get_current(CUmemoryPool *pool_p, CUdevice ordinal)
{
    CUresult status = get_default(pool_p, ordinal);

    if (status != CUDA_SUCCESS)
        return status;
    sim_memory_read_lock();
    if (sim_devices[ordinal].current_pool)
        *pool_p = sim_devices[ordinal].current_pool;
    sim_memory_unlock();
    return CUDA_SUCCESS;
}

static CUresult set_current(CUdevice ordinal, CUmemoryPool handle)
{
    struct sim_device *device = sim_device(ordinal);
    struct CUmemPoolHandle_st *pool = device ? sim_object_get(handle, SIM_POOL) : NULL;

    if (!pool)
        return device ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_INVALID_DEVICE;
    CUresult status = pool->device == device && !pool->imported ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    if (status == CUDA_SUCCESS) {
        sim_memory_write_lock();
        device->current_pool = pool;
        sim_memory_unlock();
    }
    sim_object_put(pool);
    return status;
}

SIM_API(cuDeviceGetDefaultMemPool)(CUmemoryPool *pool_p, CUdevice device)
{
    SIM_ENTER(cuDeviceGetDefaultMemPool);
    return get_default(pool_p, device);
}

SIM_API(cuDeviceGetMemPool)(CUmemoryPool *pool_p, CUdevice device)
{
    SIM_ENTER(cuDeviceGetMemPool);
    return get_current(pool_p, device);
}

SIM_API(cuDeviceSetMemPool)(CUdevice device, CUmemoryPool pool)
{
    SIM_ENTER(cuDeviceSetMemPool);
    return set_current(device, pool);
}

/* The same three by location. Only pinned memory of a device has a default here. */
static CUresult check_kind(const CUmemLocation *location, CUmemAllocationType type)
{
    if (!location || (type != CU_MEM_ALLOCATION_TYPE_PINNED && type != CU_MEM_ALLOCATION_TYPE_MANAGED))
        return CUDA_ERROR_INVALID_VALUE;
    if (type != CU_MEM_ALLOCATION_TYPE_PINNED || location->type != CU_MEM_LOCATION_TYPE_DEVICE)
        return CUDA_ERROR_NOT_SUPPORTED;
    return CUDA_SUCCESS;
}

SIM_API(cuMemGetDefaultMemPool)(CUmemoryPool *pool_p, CUmemLocation *location, CUmemAllocationType type)
{
    SIM_ENTER(cuMemGetDefaultMemPool);
    CUresult status = check_kind(location, type);

    return status == CUDA_SUCCESS ? get_default(pool_p, location->id) : status;
}

SIM_API(cuMemGetMemPool)(CUmemoryPool *pool_p, CUmemLocation *location, CUmemAllocationType type)
{
    SIM_ENTER(cuMemGetMemPool);
    CUresult status = check_kind(location, type);

    return status == CUDA_SUCCESS ? get_current(pool_p, location->id) : status;
}

SIM_API(cuMemSetMemPool)(CUmemLocation *location, CUmemAllocationType type, CUmemoryPool pool)
{
    SIM_ENTER(cuMemSetMemPool);
    CUresult status = check_kind(location, type);

    return status == CUDA_SUCCESS ? set_current(location->id, pool) : status;
}

SIM_API(cuMemPoolTrimTo)(CUmemoryPool handle, size_t keep)
{
    SIM_ENTER(cuMemPoolTrimTo);
    struct CUmemPoolHandle_st *pool = sim_object_get(handle, SIM_POOL);

    if (!pool)
        return CUDA_ERROR_INVALID_VALUE;
    sim_memory_write_lock();
    sim_pool_trim(pool, keep);
    sim_memory_unlock();
    sim_object_put(pool);
    return CUDA_SUCCESS;
}

/* --- attributes and access ------------------------------------------------------------------------------------------ */

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
static CUresult set_attribute(struct CUmemPoolHandle_st *pool, CUmemPool_attribute attribute, const void *value)
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
    bool known = desc->flags == CU_MEM_ACCESS_FLAGS_PROT_NONE || desc->flags == CU_MEM_ACCESS_FLAGS_PROT_READ ||
                 desc->flags == CU_MEM_ACCESS_FLAGS_PROT_READWRITE;

    if (desc->location.type != CU_MEM_LOCATION_TYPE_DEVICE || !sim_device(desc->location.id) || !known)
        return CUDA_ERROR_INVALID_VALUE;
    if (pool->device && pool->device->ordinal == desc->location.id && desc->flags != CU_MEM_ACCESS_FLAGS_PROT_READWRITE)
        return CUDA_ERROR_INVALID_VALUE;
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
    bool good = flags_p && location && location->type == CU_MEM_LOCATION_TYPE_DEVICE && sim_device(location->id);
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
