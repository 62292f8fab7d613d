/*
 * Memory pools: who may have memory again that was freed in stream order.
 *
 * A part that was freed on a stream may be used again at once by that stream, and by those that the program
 * has ordered behind the free, by events or by the legacy stream (where the pool follows that). By others it
 * may be used when the stream has got there (where the pool allows what is so by chance; else when the host
 * has waited for it), or, when there is nothing else, by a stream that is made to wait. Lock: memory, for
 * writing, unless said otherwise.
 */
#include <stdlib.h>

#include "sim/cuda/memory/pool.h"

#define UNIT 512UL

struct CUmemPoolHandle_st *sim_pools;

struct pool_free_op {
    struct sim_op op;
    struct CUmemPoolHandle_st *pool;
};

/** Frees what waits for a stream that the host has waited for, or with over, whose stream has simply got
 * there. */
void sim_pool_collect(struct CUmemPoolHandle_st *pool, bool over)
{
    for (struct pool_part *part = pool->waiting, *next; part; part = next) {
        next = part->list_next;
        if (over ? sim_queue_over(part->freed.queue, part->freed.seq)
                 : sim_queue_seen(part->freed.queue, part->freed.seq))
            sim_part_release(pool, part);
    }
}

/* The stream has got to a free: nobody may touch the memory now. */
static void arrive(struct CUmemPoolHandle_st *pool, struct pool_part *part)
{
    if (pool->opportunistic) {
        sim_part_release(pool, part);
        return;
    }
    if (part->block)
        sim_block_drop(part->block);
    part->block = NULL;
    pool->used -= part->asked;
    part->asked = 0;
    part->state = PART_DONE;
}

static CUresult run_pool_free(struct sim_op *op, struct sim_queue *queue)
{
    struct CUmemPoolHandle_st *pool = ((struct pool_free_op *)op)->pool;

    sim_memory_write_lock();
    for (struct pool_part *part = pool->waiting, *next; part; part = next) {
        next = part->list_next;
        if (part->state == PART_PENDING && part->freed.queue == queue && part->freed.seq <= op->seq)
            arrive(pool, part);
    }
    sim_memory_unlock();
    return CUDA_SUCCESS;
}

static void dispose_pool_free(struct sim_op *op)
{
    sim_object_put(((struct pool_free_op *)op)->pool);
}

/** After a synchronisation: pools give back what they hold beyond their threshold, and the device has what
 * was freed in the order of streams that the host has waited for. Takes the memory lock. */
void sim_pool_settle(struct sim_device *device)
{
    sim_memory_write_lock();
    for (struct CUmemPoolHandle_st *pool = sim_pools; pool; pool = pool->next)
        if (pool->device == device && pool->reserved > pool->threshold)
            sim_pool_trim(pool, pool->threshold);
    sim_unit_settle(device);
    sim_heap_settle(device);
    sim_memory_unlock();
}

/** When a device has run out: takes from its pools what they do not use, until bytes were won. */
bool sim_pool_squeeze(struct sim_device *device, size_t bytes)
{
    size_t before = device->used_bytes;

    sim_unit_settle(device);
    sim_heap_settle(device);
    for (struct CUmemPoolHandle_st *pool = sim_pools; pool; pool = pool->next) {
        if (pool->device == device)
            sim_pool_trim(pool, 0);
        if (before - device->used_bytes >= bytes)
            return true;
    }
    return false;
}

/* The smallest part that waits and that the queue may have: freed by itself, or ordered before it; with
 * others, any. */
static struct pool_part *find_waiting(struct CUmemPoolHandle_st *pool, size_t bytes, struct sim_queue *queue,
                                      bool others)
{
    struct pool_part *best = NULL;

    for (struct pool_part *part = pool->waiting; part; part = part->list_next) {
        if (part->bytes < bytes || (best && part->bytes >= best->bytes))
            continue;
        if (others || part->freed.queue == queue ||
            (pool->follow_events && sim_queue_knows(queue, part->freed.queue, part->freed.seq)))
            best = part;
    }
    return best;
}

/* A part for the allocation, in no list. */
static struct pool_part *take_part(struct CUmemPoolHandle_st *pool, size_t bytes, struct sim_queue *queue)
{
    if (pool->waiting && !pool->opportunistic)
        sim_pool_collect(pool, false);
    struct pool_part *waiting = pool->waiting ? find_waiting(pool, bytes, queue, false) : NULL;
    struct pool_part *part = sim_part_find_free(pool, bytes);

    if (waiting && (!part || waiting->bytes <= part->bytes))
        part = waiting;
    if (!part && pool->waiting) {
        sim_pool_collect(pool, pool->opportunistic);
        part = sim_part_find_free(pool, bytes);
    }
    if (!part && sim_unit_grow(pool, bytes))
        part = sim_part_find_free(pool, bytes);
    if (!part && pool->internal)
        part = find_waiting(pool, bytes, queue, true);
    if (!part)
        return NULL;
    sim_part_unlist(part);
    if (sim_part_cut(pool, part, bytes))
        return part;
    sim_part_release(pool, part);
    return NULL;
}

static bool occupy(struct CUmemPoolHandle_st *pool, struct pool_part *part, size_t bytes)
{
    if (part->block)
        sim_block_drop(part->block);
    if (part->state == PART_PENDING || part->state == PART_DONE)
        sim_queue_put(part->freed.queue);
    pool->used += bytes - part->asked;
    part->asked = bytes;
    part->state = PART_USED;
    part->block = sim_block_new(SIM_BLOCK_POOL, (uintptr_t)pool->arena->base + part->offset, bytes);
    if (!part->block) {
        sim_part_release(pool, part);
        return false;
    }
    if (pool->used > pool->used_high)
        pool->used_high = pool->used;
    part->block->device = pool->device ? pool->device->ordinal : SIM_HOST;
    part->block->pool = pool;
    part->block->owner = part;
    part->block->readable = pool->readable;
    part->block->writable = pool->writable;
    return true;
}

/* True if the queue has to wait for memory that another stream has yet to free, and that it is not ordered
 * behind. */
static bool needs_wait(struct CUmemPoolHandle_st *pool, const struct pool_part *part, struct sim_queue *queue)
{
    return (part->state == PART_PENDING || part->state == PART_DONE) && part->freed.queue != queue &&
           !(pool->follow_events && sim_queue_knows(queue, part->freed.queue, part->freed.seq));
}

/**
 * Allocates from a pool for use on a queue; the allocation holds the pool. Where memory is taken that another
 * stream has yet to free, the queue is made to wait for it. Takes the memory lock.
 */
CUresult sim_pool_alloc(struct CUmemPoolHandle_st *pool, size_t bytes, struct sim_queue *queue,
                        CUdeviceptr *address_p)
{
    struct sim_op *wait = NULL;

    if (bytes > pool->arena->bytes || pool->imported)
        return pool->imported ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_OUT_OF_MEMORY;
    sim_memory_write_lock();
    struct pool_part *part = take_part(pool, (bytes + UNIT - 1) & ~(UNIT - 1), queue);
    if (part && needs_wait(pool, part, queue)) {
        wait = sim_op_new(sizeof *wait, NULL);
        if (!wait || !sim_op_after(wait, part->freed.queue, part->freed.seq)) {
            sim_part_wait(pool, part);
            part = NULL;
        }
    }
    bool done = part && occupy(pool, part, bytes);
    if (done)
        *address_p = part->block->range.start;
    sim_memory_unlock();
    if (wait && done)
        sim_queue_push(queue, wait);
    else
        sim_op_drop(wait);
    if (!done)
        return CUDA_ERROR_OUT_OF_MEMORY;
    sim_object_ref(pool);
    return CUDA_SUCCESS;
}

/** Frees pool memory at once. Takes the memory lock. */
CUresult sim_pool_free_now(struct sim_block *block)
{
    sim_memory_write_lock();
    struct CUmemPoolHandle_st *pool = block->pool;
    sim_part_release(pool, block->owner);
    sim_memory_unlock();
    sim_object_put(pool);
    return CUDA_SUCCESS;
}

static struct pool_free_op *new_free_op(struct CUmemPoolHandle_st *pool)
{
    struct pool_free_op *op = sim_op_new(sizeof *op, run_pool_free);

    if (op) {
        op->op.always = true;
        op->op.dispose = dispose_pool_free;
        op->pool = pool;
    }
    return op;
}

/** Frees pool memory when the queue gets there, which is now if it has nothing to do. The block is claimed by
 * the caller. The memory lock is held for writing. */
CUresult sim_pool_free_later(struct sim_block *block, struct sim_queue *queue, bool *serve_p)
{
    struct CUmemPoolHandle_st *pool = block->pool;
    struct pool_part *part = block->owner;

    *serve_p = false;
    part->freed.seq = sim_queue_pass(queue);
    if (part->freed.seq) {
        part->state = PART_PENDING;
        part->freed.queue = sim_queue_ref(queue);
        sim_unit_freed(pool, part, &part->freed);
        sim_part_wait(pool, part);
        arrive(pool, part);
        return CUDA_SUCCESS; /* the caller lets go of the allocation's hold on the pool */
    }
    struct pool_free_op *op = new_free_op(pool); /* the allocation's reference becomes the work's */
    if (!op)
        return CUDA_ERROR_OUT_OF_MEMORY;
    part->state = PART_PENDING;
    part->freed.queue = sim_queue_ref(queue);
    part->freed.seq = sim_queue_append(queue, &op->op);
    sim_unit_freed(pool, part, &part->freed);
    sim_part_wait(pool, part);
    *serve_p = true;
    return CUDA_SUCCESS;
}

static struct pool_part *part_at(CUdeviceptr address, struct CUmemPoolHandle_st **pool_p)
{
    struct pool_part *part = NULL;

    for (struct CUmemPoolHandle_st *pool = sim_pools; pool && !part; pool = pool->next) {
        part = sim_unit_part(pool, (size_t)(address - (uintptr_t)pool->arena->base));
        *pool_p = pool;
    }
    return part;
}

/**
 * True if bytes from address on belong to parts that no stream has finished freeing: for work whose turn has
 * come, and which may be older than the latest allocation there.
 */
bool sim_pool_covers(CUdeviceptr address, size_t bytes, unsigned devices, bool write)
{
    struct CUmemPoolHandle_st *pool;
    struct pool_part *part = part_at(address, &pool);

    if (!part || (devices & ~(write ? pool->writable : pool->readable)))
        return false;
    size_t end = (size_t)(address - (uintptr_t)pool->arena->base) + bytes;
    for (; part && part->state != PART_FREE; part = part->next)
        if (end <= part->offset + part->bytes)
            return true;
    return false;
}

/** Carries the pool's access list over to its blocks. */
void sim_pool_spread_access(struct CUmemPoolHandle_st *pool)
{
    for (struct sim_block *block = sim_block_next(NULL); block; block = sim_block_next(block))
        if (block->pool == pool) {
            block->readable = pool->readable;
            block->writable = pool->writable;
        }
}
