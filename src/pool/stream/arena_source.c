/* arena_source.c - what stream arenas take from the driver's pool, and what goes back there.
 *
 * Growth: the driver's pool takes memory of the device in units of its own, and what of a unit nobody asks
 * for lies idle. So a stream arena asks for parts of a unit that grow with what it has, up to a whole one,
 * and for what is longer in just its length: what that leaves of its last unit the driver begins the next
 * request in, whatever its length. How long a unit is, the driver's own figure tells: what its pool has
 * before a page was asked for, and what it has then. A pool's streams share units through the driver, which
 * knows what of them nobody ever had. Before more is held than ever was, what is vacant beyond a share of
 * what is in use goes back, if nothing is under way there, so that the driver can make one piece of several.
 *
 * Giving back: what is vacant goes if nothing is under way in it after it was set aside, by an event or
 * because nobody has it: where the driver gave it to another stream, and made that one wait, the wait would
 * be for what was issued up to now, not up to the free. No lock is held where the driver is called, but the
 * streams'. */
#include "base/clock.h"
#include "pool/stream/stream_arena.h"
#include "pool/api/internal.h"
#include "pool/stream/driver_frees.h"
#include "quota/quota.h"

/* --- the driver's pool ---------------------------------------------------------------------------------- */

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

/* The bytes that the driver's pool has of the device; 0 if it does not say. */
static uint64_t mempool_reserved(const struct ms_mempool *pool)
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

static int stream_arena_alloc(const struct ms_stream_arena *arena, const struct ms_stream *stream,
                              uint64_t bytes, CUdeviceptr *p)
{
    const struct ms_mempool *pool = arena->pool;
    struct ms_context_scope visit;
    CUmemoryPool handle = (CUmemoryPool)(uintptr_t)atomic_load_explicit(&pool->handle, memory_order_acquire);
    if (!handle)
        return CUDA_ERROR_INVALID_VALUE;
    ms_context_scope_begin(&visit, pool->gpu,
                           atomic_load_explicit(&stream->time.context, memory_order_relaxed));
    int status = (int)pool->gpu->mem_alloc_from_pool_async(
        p, bytes, handle, ms_gpu_stream(pool->gpu, ms_stream_handle(stream)));
    ms_context_scope_end(&visit);
    /* HIP before 6 says nothing else where there was no memory. */
    return status == CUDA_SUCCESS && !*p ? (int)CUDA_ERROR_OUT_OF_MEMORY : status;
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
    uint64_t reserved = keep ? mempool_reserved(pool) : 0;
    if (reserved > freed && keep > reserved - freed)
        keep = reserved - freed;
    ms_mempool_trim_to(pool, keep);
}

/* Lock held, the stream reachable and its context current. */
static int free_on(const struct ms_gpu *gpu, struct ms_stream *stream, int device, uint64_t address,
                   uint64_t bytes)
{
    int status = (int)gpu->mem_free_async(address, ms_gpu_stream(gpu, ms_stream_handle(stream)));
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
    int status = stream_arena_alloc(arena, stream, bytes + (padded ? MS_PAGE_BYTES : 0), &p);
    if (status == CUDA_SUCCESS && p % MS_PAGE_BYTES && !padded) {
        free_in_order(pool->gpu, stream, pool->device, p, bytes);
        pool->padded = true;
        padded = true;
        status = stream_arena_alloc(arena, stream, bytes + MS_PAGE_BYTES, &p);
    }
    ms_mempool_count_idle(pool->device);
    if (status != CUDA_SUCCESS)
        return status;
    *given_p = (struct ms_given){ms_round_up(p, MS_PAGE_BYTES), .base = p,
                                 .base_bytes = bytes + (padded ? MS_PAGE_BYTES : 0)};
    note_held(pool, given_p->base_bytes);
    ms_wait_note_growth(arena, given_p->address, bytes);
    ms_wait_weigh(arena);
    return CUDA_SUCCESS;
}

/* Memory that no stream has goes back in the order of one that there always is, since the vendor's plain free
 * would wait for the device. Lock held, and no capture open. */
static int free_by_legacy(const struct ms_gpu *gpu, const struct ms_stream_arena *arena, uint64_t address)
{
    struct ms_context_scope visit;
    ms_context_scope_begin(&visit, gpu, atomic_load_explicit(&arena->context, memory_order_relaxed));
    int status = (int)gpu->mem_free_async(address, gpu->legacy);
    ms_context_scope_end(&visit);
    return status;
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
    else if (idle && gpu->free_is_sync && !ms_captures_may_be_open())
        status = free_by_legacy(gpu, arena, segment->base);
    ms_unlock(&ms_streams_lock);
    if (!reachable && idle && !gpu->free_is_sync)
        status = (int)gpu->mem_free(segment->base);
    ms_context_scope_end(&visit);
    if (status == CUDA_SUCCESS) {
        atomic_fetch_sub_explicit(&arena->pool->held, bytes, memory_order_relaxed);
        atomic_fetch_add_explicit(&arena->pool->freed, bytes, memory_order_relaxed);
        ms_mempool_count_idle(arena->pool->device);
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

/* --- giving back ---------------------------------------------------------------------------------------- */

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

static uint64_t arena_give_back(struct ms_stream_arena *arena, uint64_t bytes)
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
            given += arena_give_back(arena, bytes - given);
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
    return ms_quota_is_bounded() ? given + ms_mempool_trim_idle(device) : given;
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
static void pool_settle(struct ms_mempool *pool, uint64_t *left_p)
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
            pool_settle(pool, &left);
    }
    ms_mempool_count_idle(device);
}

/* --- growing -------------------------------------------------------------------------------------------- */

static bool arena_is_alone(const struct ms_stream_arena *arena)
{
    const struct ms_mempool *pool = arena->pool;
    return !arena->next_of_pool && ms_mempool_arenas(pool) == arena;
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
    uint64_t after = mempool_reserved(pool), unit = after > before ? after - before : used ? 0 : before;
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

/* How much a stream arena should grow by: beside other streams, of which each may need little, no more than
 * it must. What the driver has left of units that it took already is not exceeded for more than what is
 * needed. */
static uint64_t wanted(const struct ms_stream_arena *arena, const struct ms_request *request, uint64_t has)
{
    const struct ms_mempool *pool = arena->pool;
    uint64_t least = ms_request_pages(request),
             unit = atomic_load_explicit(&pool->unit, memory_order_acquire);
    if (request->single || !unit || least >= unit || !arena_is_alone(arena) ||
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

/* Of a pool with more streams, the latest. */
enum { LOOKED_AT = 64 };

static uint64_t idle_of(struct ms_stream_arena *arena)
{
    struct ms_pool_figures figures;
    ms_figures_of_heap(arena->heap, &figures);
    uint64_t used = figures.parts.requested + figures.parts.rounding;
    return figures.reserved_bytes > used ? figures.reserved_bytes - used : 0;
}

static void arena_idle_note(struct ms_stream_arena *arena, uint64_t bytes)
{
    uint64_t idle = idle_of(arena);
    if (idle < bytes)
        return;
    uint64_t grown = atomic_fetch_add_explicit(&arena->grown_beside, bytes, memory_order_relaxed) + bytes;
    ms_raise(&arena->hoarded, grown < idle ? grown : idle);
}

/* Another growth of this stream arena's, for a block of so many bytes: what of that lay idle with other
 * streams of its pool. Freed memory of a stream that is still at work is nobody's but its own; only figures
 * come of it. */
static void note_idle_held(const struct ms_stream_arena *asking, uint64_t bytes)
{
    const struct ms_mempool *pool = asking->pool;
    struct ms_stream_arena *arena = ms_mempool_arenas(pool);
    for (int i = 0; arena && i < LOOKED_AT; i++, arena = arena->next_of_pool) {
        if (arena != asking)
            arena_idle_note(arena, bytes);
    }
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
        note_idle_held(heap->arena, least);
    return slot;
}
