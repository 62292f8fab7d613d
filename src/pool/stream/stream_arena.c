/* stream_arena.c - a pool's memory for one stream: how it is made, whose it becomes, requests and frees, and
 * what is told of it.
 *
 * A stream arena is a heap whose fence is always open: what its stream has freed, its stream may have. Stream
 * arenas outlive streams: one whose stream has ended, and whose work is over, is taken up by the next stream
 * that asks its pool, or gives what is vacant to the others. One whose pool was destroyed may be another
 * pool's later. Its heap counts on, and so that heaps add up to their device; the stream arena keeps what was
 * counted before, and each device the sum of that. Lock: the streams'. */
#include <string.h>

#include "base/arena.h"
#include "pool/stream/stream_arena.h"

/* --- figures -------------------------------------------------------------------------------------------- */

static _Atomic uint64_t former[MS_DEVICES_MAX][MS_STREAM_FIGURES]; /* the counts alone, as in `before` */

static uint64_t read_of(const _Atomic uint64_t *value)
{
    return atomic_load_explicit(value, memory_order_relaxed);
}

/* Counts are of the whole life of the stream arena. */
static void arena_figures_of(struct ms_stream_arena *arena, struct ms_stream_figures *f)
{
    struct ms_pool_figures heap;
    ms_figures_of_heap(arena->heap, &heap);
    *f = (struct ms_stream_figures){.reserved_bytes = heap.reserved_bytes,
                                    .live_bytes = heap.parts.requested,
                                    .limbo_bytes = read_of(&arena->heap->away_bytes),
                                    .largest_free_bytes = heap.largest_free_bytes,
                                    .misses = heap.misses,
                                    .limbo_waits = heap.limbo_waits,
                                    .trims = heap.trims,
                                    .crossed_frees = read_of(&arena->crossed),
                                    .borrowed = read_of(&arena->borrowed),
                                    .waited = read_of(&arena->waited),
                                    .hoarded_bytes = read_of(&arena->hoarded)};
    memcpy(f->hits, heap.hits, sizeof f->hits);
}

/* The stream arena, of a pool that was destroyed, is to be another's, which begins with nothing. Lock held.
 * Not in the frame of a request, below which the stack is deep. */
static MS_NOINLINE void retire_figures(struct ms_stream_arena *arena)
{
    struct ms_stream_figures f;
    const struct ms_mempool *pool = arena->pool;
    arena_figures_of(arena, &f);
    for (unsigned i = 0; i < ms_figure_stream.count; i++) {
        const struct ms_figure *row = &ms_figure_stream.rows[i];
        if (!row->is_count)
            continue;
        uint64_t now = ms_figure_in(row, &f),
                 before = atomic_exchange_explicit(&arena->before[i], now, memory_order_relaxed);
        atomic_fetch_add_explicit(&former[pool->device][i], now - before, memory_order_relaxed);
    }
    atomic_store_explicit(&arena->grown_beside, 0, memory_order_relaxed);
    atomic_store_explicit(&arena->hoarded, 0, memory_order_relaxed);
}

static void figures_of(struct ms_stream_arena *arena, const struct ms_mempool *pool,
                       struct ms_stream_figures *f)
{
    arena_figures_of(arena, f);
    f->pool = pool->number;
    f->stream = arena->latest;
    f->device = (int16_t)pool->device;
    f->by_program = pool->by_program;
    f->ended = !atomic_load_explicit(&arena->stream, memory_order_acquire);
    for (unsigned i = 0; i < ms_figure_stream.count; i++) {
        uint64_t *figure = ms_figure_of(&ms_figure_stream.rows[i], f), before = read_of(&arena->before[i]);
        *figure = *figure > before ? *figure - before : 0;
    }
}

/* False if there are none. */
static bool former_of(int device, struct ms_stream_figures *f)
{
    uint64_t any = 0;
    *f = (struct ms_stream_figures){.pool = MS_FORMER_POOLS + (uint64_t)device,
                                    .device = (int16_t)device,
                                    .by_program = true,
                                    .ended = true,
                                    .former = true};
    for (unsigned i = 0; i < ms_figure_stream.count; i++)
        any |= *ms_figure_of(&ms_figure_stream.rows[i], f) = read_of(&former[device][i]);
    return any != 0;
}

void ms_stream_each(void (*tell)(uint32_t i, const struct ms_stream_figures *figures))
{
    struct ms_stream_figures f;
    struct ms_mempool *pool;
    uint32_t number = 0;
    for (int device = 0; device < MS_DEVICES_MAX; device++) {
        if (former_of(device, &f))
            tell(number++, &f);
    }
    for (uint32_t i = 0; (pool = ms_mempool_at(i)) != NULL; i++) {
        struct ms_stream_arena *arena = ms_mempool_arenas(pool);
        for (; arena; arena = arena->next_of_pool) {
            figures_of(arena, pool, &f);
            tell(number++, &f);
        }
    }
}

uint64_t ms_stream_free_elsewhere(int device, uint64_t stream, uint64_t *cached_p)
{
    struct ms_pool_figures figures;
    struct ms_mempool *pool;
    uint64_t bytes = 0;
    *cached_p = 0;
    for (uint32_t i = 0; (pool = ms_mempool_at(i)) != NULL; i++) {
        struct ms_stream_arena *arena = ms_mempool_arenas(pool);
        for (; arena && pool->device == device; arena = arena->next_of_pool) {
            if (arena->latest == stream)
                continue;
            ms_figures_of_heap(arena->heap, &figures);
            bytes += figures.parts.cached + figures.parts.stranded;
            *cached_p += figures.parts.cached;
        }
    }
    return bytes;
}

static void flow_figures_reset(void)
{
    for (int device = 0; device < MS_DEVICES_MAX; device++) {
        for (int i = 0; i < MS_STREAM_FIGURES; i++)
            atomic_store_explicit(&former[device][i], 0, memory_order_relaxed);
    }
}
MS_AT_FORK(MS_FORK_POOL, flow_figures_reset);

/* --- whose it is ---------------------------------------------------------------------------------------- */

static bool is_empty(struct ms_stream_arena *arena)
{
    ms_lock(&arena->heap->lock);
    bool empty = arena->heap->reserved_bytes == 0;
    ms_unlock(&arena->heap->lock);
    return empty;
}

/* Lock held. One that is nobody's and over: of this pool; or any with nothing in it, of one that was
 * destroyed. */
static struct ms_stream_arena *unowned(struct ms_mempool *pool)
{
    for (struct ms_stream_arena *arena = ms_mempool_arenas(pool); arena; arena = arena->next_of_pool) {
        if (!atomic_load_explicit(&arena->stream, memory_order_relaxed) && arena->over)
            return arena;
    }
    return NULL;
}

/* Lock held. The stream has nothing of the stream arena's. */
static void leave_stream(struct ms_stream_arena *arena)
{
    struct ms_stream *stream = atomic_load_explicit(&arena->stream, memory_order_relaxed);
    struct ms_stream_arena *_Atomic *link = stream ? &stream->arenas : NULL;
    while (link && *link && *link != arena)
        link = &(*link)->next_of_stream;
    if (link && *link)
        *link = arena->next_of_stream;
    atomic_store_explicit(&arena->stream, NULL, memory_order_release);
}

static struct ms_stream_arena *taken_from(struct ms_mempool *gone)
{
    struct ms_stream_arena *_Atomic *head = &gone->arenas;
    struct ms_stream_arena *arena = atomic_load_explicit(head, memory_order_relaxed), *before = NULL;
    for (; arena; before = arena, arena = arena->next_of_pool) {
        bool waits = !atomic_load_explicit(&arena->stream, memory_order_relaxed) && !arena->over;
        /* Memory that has left it is still to be given back in the order of its stream, and not of another
         * one. */
        if (waits || !is_empty(arena) || atomic_load(&arena->leaving))
            continue;
        leave_stream(arena);
        if (before)
            before->next_of_pool = arena->next_of_pool;
        else
            atomic_store_explicit(head, arena->next_of_pool, memory_order_relaxed);
        return arena;
    }
    return NULL;
}

static struct ms_stream_arena *recycled(const struct ms_mempool *pool)
{
    struct ms_mempool *gone;
    struct ms_stream_arena *arena = NULL;
    for (uint32_t i = 0; !arena && (gone = ms_mempool_at(i)) != NULL; i++) {
        if (gone->device == pool->device && !atomic_load_explicit(&gone->handle, memory_order_relaxed))
            arena = taken_from(gone);
    }
    return arena;
}

/* Lock held. */
static struct ms_stream_arena *stream_arena_make(struct ms_mempool *pool)
{
    struct ms_stream_arena *arena = recycled(pool);
    if (arena)
        retire_figures(arena);
    if (!arena && (arena = ms_arena_alloc(sizeof(*arena))) != NULL) {
        arena->heap = ms_heap_for_stream_arena(pool->gpu, pool->device, arena);
        if (!arena->heap)
            return NULL;
    }
    if (!arena)
        return NULL;
    arena->pool = pool;
    arena->next_of_pool = ms_mempool_arenas(pool);
    atomic_store_explicit(&pool->arenas, arena, memory_order_release);
    return arena;
}

static struct ms_stream_arena *stream_arena_find(const struct ms_stream *stream,
                                                 const struct ms_mempool *pool)
{
    struct ms_stream_arena *arena = atomic_load_explicit(&stream->arenas, memory_order_acquire);
    while (arena && arena->pool != pool)
        arena = arena->next_of_stream;
    return arena;
}

/* False where events in all streams stand for one over the context, and what streams leave that end cannot be
 * kept: that is in the fence of the context's heap. */
static bool can_tell_all(const struct ms_stream *stream)
{
    const struct ms_gpu *gpu = stream->time.gpu;
    return !gpu->streams_tell || ms_heap_make(gpu, ms_stream_context(stream), stream->device);
}

static struct ms_stream_arena *stream_arena_bind(struct ms_stream *stream, struct ms_mempool *pool)
{
    if (!can_tell_all(stream))
        return NULL;
    ms_cross_free_collect();
    ms_lock(&ms_streams_lock);
    struct ms_stream_arena *arena = stream_arena_find(stream, pool);
    bool good = atomic_load_explicit(&stream->handle, memory_order_relaxed) != 0 &&
                atomic_load_explicit(&pool->handle, memory_order_relaxed) != 0;
    if (!arena && good && ((arena = unowned(pool)) != NULL || (arena = stream_arena_make(pool)) != NULL)) {
        arena->over = false;
        arena->next_of_stream = atomic_load_explicit(&stream->arenas, memory_order_relaxed);
        arena->latest = atomic_load_explicit(&stream->id, memory_order_relaxed);
        arena->context = ms_stream_context(stream);
        atomic_store_explicit(&arena->stream, stream, memory_order_release);
        ms_wait_bound(arena);
        atomic_store_explicit(&stream->arenas, arena, memory_order_release);
    }
    ms_unlock(&ms_streams_lock);
    if (arena)
        ms_wait_weigh(arena);
    return arena;
}

void ms_stream_arena_detach_all(struct ms_stream *stream, bool over)
{
    struct ms_stream_arena *arena = atomic_load_explicit(&stream->arenas, memory_order_relaxed);
    atomic_store_explicit(&stream->arenas, NULL, memory_order_release);
    for (struct ms_stream_arena *next; arena; arena = next) {
        next = arena->next_of_stream;
        arena->over = over;
        atomic_store_explicit(&arena->stream, NULL, memory_order_release);
        if (!over && !ms_cross_free_arena_ends(stream, arena))
            atomic_store_explicit(&arena->waits, NULL, memory_order_release);
    }
}

/* --- requests and frees -------------------------------------------------------------------------------- */

void ms_stream_arena_count_free(struct ms_stream_arena *arena, uint64_t requested)
{
    if (MS_UNLIKELY(!ms_mempool_count_free(arena->pool, requested)))
        ms_stream_arena_give_back(arena->pool, UINT64_MAX);
}

static MS_INLINE struct ms_mempool *pool_of(const struct ms_stream *stream, uint64_t handle)
{
    return handle == MS_MEMPOOL_CURRENT ? ms_mempool_current(stream->time.gpu, stream->device)
                                        : ms_mempool_named(stream->time.gpu, stream->device, handle);
}

struct ms_stream_arena *ms_stream_arena_of(struct ms_stream *stream, uint64_t handle)
{
    const struct ms_mempool *pool = pool_of(stream, handle);
    return pool && pool->served ? stream_arena_find(stream, pool) : NULL;
}

/* MEMSHIM_LIMIT leaves less than that: the driver, which knows of no limit, is not asked. */
static bool is_limited(const struct ms_heap *heap, uint64_t bytes)
{
    uint64_t room = ms_quota_room(heap->device);
    return bytes > room &&
           bytes - room > ms_least(ms_mempool_unit(heap->arena->pool), ms_mempool_idle_counted(heap->device));
}

static MS_NOINLINE enum ms_pool_verdict without(const struct ms_stream_arena *arena, uint64_t bytes,
                                                int status)
{
    return arena && bytes && status == CUDA_ERROR_OUT_OF_MEMORY && is_limited(arena->heap, bytes)
               ? MS_POOL_REFUSED
               : MS_POOL_PASSED;
}

/* A free that is for no stream is for the device of the stream arena's stream, and to be for that of the
 * memory: where vendors' frees wait they are the same. */
static bool is_of_one_device(const struct ms_stream *stream, const struct ms_mempool *pool)
{
    return !stream->time.gpu->free_is_sync || stream->device == pool->device;
}

enum ms_pool_verdict ms_stream_alloc(struct ms_stream *stream, uint64_t handle, uint64_t bytes,
                                     enum ms_pool_how how, struct ms_pool_block *block_p)
{
    struct ms_mempool *pool = pool_of(stream, handle);
    struct ms_stream_arena *arena = pool && pool->served ? stream_arena_find(stream, pool) : NULL;
    int status = 0;
    if (MS_UNLIKELY(!arena && !how && pool && pool->served && is_of_one_device(stream, pool)))
        arena = stream_arena_bind(stream, pool);
    if (MS_UNLIKELY(!arena || !bytes ||
                    ms_heap_serve(arena->heap, bytes, how, block_p, &status) != MS_POOL_SERVED))
        return without(arena, bytes, status);
    ms_mempool_count_alloc(pool, bytes);
    if (MS_UNLIKELY(ms_policy->poison_alloc && stream->device == pool->device))
        ms_poison_ordered(stream->time.gpu, stream->handle, block_p->address, block_p->granted, false);
    return MS_POOL_SERVED;
}

bool ms_stream_owns(uint64_t address)
{
    const struct ms_segment *segment = ms_page_segment(address);
    return segment && ms_segment_covers(segment, address) && ms_segment_heap(segment)->arena;
}

void ms_stream_free_end(struct ms_pool_block *block, struct ms_stream *stream)
{
    struct ms_heap *heap = block->own_heap;
    struct ms_stream_arena *arena = heap->arena;
    /* Another device may have no access to the memory. */
    if (MS_UNLIKELY(ms_policy->poison_free && stream->device == arena->pool->device))
        ms_poison_ordered(stream->time.gpu, stream->handle, block->address, block->granted, true);
    bool own = atomic_load_explicit(&arena->stream, memory_order_acquire) == stream;
    if (MS_LIKELY(own) || ms_policy->free_rule == MS_POOL_IMMEDIATE) {
        if (MS_UNLIKELY(own && atomic_load_explicit(&arena->waits, memory_order_relaxed)))
            ms_wait_note_free(arena, block);
        block->in_order = true;
        ms_pool_free_end(block);
        return;
    }
    atomic_fetch_add_explicit(&arena->crossed, 1, memory_order_relaxed);
    ms_cross_free_later(stream, block);
    ms_stream_arena_count_free(arena, block->requested);
}
