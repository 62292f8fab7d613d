/* stream_free.c - a block of the pool that the program frees in the order of a stream.
 *
 * The fence covers a context: whatever its own streams were given before the free. For a stream of another
 * context a stream of ours in the block's context waits, on the device, for an exact point; the host waits
 * for nothing. */
#include "pool/stream/stream_arena.h"

/* Whose stream it is. 0: that cannot be told, or none is current; it is joined, as another's, and the driver
 * says what is wrong. */
static int stream_free_context_of(const struct ms_gpu *gpu, uint64_t stream, uint64_t *context_p)
{
    const struct ms_stream *seen = ms_stream_seen(stream);
    CUcontext context = NULL;
    CUresult status = CUDA_SUCCESS;
    if (stream <= MS_STREAM_PER_THREAD) {
        ms_gpu_current(gpu, context_p);
        return status;
    }
    if (!seen && gpu->stream_get_ctx)
        status = gpu->stream_get_ctx((CUstream)(uintptr_t)stream, &context);
    *context_p = seen ? ms_stream_context(seen) : (uintptr_t)context;
    return status == CUDA_ERROR_INVALID_HANDLE || status == CUDA_ERROR_CONTEXT_IS_DESTROYED
               ? CUDA_ERROR_INVALID_HANDLE
               : CUDA_SUCCESS;
}

static bool is_capturing(const struct ms_gpu *gpu, CUstream stream)
{
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
    return gpu->stream_is_capturing && (uintptr_t)stream > MS_STREAM_LEGACY &&
           gpu->stream_is_capturing(ms_gpu_stream(gpu, stream), &status) == CUDA_SUCCESS &&
           status != CU_STREAM_CAPTURE_STATUS_NONE;
}

/* A stream of ours in the context: whoever waits for the context waits for it, too. */
static uint64_t stream_of_ours(struct ms_heap *heap, uint64_t context)
{
    struct ms_context_scope visit;
    ms_context_scope_begin(&visit, heap->gpu, context);
    ms_lock(&heap->fence.lock);
    CUstream ours = ms_fence_own_stream(heap, MS_OWN_JOINS);
    ms_unlock(&heap->fence.lock);
    ms_context_scope_end(&visit);
    if (ours)
        ms_stream_born(heap->gpu, context, (uintptr_t)ours);
    return (uintptr_t)ours;
}

/* Streams' lock held. The point is the record's alone, which is nobody's again. */
static int stream_free_wait_for(struct ms_stream *ours, struct ms_stream *record, CUstream stream,
                                uint64_t context)
{
    uint64_t point = ms_fence_timeline_point(&record->time);
    int status = ms_fence_timeline_mark(&record->time, stream, point);
    if (status == CUDA_SUCCESS) {
        ms_pool_joined(context);
        if (!ms_wait_order(ours, &record->time, point))
            status = CUDA_ERROR_OUT_OF_MEMORY;
        ms_fence_timeline_take_back(&record->time, point);
    }
    ms_stream_left(record);
    return status;
}

int ms_pool_order_after(const struct ms_gpu *gpu, uint64_t stream, uint64_t context)
{
    CUstream named = (CUstream)(uintptr_t)(stream ? stream : MS_STREAM_LEGACY);
    struct ms_heap *heap = ms_heap_of(context);
    uint64_t other = 0, ours;
    int status = stream_free_context_of(gpu, stream, &other);
    if (status != CUDA_SUCCESS)
        return status;
    if (is_capturing(gpu, named)) /* a graph frees only what a graph has allocated */
        return CUDA_ERROR_INVALID_VALUE;
    if (other == context)
        return CUDA_SUCCESS;
    if (!heap || !gpu->stream_wait_event || (ours = stream_of_ours(heap, context)) == 0)
        return CUDA_ERROR_INVALID_VALUE;
    ms_lock(&ms_streams_lock);
    struct ms_stream *record = ms_stream_unnamed(gpu, other);
    status = record ? stream_free_wait_for(ms_stream_seen(ours), record, named, context)
                    : CUDA_ERROR_OUT_OF_MEMORY;
    ms_unlock(&ms_streams_lock);
    return status;
}
