/* fence.c - when a freed block may be used again.
 *
 * A free is tagged with the epoch that is open. To close an epoch is to open the next one and then to record
 * one event over the context: a free that read the old number came before the record, and so did the work
 * that its program issued before it. What is tagged with an epoch up to `done` may be used again. Besides
 * events, a wait of the program's own for the context retires epochs.
 *
 * The fence's lock is the one lock that is held across calls of the vendor's (record, query): a record over
 * the context destroys captures that are open in it, so their beginning and end, and the end of streams, take
 * the lock too. While a capture is open no epoch closes. Neither call waits for the device. Where there can
 * be no event over a context, each stream that can have work gets one (fence_streams.c); the last of them
 * carries the epoch, and events are looked at in their order. */
#include <string.h>

#include "base/clock.h"
#include "pool/mapped/mapped.h"
#include "pool/stream/stream_arena.h"
#include "pool/external/external.h"

bool ms_fence_pending(struct ms_heap *heap)
{
    return ms_fence_freed(&heap->fence) > ms_fence_done(&heap->fence);
}

int ms_fence_poll_locked(struct ms_heap *heap)
{
    int status = ms_fence_timeline_poll(&heap->fence.time);
    ms_segment_check_status(heap, status);
    ms_pending_retired(heap, ms_fence_timeline_reached(&heap->fence.time));
    return status;
}

int ms_fence_mark(struct ms_heap *heap, CUstream stream, uint64_t upto)
{
    int status = ms_fence_timeline_mark(&heap->fence.time, stream, upto);
    ms_segment_check_status(heap, status);
    if (status == CUDA_SUCCESS)
        atomic_fetch_add_explicit(&heap->fences, 1, memory_order_relaxed);
    return status;
}

/* The mark that tells that everything is over that was issued up to now. */
static int fence_mark(struct ms_heap *heap, uint64_t upto)
{
    return ms_fence_by_streams(heap) ? ms_fence_mark_streams(heap, upto) : ms_fence_mark(heap, NULL, upto);
}

bool ms_fence_close_locked(struct ms_heap *heap, int *status_p)
{
    int unheard, *said = status_p ? status_p : &unheard;
    *said = CUDA_SUCCESS;
    if (ms_fence_captured(heap) ||
        atomic_load_explicit(&heap->state, memory_order_relaxed) != MS_HEAP_SERVING)
        return false;
    uint64_t epoch = ms_pending_next_epoch(heap);
    *said = fence_mark(heap, epoch);
    if (*said != CUDA_SUCCESS)
        return false;
    ms_pending_covered(heap, epoch);
    ms_lock(&heap->lock);
    ms_budget_fenced(heap);
    ms_unlock(&heap->lock);
    return true;
}

bool ms_fence_close(struct ms_heap *heap)
{
    struct ms_fence *fence = &heap->fence;
    ms_lock(&fence->lock);
    /* Frees that are covered by an event under way already need no other. */
    bool closed = ms_fence_freed(&heap->fence) <= ms_fence_timeline_covered(&fence->time) ||
                  ms_fence_close_locked(heap, NULL);
    ms_unlock(&fence->lock);
    return closed;
}

bool ms_fence_poll(struct ms_heap *heap)
{
    struct ms_fence *fence = &heap->fence;
    ms_lock(&fence->lock);
    uint64_t before = ms_fence_timeline_reached(&fence->time);
    ms_fence_poll_locked(heap);
    bool moved = ms_fence_timeline_reached(&fence->time) != before;
    ms_unlock(&fence->lock);
    return moved;
}

/* True if a free of the vendor's would find no work, as far as streams are known, where there is no event
 * over the context and such a free waits for all of it. Nothing of it is kept. Fence's lock held. */
static bool streams_idle(struct ms_heap *heap)
{
    const struct ms_gpu *gpu = heap->gpu;
    bool idle = gpu->stream_query && gpu->stream_query(NULL) == CUDA_SUCCESS;
    for (const struct ms_stream *s = NULL; idle && (s = ms_stream_next_in(heap->context, s)) != NULL;)
        idle = gpu->stream_query(ms_stream_handle(s)) == CUDA_SUCCESS;
    return idle;
}

/* A query of HIP's destroys captures whatever the thread's mode is: so it is made while none is open
 * anywhere, under the lock under which they begin. */
bool ms_fence_device_idle(struct ms_heap *heap, uint64_t ns)
{
    (void)ns;
    struct ms_fence *fence = &heap->fence;
    struct ms_context_scope visit;
    bool idle = false;
    ms_lock(&ms_streams_lock);
    if (!ms_captures_may_be_open()) {
        ms_lock(&fence->lock);
        ms_context_scope_begin(&visit, heap->gpu, heap->context);
        idle = !ms_fence_captured(heap) && streams_idle(heap);
        ms_context_scope_end(&visit);
        ms_unlock(&fence->lock);
    }
    ms_unlock(&ms_streams_lock);
    return idle;
}

bool ms_fence_over_at_once(struct ms_heap *heap, uint64_t ns)
{
    struct ms_fence *fence = &heap->fence;
    uint64_t pause = 0;
    ms_lock(&fence->lock);
    bool closed = ms_fence_close_locked(heap, NULL);
    uint64_t epoch = ms_fence_timeline_covered(&fence->time);
    if (closed)
        ms_fence_poll_locked(heap);
    bool quiet = closed && ms_fence_timeline_reached(&fence->time) >= epoch;
    ms_unlock(&fence->lock);
    for (uint64_t begin = ns ? ms_clock_ns() : 0; ns && closed && !quiet && ms_clock_ns() - begin < ns;) {
        ms_clock_sleep_longer(&pause);
        ms_fence_poll(heap);
        quiet = ms_fence_done(&heap->fence) >= epoch;
    }
    return quiet;
}

bool ms_fence_quiet(struct ms_heap *heap)
{
    return heap->source->is_quiet(heap, 0);
}

void ms_fence_retired(struct ms_heap *heap, uint64_t epoch)
{
    ms_lock(&heap->fence.lock);
    ms_fence_timeline_reach(&heap->fence.time, epoch);
    ms_pending_retired(heap, epoch);
    ms_unlock(&heap->fence.lock);
}

void ms_fence_forget(struct ms_heap *heap)
{
    struct ms_fence *fence = &heap->fence;
    ms_lock(&fence->lock);
    /* Whatever is still tagged in another thread's hands is of the life before. */
    ms_pending_next_epoch(heap);
    ms_fence_timeline_end(&fence->time, true);
    ms_pending_begin(heap);
    memset(fence->own, 0, sizeof(fence->own));
    fence->orphaned = fence->left = 0;
    atomic_store_explicit(&fence->uncovered, 0, memory_order_relaxed);
    atomic_store_explicit(&fence->unreachable, 0, memory_order_relaxed);
    atomic_store_explicit(&heap->fence.graphs, 0, memory_order_relaxed);
    ms_unlock(&fence->lock);
}

uint64_t ms_pool_sync_begin(uint64_t context)
{
    struct ms_heap *heap = ms_heap_of(context);
    return heap ? ms_pending_next_epoch(heap) : 0;
}

void ms_pool_sync_end(uint64_t context, uint64_t mark, int status)
{
    struct ms_heap *heap = mark ? ms_heap_of(context) : NULL;
    if (!heap || status != CUDA_SUCCESS)
        return;
    ms_fence_retired(heap, mark);
    ms_keep_at_sync(heap);
}

uint64_t ms_pool_epoch(const struct ms_gpu *gpu, uint64_t context, int device)
{
    struct ms_heap *heap = context ? ms_heap_make(gpu, context, device) : NULL;
    return heap ? ms_fence_tag(&heap->fence) : 0;
}

/* A context that is gone has no work any more. */
bool ms_pool_epoch_done(uint64_t context, uint64_t epoch, bool close)
{
    struct ms_heap *heap = ms_heap_of(context);
    if (!heap || epoch <= ms_fence_done(&heap->fence))
        return true;
    if (atomic_load_explicit(&heap->state, memory_order_acquire) != MS_HEAP_SERVING)
        return false;
    if (close)
        ms_fence_close(heap);
    ms_fence_poll(heap);
    return epoch <= ms_fence_done(&heap->fence);
}
