/* join.c - a block of the pool that the program frees in the order of a stream.
 *
 * The fence covers a context: whatever its own streams were given before the free. A stream of another
 * context is joined to it by an event that a stream of ours in the block's context waits for, on the device;
 * the host waits for nothing. */
#include "config.h"

#include "pool/flow.h"

#define LEGACY_STREAM     1u
#define PER_THREAD_STREAM 2u

static uint64_t context_of(const struct ms_gpu *gpu, uint64_t stream)
{
    CUcontext context = NULL;
    CUresult status = CUDA_ERROR_NOT_FOUND;
    uint64_t current;
    ms_gpu_current(gpu, &current);
    if (stream <= PER_THREAD_STREAM)
        return current ? current : UINT64_MAX; /* none, or the driver does not say: it says so to the event */
    if (gpu->stream_get_ctx)
        status = gpu->stream_get_ctx((CUstream)(uintptr_t)stream, &context);
    switch (status) {
    case CUDA_SUCCESS:
        return (uintptr_t)context;
    case CUDA_ERROR_INVALID_HANDLE:
    case CUDA_ERROR_CONTEXT_IS_DESTROYED:
        return 0;
    default: /* whose it is cannot be told: it is joined, as another's */
        return UINT64_MAX;
    }
}

static bool is_capturing(const struct ms_gpu *gpu, uint64_t stream)
{
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
    return gpu->stream_is_capturing && stream != LEGACY_STREAM && stream != 0 &&
           gpu->stream_is_capturing((CUstream)(uintptr_t)stream, &status) == CUDA_SUCCESS &&
           status != CU_STREAM_CAPTURE_STATUS_NONE;
}

/* The stream of ours in the block's context waits for the event; what the driver says of that. */
static int wait_in(const struct ms_gpu *gpu, uint64_t context, CUevent event)
{
    struct ms_heap *heap = ms_heap_of(context);
    CUcontext before;
    int status = heap ? (int)gpu->ctx_push((CUcontext)(uintptr_t)context) : CUDA_ERROR_INVALID_VALUE;
    if (status != CUDA_SUCCESS)
        return status;
    ms_lock(&heap->fence.lock);
    CUstream ours = ms_fence_own_stream(heap, MS_OWN_JOINS);
    ms_unlock(&heap->fence.lock);
    if (ours)
        ms_stream_born(gpu, context, (uintptr_t)ours); /* what waits for the context waits for it, too */
    ms_pool_joined(context);
    status = ours ? (int)gpu->stream_wait_event(ours, event, 0) : CUDA_ERROR_OUT_OF_MEMORY;
    gpu->ctx_pop(&before);
    return status;
}

/* An event belongs to the context in which it was made, and so must the stream. */
static int event_in(const struct ms_gpu *gpu, uint64_t stream, uint64_t of, CUevent *event_p)
{
    CUcontext before;
    bool visits = of != UINT64_MAX && stream > PER_THREAD_STREAM;
    int status = visits ? (int)gpu->ctx_push((CUcontext)(uintptr_t)of) : CUDA_SUCCESS;
    if (status != CUDA_SUCCESS)
        return status;
    status = (int)gpu->event_create(event_p, CU_EVENT_DISABLE_TIMING);
    if (status == CUDA_SUCCESS &&
        (status = (int)gpu->event_record(*event_p, (CUstream)(uintptr_t)stream)) != CUDA_SUCCESS)
        gpu->event_destroy(*event_p);
    if (visits)
        gpu->ctx_pop(&before);
    return status;
}

static int join(const struct ms_gpu *gpu, uint64_t stream, uint64_t of, uint64_t context)
{
    struct ms_visit visit;
    CUevent event = NULL;
    ms_visit_begin(&visit, gpu, 0);
    int status = event_in(gpu, stream, of, &event);
    if (status == CUDA_SUCCESS) {
        status = wait_in(gpu, context, event);
        gpu->event_destroy(event);
    }
    ms_visit_end(&visit);
    return status;
}

int ms_pool_order_after(const struct ms_gpu *gpu, uint64_t stream, uint64_t context)
{
    uint64_t other = context_of(gpu, stream);
    if (!other)
        return CUDA_ERROR_INVALID_HANDLE;
    if (is_capturing(gpu, stream)) /* a graph frees only what a graph has allocated */
        return CUDA_ERROR_INVALID_VALUE;
    if (other == context)
        return CUDA_SUCCESS;
    if (!gpu->event_create || !gpu->event_record || !gpu->event_destroy || !gpu->ctx_push || !gpu->ctx_pop ||
        !gpu->stream_wait_event)
        return CUDA_ERROR_INVALID_VALUE;
    return join(gpu, stream, other, context);
}
