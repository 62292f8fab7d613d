/* fence_streams.c - fences where there can be no event over the context: an event in each stream.
 *
 * So it is where the driver has no such event; and from the moment when somebody called a function that may
 * begin a capture which nobody tells of (hooks/lookup/unknown.h), since an event over the context destroys
 * captures that are open in it. An event in a stream does not: in one that captures it is taken in. So the
 * streams are asked first, and nothing is recorded while one of them captures; an event that was taken in all
 * the same covers nothing (clock/fence_timeline.c). The legacy stream's event follows all blocking streams, a
 * thread's own among them (CUDA driver API, "Stream synchronization behavior"); streams are known from their
 * creation on, whatever the fences are.
 *
 * Where not every stream is known no epoch closes: that may be the stream that captures, so waiting would be
 * no better, and what was freed stays pending until the program itself waits for the context. All under the
 * fence's lock. */
#include "pool/stream/stream_arena.h"

/* An event in it follows all work of blocking streams. */
#define DEFAULT_STREAM ((CUstream)0x1)

bool ms_fence_by_streams(const struct ms_heap *heap)
{
    return !heap->gpu->ctx_record_event || MS_UNLIKELY(ms_captures_are_unseen());
}

static bool any_captures(const struct ms_heap *heap)
{
    const struct ms_stream *stream = NULL;
    while ((stream = ms_stream_next_in(heap->context, stream)) != NULL) {
        if (ms_gpu_captures(heap->gpu, ms_stream_handle(stream)))
            return true;
    }
    return ms_gpu_captures(heap->gpu, DEFAULT_STREAM);
}

/* In a visit. Where a question harms no capture but those that are open, a stream that has nothing to do
 * needs no event: programs have many streams, of which few are at work. */
static int mark_one(struct ms_fence_timeline *time, CUstream stream, uint64_t upto,
                    _Atomic uint64_t *events_p)
{
    if (!upto && time->gpu->streams_tell && ms_fence_timeline_is_idle(time, stream))
        return CUDA_SUCCESS;
    int status = ms_fence_timeline_mark_here(time, stream, upto);
    if (status == CUDA_SUCCESS && events_p)
        atomic_fetch_add_explicit(events_p, 1, memory_order_relaxed);
    return status;
}

/* True if what streams have left that ended is over: their events stand in the fence's own timeline. */
static bool is_left_over(struct ms_heap *heap)
{
    struct ms_fence *fence = &heap->fence;
    ms_lock(&fence->lock);
    if (fence->left > ms_fence_timeline_covered(&fence->time))
        ms_fence_close_locked(heap, NULL);
    if (fence->left > ms_fence_timeline_reached(&fence->time))
        ms_fence_poll_locked(heap);
    bool over = fence->left <= ms_fence_timeline_reached(&fence->time);
    ms_unlock(&fence->lock);
    return over;
}

int ms_fence_mark_each(struct ms_fence_timeline *time, uint64_t context, uint64_t upto,
                       _Atomic uint64_t *events_p)
{
    struct ms_heap *heap = ms_heap_known(context);
    const struct ms_stream *stream = NULL;
    struct ms_context_scope visit;
    int status = CUDA_SUCCESS;
    if (!heap || ms_fence_is_unreachable(&heap->fence))
        return CUDA_ERROR_NOT_SUPPORTED;
    if (time != &heap->fence.time && !is_left_over(heap))
        return CUDA_ERROR_NOT_READY;
    ms_context_scope_begin(&visit, time->gpu, context);
    while (status == CUDA_SUCCESS && (stream = ms_stream_next_in(context, stream)) != NULL)
        status = mark_one(time, ms_stream_handle(stream), 0, events_p);
    if (status == CUDA_SUCCESS && ms_captures_are_unseen() && ms_gpu_captures(time->gpu, DEFAULT_STREAM))
        status = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    if (status == CUDA_SUCCESS)
        status = mark_one(time, DEFAULT_STREAM, upto, events_p);
    ms_context_scope_end(&visit);
    return status;
}

int ms_fence_mark_streams(struct ms_heap *heap, uint64_t upto)
{
    struct ms_fence *fence = &heap->fence;
    bool unseen = ms_captures_are_unseen();
    struct ms_context_scope visit;
    ms_context_scope_begin(&visit, heap->gpu, heap->context);
    bool captures =
        unseen && (fence->orphaned > ms_fence_timeline_covered(&fence->time) || any_captures(heap));
    ms_context_scope_end(&visit);
    if (captures || ms_fence_is_unreachable(fence))
        return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    int status = ms_fence_mark_each(&fence->time, heap->context, upto, &heap->fences);
    ms_segment_check_status(heap, status);
    return status;
}

bool ms_fence_can_close(const struct ms_heap *heap)
{
    return heap->gpu->ctx_record_event || (heap->gpu->streams_tell && !ms_fence_is_unreachable(&heap->fence));
}

_Atomic bool ms_fence_streams_lost;

void ms_pool_streams_lost(void)
{
    if (atomic_exchange_explicit(&ms_fence_streams_lost, true, memory_order_seq_cst))
        return;
    ms_heap_revoke_all();
    ms_pool_note("a stream of an execution context of HIP's is used, whose device nobody tells: each free "
                 "waits, as the vendor's does");
}

void ms_pool_unreachable(uint64_t context)
{
    struct ms_heap *heap = ms_heap_known(context);
    if (heap && !atomic_fetch_add_explicit(&heap->fence.unreachable, 1, memory_order_seq_cst))
        ms_heap_revoke(heap);
}

CUstream ms_fence_own_stream(struct ms_heap *heap, enum ms_own_stream which)
{
    struct ms_fence *fence = &heap->fence;
    CUstream stream = NULL;
    if (!fence->own[which] && heap->gpu->stream_create &&
        heap->gpu->stream_create(&stream, CU_STREAM_NON_BLOCKING) == CUDA_SUCCESS)
        fence->own[which] = stream;
    return fence->own[which];
}

static bool serves(const struct ms_heap *heap)
{
    return atomic_load_explicit(&heap->state, memory_order_acquire) == MS_HEAP_SERVING;
}

/* No epoch closes by events any more, and each free waits, until the device was waited for. */
static void leave_uncovered(struct ms_heap *heap, uint64_t epoch)
{
    atomic_store_explicit(&heap->fence.uncovered, epoch, memory_order_seq_cst);
    ms_heap_revoke(heap);
}

/* Its work goes on after the stream's end; the next epoch waits for this event as well. Where other streams
 * cannot be reached there is none, for no epoch closes. */
void ms_fence_stream_ends(uint64_t context, CUstream stream)
{
    struct ms_heap *heap = ms_heap_of(context);
    if (!heap || !serves(heap))
        return;
    struct ms_fence *fence = &heap->fence;
    uint64_t epoch = atomic_load_explicit(&fence->time.now, memory_order_relaxed);
    if (!ms_fence_by_streams(heap)) /* what it leaves behind an event over the context covers */
        fence->orphaned = epoch;
    else if (ms_fence_is_unreachable(fence) || ms_fence_mark(heap, stream, 0) != CUDA_SUCCESS)
        leave_uncovered(heap, epoch);
    else
        fence->left = epoch;
}
