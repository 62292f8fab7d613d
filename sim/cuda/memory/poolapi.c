/*
 * Memory pools and stream-ordered memory as programs call them.
 */
#include <string.h>

#include "sim/cuda/memory/pool.h"

/* --- allocating and freeing in stream order ------------------------------------------------------------- */

static CUresult alloc_on(struct CUmemPoolHandle_st *pool, CUdeviceptr *address_p, size_t bytes,
                         struct sim_queue *queue)
{
    if (bytes)
        return sim_pool_alloc(pool, bytes, queue, address_p);
    *address_p = 0;
    return CUDA_SUCCESS;
}

static struct CUmemPoolHandle_st *current_pool(struct sim_device *device)
{
    struct CUmemPoolHandle_st *first = sim_pool_default(device);

    if (!atomic_load(&device->current_pool)) /* the default one is never destroyed */
        return first ? sim_object_ref(first) : NULL;
    sim_memory_read_lock();
    struct CUmemPoolHandle_st *pool = device->current_pool ? device->current_pool : first;
    if (pool)
        sim_object_ref(pool);
    sim_memory_unlock();
    return pool;
}

/* In a captured stream: a node that allocates, with the pool's properties and access. */
struct wish {
    struct CUmemPoolHandle_st *pool;
    size_t bytes;
    CUdeviceptr address;
};

static CUresult add_alloc_node(struct CUgraph_st *graph, const CUgraphNode *after, size_t count,
                               struct sim_queue *queue, void *data, struct CUgraphNode_st **node_p)
{
    struct wish *wish = data;
    CUgraphNodeParams params = {.type = CU_GRAPH_NODE_TYPE_MEM_ALLOC};
    CUmemAccessDesc access[SIM_MAX_DEVICES];
    size_t others = 0;

    (void)queue;
    sim_memory_read_lock();
    for (unsigned i = 0; i < sim_config.devices; i++)
        if ((wish->pool->readable >> i & 1) && (!wish->pool->device || (int)i != wish->pool->device->ordinal))
            access[others++] =
                (CUmemAccessDesc){{CU_MEM_LOCATION_TYPE_DEVICE, (int)i},
                                  wish->pool->writable >> i & 1 ? CU_MEM_ACCESS_FLAGS_PROT_READWRITE
                                                                : CU_MEM_ACCESS_FLAGS_PROT_READ};
    sim_memory_unlock();
    params.alloc.poolProps = wish->pool->props;
    params.alloc.poolProps.handleTypes = CU_MEM_HANDLE_TYPE_NONE;
    params.alloc.poolProps.maxSize = 0;
    params.alloc.accessDescs = access;
    params.alloc.accessDescCount = others;
    params.alloc.bytesize = wish->bytes;
    CUresult status = sim_node_put(graph, after, NULL, count, &params, node_p);
    wish->address = params.alloc.dptr;
    return status;
}

static CUresult alloc_in(struct CUmemPoolHandle_st *pool, CUdeviceptr *address_p, size_t bytes,
                         struct sim_queue *queue)
{
    struct wish wish = {pool, bytes, 0};

    CUresult status = atomic_load(&queue->captured) ? CUDA_SUCCESS : sim_unsafe();
    if (status != CUDA_SUCCESS)
        return status;
    if (!bytes || !atomic_load(&queue->captured))
        return alloc_on(pool, address_p, bytes, queue);
    status = sim_capture_append(queue, add_alloc_node, &wish);
    if (status == CUDA_SUCCESS)
        *address_p = wish.address;
    return status;
}

static CUresult alloc(CUdeviceptr *address_p, size_t bytes, CUmemoryPool handle, bool from_pool,
                      CUstream stream, bool per_thread)
{
    struct sim_queue *queue;
    CUresult status = sim_stream_memory_queue(stream, per_thread, &queue);

    if (status != CUDA_SUCCESS)
        return status;
    struct CUmemPoolHandle_st *pool = NULL;
    if (address_p)
        pool = from_pool ? sim_object_get(handle, SIM_POOL) : current_pool(queue->ctx->device);
    status = pool ? alloc_in(pool, address_p, bytes, queue)
                  : (address_p && !from_pool ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_ERROR_INVALID_VALUE);
    if (pool)
        sim_object_put(pool);
    sim_queue_put(queue);
    return status;
}

SIM_PAIR(cuMemAllocAsync, ptsz, (CUdeviceptr * address_p, size_t bytes, CUstream stream),
         alloc(address_p, bytes, NULL, false, stream, per_thread))
SIM_PAIR(cuMemAllocFromPoolAsync, ptsz,
         (CUdeviceptr * address_p, size_t bytes, CUmemoryPool pool, CUstream stream),
         alloc(address_p, bytes, pool, true, stream, per_thread))

struct free_op {
    struct sim_op op;
    struct sim_block *block;
};

static CUresult run_free(struct sim_op *op, struct sim_queue *queue)
{
    sim_memory_write_lock();
    sim_heap_leave(((struct free_op *)op)->block, queue, op->seq);
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

/* With the memory lock held, but for what has to be done afterwards. */
static CUresult free_pooled(struct sim_block *block, struct sim_queue *queue)
{
    struct CUmemPoolHandle_st *pool = block->pool;
    bool serve;

    block->claimed = true;
    CUresult status = sim_pool_free_later(block, queue, &serve);
    sim_memory_unlock();
    if (status == CUDA_SUCCESS && serve)
        sim_queue_serve(queue);
    else if (status == CUDA_SUCCESS)
        sim_object_put(pool);
    return status;
}

static CUresult free_on(CUdeviceptr address, struct sim_queue *queue)
{
    sim_memory_write_lock();
    struct sim_block *block = sim_block_base(address);
    enum sim_block_kind kind = block ? block->kind : SIM_BLOCK_HOST;
    if (kind == SIM_BLOCK_POOL)
        return free_pooled(block, queue);
    if (kind == SIM_BLOCK_DEVICE || kind == SIM_BLOCK_IMPORTED)
        block->claimed = true;
    sim_memory_unlock();
    if (kind == SIM_BLOCK_GRAPH)
        return sim_graph_memory_free_later(block->owner, queue);
    if (kind == SIM_BLOCK_DEVICE)
        return free_plain_later(block, queue);
    return kind == SIM_BLOCK_IMPORTED ? sim_pool_drop_import(block, queue) : CUDA_ERROR_INVALID_VALUE;
}

static CUresult add_free_node(struct CUgraph_st *graph, const CUgraphNode *after, size_t count,
                              struct sim_queue *queue, void *data, struct CUgraphNode_st **node_p)
{
    CUgraphNodeParams params = {.type = CU_GRAPH_NODE_TYPE_MEM_FREE};

    (void)queue;
    params.free.dptr = *(const CUdeviceptr *)data;
    return sim_node_put(graph, after, NULL, count, &params, node_p);
}

static CUresult free_async(CUdeviceptr address, CUstream stream, bool per_thread)
{
    struct sim_queue *queue;
    CUresult status = sim_stream_memory_queue(stream, per_thread, &queue);

    if (status != CUDA_SUCCESS)
        return status;
    if (!atomic_load(&queue->captured))
        status = sim_unsafe();
    if (address && status == CUDA_SUCCESS)
        status = atomic_load(&queue->captured) ? sim_capture_append(queue, add_free_node, &address)
                                               : free_on(address, queue);
    sim_queue_put(queue);
    return status;
}

SIM_PAIR(cuMemFreeAsync, ptsz, (CUdeviceptr address, CUstream stream),
         free_async(address, stream, per_thread))

/* --- pools ---------------------------------------------------------------------------------------------- */

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
    bool known = props->allocType == CU_MEM_ALLOCATION_TYPE_PINNED ||
                 props->allocType == CU_MEM_ALLOCATION_TYPE_MANAGED;

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
    sim_memory_write_lock();
    sim_unit_first(pool);
    sim_memory_unlock();
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
        sim_place_forget(pool);
        sim_memory_write_lock();
        pool->retired = true;
        for (unsigned i = 0; i < sim_config.devices; i++)
            if (sim_devices[i].current_pool == pool)
                sim_devices[i].current_pool = NULL;
        sim_memory_unlock();
        sim_object_put(pool);
    }
    sim_object_put(pool);
    return status;
}

CUresult sim_pool_get_default(CUmemoryPool *pool_p, CUdevice ordinal)
{
    struct sim_device *device = sim_device(ordinal);

    if (!device)
        return CUDA_ERROR_INVALID_DEVICE;
    if (!pool_p)
        return CUDA_ERROR_INVALID_VALUE;
    *pool_p = sim_pool_default(device);
    return *pool_p ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult sim_pool_get_current(CUmemoryPool *pool_p, CUdevice ordinal)
{
    CUresult status = sim_pool_get_default(pool_p, ordinal);

    if (status != CUDA_SUCCESS)
        return status;
    sim_memory_read_lock();
    if (sim_devices[ordinal].current_pool)
        *pool_p = sim_devices[ordinal].current_pool;
    sim_memory_unlock();
    return CUDA_SUCCESS;
}

CUresult sim_pool_set_current(CUdevice ordinal, CUmemoryPool handle)
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
    return sim_pool_get_default(pool_p, device);
}

SIM_API(cuDeviceGetMemPool)(CUmemoryPool *pool_p, CUdevice device)
{
    SIM_ENTER(cuDeviceGetMemPool);
    return sim_pool_get_current(pool_p, device);
}

SIM_API(cuDeviceSetMemPool)(CUdevice device, CUmemoryPool pool)
{
    SIM_ENTER(cuDeviceSetMemPool);
    return sim_pool_set_current(device, pool);
}

SIM_API(cuMemPoolTrimTo)(CUmemoryPool handle, size_t keep)
{
    SIM_ENTER(cuMemPoolTrimTo);
    SIM_REFUSE_UNSAFE();
    struct CUmemPoolHandle_st *pool = sim_object_get(handle, SIM_POOL);

    if (!pool)
        return CUDA_ERROR_INVALID_VALUE;
    sim_memory_write_lock();
    sim_pool_trim(pool, keep);
    sim_memory_unlock();
    sim_object_put(pool);
    return CUDA_SUCCESS;
}
