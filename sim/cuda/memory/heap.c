/*
 * Device memory. A device is an arena that is much wider than its capacity; capacity is a count. Allocations
 * from 2 MiB on (or the granularity, if that is finer) are extents of their own; smaller ones share chunks of
 * one granule, in units of 512 bytes, as the driver does it. So the price of a small allocation is its share
 * of a granule.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/cuda/books.h"
#include "sim/cuda/rules.h"
#include "sim/cuda/sim.h"
#include "sim/cuda/device/usage.h"

#define UNIT          512UL
#define WIDEST_WINDOW (1UL << 40)
#define WINDOW_FACTOR 64

/* Whose a granule is beyond the blocks in it: the program's if it has one there by an address that it knows;
 * else of whatever else lies there. */
enum owner { OF_PROGRAM, OF_ARRAY, OF_LAZY, OF_LEAVING, OWNERS };

struct sim_chunk {
    struct sim_chunk *next, **link;
    bool spare; /* empty, kept for the next small block; it costs addresses, and no capacity */
    struct sim_device *device;
    unsigned long long ctx_id; /* chunks are not shared between contexts */
    size_t offset;
    size_t free_units, units;
    size_t counted[OWNERS]; /* bytes of blocks, while they are counted for the books; by whoever has their
                               lock */
    uint64_t used[];
};

static struct sim_chunk *chunks[SIM_MAX_DEVICES];

size_t sim_heap_round(size_t bytes)
{
    size_t granule = sim_config.granularity_bytes;

    return (bytes + granule - 1) & ~(granule - 1);
}

size_t sim_heap_align(size_t bytes)
{
    size_t granule = sim_config.granularity_bytes;

    return bytes >= SIM_VMM_PAGE && granule < SIM_VMM_PAGE ? SIM_VMM_PAGE : granule;
}

static void tell_used(const struct sim_device *device)
{
    sim_usage_bytes(device->ordinal, device->used_bytes);
    sim_books_use(device->ordinal, device->used_bytes);
}

/** Counts memory against the capacity; unused pool memory makes room if need be. */
CUresult sim_heap_charge(struct sim_device *device, size_t bytes)
{
    size_t others = sim_books_others(device->ordinal),
           capacity = sim_config.memory_bytes > others ? sim_config.memory_bytes - others : 0;

    if (bytes > capacity)
        return CUDA_ERROR_OUT_OF_MEMORY;
    if (device->used_bytes > capacity - bytes &&
        !sim_pool_squeeze(device, bytes - (capacity - device->used_bytes)))
        return CUDA_ERROR_OUT_OF_MEMORY;
    device->used_bytes += bytes;
    if (device->peak_bytes < device->used_bytes)
        device->peak_bytes = device->used_bytes;
    sim_rules_moved(bytes);
    tell_used(device);
    return CUDA_SUCCESS;
}

void sim_heap_refund(struct sim_device *device, size_t bytes)
{
    device->used_bytes -= bytes;
    sim_rules_moved(bytes);
    tell_used(device);
}

/** The device's arena, opened when it is first needed. */
CUresult sim_heap_arena(struct sim_device *device, struct sim_arena **arena_p)
{
    char name[32];
    size_t capacity = sim_heap_round(sim_config.memory_bytes);
    size_t wide = capacity < WIDEST_WINDOW / WINDOW_FACTOR ? capacity * WINDOW_FACTOR : WIDEST_WINDOW;

    *arena_p = &device->arena;
    if (device->arena.base)
        return CUDA_SUCCESS;
    if (wide < 2 * capacity)
        wide = 2 * capacity;
    snprintf(name, sizeof name, "memsim.device.%d", device->ordinal);
    return sim_arena_open(&device->arena, name, wide);
}

static CUresult take_extent(struct sim_device *device, size_t bytes, size_t align, size_t *offset_p)
{
    struct sim_arena *arena;
    CUresult status = sim_heap_arena(device, &arena);

    if (status == CUDA_SUCCESS)
        status = sim_heap_charge(device, bytes);
    if (status != CUDA_SUCCESS)
        return status;
    if (sim_arena_take(arena, bytes, align, offset_p)) {
        if (sim_arena_show(arena, *offset_p, bytes))
            return CUDA_SUCCESS;
        sim_arena_give(arena, *offset_p, bytes);
    }
    sim_heap_refund(device, bytes);
    return CUDA_ERROR_OUT_OF_MEMORY;
}

static bool unit_used(const struct sim_chunk *chunk, size_t unit)
{
    return chunk->used[unit / 64] >> (unit % 64) & 1;
}

static void mark_units(struct sim_chunk *chunk, size_t first, size_t count, bool used)
{
    for (size_t unit = first; unit < first + count; unit++)
        chunk->used[unit / 64] ^= (uint64_t)(unit_used(chunk, unit) != used) << (unit % 64);
    chunk->free_units += used ? -count : count;
}

/* First fit; whole words that are full are passed over. */
static bool find_units(const struct sim_chunk *chunk, size_t count, size_t *first_p)
{
    size_t run = 0;

    for (size_t unit = 0; unit < chunk->units; unit++) {
        if (!(unit % 64) && chunk->used[unit / 64] == UINT64_MAX) {
            run = 0;
            unit += 63;
            continue;
        }
        run = unit_used(chunk, unit) ? 0 : run + 1;
        if (run == count) {
            *first_p = unit + 1 - count;
            return true;
        }
    }
    return false;
}

static struct sim_chunk *new_chunk(struct CUctx_st *ctx)
{
    size_t units = sim_config.granularity_bytes / UNIT, words = (units + 63) / 64;
    struct sim_chunk *chunk = calloc(1, sizeof *chunk + words * sizeof chunk->used[0]);
    struct sim_device *device = ctx->device;

    if (!chunk ||
        take_extent(device, units * UNIT, sim_config.granularity_bytes, &chunk->offset) != CUDA_SUCCESS) {
        free(chunk);
        return NULL;
    }
    chunk->device = device;
    chunk->ctx_id = ctx->id;
    chunk->units = chunk->free_units = units;
    if (units % 64) /* what lies past the end is taken */
        chunk->used[words - 1] = UINT64_MAX << (units % 64);
    chunk->next = chunks[device->ordinal];
    chunk->link = &chunks[device->ordinal];
    if (chunk->next)
        chunk->next->link = &chunk->next;
    chunks[device->ordinal] = chunk;
    return chunk;
}

static void drop_chunk(struct sim_chunk *chunk)
{
    *chunk->link = chunk->next;
    if (chunk->next)
        chunk->next->link = chunk->link;
    sim_arena_give(&chunk->device->arena, chunk->offset, chunk->units * UNIT);
    if (!chunk->spare)
        sim_heap_refund(chunk->device, chunk->units * UNIT);
    free(chunk);
}

/* A context keeps one chunk that has become empty: a program that allocates and frees one small block again
 * and again would else map a granule each time. */
static void spare_chunk(struct sim_chunk *chunk)
{
    for (struct sim_chunk *other = chunks[chunk->device->ordinal]; other; other = other->next)
        if (other->spare && other->ctx_id == chunk->ctx_id) {
            drop_chunk(chunk);
            return;
        }
    chunk->spare = true;
    sim_heap_refund(chunk->device, chunk->units * UNIT);
}

static CUresult take_small(struct CUctx_st *ctx, size_t count, struct sim_chunk **chunk_p, size_t *offset_p)
{
    struct sim_chunk *chunk;
    size_t first = 0;

    for (chunk = chunks[ctx->device->ordinal]; chunk; chunk = chunk->next)
        if (chunk->ctx_id == ctx->id && chunk->free_units >= count && find_units(chunk, count, &first))
            break;
    if (!chunk && !(chunk = new_chunk(ctx)))
        return CUDA_ERROR_OUT_OF_MEMORY;
    if (chunk->spare && sim_heap_charge(chunk->device, chunk->units * UNIT) != CUDA_SUCCESS)
        return CUDA_ERROR_OUT_OF_MEMORY;
    chunk->spare = false;
    mark_units(chunk, first, count, true);
    *chunk_p = chunk;
    *offset_p = chunk->offset + first * UNIT;
    return CUDA_SUCCESS;
}

static void give_small(struct sim_chunk *chunk, size_t offset, size_t bytes)
{
    mark_units(chunk, (offset - chunk->offset) / UNIT, bytes / UNIT, false);
    if (chunk->free_units == chunk->units)
        spare_chunk(chunk);
}

static bool is_small(size_t bytes)
{
    return bytes < SIM_VMM_PAGE && bytes < sim_config.granularity_bytes;
}

static void give_extent(struct sim_device *device, struct sim_chunk *chunk, size_t offset, size_t bytes)
{
    if (chunk) {
        give_small(chunk, offset, bytes);
        return;
    }
    sim_arena_give(&device->arena, offset, bytes);
    sim_heap_refund(device, bytes);
}

static CUresult alloc_locked(struct CUctx_st *ctx, enum sim_taker taker, size_t bytes,
                             struct sim_block **block_p)
{
    struct sim_device *device = ctx->device;
    struct sim_chunk *chunk = NULL;
    size_t offset, taken;
    CUresult status;

    if (is_small(bytes)) {
        taken = (bytes + UNIT - 1) & ~(UNIT - 1);
        status = take_small(ctx, taken / UNIT, &chunk, &offset);
    } else {
        taken = sim_heap_round(bytes);
        status = take_extent(device, taken, sim_heap_align(bytes), &offset);
    }
    if (status != CUDA_SUCCESS)
        return status;
    struct sim_block *block = sim_block_new(SIM_BLOCK_DEVICE, (uintptr_t)device->arena.base + offset, bytes);
    if (!block) {
        give_extent(device, chunk, offset, taken);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    block->device = device->ordinal;
    block->ctx = ctx;
    block->ctx_id = ctx->id;
    block->arena = &device->arena;
    block->arena_offset = offset;
    block->arena_bytes = taken;
    block->chunk = chunk;
    block->taker = taker;
    *block_p = block;
    return CUDA_SUCCESS;
}

/** Allocates device memory in a context. Sizes of 0 and such that would overflow are the caller's
 * business. */
CUresult sim_heap_alloc(struct CUctx_st *ctx, size_t bytes, struct sim_block **block_p)
{
    return sim_heap_take(ctx, SIM_FOR_PROGRAM, bytes, block_p);
}

/** As sim_heap_alloc, for any taker. */
CUresult sim_heap_take(struct CUctx_st *ctx, enum sim_taker taker, size_t bytes, struct sim_block **block_p)
{
    if (bytes > sim_config.memory_bytes)
        return CUDA_ERROR_OUT_OF_MEMORY;
    sim_memory_write_lock();
    CUresult status = alloc_locked(ctx, taker, bytes, block_p);
    sim_memory_unlock();
    return status;
}

/** Memory that the driver takes for itself in a context, in whole granules: the context's own, or a module's.
 * It goes with the context at the latest. `address_p`: 0 where nothing is taken (MEMSIM_CONTEXT). */
CUresult sim_heap_own(struct CUctx_st *ctx, enum sim_taker taker, size_t bytes, CUdeviceptr *address_p)
{
    struct sim_block *block;

    *address_p = 0;
    if (!sim_config.context_bytes || !bytes)
        return CUDA_SUCCESS;
    CUresult status = sim_heap_take(ctx, taker, sim_heap_round(bytes), &block);
    if (status == CUDA_SUCCESS)
        *address_p = block->range.start;
    return status;
}

/** Gives back what sim_heap_own took in the context of that id, if that is still there. */
void sim_heap_disown(unsigned long long ctx_id, CUdeviceptr address)
{
    if (!address)
        return;
    sim_memory_write_lock();
    struct sim_block *block = sim_block_base(address);
    if (block && block->ctx_id == ctx_id)
        sim_heap_free(block);
    sim_memory_unlock();
}

/* Freed in the order of streams that the host has not waited for since. */
static struct sim_block *leaving;

/** A stream has got to a block's free, which had that number: nobody may touch it any more, and its memory is
 * the device's once the host has waited for the stream. The memory lock is held for writing. */
void sim_heap_leave(struct sim_block *block, struct sim_queue *queue, uint64_t seq)
{
    block->freed = true;
    block->left = (struct sim_ticket){sim_queue_ref(queue), seq};
    block->left_next = leaving;
    leaving = block;
}

static void stop_leaving(struct sim_block *block)
{
    struct sim_block **link = &leaving;

    while (*link && *link != block)
        link = &(*link)->left_next;
    if (*link)
        *link = block->left_next;
    sim_queue_put(block->left.queue);
    block->left.queue = NULL;
}

/** Frees the blocks of a device that were leaving, if the host has waited since for the queue that freed
 * them. The memory lock is held for writing. */
void sim_heap_settle(const struct sim_device *device)
{
    for (struct sim_block *block = leaving, *next; block; block = next) {
        next = block->left_next;
        if (block->device == device->ordinal && sim_queue_seen(block->left.queue, block->left.seq))
            sim_heap_free(block);
    }
}

/** Frees a device block at once. The memory lock is held for writing. */
void sim_heap_free(struct sim_block *block)
{
    if (block->left.queue)
        stop_leaving(block);
    give_extent(&sim_devices[block->device], block->chunk, block->arena_offset, block->arena_bytes);
    sim_block_drop(block);
}

/** Frees what a context that dies still holds. */
void sim_heap_drop_context(struct CUctx_st *ctx)
{
    sim_memory_write_lock();
    for (struct sim_block *block = sim_block_next(NULL), *next; block; block = next) {
        next = sim_block_next(block);
        if (block->kind == SIM_BLOCK_DEVICE && block->ctx_id == ctx->id)
            sim_heap_free(block);
    }
    for (struct sim_chunk *chunk = chunks[ctx->device->ordinal], *next; chunk; chunk = next) {
        next = chunk->next;
        if (chunk->spare && chunk->ctx_id == ctx->id)
            drop_chunk(chunk);
    }
    sim_memory_unlock();
}

static enum owner owner_of(const struct sim_block *block)
{
    return block->freed || block->claimed  ? OF_LEAVING
           : block->taker == SIM_FOR_LAZY  ? OF_LAZY
           : block->taker == SIM_FOR_ARRAY ? OF_ARRAY
                                           : OF_PROGRAM;
}

static size_t *category_of(const struct sim_block *block, struct sim_books *books)
{
    if (block->freed || block->claimed)
        return &books->leaving;
    return block->taker == SIM_FOR_CONTEXT  ? &books->contexts
           : block->taker == SIM_FOR_MODULE ? &books->modules
           : block->taker == SIM_FOR_LAZY   ? &books->lazy
                                            : &books->asked;
}

/* Counts a block where it belongs, or, of a chunk, with others of its owner there. */
static void count_block(const struct sim_block *block, struct sim_books *books)
{
    size_t bytes = block->range.bytes - block->padding;
    enum owner owner = owner_of(block);
    bool is_asked = owner == OF_PROGRAM || owner == OF_ARRAY;

    if (block->chunk)
        block->chunk->counted[owner] += bytes;
    if (is_asked)
        *category_of(block, books) += bytes;
    if (!block->chunk)
        *(is_asked ? &books->rounding : category_of(block, books)) +=
            block->arena_bytes - (is_asked ? bytes : 0);
}

static void count_chunk(const struct sim_chunk *chunk, struct sim_books *books)
{
    const size_t *counted = chunk->counted;
    size_t beyond = chunk->units * UNIT - counted[OF_PROGRAM] - counted[OF_ARRAY];

    *(counted[OF_PROGRAM] ? &books->rounding
      : counted[OF_ARRAY] ? &books->arrays
      : counted[OF_LAZY]  ? &books->lazy
                          : &books->leaving) += beyond;
}

/** Blocks, and what granules add to them. */
void sim_heap_count(const struct sim_device *device, struct sim_books *books)
{
    for (struct sim_chunk *chunk = chunks[device->ordinal]; chunk; chunk = chunk->next)
        memset(chunk->counted, 0, sizeof chunk->counted);
    for (struct sim_block *block = sim_block_next(NULL); block; block = sim_block_next(block))
        if (block->kind == SIM_BLOCK_DEVICE && block->device == device->ordinal)
            count_block(block, books);
    for (const struct sim_chunk *chunk = chunks[device->ordinal]; chunk; chunk = chunk->next)
        if (!chunk->spare)
            count_chunk(chunk, books);
}
