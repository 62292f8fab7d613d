/*
 * Units: what a memory pool takes of its device, and when that goes back.
 *
 * A pool takes 32 MiB at a time, less only where the device or the pool's own limit has no more, and lays
 * units beside each other: what is free at the end of one and the next ones are one piece. A unit goes back
 * by itself, once nothing lies in it and the host has waited for every stream that freed something there: a
 * query that says that a stream is done releases nothing, nor does a wait for another stream. Lock: memory,
 * for writing.
 */
#include <stdlib.h>

#include "sim/cuda/books.h"
#include "sim/cuda/memory/pool.h"

#define UNIT_BYTES (32 * SIM_MIB)

struct pool_unit {
    struct pool_unit *next; /* by address */
    size_t offset, bytes;
    struct pool_part *first;  /* what its first byte lies in */
    struct sim_ticket *freed; /* the latest free here of each stream, unless the host has waited for it */
    size_t freed_count;
    struct sim_device *device; /* of a pool that is no more: whose memory this still is */
};

static struct pool_unit *lost; /* of pools that are no more */

/** Says for each unit that begins in a part that it does: after the part was cut off, or has grown. */
void sim_unit_begins(struct CUmemPoolHandle_st *pool, struct pool_part *part)
{
    size_t granule = sim_config.granularity_bytes, end = part->offset + part->bytes;

    if (((part->offset + granule - 1) & ~(granule - 1)) >= end)
        return;
    for (struct pool_unit *unit = pool->units; unit && unit->offset < end; unit = unit->next)
        if (unit->offset >= part->offset)
            unit->first = part;
}

/** The part that lies at an offset of the arena, or NULL. */
struct pool_part *sim_unit_part(const struct CUmemPoolHandle_st *pool, size_t offset)
{
    const struct pool_unit *unit = pool->units;

    while (unit && offset >= unit->offset + unit->bytes)
        unit = unit->next;
    if (!unit || offset < unit->offset)
        return NULL;
    struct pool_part *part = unit->first;
    while (offset - part->offset >= part->bytes)
        part = part->next;
    return part;
}

static void note_free(struct pool_unit *unit, const struct sim_ticket *ticket)
{
    for (size_t i = 0; i < unit->freed_count; i++)
        if (unit->freed[i].queue == ticket->queue) {
            unit->freed[i].seq = ticket->seq;
            return;
        }
    sim_ticket_add(&unit->freed, &unit->freed_count, ticket->queue, ticket->seq);
}

/** A stream frees the part, at that number. */
void sim_unit_freed(struct CUmemPoolHandle_st *pool, const struct pool_part *part,
                    const struct sim_ticket *ticket)
{
    for (struct pool_unit *unit = pool->units; unit && unit->offset < part->offset + part->bytes;
         unit = unit->next)
        if (part->offset < unit->offset + unit->bytes)
            note_free(unit, ticket);
}

/* True if the host has waited for all that was freed there. What it has waited for is forgotten. */
static bool is_seen(struct pool_unit *unit)
{
    size_t kept = 0;

    for (size_t i = 0; i < unit->freed_count; i++) {
        struct sim_ticket *ticket = &unit->freed[i];
        if (sim_queue_seen(ticket->queue, ticket->seq))
            sim_queue_put(ticket->queue);
        else
            unit->freed[kept++] = *ticket;
    }
    unit->freed_count = kept;
    return !kept;
}

static void free_unit(struct pool_unit *unit)
{
    sim_ticket_free(unit->freed, unit->freed_count);
    free(unit);
}

/* --- taking --------------------------------------------------------------------------------------------- */

/* The part that is free right before an offset, or NULL. */
static struct pool_part *free_before(const struct CUmemPoolHandle_st *pool, size_t offset)
{
    struct pool_part *part = offset ? sim_unit_part(pool, offset - 1) : NULL;

    return part && part->state == PART_FREE ? part : NULL;
}

static size_t in_units(size_t bytes)
{
    return (bytes + UNIT_BYTES - 1) / UNIT_BYTES * UNIT_BYTES;
}

/* Finds the place where the fewest units do, beside what is free before them; false if there is no room at
 * all. */
static bool find_room(const struct CUmemPoolHandle_st *pool, size_t bytes, size_t *offset_p, size_t *least_p)
{
    bool found = false;

    for (const struct sim_hole *hole = pool->arena->holes; hole; hole = hole->next) {
        const struct pool_part *before = free_before(pool, hole->offset);
        size_t least = bytes - (before ? before->bytes : 0);
        if (in_units(least) > hole->bytes || (found && in_units(least) >= in_units(*least_p)))
            continue;
        *offset_p = hole->offset;
        *least_p = least;
        found = true;
    }
    return found;
}

/* A list of units for that much, in front of one that lies behind them; NULL when memory ran out. */
static struct pool_unit *new_units(size_t offset, size_t bytes, struct pool_unit *behind)
{
    struct pool_unit *units = behind;

    for (size_t end = offset + bytes; end > offset;) {
        size_t odd = (end - offset) % UNIT_BYTES, length = odd ? odd : UNIT_BYTES;
        struct pool_unit *unit = calloc(1, sizeof *unit);
        if (!unit) {
            for (struct pool_unit *next; units != behind; units = next) {
                next = units->next;
                free(units);
            }
            return NULL;
        }
        end -= length;
        *unit = (struct pool_unit){.next = units, .offset = end, .bytes = length};
        units = unit;
    }
    return units;
}

static struct pool_unit **link_at(struct CUmemPoolHandle_st *pool, size_t offset)
{
    struct pool_unit **link = &pool->units;

    while (*link && (*link)->offset < offset)
        link = &(*link)->next;
    return link;
}

/* The device's memory is counted, and the addresses are the pool's; both are undone by the caller. */
static bool enter_units(struct CUmemPoolHandle_st *pool, size_t offset, size_t bytes)
{
    struct pool_unit **link = link_at(pool, offset);
    struct pool_part *part = calloc(1, sizeof *part);
    struct pool_unit *units =
        part && sim_arena_show(pool->arena, offset, bytes) ? new_units(offset, bytes, *link) : NULL;

    if (!units) {
        free(part);
        return false;
    }
    struct pool_part *before = offset ? sim_unit_part(pool, offset - 1) : NULL,
                     *after = sim_unit_part(pool, offset + bytes);
    *link = units;
    *part = (struct pool_part){.offset = offset, .bytes = bytes, .prev = before, .next = after};
    if (before)
        before->next = part;
    if (after)
        after->prev = part;
    sim_unit_begins(pool, part);
    sim_part_join(pool, part);
    pool->reserved += bytes;
    if (pool->reserved > pool->reserved_high)
        pool->reserved_high = pool->reserved;
    return true;
}

static bool take(struct CUmemPoolHandle_st *pool, size_t offset, size_t bytes)
{
    if (pool->props.maxSize && bytes > pool->props.maxSize - pool->reserved)
        return false;
    if (pool->device && sim_heap_charge(pool->device, bytes) != CUDA_SUCCESS)
        return false;
    bool taken = sim_arena_take_at(pool->arena, offset, bytes);
    if (taken && enter_units(pool, offset, bytes))
        return true;
    if (taken)
        sim_arena_give(pool->arena, offset, bytes);
    if (pool->device)
        sim_heap_refund(pool->device, bytes);
    return false;
}

/** Takes memory, so that so many bytes are free in one piece; false if there is none. */
bool sim_unit_grow(struct CUmemPoolHandle_st *pool, size_t bytes)
{
    size_t offset = 0, least = 0;

    if (!find_room(pool, bytes, &offset, &least))
        return false;
    return take(pool, offset, in_units(least)) || take(pool, offset, sim_heap_round(least));
}

/** A pool that a program makes begins with a unit, if there is one. */
void sim_unit_first(struct CUmemPoolHandle_st *pool)
{
    if (!pool->imported && sim_card_wsl())
        take(pool, 0, UNIT_BYTES);
}

/* --- giving back ---------------------------------------------------------------------------------------- */

/* The unit as a part of its own, in no list; NULL when memory ran out. */
static struct pool_part *cut_out(struct CUmemPoolHandle_st *pool, const struct pool_unit *unit)
{
    struct pool_part *part = unit->first;
    size_t before = unit->offset - part->offset;

    sim_part_unlist(part);
    if (before) {
        bool cut = sim_part_cut(pool, part, before);
        sim_part_list(pool, part);
        if (!cut)
            return NULL;
        part = part->next;
        sim_part_unlist(part);
    }
    if (part->bytes == unit->bytes || sim_part_cut(pool, part, unit->bytes))
        return part;
    sim_part_join(pool, part);
    return NULL;
}

static bool drop(struct CUmemPoolHandle_st *pool, struct pool_unit **link)
{
    struct pool_unit *unit = *link;
    struct pool_part *part = cut_out(pool, unit);

    if (!part)
        return false;
    if (part->prev)
        part->prev->next = NULL;
    if (part->next)
        part->next->prev = NULL;
    free(part);
    *link = unit->next;
    pool->reserved -= unit->bytes;
    sim_arena_give(pool->arena, unit->offset, unit->bytes);
    if (pool->device)
        sim_heap_refund(pool->device, unit->bytes);
    free_unit(unit);
    return true;
}

static bool is_vacant(const struct pool_unit *unit)
{
    const struct pool_part *part = unit->first;

    return part->state == PART_FREE && unit->offset + unit->bytes <= part->offset + part->bytes;
}

/** Gives units back, as long as keep bytes stay reserved. What was freed is collected before. */
void sim_pool_trim(struct CUmemPoolHandle_st *pool, size_t keep)
{
    sim_pool_collect(pool, true);
    for (struct pool_unit **link = &pool->units; *link;) {
        bool spare = pool->reserved >= keep && pool->reserved - keep >= (*link)->bytes;
        if (!spare || !is_vacant(*link) || !is_seen(*link) || !drop(pool, link))
            link = &(*link)->next;
    }
}

static void forget_parts(struct CUmemPoolHandle_st *pool)
{
    for (unsigned i = 0; i < SIM_POOL_BINS; i++)
        for (struct pool_part *part; (part = pool->bins[i]);) {
            sim_part_unlist(part);
            free(part);
        }
}

/** A pool ends, in which all is free: what the host has not waited for stays taken until it has. */
void sim_unit_end(struct CUmemPoolHandle_st *pool)
{
    sim_pool_trim(pool, 0);
    forget_parts(pool);
    while (pool->units) {
        struct pool_unit *unit = pool->units;
        pool->units = unit->next;
        unit->first = NULL;
        sim_arena_give(pool->arena, unit->offset, unit->bytes);
        unit->device = pool->device;
        unit->next = lost;
        lost = unit;
    }
}

/** Gives back what pools that are no more had of a device, as far as the host has waited by now. */
void sim_unit_settle(const struct sim_device *device)
{
    for (struct pool_unit **link = &lost; *link;) {
        struct pool_unit *unit = *link;
        if ((unit->device && unit->device != device) || !is_seen(unit)) {
            link = &unit->next;
            continue;
        }
        *link = unit->next;
        if (unit->device)
            sim_heap_refund(unit->device, unit->bytes);
        free_unit(unit);
    }
}

static bool is_asked(const struct sim_block *block, const struct sim_device *device)
{
    return block->kind == SIM_BLOCK_POOL && block->device == device->ordinal && !block->freed &&
           !block->claimed;
}

/** Units, and what of them is in live allocations. What a pool that was destroyed has besides goes as its
 * blocks do. */
void sim_unit_count(const struct sim_device *device, struct sim_books *books)
{
    for (struct CUmemPoolHandle_st *pool = sim_pools; pool; pool = pool->next)
        pool->asked = 0;
    for (struct sim_block *block = sim_block_next(NULL); block; block = sim_block_next(block))
        if (is_asked(block, device)) {
            block->pool->asked += block->range.bytes;
            books->asked += block->range.bytes;
        }
    for (const struct CUmemPoolHandle_st *pool = sim_pools; pool; pool = pool->next)
        if (pool->device == device)
            *(pool->retired ? &books->leaving : &books->pools) += pool->reserved - pool->asked;
    for (const struct pool_unit *unit = lost; unit; unit = unit->next)
        books->leaving += unit->device == device ? unit->bytes : 0;
}
