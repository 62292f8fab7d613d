/* poison.c - fills that make the use of undefined or freed memory visible: MEMSHIM_POISON.
 *
 * Fills of either kind run in a stream of their own that no other waits for. A block that is handed out is
 * filled first, and the call waits for the fill, for a second, or MEMSHIM_OOM_WAIT_MS where that is longer: a
 * kernel that holds the whole device could keep it from running, and then the block stays with the pool. Who
 * frees a block waits for the device first (wait.c), and then for the fill: so whoever reads it afterwards
 * reads the fill. A block that is freed in stream order is filled after everything that was issued before, by
 * one event and one wait on the device, and before its epoch is retired; while a capture is open nothing is
 * filled. Memory in the order of streams is filled in that order, but not where it is had or freed on a
 * stream of another device, which may have no access to it. It is a mode for debugging: each allocation and
 * each free waits for the device. */
#include "base/clock.h"
#include "pool/stream/stream_arena.h"

enum { ALLOC_BYTE = 0xa5, FREE_BYTE = 0xdf };
#define NAP_NS 20000u

static uint64_t patience_ns(void)
{
    uint64_t wait_ns = ms_policy->oom_wait_ms * 1000000u;
    return wait_ns > MS_POISON_NS ? wait_ns : MS_POISON_NS;
}

static CUstream stream_for(struct ms_heap *heap, enum ms_own_stream fills)
{
    const struct ms_gpu *gpu = heap->gpu;
    if (!gpu->memset_d8_async || !gpu->event_create || !gpu->event_record || !gpu->stream_wait_event)
        return NULL;
    return ms_fence_own_stream(heap, fills);
}

/* A query of HIP's destroys captures (wait.c): then it is looked at later. */
static bool is_under_way(struct ms_heap *heap, CUevent event)
{
    bool waits = true;
    if (!heap->gpu->free_is_sync)
        return heap->gpu->event_query(event) == CUDA_ERROR_NOT_READY;
    ms_lock(&ms_streams_lock);
    if (!ms_captures_may_be_open())
        waits = heap->gpu->event_query(event) == CUDA_ERROR_NOT_READY;
    ms_unlock(&ms_streams_lock);
    return waits;
}

/* False if the fill was not done in time. The thread that waits leaves the processor to whatever fills. */
static bool fill_now(struct ms_heap *heap, CUevent event, CUstream stream, uint8_t byte, uint64_t address,
                     uint64_t bytes)
{
    uint64_t deadline = ms_clock_ns() + patience_ns();
    if (heap->gpu->memset_d8_async(address, byte, bytes, stream) != CUDA_SUCCESS ||
        heap->gpu->event_record(event, stream) != CUDA_SUCCESS)
        return true;
    while (is_under_way(heap, event)) {
        if (ms_clock_ns() > deadline)
            return false;
        ms_clock_sleep(NAP_NS);
    }
    return true;
}

void ms_poison_ordered(const struct ms_gpu *gpu, uint64_t stream, uint64_t address, uint64_t bytes,
                       bool freed)
{
    if (gpu->memset_d8_async)
        gpu->memset_d8_async(address, freed ? FREE_BYTE : ALLOC_BYTE, bytes,
                             ms_gpu_stream(gpu, (CUstream)(uintptr_t)stream));
}

static bool fill_and_wait(struct ms_heap *heap, enum ms_own_stream fills, uint8_t byte, uint64_t address,
                          uint64_t bytes)
{
    struct ms_context_scope visit;
    bool filled = true;
    int status;
    ms_context_scope_begin(&visit, heap->gpu, heap->context);
    ms_lock(&heap->fence.lock);
    CUstream stream = stream_for(heap, fills);
    CUevent event = stream ? ms_fence_timeline_take_event(&heap->fence.time, &status) : NULL;
    ms_unlock(&heap->fence.lock);
    if (event) {
        filled = fill_now(heap, event, stream, byte, address, bytes);
        ms_lock(&heap->fence.lock);
        ms_fence_timeline_keep_event(&heap->fence.time, event);
        ms_unlock(&heap->fence.lock);
    }
    ms_context_scope_end(&visit);
    return filled;
}

bool ms_poison_fill_freed(struct ms_heap *heap, uint64_t address, uint64_t bytes)
{
    return fill_and_wait(heap, MS_OWN_FREE_FILLS, FREE_BYTE, address, bytes);
}

bool ms_poison_alloc(struct ms_heap *heap, uint64_t address, uint64_t bytes)
{
    bool filled = fill_and_wait(heap, MS_OWN_ALLOC_FILLS, ALLOC_BYTE, address, bytes);
    if (!filled)
        ms_pool_note("pool: a poison fill was not done in time; the driver served the request");
    return filled;
}

void ms_poison_free(struct ms_heap *heap, uint64_t address, uint64_t bytes)
{
    const struct ms_gpu *gpu = heap->gpu;
    struct ms_context_scope visit;
    CUstream stream = NULL;
    CUevent event;
    int status;
    ms_context_scope_begin(&visit, heap->gpu, heap->context);
    ms_lock(&heap->fence.lock);
    if (!ms_fence_captured(heap) && !ms_fence_by_streams(heap) &&
        (stream = stream_for(heap, MS_OWN_FREE_FILLS)) != NULL &&
        (event = ms_fence_timeline_take_event(&heap->fence.time, &status)) != NULL) {
        if (gpu->ctx_record_event((CUcontext)(uintptr_t)heap->context, event) == CUDA_SUCCESS &&
            gpu->stream_wait_event(stream, event, 0) == CUDA_SUCCESS)
            gpu->memset_d8_async(address, FREE_BYTE, bytes, stream);
        ms_fence_timeline_keep_event(&heap->fence.time, event);
    }
    ms_unlock(&heap->fence.lock);
    ms_context_scope_end(&visit);
}
