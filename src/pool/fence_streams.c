/* fence_streams.c - fences where there can be no event over the context: an event in each stream.
 *
 * So it is where the driver has no such event; and from the moment when somebody called a function that may
 * begin a capture which nobody tells of (hooks/unseen.h), since an event over the context destroys captures
 * that are open in it. An event in a stream does not: in one that captures it is taken in. So the streams are
 * asked first, and nothing is recorded while one of them captures; an event that was taken in all the same
 * covers nothing (clock/timeline.c). The legacy stream's event follows all blocking streams, a thread's own
 * among them (CUDA driver API, "Stream synchronization behavior"); streams are known from their creation on,
 * whatever the fences are.
 *
 * Where not every stream is known no epoch closes: that may be the stream that captures, so waiting would be
 * no better, and what was freed stays in limbo until the program itself waits for the context. All under the
 * fence's lock. */
#include "config.h"

#include "pool/flow.h"

/* An event in it follows all work of blocking streams. */
#define DEFAULT_STREAM ((CUstream)0x1)

bool ms_fence_by_streams(const struct ms_heap *heap)
{
    return !heap->gpu->ctx_record_event || MS_UNLIKELY(ms_captures_are_unseen());
}

static bool any_captures(const struct ms_heap *heap)
{
    const struct ms_fence *fence = &heap->fence;
    for (uint32_t i = 0; i < fence->stream_count; i++) {
        if (ms_gpu_captures(heap->gpu, (CUstream)(uintptr_t)fence->streams[i]))
            return true;
    }
    return ms_gpu_captures(heap->gpu, DEFAULT_STREAM);
}

int ms_fence_mark_streams(struct ms_heap *heap, uint64_t upto)
{
    struct ms_fence *fence = &heap->fence;
    bool unseen = ms_captures_are_unseen();
    struct ms_visit visit;
    int status = CUDA_SUCCESS;
    ms_visit_begin(&visit, heap->gpu, heap->context);
    if (atomic_load_explicit(&fence->unreachable, memory_order_relaxed) ||
        (unseen && (fence->orphaned > ms_timeline_covered(&fence->time) || any_captures(heap))))
        status = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    for (uint32_t i = 0; i < fence->stream_count && status == CUDA_SUCCESS; i++)
        status = ms_fence_mark(heap, (CUstream)(uintptr_t)fence->streams[i], 0);
    if (status == CUDA_SUCCESS && unseen && ms_gpu_captures(heap->gpu, DEFAULT_STREAM))
        status = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    if (status == CUDA_SUCCESS)
        status = ms_fence_mark(heap, DEFAULT_STREAM, upto);
    ms_visit_end(&visit);
    return status;
}

static void add(struct ms_fence *fence, uint64_t stream, bool reachable)
{
    if (reachable && fence->stream_count < MS_STREAMS)
        fence->streams[fence->stream_count++] = stream;
    else
        atomic_fetch_add_explicit(&fence->unreachable, 1, memory_order_relaxed);
}

void ms_pool_stream_born(uint64_t context, uint64_t stream, bool reachable)
{
    struct ms_heap *heap = ms_heap_known(context);
    if (!heap)
        return;
    ms_lock(&heap->fence.lock);
    add(&heap->fence, stream, reachable);
    ms_unlock(&heap->fence.lock);
}

/* What the others are given needs no fence. */
CUstream ms_fence_own_stream(struct ms_heap *heap, enum ms_own_stream which)
{
    struct ms_fence *fence = &heap->fence;
    CUstream stream = NULL;
    if (!fence->own[which] && heap->gpu->stream_create &&
        heap->gpu->stream_create(&stream, CU_STREAM_NON_BLOCKING) == CUDA_SUCCESS) {
        fence->own[which] = stream;
        if (which == MS_OWN_JOINS)
            add(fence, (uintptr_t)stream, true);
    }
    return fence->own[which];
}

static bool serves(const struct ms_heap *heap)
{
    return atomic_load_explicit(&heap->state, memory_order_acquire) == MS_HEAP_SERVING;
}

static int place_of(const struct ms_fence *fence, uint64_t stream)
{
    for (uint32_t i = 0; i < fence->stream_count; i++) {
        if (fence->streams[i] == stream)
            return (int)i;
    }
    return -1;
}

/* Its work goes on after the stream's end; the next epoch waits for this event as well. Where other streams
 * cannot be reached there is none, for no epoch closes. */
void ms_pool_stream_ending(uint64_t context, uint64_t stream)
{
    struct ms_heap *heap = ms_heap_of(context);
    if (!heap || !serves(heap) || !ms_fence_by_streams(heap) || place_of(&heap->fence, stream) < 0 ||
        atomic_load_explicit(&heap->fence.unreachable, memory_order_relaxed))
        return;
    if (ms_fence_mark(heap, (CUstream)(uintptr_t)stream, 0) != CUDA_SUCCESS)
        atomic_fetch_add_explicit(&heap->fence.unreachable, 1, memory_order_relaxed);
}

/* What it left behind an event over the context covers. */
void ms_pool_stream_dies(uint64_t context, uint64_t stream)
{
    struct ms_heap *heap = ms_heap_of(context);
    if (!heap)
        return;
    struct ms_fence *fence = &heap->fence;
    ms_lock(&fence->lock);
    int place = place_of(fence, stream);
    if (place >= 0)
        fence->streams[place] = fence->streams[--fence->stream_count];
    if (place >= 0 && serves(heap) && !ms_fence_by_streams(heap))
        fence->orphaned = atomic_load_explicit(&fence->time.now, memory_order_relaxed);
    ms_unlock(&fence->lock);
}
