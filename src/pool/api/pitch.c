/* pitch.c - what the vendor makes of a pitched row.
 *
 * Nothing of the vendor's answers that but an allocation. The row goes back by a stream of ours, for which
 * nobody waits; where there is no such free, by a plain one, and only while the device has nothing to do: so
 * that is seen first. No lock held. */
#include "pool/api/internal.h"

static bool can_give_back(struct ms_heap *heap)
{
    const struct ms_gpu *gpu = heap->gpu;
    return (heap->source->give_aside && gpu->mem_free_async && gpu->stream_create && gpu->event_record) ||
           ms_fence_quiet(heap);
}

static void pitch_give_back(struct ms_heap *heap, uint64_t address)
{
    struct ms_segment row = {.heap = heap, .address = address}, *rows[] = {&row};
    struct ms_context_scope visit;
    if (ms_segment_give_aside(heap, rows, 1) == 1)
        return;
    if (!ms_fence_quiet(heap)) {
        ms_pool_note("pool: a pitched row, by which the pitch was found out, could not be given back");
        return;
    }
    ms_context_scope_begin(&visit, heap->gpu, heap->context);
    ms_segment_check_status(heap, (int)heap->gpu->mem_free(address));
    ms_context_scope_end(&visit);
}

uint64_t ms_pool_try_pitch(const struct ms_gpu *gpu, uint64_t context, int device, uint64_t width,
                           unsigned element_bytes)
{
    struct ms_heap *heap = ms_heap_make(gpu, context, device);
    struct ms_context_scope visit;
    CUdeviceptr row = 0;
    size_t pitch = 0;
    if (!heap || !gpu->mem_alloc_pitch ||
        atomic_load_explicit(&heap->state, memory_order_acquire) != MS_HEAP_SERVING || !can_give_back(heap))
        return 0;
    ms_device_grows(device, true); /* what is in use is not told meanwhile */
    ms_context_scope_begin(&visit, gpu, context);
    int status = (int)gpu->mem_alloc_pitch(&row, &pitch, width, 1, element_bytes);
    ms_context_scope_end(&visit);
    ms_segment_check_status(heap, status);
    if (status == CUDA_SUCCESS)
        pitch_give_back(heap, row);
    ms_device_grows(device, false);
    return status == CUDA_SUCCESS ? pitch : 0;
}
