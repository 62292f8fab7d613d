/*
 * The pieces that a pool is carved into: segments, parts that join with free neighbours, and lists by size.
 * Lock: memory, for writing.
 */
#include <stdlib.h>

#include "sim/cuda/memory/pool.h"

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
static void merge_with_next(struct CUmemPoolHandle_st *pool, struct pool_part *part)
{
    struct pool_part *next = part->next;

    sim_part_unlist(next);
    part->bytes += next->bytes;
    part->next = next->next;
    if (part->next)
        part->next->prev = part;
    free(next);
    sim_unit_begins(pool, part);
}

/** Puts a free part among those of its size. */
void sim_part_list(struct CUmemPoolHandle_st *pool, struct pool_part *part)
{
    enlist(&pool->bins[bin_of(part->bytes)], part);
}

/** As sim_part_list, but the part is joined first with what is free on either side of it. */
void sim_part_join(struct CUmemPoolHandle_st *pool, struct pool_part *part)
{
    if (part->next && part->next->state == PART_FREE)
        merge_with_next(pool, part);
    if (part->prev && part->prev->state == PART_FREE) {
        part = part->prev;
        sim_part_unlist(part);
        merge_with_next(pool, part);
    }
    sim_part_list(pool, part);
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
    pool->used -= part->asked;
    part->asked = 0;
    part->state = PART_FREE;
    sim_part_join(pool, part);
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
    rest->asked = 0;
    rest->block = NULL;
    rest->prev = part;
    rest->list_link = NULL;
    if (rest->next)
        rest->next->prev = rest;
    part->next = rest;
    part->bytes = bytes;
    sim_unit_begins(pool, rest);
    if (rest->state == PART_FREE) {
        sim_part_list(pool, rest);
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
