/* arena_grow.c - how much is asked of the driver's pool when a stream arena has to grow, and what goes back
 * before.
 *
 * The driver's pool takes memory of the device in units of its own, and what of a unit nobody asks for lies
 * idle. So a stream arena asks for parts of a unit that grow with what it has, up to a whole one, and for
 * what is longer in just its length: what that leaves of its last unit the driver begins the next request in,
 * whatever its length. How long a unit is, the driver's own figure tells: what its pool has before a page was
 * asked for, and what it has then. A pool's streams share units through the driver, which knows what of them
 * nobody ever had.
 *
 * Before more is held than ever was, what is vacant beyond a share of what is in use goes back, if nothing is
 * under way there, so that the driver can make one piece of several. No lock is held where the driver is
 * called. */
#include "config.h"

#include "pool/stream/stream_arena.h"
#include "pool/stream/driver_frees.h"

static bool arena_grow_is_alone(const struct ms_stream_arena *arena)
{
    const struct ms_mempool *pool = arena->pool;
    return !arena->next_of_pool && ms_mempool_arenas(pool) == arena;
}

/* --- what the driver does ------------------------------------------------------------------------------- */

static bool figure(const struct ms_mempool *pool, CUmemPool_attribute attribute, uint64_t *bytes_p)
{
    cuuint64_t bytes = 0;
    CUmemoryPool handle = (CUmemoryPool)(uintptr_t)atomic_load_explicit(&pool->handle, memory_order_acquire);
    struct ms_context_scope visit;
    ms_context_scope_begin(&visit, pool->gpu, 0);
    bool known = handle && pool->gpu->mem_pool_get_attribute &&
                 pool->gpu->mem_pool_get_attribute(handle, attribute, &bytes) == CUDA_SUCCESS;
    ms_context_scope_end(&visit);
    *bytes_p = bytes;
    return known;
}

uint64_t ms_mempool_reserved(const struct ms_mempool *pool)
{
    uint64_t bytes;
    return figure(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, &bytes) ? bytes : 0;
}

bool ms_mempool_figures(const struct ms_mempool *pool, uint64_t *reserved_p, uint64_t *used_p)
{
    return figure(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, used_p) &&
           figure(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, reserved_p);
}

static uint64_t idle_in_driver(const struct ms_mempool *pool)
{
    uint64_t used, reserved;
    return ms_mempool_figures(pool, &reserved, &used) && reserved > used ? reserved - used : 0;
}

/* Before the first growth of a pool: what the driver takes for a page, or has taken already for a pool in
 * which nothing was ever in use: one that the program made begins with a unit. Where the stream has nothing
 * to do the page goes back at once, and is a part of the unit again; else it stays, vacant. Returns whether
 * it did. */
static bool try_with(struct ms_heap *heap)
{
    struct ms_mempool *pool = heap->arena->pool;
    uint64_t before, used = 0;
    int status;
    struct ms_segment *page = figure(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, &before) &&
                                      figure(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &used)
                                  ? ms_segment_new(heap, MS_PAGE_BYTES, 0, &status)
                                  : NULL;
    if (!page)
        return false;
    ms_vacant_remove(&heap->extents, page); /* nobody else takes it meanwhile */
    ms_unlock(&heap->lock);
    uint64_t after = ms_mempool_reserved(pool), unit = after > before ? after - before : used ? 0 : before;
    bool known = unit >= 2 * MS_PAGE_BYTES && unit <= MS_STREAM_ARENA_UNIT_MOST_BYTES, idle = false;
    if (known) {
        atomic_store_explicit(&pool->unit, unit, memory_order_release);
        ms_lock(&ms_streams_lock);
        idle = ms_stream_arena_is_idle(heap->arena);
        ms_unlock(&ms_streams_lock);
    }
    ms_lock(&heap->lock);
    if (idle) {
        ms_segment_unlink(heap, page);
        ms_driver_frees_begin(heap->device);
    } else {
        ms_vacant_put(&heap->extents, page);
    }
    ms_unlock(&heap->lock);
    if (idle) {
        ms_segment_return(heap, &page, 1, true);
        ms_driver_frees_end(heap->device);
    }
    return !idle;
}

/* Meanwhile the page is in no part of what is reserved, so what is in use is not told. */
static bool try_a_page(struct ms_heap *heap)
{
    ms_device_grows(heap->device, true);
    bool stays = try_with(heap);
    ms_device_grows(heap->device, false);
    return stays;
}

/* --- asking --------------------------------------------------------------------------------------------- */

/* How much a stream arena should grow by: beside other streams, of which each may need little, no more than
 * it must. What the driver has left of units that it took already is not exceeded for more than what is
 * needed. */
static uint64_t wanted(const struct ms_stream_arena *arena, const struct ms_request *request, uint64_t has)
{
    const struct ms_mempool *pool = arena->pool;
    uint64_t least = ms_request_pages(request),
             unit = atomic_load_explicit(&pool->unit, memory_order_acquire);
    if (request->single || !unit || least >= unit || !arena_grow_is_alone(arena) ||
        ms_heap_left(arena->heap) < unit)
        return least;
    /* as much again as it has, so that a stream that needs little holds little */
    uint64_t more = ms_round_up(has ? has : unit / MS_STREAM_ARENA_PIECE_SHARE, MS_PAGE_BYTES),
             idle = idle_in_driver(pool) / MS_PAGE_BYTES * MS_PAGE_BYTES;
    if (more > unit)
        more = unit;
    if (more > idle && idle >= least)
        more = idle;
    return more > least ? more : least;
}

/* The bytes that should go back before `bytes` more are asked for. Memory that was held once already costs
 * the program nothing that it did not have before. */
static uint64_t over(const struct ms_mempool *pool, uint64_t bytes, uint64_t keep)
{
    uint64_t held = atomic_load_explicit(&pool->held, memory_order_relaxed) + bytes,
             allowed = atomic_load_explicit(&pool->held_peak, memory_order_relaxed),
             used = atomic_load_explicit(&pool->used, memory_order_relaxed) + bytes,
             habit = atomic_load_explicit(&pool->churned, memory_order_relaxed) / MS_STREAM_ARENA_HABIT_SHARE,
             slack = used / MS_STREAM_ARENA_SHARE + (habit < keep ? habit : keep);
    if (allowed < used + slack)
        allowed = used + slack;
    if (held <= allowed)
        return 0;
    return held - allowed > MS_STREAM_ARENA_MERGED * bytes ? held - allowed : MS_STREAM_ARENA_MERGED * bytes;
}

struct ms_slot *ms_stream_arena_grow(struct ms_heap *heap, const struct ms_request *request, int *status_p)
{
    struct ms_mempool *pool = heap->arena->pool;
    uint64_t least = ms_request_pages(request);
    struct ms_slot *slot;
    if (MS_UNLIKELY(!atomic_exchange_explicit(&pool->tried, true, memory_order_relaxed)) &&
        !request->single && try_a_page(heap) && (slot = ms_fallback_from_heap(heap, request)) != NULL)
        return slot;
    ms_lock(&heap->lock);
    uint64_t has = heap->reserved_bytes;
    ms_unlock(&heap->lock);
    uint64_t bytes = wanted(heap->arena, request, has);
    uint64_t too_much = over(pool, bytes, heap->keep_bytes);
    if (too_much)
        atomic_fetch_add_explicit(&pool->churned, ms_stream_arena_give_back(pool, too_much),
                                  memory_order_relaxed);
    ms_keep_before_followed(heap->device, bytes);
    slot = ms_grow_by(heap, request, bytes, 0, status_p);
    if (!slot && bytes > least && *status_p == CUDA_ERROR_OUT_OF_MEMORY)
        slot = ms_grow_by(heap, request, least, 0, status_p);
    if (slot)
        ms_stream_arena_note_idle_held(heap->arena, least);
    return slot;
}
