/* wait.c - how a free waits for the device where it has to.
 *
 * A free of the driver's own is no wait to rely on ("may perform implicit synchronization", CUDA runtime API;
 * it is not on all drivers of 12 and 13). So an event over the context is recorded, under the fence's lock
 * and while no capture is open in the context, and looked at until it is done, each time under that lock for
 * itself alone, with rests between. Whatever the driver says but "not ready" ends that, and so does the end
 * of the context.
 *
 * Where there is no such event (HIP; CUDA before 12.5) the whole device is waited for, while no capture is
 * open anywhere. That call cannot be made under a lock, and what it destroys it destroys where it enters the
 * driver: so a capture that is about to begin lets those enter first that were told that none is open
 * (ms_pool_capture_begins). Nothing is allocated here. */
#include "config.h"

#include "base/clock.h"
#include "pool/flow.h"
#include "pool/wait.h"

/* An address at which nobody can have memory. */
#define NO_BLOCK 0x1000u

/* Threads that wait for a device, and when the latest of them began to. Raised under the streams' lock. */
static _Atomic uint32_t entering;
static _Atomic uint64_t entered_ns;

static bool is_of_captures(int status)
{
    return status >= CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED &&
           status <= CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD;
}

/* Fence's lock held. */
static int look(struct ms_heap *heap, CUevent event)
{
    struct ms_visit visit;
    ms_visit_begin(&visit, heap->gpu, heap->context);
    int status = (int)heap->gpu->event_query(event);
    ms_visit_end(&visit);
    return status;
}

/* An event of ours over the context; NULL where there is none just now. `status_p` is 0 while a capture is in
 * the way. */
static CUevent record(struct ms_heap *heap, uint64_t *mark_p, int *status_p)
{
    struct ms_fence *fence = &heap->fence;
    struct ms_visit visit;
    CUevent event = NULL;
    *status_p = CUDA_SUCCESS;
    ms_lock(&fence->lock);
    bool may = !ms_fence_captured(heap) && !ms_captures_are_unseen() &&
               atomic_load_explicit(&heap->state, memory_order_acquire) == MS_HEAP_SERVING;
    if (may) {
        *mark_p = ms_limbo_next_epoch(heap);
        ms_visit_begin(&visit, heap->gpu, heap->context);
        event = ms_fence_take_event(heap);
        *status_p = event ? (int)heap->gpu->ctx_record_event((CUcontext)(uintptr_t)heap->context, event)
                          : CUDA_ERROR_OUT_OF_MEMORY;
        ms_visit_end(&visit);
    }
    if (event && *status_p != CUDA_SUCCESS) {
        ms_fence_drop_event(heap, event);
        event = NULL;
    }
    if (event)
        atomic_fetch_add_explicit(&heap->fences, 1, memory_order_relaxed);
    ms_unlock(&fence->lock);
    if (is_of_captures(*status_p)) /* one that was not seen begin */
        *status_p = CUDA_SUCCESS;
    return event;
}

/* Fence's lock held. A context with an error that stays is there, and says so. */
static bool is_there(const struct ms_heap *heap, uint32_t life)
{
    uint32_t state = atomic_load_explicit(&heap->state, memory_order_acquire);
    return (state == MS_HEAP_SERVING || state == MS_HEAP_DOWN) &&
           atomic_load_explicit(&heap->life, memory_order_acquire) == life;
}

/* Until it is done, or the context is at its end: then it is no event any more, and the status is "not
 * ready". */
static int wait_for(struct ms_heap *heap, CUevent event)
{
    struct ms_fence *fence = &heap->fence;
    uint32_t life = atomic_load_explicit(&heap->life, memory_order_acquire);
    uint64_t begin = ms_clock_ns(), nap_ns = 0;
    for (;;) {
        int status = CUDA_ERROR_NOT_READY;
        ms_lock(&fence->lock);
        bool alive = is_there(heap, life);
        if (alive && (status = look(heap, event)) != CUDA_ERROR_NOT_READY)
            ms_fence_drop_event(heap, event);
        ms_unlock(&fence->lock);
        if (!alive || status != CUDA_ERROR_NOT_READY)
            return status;
        if (ms_clock_ns() - begin > MS_LOOK_NS)
            ms_clock_nap_longer(&nap_ns);
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
    struct ms_visit visit;
    *status_p = CUDA_SUCCESS;
    if (!begin_to_enter(heap))
        return false;
    ms_visit_begin(&visit, heap->gpu, heap->context);
    *status_p = (int)heap->gpu->ctx_synchronize();
    ms_visit_end(&visit);
    atomic_fetch_sub_explicit(&entering, 1, memory_order_release);
    if (!is_of_captures(*status_p))
        return true;
    *status_p = CUDA_SUCCESS;
    return false;
}

void ms_pool_capture_begins(void)
{
    while (atomic_load_explicit(&entering, memory_order_acquire) &&
           ms_clock_ns() - atomic_load_explicit(&entered_ns, memory_order_relaxed) < MS_ENTER_NS)
        ms_clock_nap(MS_ENTER_NAP_NS);
}

/* Without the pool (MEMSHIM_MODE=track) captures are not followed: none is known of. */
static void wait_unserved(const struct ms_gpu *gpu, uint64_t context)
{
    struct ms_visit visit;
    if (!gpu->ctx_synchronize || ms_captures_may_be_open())
        return;
    ms_visit_begin(&visit, gpu, context);
    gpu->ctx_synchronize();
    ms_visit_end(&visit);
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

void ms_wait_for_work_reset(void)
{
    atomic_store(&entering, 0);
}

/* What a capture has overtaken goes back with the next. */
static void owe(struct ms_heap *heap, uint64_t address)
{
    ms_lock(&heap->lock);
    bool kept = heap->owed_count < MS_OWED;
    if (kept)
        heap->owed[heap->owed_count++] = address;
    ms_unlock(&heap->lock);
    if (!kept)
        ms_pool_note("pool: memory that was to go back to the driver beside captures stays with it");
}

static uint64_t take_owed(struct ms_heap *heap)
{
    ms_lock(&heap->lock);
    uint64_t address = heap->owed_count ? heap->owed[--heap->owed_count] : 0;
    ms_unlock(&heap->lock);
    return address;
}

int ms_wait_free(struct ms_heap *heap, uint64_t address)
{
    struct ms_visit visit;
    uint64_t owed;
    if (!begin_to_enter(heap)) {
        owe(heap, address);
        return CUDA_SUCCESS;
    }
    ms_visit_begin(&visit, heap->gpu, heap->context);
    int status = (int)heap->gpu->mem_free(address);
    while (status == CUDA_SUCCESS && (owed = take_owed(heap)) != 0)
        status = (int)heap->gpu->mem_free(owed);
    ms_visit_end(&visit);
    atomic_fetch_sub_explicit(&entering, 1, memory_order_release);
    return status;
}

bool ms_wait_is_permitted(const struct ms_heap *heap)
{
    struct ms_visit visit;
    if (heap->gpu->free_is_sync) /* HIP's own free waits there, too */
        return true;
    ms_visit_begin(&visit, heap->gpu, heap->context);
    int status = (int)heap->gpu->mem_free(NO_BLOCK);
    ms_visit_end(&visit);
    return status != CUDA_ERROR_NOT_PERMITTED;
}

int ms_wait_for_work(struct ms_heap *heap, bool *waited_p)
{
    int status = CUDA_SUCCESS;
    uint64_t mark = 0;
    CUevent event = heap->gpu->ctx_record_event ? record(heap, &mark, &status) : NULL;
    if (event)
        status = wait_for(heap, event);
    *waited_p = event && status == CUDA_SUCCESS;
    /* No event is to be had: the driver can say so itself. */
    if (!event && (!heap->gpu->ctx_record_event || status == CUDA_ERROR_OUT_OF_MEMORY)) {
        mark = ms_limbo_next_epoch(heap);
        *waited_p = wait_for_device(heap, &status) && status == CUDA_SUCCESS;
    }
    if (status == CUDA_ERROR_NOT_READY)
        status = CUDA_SUCCESS;
    ms_segment_judge(heap, status);
    if (*waited_p)
        ms_fence_retired(heap, mark);
    return status;
}
