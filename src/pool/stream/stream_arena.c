/* stream_arena.c - a pool's memory for one stream: how it is made, whose it becomes, and the vendor's calls
 * for it.
 *
 * A stream arena is a heap whose fence is always open: what its stream has freed, its stream may have. Stream
 * arenas outlive streams: one whose stream has ended, and whose work is over, is taken up by the next stream
 * that asks its pool, or gives what is vacant to the others. Lock: the streams'. */
#include "config.h"

#include "base/arena.h"
#include "pool/stream/stream_arena.h"
#include "pool/stream/driver_frees.h"

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
        ms_stream_arena_retire_figures(arena);
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

static struct ms_stream_arena *stream_arena_bind(struct ms_stream *stream, struct ms_mempool *pool)
{
    ms_cross_free_collect();
    ms_lock(&ms_streams_lock);
    struct ms_stream_arena *arena = stream_arena_find(stream, pool);
    bool good = atomic_load_explicit(&stream->handle, memory_order_relaxed) != 0 &&
                atomic_load_explicit(&pool->handle, memory_order_relaxed) != 0;
    if (!arena && good && ((arena = unowned(pool)) != NULL || (arena = stream_arena_make(pool)) != NULL)) {
        arena->over = false;
        arena->next_of_stream = atomic_load_explicit(&stream->arenas, memory_order_relaxed);
        arena->latest = atomic_load_explicit(&stream->id, memory_order_relaxed);
        atomic_store_explicit(&arena->stream, stream, memory_order_release);
        ms_wait_bound(arena);
        atomic_store_explicit(&stream->arenas, arena, memory_order_release);
    }
    ms_unlock(&ms_streams_lock);
    if (arena)
        ms_wait_weigh(arena);
    return arena;
}

/* The stream arena of a pool for a stream; makes one. NULL if there cannot be one. */
static struct ms_stream_arena *flow_of(struct ms_stream *stream, struct ms_mempool *pool)
{
    struct ms_stream_arena *arena = stream_arena_find(stream, pool);
    return MS_LIKELY(arena != NULL) ? arena : stream_arena_bind(stream, pool);
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

/* --- the vendor ---------------------------------------------------------------------------------------- */

static int stream_arena_ask(const struct ms_stream_arena *arena, const struct ms_stream *stream,
                            uint64_t bytes, CUdeviceptr *p)
{
    const struct ms_mempool *pool = arena->pool;
    struct ms_context_scope visit;
    CUmemoryPool handle = (CUmemoryPool)(uintptr_t)atomic_load_explicit(&pool->handle, memory_order_acquire);
    if (!handle)
        return CUDA_ERROR_INVALID_VALUE;
    ms_context_scope_begin(&visit, pool->gpu,
                           atomic_load_explicit(&stream->time.context, memory_order_relaxed));
    int status = (int)pool->gpu->mem_alloc_from_pool_async(p, bytes, handle, ms_stream_handle(stream));
    ms_context_scope_end(&visit);
    return status;
}

/* Memory that was given back to make room for more leaves the device: else the driver's pool would hold both.
 * Memory that the program wants kept, beside what it never had, stays; what is not the driver's yet is let go
 * of the next time. */
static void stream_arena_let_go(struct ms_mempool *pool)
{
    uint64_t keep = atomic_load_explicit(&pool->threshold, memory_order_relaxed);
    if (!atomic_load_explicit(&pool->freed, memory_order_relaxed))
        return;
    ms_driver_frees_settle(pool->device);
    uint64_t freed = ms_driver_frees_pending(pool->device)
                         ? atomic_load_explicit(&pool->freed, memory_order_relaxed)
                         : atomic_exchange_explicit(&pool->freed, 0, memory_order_relaxed);
    uint64_t reserved = keep ? ms_mempool_reserved(pool) : 0;
    if (reserved > freed && keep > reserved - freed)
        keep = reserved - freed;
    ms_mempool_trim_to(pool, keep);
}

/* Lock held, the stream reachable and its context current. */
static int free_on(const struct ms_gpu *gpu, struct ms_stream *stream, int device, uint64_t address,
                   uint64_t bytes)
{
    int status = (int)gpu->mem_free_async(address, ms_stream_handle(stream));
    if (status == CUDA_SUCCESS)
        ms_driver_frees_note(stream, device, bytes);
    return status;
}

/* Memory that the stream was given just now goes back in its order. */
static void free_in_order(const struct ms_gpu *gpu, struct ms_stream *stream, int device, uint64_t address,
                          uint64_t bytes)
{
    struct ms_context_scope visit;
    ms_lock(&ms_streams_lock);
    ms_context_scope_begin(&visit, gpu, atomic_load_explicit(&stream->time.context, memory_order_relaxed));
    free_on(gpu, stream, device, address, bytes);
    ms_context_scope_end(&visit);
    ms_unlock(&ms_streams_lock);
}

static void note_held(struct ms_mempool *pool, uint64_t bytes)
{
    ms_raise(&pool->held_peak, atomic_fetch_add_explicit(&pool->held, bytes, memory_order_relaxed) + bytes);
}

/* The page map wants whole pages: where the driver begins elsewhere, one more is asked for. */
static int pool_take(struct ms_heap *heap, uint64_t bytes, struct ms_given *given_p)
{
    struct ms_stream_arena *arena = heap->arena;
    struct ms_mempool *pool = arena->pool;
    struct ms_stream *stream = atomic_load_explicit(&arena->stream, memory_order_acquire);
    CUdeviceptr p = 0;
    if (!stream)
        return CUDA_ERROR_INVALID_HANDLE;
    stream_arena_let_go(pool);
    bool padded = pool->padded; /* another thread may find that out meanwhile */
    int status = stream_arena_ask(arena, stream, bytes + (padded ? MS_PAGE_BYTES : 0), &p);
    if (status == CUDA_SUCCESS && p % MS_PAGE_BYTES && !padded) {
        free_in_order(pool->gpu, stream, pool->device, p, bytes);
        pool->padded = true;
        padded = true;
        status = stream_arena_ask(arena, stream, bytes + MS_PAGE_BYTES, &p);
    }
    if (status != CUDA_SUCCESS)
        return status;
    *given_p = (struct ms_given){ms_round_up(p, MS_PAGE_BYTES), .base = p,
                                 .base_bytes = bytes + (padded ? MS_PAGE_BYTES : 0)};
    note_held(pool, given_p->base_bytes);
    ms_wait_note_growth(arena, given_p->address, bytes);
    ms_wait_weigh(arena);
    return CUDA_SUCCESS;
}

/* In the order of its own stream, which nobody waits for; or at once, where whoever gives back has seen that
 * nothing is under way. What can go neither way now is "not ready". */
static int pool_give(struct ms_heap *heap, const struct ms_segment *segment)
{
    uint64_t bytes = segment->base_bytes;
    struct ms_stream_arena *arena = heap->arena;
    const struct ms_gpu *gpu = arena->pool->gpu;
    struct ms_context_scope visit;
    int status = CUDA_ERROR_NOT_READY;
    ms_lock(&ms_streams_lock);
    struct ms_stream *stream = atomic_load_explicit(&arena->stream, memory_order_relaxed);
    bool reachable = stream && ms_stream_reachable(stream), idle = arena->idle || (!stream && arena->over);
    ms_context_scope_begin(&visit, gpu,
                           stream ? atomic_load_explicit(&stream->time.context, memory_order_relaxed) : 0);
    if (reachable)
        status = free_on(gpu, stream, arena->pool->device, segment->base, bytes);
    ms_unlock(&ms_streams_lock);
    if (!reachable && idle)
        status = (int)gpu->mem_free(segment->base);
    ms_context_scope_end(&visit);
    if (status == CUDA_SUCCESS) {
        atomic_fetch_sub_explicit(&arena->pool->held, bytes, memory_order_relaxed);
        atomic_fetch_add_explicit(&arena->pool->freed, bytes, memory_order_relaxed);
    }
    return status;
}

static bool pool_is_quiet(struct ms_heap *heap, uint64_t ns)
{
    (void)ns;
    const struct ms_stream_arena *arena = heap->arena;
    ms_lock(&ms_streams_lock);
    const struct ms_stream *stream = atomic_load_explicit(&arena->stream, memory_order_relaxed);
    bool may = stream ? ms_stream_reachable(stream) : arena->over;
    ms_unlock(&ms_streams_lock);
    return may;
}

const struct ms_source ms_source_pool = {
    .take = pool_take, .give = pool_give, .is_quiet = pool_is_quiet, .packed = true};

/* --- figures ------------------------------------------------------------------------------------------- */

/* Drivers count what was asked for, not what it is rounded up to (docs/user/hardware.md). */
static void count_alloc(struct ms_mempool *pool, uint64_t bytes)
{
    ms_raise(&pool->used_high, atomic_fetch_add_explicit(&pool->used, bytes, memory_order_relaxed) + bytes);
}

void ms_stream_arena_count_free(struct ms_stream_arena *arena, uint64_t requested)
{
    struct ms_mempool *pool = arena->pool;
    atomic_fetch_sub_explicit(&pool->used, requested, memory_order_relaxed);
    if (MS_UNLIKELY(!atomic_load_explicit(&pool->handle, memory_order_relaxed)))
        ms_stream_arena_give_back(pool, UINT64_MAX);
}

/* --- requests and frees -------------------------------------------------------------------------------- */

static MS_INLINE struct ms_mempool *pool_of(const struct ms_stream *stream, uint64_t handle)
{
    return handle == MS_MEMPOOL_CURRENT ? ms_mempool_current(stream->time.gpu, stream->device)
                                        : ms_mempool_named(stream->time.gpu, stream->device, handle);
}

bool ms_stream_hit(struct ms_stream *stream, uint64_t handle, uint64_t bytes, struct ms_pool_block *block_p)
{
    struct ms_mempool *pool = pool_of(stream, handle);
    struct ms_stream_arena *arena = pool && pool->served ? stream_arena_find(stream, pool) : NULL;
    if (MS_UNLIKELY(!arena || !ms_heap_hit(arena->heap, bytes, block_p)))
        return false;
    count_alloc(pool, bytes);
    return true;
}

/* MEMSHIM_LIMIT leaves less than that: the driver, which knows of no limit, is not asked. */
static bool is_limited(const struct ms_heap *heap, uint64_t bytes)
{
    uint64_t reserved = atomic_load_explicit(&ms_devices[heap->device].reserved_bytes, memory_order_relaxed);
    return heap->limit_bytes != UINT64_MAX &&
           (bytes > heap->limit_bytes || reserved > heap->limit_bytes - bytes);
}

static MS_NOINLINE enum ms_pool_verdict without(const struct ms_stream_arena *arena, uint64_t bytes,
                                                int status)
{
    return arena && bytes && status == CUDA_ERROR_OUT_OF_MEMORY && is_limited(arena->heap, bytes)
               ? MS_POOL_REFUSED
               : MS_POOL_PASSED;
}

enum ms_pool_verdict ms_stream_alloc(struct ms_stream *stream, uint64_t handle, uint64_t bytes,
                                     struct ms_pool_block *block_p)
{
    struct ms_mempool *pool = pool_of(stream, handle);
    struct ms_stream_arena *arena = pool && pool->served ? flow_of(stream, pool) : NULL;
    int status = 0;
    if (MS_UNLIKELY(!arena || !bytes ||
                    ms_heap_serve(arena->heap, bytes, block_p, &status) != MS_POOL_SERVED))
        return without(arena, bytes, status);
    count_alloc(pool, bytes);
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
        ms_pool_free_end(block);
        return;
    }
    atomic_fetch_add_explicit(&arena->crossed, 1, memory_order_relaxed);
    ms_cross_free_later(stream, block);
    ms_stream_arena_count_free(arena, block->requested);
}
