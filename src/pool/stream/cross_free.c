/* cross_free.c - what waits for a stream to get somewhere: blocks that one stream freed and another's stream
 * arena owns, and stream arenas whose stream has ended.
 *
 * Frees on one stream gather in a batch, whose point is that of the latest of them (clock/fence_timeline.h).
 * It is marked with one event in that stream when it is full, when it is large, or when somebody looks for
 * memory and all before it is over. Where none can be recorded (a capture is open, a thread is gone) a batch
 * waits until there can be one: then an event over the whole context does. Lock: the streams'. Nothing here
 * waits for the device.
 *
 * Where frees are marked (arena_share.c) each larger one is a batch of its own, with an exact mark, and a
 * stream that may be made to wait for it on the device has the block before it is over. */
#include "base/records.h"
#include "pool/stream/stream_arena.h"
#include "pool/api/internal.h"

static struct ms_stream *first; /* of those with batches */
static struct ms_records records = MS_RECORDS(struct ms_cross_batch, next, 32);
static _Atomic uint32_t waiting;

bool ms_cross_free_pending(void)
{
    return atomic_load_explicit(&waiting, memory_order_relaxed) > 0;
}

/* --- batches ------------------------------------------------------------------------------------------- */

/* The stream's latest. */
static struct ms_cross_batch *batch_for(struct ms_stream *stream)
{
    struct ms_cross_batch *batch = ms_records_take(&records);
    if (!batch)
        return NULL;
    if (!stream->batches) {
        stream->batches_end = &stream->batches;
        stream->next_waiting = first;
        first = stream;
    }
    *batch = (struct ms_cross_batch){.stream = stream, .link = stream->batches_end};
    *stream->batches_end = batch;
    stream->batches_end = &batch->next;
    stream->latest = batch;
    atomic_fetch_add_explicit(&waiting, 1, memory_order_relaxed);
    return batch;
}

/* Nothing waits for it any more. */
static void cross_free_leave(struct ms_stream *stream)
{
    struct ms_stream **link = &first;
    while (*link != stream)
        link = &(*link)->next_waiting;
    *link = stream->next_waiting;
    ms_stream_left(stream);
}

static void unlink_batch(struct ms_cross_batch *batch)
{
    struct ms_stream *stream = batch->stream;
    *batch->link = batch->next;
    if (batch->next)
        batch->next->link = batch->link;
    else
        stream->batches_end = batch->link;
    if (stream->latest == batch)
        stream->latest = NULL;
    if (!stream->batches)
        cross_free_leave(stream);
    ms_records_drop(&records, batch);
    atomic_fetch_sub_explicit(&waiting, 1, memory_order_relaxed);
}

/* --- marks --------------------------------------------------------------------------------------------- */

/* An event over the context, or one in each of its streams, marks a stream that cannot be reached itself; it
 * would destroy an open capture. */
static bool mark_over_context(struct ms_stream *stream)
{
    struct ms_fence_timeline *time = &stream->time;
    uint64_t point = ms_fence_timeline_latest(time);
    if (ms_captures_may_be_open())
        return false;
    int status = time->gpu->streams_tell ? ms_fence_mark_each(time, ms_stream_context(stream), point, NULL)
                                         : ms_fence_timeline_mark(time, NULL, point);
    return status == CUDA_SUCCESS;
}

bool ms_cross_free_context_is_idle(const struct ms_stream_arena *arena)
{
    ms_lock(&ms_streams_lock);
    struct ms_stream *stream = atomic_load_explicit(&arena->stream, memory_order_relaxed);
    bool idle = !stream && arena->over;
    if (stream) {
        uint64_t point = ms_fence_timeline_point(&stream->time);
        idle = mark_over_context(stream) && ms_fence_timeline_is_reached(&stream->time, point, 0);
        ms_fence_timeline_take_back(&stream->time, point);
    }
    ms_unlock(&ms_streams_lock);
    return idle;
}

/* --- what waits ---------------------------------------------------------------------------------------- */

static void leave_pending(const struct ms_slot *slot)
{
    struct ms_heap *heap = slot->extent->segment->heap;
    atomic_fetch_sub_explicit(&heap->away_bytes, slot->extent->slot_bytes, memory_order_relaxed);
    atomic_fetch_sub_explicit(&heap->away_count, 1, memory_order_relaxed);
}

/* A slot whose free is over goes to its stream arena. */
static void bring_home(struct ms_slot *slot)
{
    struct ms_heap *heap = slot->extent->segment->heap;
    struct ms_tcache *tcache = ms_tcache_lock(&heap->cache);
    leave_pending(slot);
    ms_tcache_put_ready(&heap->cache, tcache, slot);
    ms_tcache_unlock(tcache);
}

/* As bring_home, but for a block that is wanted at once: it is nobody's, and in no batch. */
static void take_home(struct ms_slot *slot)
{
    struct ms_tcache *tcache = ms_tcache_lock(&slot->extent->segment->heap->cache);
    leave_pending(slot);
    ms_slot_set(slot, MS_SLOT_READY);
    ms_tcache_unlock(tcache);
}

static void finish(struct ms_cross_batch *batch)
{
    for (uint32_t i = 0; i < batch->count; i++)
        bring_home(batch->items[i]);
    if (batch->arena && !atomic_load_explicit(&batch->arena->stream, memory_order_relaxed))
        batch->arena->over = true;
    unlink_batch(batch);
}

static bool finish_reached(struct ms_stream *stream)
{
    bool any = false;
    while (stream->batches && stream->batches->point <= ms_fence_timeline_reached(&stream->time)) {
        finish(stream->batches);
        any = true;
    }
    return any;
}

/* The block is nobody's from here on; the counters of its heap say so at once. */
static void depart(const struct ms_pool_block *block, struct ms_slot *slot)
{
    struct ms_heap *heap = block->own_heap;
    struct ms_tcache *tcache = ms_tcache_lock(&heap->cache);
    ms_tcache_count_out(tcache, block->requested, block->granted);
    atomic_fetch_add_explicit(&heap->away_bytes, block->granted, memory_order_relaxed);
    atomic_fetch_add_explicit(&heap->away_count, 1, memory_order_relaxed);
    ms_slot_set(slot, MS_SLOT_PENDING);
    ms_tcache_unlock(tcache);
}

/* The stream's latest batch, where another free fits in; what has a mark is done with. */
static struct ms_cross_batch *open_batch(const struct ms_stream *stream)
{
    struct ms_cross_batch *batch = stream->latest;
    return batch && batch->count && batch->count < MS_CROSS_BATCH_ITEMS &&
                   batch->point > ms_fence_timeline_covered(&stream->time)
               ? batch
               : NULL;
}

/* Others may be made to wait for this free: they wait for nothing that comes after it. */
static bool cross_free_is_alone(const struct ms_pool_block *block, const struct ms_slot *slot)
{
    const struct ms_mempool *pool = slot->extent->segment->heap->arena->pool;
    return MS_UNLIKELY(atomic_load_explicit(&pool->marked, memory_order_relaxed)) &&
           block->granted > MS_SLAB_MAX_BYTES;
}

static void put_item(struct ms_cross_batch *batch, struct ms_slot *slot)
{
    batch->items[batch->count++] = slot;
    batch->bytes += slot->extent->slot_bytes;
    batch->point = ms_fence_timeline_point(&batch->stream->time);
}

void ms_cross_free_later(struct ms_stream *stream, const struct ms_pool_block *block)
{
    struct ms_slot *slot = (struct ms_slot *)(uintptr_t)block->own_item;
    depart(block, slot);
    ms_lock(&ms_streams_lock);
    bool alone = cross_free_is_alone(block, slot);
    struct ms_cross_batch *batch = alone ? NULL : open_batch(stream);
    if (!batch)
        batch = batch_for(stream);
    if (batch) { /* else, without host memory, it stays away for ever */
        put_item(batch, slot);
        if (alone || batch->count == MS_CROSS_BATCH_ITEMS || batch->bytes >= MS_CROSS_BATCH_BYTES)
            batch->exact = ms_stream_mark(stream) && alone;
    }
    ms_unlock(&ms_streams_lock);
}

bool ms_stream_free_end_unknown(const struct ms_gpu *gpu, const struct ms_pool_block *block, uint64_t handle)
{
    struct ms_slot *slot = (struct ms_slot *)(uintptr_t)block->own_item;
    struct ms_heap *heap = block->own_heap;
    CUcontext context = NULL;
    CUstream stream = (CUstream)(uintptr_t)handle;
    CUstream named = handle ? stream : (CUstream)(uintptr_t)MS_STREAM_LEGACY;
    depart(block, slot);
    ms_stream_arena_count_free(heap->arena, block->requested);
    if (!gpu->event_record || !gpu->stream_get_ctx || gpu->stream_get_ctx(stream, &context) != CUDA_SUCCESS)
        return false;
    ms_lock(&ms_streams_lock);
    struct ms_stream *nobody = ms_stream_unnamed(gpu, (uintptr_t)context);
    struct ms_cross_batch *batch = nobody ? batch_for(nobody) : NULL;
    if (batch) {
        put_item(batch, slot);
        ms_fence_timeline_mark(&nobody->time, named, batch->point);
    }
    ms_unlock(&ms_streams_lock);
    return batch != NULL;
}

static struct ms_slot *remove_item(struct ms_cross_batch *batch, uint32_t i)
{
    struct ms_slot *slot = batch->items[i];
    batch->items[i] = batch->items[--batch->count];
    batch->bytes -= slot->extent->slot_bytes;
    if (!batch->count)
        unlink_batch(batch);
    return slot;
}

/* The record behind which such frees of a stream arena's wait: none of its batches is over yet, or it may be
 * somebody else's. NULL without memory. */
static struct ms_stream *anyone_for(struct ms_stream_arena *arena)
{
    struct ms_stream *anyone = arena->anyone;
    uint64_t context = atomic_load_explicit(&arena->context, memory_order_relaxed);
    if (!anyone || !anyone->batches || ms_stream_handle(anyone) || ms_stream_context(anyone) != context)
        arena->anyone = anyone = ms_stream_unnamed(arena->heap->gpu, context);
    return anyone;
}

void ms_cross_free_behind_all(const struct ms_pool_block *block)
{
    struct ms_slot *slot = (struct ms_slot *)(uintptr_t)block->own_item;
    struct ms_heap *heap = block->own_heap;
    depart(block, slot);
    ms_lock(&ms_streams_lock);
    struct ms_stream *anyone = anyone_for(heap->arena);
    struct ms_cross_batch *batch = anyone ? open_batch(anyone) : NULL;
    if (!batch && anyone)
        batch = batch_for(anyone);
    if (batch) {
        put_item(batch, slot);
        if (batch->count == MS_CROSS_BATCH_ITEMS || batch->bytes >= MS_CROSS_BATCH_BYTES)
            mark_over_context(anyone);
    }
    ms_unlock(&ms_streams_lock);
    ms_stream_arena_count_free(heap->arena, block->requested);
}

void ms_cross_free_forget(const struct ms_heap *heap)
{
    for (struct ms_stream *stream = first, *later; stream; stream = later) {
        later = stream->next_waiting;
        for (struct ms_cross_batch *batch = stream->batches, *next; batch; batch = next) {
            next = batch->next;
            for (uint32_t i = batch->count; i-- > 0;) {
                if (batch->items[i]->extent->segment->heap == heap)
                    remove_item(batch, i);
            }
        }
    }
}

bool ms_cross_free_arena_ends(struct ms_stream *stream, struct ms_stream_arena *arena)
{
    struct ms_cross_batch *batch = batch_for(stream);
    if (!batch)
        return false;
    batch->arena = arena;
    batch->point = ms_fence_timeline_point(&stream->time);
    return true;
}

void ms_cross_free_stream_ends(struct ms_stream *stream)
{
    if (!stream->batches && !stream->returning)
        ms_fence_timeline_end(&stream->time, false);
    else if (ms_fence_timeline_latest(&stream->time) > ms_fence_timeline_covered(&stream->time))
        ms_stream_mark(stream);
    ms_fence_timeline_close(&stream->time);
}

void ms_cross_free_stream_died(struct ms_stream *stream)
{
    ms_fence_timeline_end(&stream->time, true);
    finish_reached(stream);
}

/* Frees in the stream so far are over when all work that it has now is. */
static bool cross_free_settle(struct ms_stream *stream)
{
    ms_fence_timeline_poll(&stream->time);
    bool any = finish_reached(stream);
    const struct ms_cross_batch *batch = stream->batches;
    if (!batch || batch->point <= ms_fence_timeline_covered(&stream->time) ||
        !(ms_stream_mark(stream) || mark_over_context(stream)))
        return any;
    ms_fence_timeline_poll(&stream->time);
    return finish_reached(stream) || any;
}

bool ms_cross_free_collect(void)
{
    bool any = false;
    if (MS_LIKELY(!ms_cross_free_pending()))
        return false;
    ms_lock(&ms_streams_lock);
    for (struct ms_stream *stream = first, *next; stream; stream = next) {
        next = stream->next_waiting;
        any |= cross_free_settle(stream);
    }
    ms_unlock(&ms_streams_lock);
    return any;
}

/* --- before it is over ---------------------------------------------------------------------------------- */

static bool cross_free_fits(const struct ms_slot *slot, const struct ms_stream_arena *arena,
                            const struct ms_request *request, uint64_t most)
{
    const struct ms_segment *segment = slot->extent->segment;
    const struct ms_stream_arena *home = segment->heap->arena;
    if (home->pool != arena->pool || segment->release || slot->extent->slot_bytes < request->granted ||
        slot->extent->slot_bytes > most)
        return false;
    return !request->single ||
           atomic_load_explicit(&segment->use, memory_order_relaxed) == MS_SEGMENT_DEDICATED;
}

/* The best so far, and where it is. */
struct found {
    struct ms_cross_batch *batch;
    uint32_t at;
    uint64_t most;
};

static void look_in(struct ms_cross_batch *batch, const struct ms_stream_arena *arena,
                    const struct ms_request *request, struct found *best)
{
    for (uint32_t i = 0; i < batch->count; i++) {
        const struct ms_slot *slot = batch->items[i];
        if (cross_free_fits(slot, arena, request, best->most) &&
            (!best->batch || slot->extent->slot_bytes < best->most))
            *best = (struct found){batch, i, slot->extent->slot_bytes};
    }
}

struct ms_slot *ms_cross_free_take(struct ms_stream_arena *arena, const struct ms_request *request,
                                   uint64_t most, bool of_others)
{
    struct found best = {.most = most};
    struct ms_slot *slot = NULL;
    if (MS_LIKELY(!ms_cross_free_pending()))
        return NULL;
    ms_lock(&ms_streams_lock);
    struct ms_stream *stream = atomic_load_explicit(&arena->stream, memory_order_relaxed);
    for (struct ms_stream *each = stream ? first : NULL; each; each = each->next_waiting) {
        for (struct ms_cross_batch *batch = each->batches; batch; batch = batch->next) {
            if (of_others ? each != stream && batch->exact : each == stream)
                look_in(batch, arena, request, &best);
        }
    }
    if (best.batch && (!of_others || ms_wait_order(stream, &best.batch->stream->time, best.batch->point))) {
        slot = remove_item(best.batch, best.at);
        take_home(slot);
    }
    ms_unlock(&ms_streams_lock);
    return slot;
}

static void cross_reset(void)
{
    first = NULL;
    records.spare = NULL;
    atomic_store_explicit(&waiting, 0, memory_order_relaxed);
}
MS_AT_FORK(MS_FORK_POOL, cross_reset);
