/*
 * What a pool is carved into: segments, parts that join with free neighbours, and lists by size. Lock:
 * memory, for writing.
 */
#include <stdlib.h>

#include "pool.h"

#define SEGMENT_BYTES (32 * SIM_MIB)

static void enlist(struct pool_part **head, struct pool_part *part)
{
    part->list_next = *head;
    part->list_link = head;
    if (part->list_next)
        part->list_next->list_link = &part->list_next;
    *head = part;
}

/** Takes a part out of the list it is in, if any. */
void sim_part_unlist(struct pool_part *part)
{
    if (!part->list_link)
        return;
    *part->list_link = part->list_next;
    if (part->list_next)
        part->list_next->list_link = part->list_link;
    part->list_link = NULL;
}

static unsigned bin_of(size_t bytes)
{
    return 63U - (unsigned)__builtin_clzl(bytes);
}

/** Puts a part among those that wait for a stream. */
void sim_part_wait(struct CUmemPoolHandle_st *pool, struct pool_part *part)
{
    enlist(&pool->waiting, part);
}

/* Joins a part with its neighbour behind it, which is free. */
static void merge_with_next(struct pool_part *part)
{
    struct pool_part *next = part->next;

    sim_part_unlist(next);
    part->bytes += next->bytes;
    part->next = next->next;
    if (part->next)
        part->next->prev = part;
    free(next);
}

/** Makes a part free for all and joins it with its free neighbours. */
void sim_part_release(struct CUmemPoolHandle_st *pool, struct pool_part *part)
{
    if (part->block)
        sim_block_drop(part->block);
    part->block = NULL;
    sim_part_unlist(part);
    if (part->state == PART_PENDING || part->state == PART_DONE)
        sim_queue_put(part->freed.queue);
    if (part->state != PART_DONE)
        pool->used -= part->bytes;
    part->state = PART_FREE;
    if (part->next && part->next->state == PART_FREE)
        merge_with_next(part);
    if (part->prev && part->prev->state == PART_FREE) {
        part = part->prev;
        sim_part_unlist(part);
        merge_with_next(part);
    }
    enlist(&pool->bins[bin_of(part->bytes)], part);
}

/** Makes everything free: nothing is in use any more. */
void sim_part_release_all(struct CUmemPoolHandle_st *pool)
{
    while (pool->waiting)
        sim_part_release(pool, pool->waiting);
}

/** Leaves a part that is in no list with so many bytes; the rest is as free, or waits as it did. */
bool sim_part_cut(struct CUmemPoolHandle_st *pool, struct pool_part *part, size_t bytes)
{
    struct pool_part *rest;

    if (part->bytes == bytes)
        return true;
    rest = malloc(sizeof *rest);
    if (!rest)
        return false;
    *rest = *part;
    rest->offset += bytes;
    rest->bytes -= bytes;
    rest->block = NULL;
    rest->prev = part;
    rest->list_link = NULL;
    if (rest->next)
        rest->next->prev = rest;
    part->next = rest;
    part->bytes = bytes;
    if (rest->state == PART_FREE) {
        enlist(&pool->bins[bin_of(rest->bytes)], rest);
    } else {
        sim_queue_ref(rest->freed.queue);
        enlist(&pool->waiting, rest);
    }
    return true;
}

/** The smallest free part that will do, or NULL. */
struct pool_part *sim_part_find_free(struct CUmemPoolHandle_st *pool, size_t bytes)
{
    struct pool_part *best = NULL;

    for (unsigned bin = bin_of(bytes); bin < SIM_POOL_BINS && !best; bin++)
        for (struct pool_part *part = pool->bins[bin]; part; part = part->list_next)
            if (part->bytes >= bytes && (!best || part->bytes < best->bytes))
                best = part;
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
            enlist(&pool->bins[bin_of(bytes)], part);
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

/** Reserves memory for at least that many bytes more; false if there is none. */
bool sim_part_grow(struct CUmemPoolHandle_st *pool, size_t bytes)
{
    size_t exact = sim_heap_round(bytes);

    return (exact < SEGMENT_BYTES && add_segment(pool, SEGMENT_BYTES)) || add_segment(pool, exact);
}

static bool segment_is_free(const struct pool_segment *segment)
{
    return segment->parts->state == PART_FREE && !segment->parts->next;
}

/** Gives a segment back that is free as a whole. */
void sim_pool_drop_segment(struct CUmemPoolHandle_st *pool, struct pool_segment **link)
{
    struct pool_segment *segment = *link;

    *link = segment->next;
    pool->reserved -= segment->bytes;
    sim_part_unlist(segment->parts);
    sim_arena_give(pool->arena, segment->parts->offset, segment->bytes);
    if (pool->device)
        sim_heap_refund(pool->device, segment->bytes);
    free(segment->parts);
    free(segment);
}

/** Gives segments without a live part back, as long as keep bytes stay reserved. What has been freed is
 * collected before. */
void sim_pool_trim(struct CUmemPoolHandle_st *pool, size_t keep)
{
    sim_pool_collect(pool, true);
    for (struct pool_segment **link = &pool->segments; *link;) {
        bool spare = pool->reserved >= keep && pool->reserved - keep >= (*link)->bytes;
        if (spare && segment_is_free(*link))
            sim_pool_drop_segment(pool, link);
        else
            link = &(*link)->next;
    }
}
