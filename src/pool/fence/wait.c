/* wait.c - how a free waits for the device where it has to.
 *
 * A free of the driver's own is no wait to rely on ("may perform implicit synchronization", CUDA runtime API;
 * it is not on all drivers of 12 and 13). So the epoch is closed, while no capture is open in the context,
 * and its events are looked at until they are done, each time under the fence's lock, with rests between.
 * Whatever the driver says but "not ready" ends that, and so does the end of the context.
 *
 * Where there is no such event (HIP; CUDA before 12.5) the whole device is waited for, while no capture is
 * open anywhere. That call cannot be made under a lock, and what it destroys it destroys where it enters the
 * driver: so a capture that is about to begin lets those enter first that were told that none is open
 * (ms_pool_capture_begins). Nothing is allocated here. */
#include "base/clock.h"
#include "pool/stream/stream_arena.h"
#include "pool/fence/wait.h"

/* An address at which nobody can have memory. */
#define NO_BLOCK 0x1000u

/* Threads that wait for a device, and when the latest of them began to. Raised under the streams' lock. */
static _Atomic uint32_t entering;
static _Atomic uint64_t entered_ns;

/* Fence's lock held. A context with an error that stays is there, and says so. */
static bool wait_is_there(const struct ms_heap *heap, uint32_t life)
{
    uint32_t state = atomic_load_explicit(&heap->state, memory_order_acquire);
    return (state == MS_HEAP_SERVING || state == MS_HEAP_DOWN) &&
           atomic_load_explicit(&heap->life, memory_order_acquire) == life;
}

/* Until the epoch is over, or the context at its end: then the status is "not ready". */
static int wait_for(struct ms_heap *heap, uint64_t epoch)
{
    struct ms_fence *fence = &heap->fence;
    uint32_t life = atomic_load_explicit(&heap->life, memory_order_acquire);
    uint64_t begin = ms_clock_ns(), nap_ns = 0;
    for (;;) {
        int status = CUDA_ERROR_NOT_READY;
        ms_lock(&fence->lock);
        bool alive = wait_is_there(heap, life);
        if (alive)
            status = ms_fence_poll_locked(heap);
        if (alive && ms_fence_timeline_reached(&fence->time) >= epoch)
            status = CUDA_SUCCESS;
        ms_unlock(&fence->lock);
        if (!alive || status != CUDA_ERROR_NOT_READY)
            return status;
        if (ms_clock_ns() - begin > MS_LOOK_NS)
            ms_clock_sleep_longer(&nap_ns);
    }
}

static bool begin_to_enter(const struct ms_heap *heap)
{
    ms_lock(&ms_streams_lock);
    bool may = heap->gpu->ctx_synchronize && !ms_fence_captured(heap) && !ms_captures_may_be_open();
    if (may) {
        atomic_store_explicit(&entered_ns, ms_clock_ns(), memory_order_relaxed);
        atomic_fetch_add_explicit(&entering, 1, memory_order_release);
    }
    ms_unlock(&ms_streams_lock);
    return may;
}

/* The whole device; false if a capture is open. */
static bool wait_for_device(struct ms_heap *heap, int *status_p)
{
    struct ms_context_scope visit;
    *status_p = CUDA_SUCCESS;
    if (!begin_to_enter(heap))
        return false;
    ms_context_scope_begin(&visit, heap->gpu, heap->context);
    *status_p = (int)heap->gpu->ctx_synchronize();
    ms_context_scope_end(&visit);
    atomic_fetch_sub_explicit(&entering, 1, memory_order_release);
    if (!ms_gpu_is_of_captures(*status_p))
        return true;
    *status_p = CUDA_SUCCESS;
    return false;
}

void ms_pool_capture_begins(void)
{
    uint64_t begin = ms_clock_ns();
    while (atomic_load_explicit(&entering, memory_order_acquire) &&
           ms_clock_ns() - atomic_load_explicit(&entered_ns, memory_order_relaxed) < MS_ENTER_NS)
        ms_clock_sleep(MS_ENTER_SLEEP_NS);
    while (!ms_captures_announce() && ms_clock_ns() - begin < MS_ENTER_NS)
        ms_clock_sleep(MS_ENTER_SLEEP_NS);
}

/* Without the pool (MEMSHIM_MODE=track) captures are not followed: none is known of. */
static void wait_unserved(const struct ms_gpu *gpu, uint64_t context)
{
    struct ms_context_scope visit;
    if (!gpu->ctx_synchronize || ms_captures_may_be_open())
        return;
    ms_context_scope_begin(&visit, gpu, context);
    gpu->ctx_synchronize();
    ms_context_scope_end(&visit);
}

void ms_pool_wait_for_work(const struct ms_gpu *gpu, uint64_t context, int device)
{
    struct ms_heap *heap = context ? ms_heap_make(gpu, context, device) : NULL;
    bool waited;
    if (heap)
        ms_wait_for_work(heap, &waited);
    else
        wait_unserved(gpu, context);
}

static void wait_for_work_reset(void)
{
    atomic_store(&entering, 0);
}
MS_AT_FORK(MS_FORK_POOL, wait_for_work_reset);

int ms_wait_free(struct ms_heap *heap, const struct ms_segment *segment)
{
    struct ms_context_scope visit;
    if (!begin_to_enter(heap))
        return CUDA_ERROR_NOT_READY;
    ms_context_scope_begin(&visit, heap->gpu, heap->context);
    int status = (int)heap->gpu->mem_free(segment->address);
    ms_context_scope_end(&visit);
    atomic_fetch_sub_explicit(&entering, 1, memory_order_release);
    return status;
}

bool ms_wait_is_permitted(const struct ms_heap *heap)
{
    struct ms_context_scope visit;
    if (heap->gpu->free_is_sync) /* HIP's own free waits there, too */
        return true;
    ms_context_scope_begin(&visit, heap->gpu, heap->context);
    int status = (int)heap->gpu->mem_free(NO_BLOCK);
    ms_context_scope_end(&visit);
    return status != CUDA_ERROR_NOT_PERMITTED;
}

int ms_wait_for_work(struct ms_heap *heap, bool *waited_p)
{
    struct ms_fence *fence = &heap->fence;
    int status = CUDA_SUCCESS;
    ms_lock(&fence->lock);
    bool over = heap->gpu->ctx_record_event != NULL, closed = over && ms_fence_close_locked(heap, &status);
    uint64_t epoch = ms_fence_timeline_covered(&fence->time);
    ms_unlock(&fence->lock);
    if (closed)
        status = wait_for(heap, epoch);
    else if (ms_gpu_is_of_captures(status)) /* one that was not seen begin */
        status = CUDA_SUCCESS;
    *waited_p = closed && status == CUDA_SUCCESS;
    /* No event is to be had: the driver can say so itself. */
    if (!over || (!closed && status == CUDA_ERROR_OUT_OF_MEMORY)) {
        epoch = ms_pending_next_epoch(heap);
        *waited_p = wait_for_device(heap, &status) && status == CUDA_SUCCESS;
        if (*waited_p)
            ms_fence_retired(heap, epoch);
    }
    if (*waited_p)
        atomic_fetch_add_explicit(&heap->device_waits, 1, memory_order_relaxed);
    if (status == CUDA_ERROR_NOT_READY)
        status = CUDA_SUCCESS;
    ms_segment_check_status(heap, status);
    return status;
}
