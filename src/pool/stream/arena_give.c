/* arena_give.c - what is vacant in the stream arenas of a pool, and goes back to the driver.
 *
 * It goes if nothing is under way in it after it was set aside, by an event or because nobody has it: where
 * the driver gave it to another stream, and made that one wait, the wait would be for what was issued up to
 * now, not up to the free. No lock is held where the driver is called, but the streams'. */
#include "config.h"

#include "base/clock.h"
#include "pool/stream/stream_arena.h"
#include "pool/api/internal.h"
#include "pool/stream/driver_frees.h"

bool ms_stream_arena_is_idle(struct ms_stream_arena *arena)
{
    struct ms_stream *stream = atomic_load_explicit(&arena->stream, memory_order_relaxed);
    if (!stream)
        return arena->over;
    uint64_t point = ms_fence_timeline_point(&stream->time);
    bool done =
        ms_stream_mark(stream) && ms_fence_timeline_is_reached(&stream->time, point, MS_STREAM_ARENA_LOOK_NS);
    ms_fence_timeline_take_back(&stream->time, point);
    return done;
}

/* Memory that graphs may know stays as long as any graph, but not where memory is short, nor behind the end
 * of the program's pool: what is free there the driver would have unmapped as well. */
static void forget_captured(struct ms_mempool *pool)
{
    struct ms_stream_arena *arena = ms_mempool_arenas(pool);
    for (; arena; arena = arena->next_of_pool)
        ms_captured_forget(arena->heap);
}

/* Vacant segments, taken out the largest first, linked by `leaving_next`; from here on no request finds
 * them. */
static struct ms_segment *detach(struct ms_heap *heap, uint64_t bytes)
{
    struct ms_segment *all = NULL;
    uint64_t detached = 0;
    ms_lock(&heap->lock);
    for (uint32_t i = heap->extents.vacant_count; i-- > 0 && detached < bytes;) {
        struct ms_segment *segment = heap->extents.vacant[i];
        if (segment->captured)
            continue;
        ms_vacant_remove(&heap->extents, segment);
        ms_segment_unlink(heap, segment);
        detached += segment->bytes;
        segment->leaving_next = all;
        all = segment;
    }
    if (all)
        ms_driver_frees_begin(heap->device);
    ms_unlock(&heap->lock);
    return all;
}

static bool nothing_under_way(struct ms_stream_arena *arena)
{
    ms_lock(&ms_streams_lock);
    bool idle = ms_stream_arena_is_idle(arena);
    ms_unlock(&ms_streams_lock);
    return idle || ms_cross_free_context_is_idle(arena);
}

static uint64_t arena_give_give_back(struct ms_stream_arena *arena, uint64_t bytes)
{
    uint64_t given = 0;
    ms_tcache_flush(&arena->heap->cache);
    struct ms_segment *segment = detach(arena->heap, bytes), *next;
    bool any = segment != NULL, idle = any && nothing_under_way(arena);
    arena->idle = idle;
    for (; segment; segment = next) {
        next = segment->leaving_next;
        if (idle)
            given += ms_segment_return(arena->heap, &segment, 1, true);
        else
            ms_segment_attach(arena->heap, segment);
    }
    arena->idle = false;
    if (any)
        ms_driver_frees_end(arena->heap->device);
    if (given) {
        atomic_fetch_add_explicit(&arena->heap->trims, 1, memory_order_relaxed);
        ms_figures_changed(arena->heap);
    }
    return given;
}

uint64_t ms_stream_arena_give_back(struct ms_mempool *pool, uint64_t bytes)
{
    bool gone = !atomic_load_explicit(&pool->handle, memory_order_acquire);
    uint64_t given = 0;
    ms_stream_notice_ends();
    ms_cross_free_collect();
    if (gone)
        forget_captured(pool);
    for (struct ms_stream_arena *arena = ms_mempool_arenas(pool); arena && given < bytes;
         arena = arena->next_of_pool) {
        atomic_fetch_add(&arena->leaving, 1);
        if (gone && ms_fence_quiet(arena->heap)) { /* nobody will be made to wait */
            ms_tcache_flush(&arena->heap->cache);
            given += ms_keep_give_back(arena->heap, bytes - given, true);
        } else {
            given += arena_give_give_back(arena, bytes - given);
        }
        atomic_fetch_sub(&arena->leaving, 1);
    }
    if (given)
        ms_driver_frees_await(pool->device, true, ms_clock_ns() + MS_STREAM_ARENA_LOOK_NS);
    return given;
}

/* Memory that goes back stays with the driver's pool until the pool is told to let it go: not every
 * allocation of the driver's takes it from there. */
uint64_t ms_stream_trim(int device)
{
    struct ms_mempool *pool;
    uint64_t given = ms_driver_frees_settle(device);
    for (uint32_t i = 0; (pool = ms_mempool_at(i)) != NULL; i++) {
        if (pool->device != device)
            continue;
        forget_captured(pool);
        given += ms_stream_arena_give_back(pool, UINT64_MAX);
        if (atomic_load_explicit(&pool->freed, memory_order_relaxed))
            ms_mempool_trim_to(pool, 0);
    }
    return given;
}

uint64_t ms_stream_reclaimable(int device)
{
    struct ms_mempool *pool;
    uint64_t bytes = 0;
    for (uint32_t i = 0; (pool = ms_mempool_at(i)) != NULL; i++) {
        struct ms_stream_arena *arena = ms_mempool_arenas(pool);
        for (; pool->device == device && arena; arena = arena->next_of_pool) {
            ms_tcache_flush(&arena->heap->cache);
            ms_lock(&arena->heap->lock);
            bytes += arena->heap->extents.vacant_bytes;
            ms_unlock(&arena->heap->lock);
        }
    }
    return bytes;
}

/* Memory goes back that is held beyond what is in use, the pool's own threshold and what others leave of
 * MEMSHIM_KEEP; of a pool that was destroyed, what came home since its last block was freed. `left_p` is
 * UINT64_MAX until it was asked for, and less by what stays here. */
static void arena_give_settle(struct ms_mempool *pool, uint64_t *left_p)
{
    struct ms_stream_arena *arena = ms_mempool_arenas(pool);
    uint64_t handle = atomic_load_explicit(&pool->handle, memory_order_acquire);
    uint64_t held = atomic_load_explicit(&pool->held, memory_order_relaxed),
             used = atomic_load_explicit(&pool->used, memory_order_relaxed),
             keep = atomic_load_explicit(&pool->threshold, memory_order_relaxed);
    if (arena && !handle && held > used)
        ms_stream_arena_give_back(pool, UINT64_MAX);
    if (!arena || !handle)
        return;
    if (held <= used || held - used <= keep)
        return;
    if (*left_p == UINT64_MAX)
        *left_p = ms_keep_left(pool->device);
    keep = keep > *left_p ? keep : *left_p;
    if (held - used > keep && ms_stream_arena_give_back(pool, held - used - keep))
        ms_mempool_trim_to(pool, used + keep);
    *left_p -= ms_least(*left_p, ms_least(held - used, keep));
}

void ms_stream_at_sync(const struct ms_gpu *gpu, int device)
{
    struct ms_mempool *pool;
    uint64_t left = UINT64_MAX;
    ms_driver_frees_settle(device);
    for (uint32_t i = 0; (pool = ms_mempool_at(i)) != NULL; i++) {
        if (pool->device == device && pool->gpu == gpu)
            arena_give_settle(pool, &left);
    }
}
