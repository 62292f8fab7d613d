/*
 * Memory pools: segments reserved from the device, carved into parts. A part that was freed on a stream may be used again
 * at once by that stream, by others when the stream has got there, or, where the pool allows it, by a stream that is made
 * to wait. Lock: memory, for writing, unless said otherwise.
 */
#include <stdlib.h>

#include "pool.h"

#define UNIT          512UL
#define SEGMENT_BYTES (32 * SIM_MIB)

struct CUmemPoolHandle_st *sim_pools;

struct pool_free_op {
    struct sim_op op;
    struct CUmemPoolHandle_st *pool;
};

static void merge_with_next(struct pool_part *part)
{
    struct pool_part *next = part->next;

    part->bytes += next->bytes;
    part->next = next->next;
    if (part->next)
        part->next->prev = part;
    free(next);
}

/* Makes a part free and joins it with its free neighbours. */
static void release_part(struct CUmemPoolHandle_st *pool, struct pool_part *part)
{
    if (part->block)
        sim_block_drop(part->block);
    part->block = NULL;
    if (part->state == PART_PENDING)
        sim_queue_put(part->freed.queue);
    pool->used -= part->bytes;
    part->state = PART_FREE;
    if (part->next && part->next->state == PART_FREE)
        merge_with_next(part);
    if (part->prev && part->prev->state == PART_FREE)
        merge_with_next(part->prev);
}

/* Frees every part whose stream has got to its free. */
static void collect(struct CUmemPoolHandle_st *pool)
{
    for (struct pool_segment *segment = pool->segments; segment; segment = segment->next)
        for (struct pool_part *part = segment->parts, *next; part; part = next) {
            next = part->next;
            if (part->state != PART_PENDING || !sim_queue_over(part->freed.queue, part->freed.seq))
                continue;
            while (next && next->state == PART_FREE) /* it may be joined to this one */
                next = next->next;
            release_part(pool, part);
        }
}

static CUresult run_pool_free(struct sim_op *op, struct sim_queue *queue)
{
    struct CUmemPoolHandle_st *pool = ((struct pool_free_op *)op)->pool;

    sim_memory_write_lock();
    for (struct pool_segment *segment = pool->segments; segment; segment = segment->next)
        for (struct pool_part *part = segment->parts, *next; part; part = next) {
            next = part->next;
            if (part->state != PART_PENDING || part->freed.queue != queue || part->freed.seq > op->seq)
                continue;
            while (next && next->state == PART_FREE)
                next = next->next;
            release_part(pool, part);
        }
    sim_memory_unlock();
    return CUDA_SUCCESS;
}

static void dispose_pool_free(struct sim_op *op)
{
    sim_object_put(((struct pool_free_op *)op)->pool);
}

static bool cut(struct pool_part *part, size_t bytes)
{
    struct pool_part *rest;

    if (part->bytes == bytes)
        return true;
    rest = malloc(sizeof *rest);
    if (!rest)
        return false;
    *rest = *part; /* what is left is as free, or as pending, as it was */
    rest->offset += bytes;
    rest->bytes -= bytes;
    rest->block = NULL;
    rest->prev = part;
    if (rest->next)
        rest->next->prev = rest;
    if (rest->state == PART_PENDING)
        sim_queue_ref(rest->freed.queue);
    part->next = rest;
    part->bytes = bytes;
    return true;
}

/* The smallest part that will do: free, or freed on this very stream; with others, freed on any stream. */
static struct pool_part *find_part(struct CUmemPoolHandle_st *pool, size_t bytes, struct sim_queue *queue, bool others)
{
    struct pool_part *best = NULL;

    for (struct pool_segment *segment = pool->segments; segment; segment = segment->next)
        for (struct pool_part *part = segment->parts; part; part = part->next) {
            bool usable = part->state == PART_FREE ||
                          (part->state == PART_PENDING && (others || part->freed.queue == queue));
            if (usable && part->bytes >= bytes && (!best || part->bytes < best->bytes))
                best = part;
        }
    return best;
}

static bool add_segment(struct CUmemPoolHandle_st *pool, size_t bytes)
{
    struct pool_segment *segment = calloc(1, sizeof *segment);
    struct pool_part *part = calloc(1, sizeof *part);
    bool charged = false, taken = false;
    size_t offset;

    if (segment && part && (!pool->props.maxSize || bytes <= pool->props.maxSize - pool->reserved)) {
        charged = !pool->device || sim_heap_charge(pool->device, bytes) == CUDA_SUCCESS;
        taken = charged && sim_arena_take(pool->arena, bytes, sim_heap_align(bytes), &offset);
        if (taken && sim_arena_show(pool->arena, offset, bytes)) {
            *part = (struct pool_part){.segment = segment, .offset = offset, .bytes = bytes};
            *segment = (struct pool_segment){pool->segments, bytes, part};
            pool->segments = segment;
            pool->reserved += bytes;
            if (pool->reserved > pool->reserved_high)
                pool->reserved_high = pool->reserved;
            return true;
        }
    }
    if (taken)
        sim_arena_give(pool->arena, offset, bytes);
    if (charged && pool->device)
        sim_heap_refund(pool->device, bytes);
    free(segment);
    free(part);
    return false;
}

static bool grow(struct CUmemPoolHandle_st *pool, size_t bytes)
{
    size_t exact = sim_heap_round(bytes);

    return (exact < SEGMENT_BYTES && add_segment(pool, SEGMENT_BYTES)) || add_segment(pool, exact);
}

static bool segment_is_free(const struct pool_segment *segment)
{
    return segment->parts->state == PART_FREE && !segment->parts->next;
}

/** Gives a segment back, whatever is in it. */
void sim_pool_drop_segment(struct CUmemPoolHandle_st *pool, struct pool_segment **link)
{
    struct pool_segment *segment = *link;

    *link = segment->next;
    pool->reserved -= segment->bytes;
    sim_arena_give(pool->arena, segment->parts->offset, segment->bytes);
    if (pool->device)
        sim_heap_refund(pool->device, segment->bytes);
    free(segment->parts);
    free(segment);
}

/** Gives segments without a live part back, as long as keep bytes stay reserved. */
void sim_pool_trim(struct CUmemPoolHandle_st *pool, size_t keep)
{
    collect(pool);
    for (struct pool_segment **link = &pool->segments; *link;) {
        bool spare = pool->reserved >= keep && pool->reserved - keep >= (*link)->bytes;
        if (spare && segment_is_free(*link))
            sim_pool_drop_segment(pool, link);
        else
            link = &(*link)->next;
    }
}

/** After a synchronisation: pools give back what they hold beyond their threshold. Takes the memory lock. */
void sim_pool_settle(struct sim_device *device)
{
    sim_memory_write_lock();
    for (struct CUmemPoolHandle_st *pool = sim_pools; pool; pool = pool->next)
        if (pool->device == device && pool->reserved > pool->threshold)
            sim_pool_trim(pool, pool->threshold);
    sim_memory_unlock();
}

/** When a device has run out: takes from its pools what they do not use, until bytes were won. */
bool sim_pool_squeeze(struct sim_device *device, size_t bytes)
{
    size_t before = device->used_bytes;

    for (struct CUmemPoolHandle_st *pool = sim_pools; pool; pool = pool->next) {
        if (pool->device == device)
            sim_pool_trim(pool, 0);
        if (before - device->used_bytes >= bytes)
            return true;
    }
    return false;
}

/* A part for the allocation; one that another stream still has to free comes with that stream's ticket. */
static struct pool_part *take_part(struct CUmemPoolHandle_st *pool, size_t bytes, struct sim_queue *queue)
{
    struct pool_part *part;

    if (pool->opportunistic)
        collect(pool);
    part = find_part(pool, bytes, queue, false);
    if (!part && grow(pool, bytes))
        part = find_part(pool, bytes, queue, false);
    if (!part && pool->internal)
        part = find_part(pool, bytes, queue, true);
    return part && cut(part, bytes) ? part : NULL;
}

static bool occupy(struct CUmemPoolHandle_st *pool, struct pool_part *part, size_t bytes)
{
    if (part->state == PART_PENDING) {
        if (part->block)
            sim_block_drop(part->block);
        part->block = NULL;
        sim_queue_put(part->freed.queue);
        pool->used -= part->bytes;
    }
    part->state = PART_USED;
    pool->used += part->bytes;
    part->block = sim_block_new(SIM_BLOCK_POOL, (uintptr_t)pool->arena->base + part->offset, bytes);
    if (!part->block) {
        release_part(pool, part);
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

/**
 * Allocates from a pool for use on a queue; the allocation holds the pool. Where memory is taken that another stream has
 * yet to free, the queue is made to wait for it. Takes the memory lock.
 */
CUresult sim_pool_alloc(struct CUmemPoolHandle_st *pool, size_t bytes, struct sim_queue *queue, CUdeviceptr *address_p)
{
    struct sim_op *wait = NULL;

    if (bytes > pool->arena->bytes || pool->imported)
        return pool->imported ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_OUT_OF_MEMORY;
    sim_memory_write_lock();
    struct pool_part *part = take_part(pool, (bytes + UNIT - 1) & ~(UNIT - 1), queue);
    if (part && part->state == PART_PENDING && part->freed.queue != queue) {
        wait = sim_op_new(sizeof *wait, NULL);
        if (wait)
            sim_op_after(wait, part->freed.queue, part->freed.seq);
        else
            part = NULL;
    }
    bool done = part && occupy(pool, part, bytes);
    if (done)
        *address_p = part->block->range.start;
    sim_memory_unlock();
    if (wait)
        sim_queue_push(queue, wait);
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
    release_part(pool, block->owner);
    sim_memory_unlock();
    sim_object_put(pool);
    return CUDA_SUCCESS;
}

/** Frees pool memory when the queue gets there. The block is claimed by the caller. Takes the memory lock. */
CUresult sim_pool_free_later(struct sim_block *block, struct sim_queue *queue)
{
    struct pool_free_op *op = sim_op_new(sizeof *op, run_pool_free);

    if (!op)
        return CUDA_ERROR_OUT_OF_MEMORY;
    op->op.always = true;
    op->op.dispose = dispose_pool_free;
    op->pool = block->pool; /* the allocation's reference becomes the work's */
    sim_memory_write_lock();
    struct pool_part *part = block->owner;
    part->state = PART_PENDING;
    part->freed.queue = sim_queue_ref(queue);
    part->freed.seq = sim_queue_append(queue, &op->op);
    sim_memory_unlock();
    sim_queue_serve(queue);
    return CUDA_SUCCESS;
}

static struct pool_part *part_at(CUdeviceptr address, struct CUmemPoolHandle_st **pool_p)
{
    for (struct CUmemPoolHandle_st *pool = sim_pools; pool; pool = pool->next) {
        size_t offset = (size_t)(address - (uintptr_t)pool->arena->base);
        for (struct pool_segment *segment = pool->segments; segment; segment = segment->next) {
            struct pool_part *part = segment->parts;
            if (offset < part->offset || offset - part->offset >= segment->bytes)
                continue;
            while (offset - part->offset >= part->bytes)
                part = part->next;
            *pool_p = pool;
            return part;
        }
    }
    return NULL;
}

/**
 * Whether bytes from address on belong to parts that no stream has finished freeing: for work whose turn has come, and
 * which may be older than the latest allocation there.
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
