/* pending.c - how much of a context's memory may be pending: MEMSHIM_LIMBO, and the wait of a free that finds
 * more.
 *
 * A host that is far ahead of the device frees faster than memory comes out of the pending list. The vendor's
 * own free waits for the device; here a free waits where more than the bound is pending, and only until it no
 * longer is. What is pending is known without a list: all that was freed is a sum (thread caches count, and
 * tell it in batches), each epoch's end remembers what the sum was, and what was freed up to the end of an
 * epoch that is done is no longer pending. A free is counted behind its tag, so the figure is never less than
 * what is there, but for what thread caches have not told yet. Bounds are of one context each.
 *
 * So that there is an early event to wait for, an epoch closes whenever a quarter of the bound has gathered.
 * A free over the bound takes its snapshot at its entry: of the events that are under way the oldest that
 * suffices, or else one that is recorded there and then. It never looks for a later one, which might stand
 * behind work that was issued while it waits. The hook waits, with nothing of ours held
 * (hooks/serve/serve_wait.c): a handle says what for, and each look at it is a query in relaxed capture mode
 * under the fence's lock. */
#include "base/clock.h"
#include "pool/api/internal.h"

/* The bound as it is now, and when to look again. */
static uint64_t pending_look(struct ms_heap *heap)
{
    struct ms_pending *pending = &heap->pending_sums;
    uint64_t bound = ms_policy->size_of('B', ms_heap_live(heap).granted);
    atomic_store_explicit(&pending->bound_bytes, bound, memory_order_relaxed);
    return bound;
}

void ms_pending_begin(struct ms_heap *heap)
{
    struct ms_pending *pending = &heap->pending_sums;
    uint64_t freed = atomic_load_explicit(&pending->freed_bytes, memory_order_relaxed);
    atomic_store_explicit(&pending->covered_bytes, freed, memory_order_relaxed);
    atomic_store_explicit(&pending->over_bytes, freed, memory_order_relaxed);
    atomic_store_explicit(&pending->bound_bytes, 0, memory_order_relaxed);
    atomic_store_explicit(&pending->look_bytes, 0, memory_order_relaxed);
}

uint64_t ms_pending_next_epoch(struct ms_heap *heap)
{
    struct ms_pending *pending = &heap->pending_sums;
    uint64_t freed = atomic_load_explicit(&pending->freed_bytes, memory_order_acquire);
    uint64_t epoch = atomic_fetch_add_explicit(&heap->fence.time.now, 1, memory_order_seq_cst);
    struct ms_pending_end *end = &pending->ends[epoch % MS_PENDING_ENDS];
    atomic_store_explicit(&end->epoch, 0, memory_order_relaxed);
    atomic_store_explicit(&end->freed_bytes, freed, memory_order_release);
    atomic_store_explicit(&end->epoch, epoch, memory_order_release);
    return epoch;
}

uint64_t ms_pending_freed_by(const struct ms_heap *heap, uint64_t epoch)
{
    const struct ms_pending_end *end = &heap->pending_sums.ends[epoch % MS_PENDING_ENDS];
    if (atomic_load_explicit(&end->epoch, memory_order_acquire) != epoch)
        return 0;
    uint64_t freed = atomic_load_explicit(&end->freed_bytes, memory_order_acquire);
    return atomic_load_explicit(&end->epoch, memory_order_relaxed) == epoch ? freed : 0;
}

void ms_pending_covered(struct ms_heap *heap, uint64_t epoch)
{
    ms_raise(&heap->pending_sums.covered_bytes, ms_pending_freed_by(heap, epoch));
    atomic_store_explicit(&heap->pending_sums.look_bytes, 0, memory_order_relaxed);
}

void ms_pending_retired(struct ms_heap *heap, uint64_t epoch)
{
    uint64_t freed = ms_pending_freed_by(heap, epoch);
    ms_raise(&heap->pending_sums.covered_bytes, freed);
    ms_raise(&heap->pending_sums.over_bytes, freed);
}

static bool is_short(const struct ms_heap *heap, uint64_t gathered)
{
    return gathered >= ms_heap_left(heap) / MS_PENDING_PLENTY;
}

static bool is_too_much(const struct ms_pending *pending)
{
    return ms_pending_bytes(pending) > atomic_load_explicit(&pending->bound_bytes, memory_order_relaxed);
}

bool ms_pending_count(struct ms_heap *heap, uint64_t granted, uint64_t bytes)
{
    struct ms_pending *pending = &heap->pending_sums;
    if (granted > MS_MIB)
        atomic_fetch_add_explicit(&heap->fence.freed_count, 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&pending->freed_bytes, bytes, memory_order_acq_rel);
    uint64_t gathered = ms_pending_gathered(pending);
    return gathered >= atomic_load_explicit(&pending->look_bytes, memory_order_relaxed) ||
           is_too_much(pending) || is_short(heap, gathered);
}

/* True if what has gathered is worth an event. */
static bool should_close(struct ms_heap *heap, uint64_t gathered)
{
    struct ms_pending *pending = &heap->pending_sums;
    if (is_short(heap, gathered))
        return true;
    if (gathered < atomic_load_explicit(&pending->look_bytes, memory_order_relaxed))
        return false;
    uint64_t quarter = pending_look(heap) / MS_PENDING_QUARTERS;
    if (gathered > quarter)
        return true;
    uint64_t soon = gathered + quarter / MS_PENDING_LOOKS;
    atomic_store_explicit(&pending->look_bytes, soon < quarter ? soon : quarter, memory_order_relaxed);
    return false;
}

bool ms_pending_poll(struct ms_heap *heap)
{
    struct ms_pending *pending = &heap->pending_sums;
    uint64_t gathered = ms_pending_gathered(pending);
    if (should_close(heap, gathered) &&
        !ms_fence_close(heap)) /* none can be recorded: not tried at every free */
        atomic_store_explicit(&pending->look_bytes,
                              gathered + atomic_load_explicit(&pending->bound_bytes, memory_order_relaxed) /
                                             MS_PENDING_QUARTERS,
                              memory_order_relaxed);
    return is_too_much(pending);
}

/* --- the wait of a free --- */

/* By device: the context whose memory green contexts share. */
static _Atomic uint64_t shared[MS_DEVICES_MAX];
#define ANY_CONTEXT UINT64_MAX /* one of the device's, and nobody knows which */

void ms_pool_green(int device, uint64_t primary)
{
    if (device >= 0 && device < MS_DEVICES_MAX)
        atomic_store_explicit(&shared[device], primary ? primary : ANY_CONTEXT, memory_order_relaxed);
}

void ms_pool_primary(int device, uint64_t primary)
{
    uint64_t any = ANY_CONTEXT;
    if (device < 0 || device >= MS_DEVICES_MAX)
        return;
    if (primary)
        atomic_compare_exchange_strong_explicit(&shared[device], &any, primary, memory_order_relaxed,
                                                memory_order_relaxed);
    else
        atomic_store_explicit(&shared[device], 0, memory_order_relaxed);
}

/* Streams of a green context work on the memory of its device's primary one, whose events cover them; a free
 * of the vendor's need not wait for them. */
static bool is_shared(const struct ms_heap *heap)
{
    int device = atomic_load_explicit(&heap->device, memory_order_relaxed);
    if (device < 0 || device >= MS_DEVICES_MAX)
        return false;
    uint64_t context = atomic_load_explicit(&shared[device], memory_order_relaxed);
    return context == ANY_CONTEXT ||
           (context && context == atomic_load_explicit(&heap->context, memory_order_relaxed));
}

void ms_pool_joined(uint64_t context)
{
    struct ms_heap *heap = ms_heap_of(context);
    if (!heap)
        return;
    struct ms_pending *pending = &heap->pending_sums;
    ms_lock(&heap->fence.lock);
    uint64_t open = atomic_load_explicit(&heap->fence.time.now, memory_order_seq_cst);
    if (atomic_load_explicit(&pending->joined, memory_order_relaxed) <=
        ms_fence_timeline_reached(&heap->fence.time))
        atomic_store_explicit(&pending->joined_first, open, memory_order_relaxed);
    atomic_store_explicit(&pending->joined, open, memory_order_relaxed);
    ms_unlock(&heap->fence.lock);
}

/* An event that covers a joiner's wait covers work of another context, for which the vendor's free would not
 * wait. */
static bool is_behind_joiner(const struct ms_heap *heap, uint64_t epoch)
{
    const struct ms_pending *pending = &heap->pending_sums;
    return atomic_load_explicit(&pending->joined, memory_order_relaxed) >
               ms_fence_timeline_reached(&heap->fence.time) &&
           epoch >= atomic_load_explicit(&pending->joined_first, memory_order_relaxed);
}

static bool may_wait(const struct ms_heap *heap)
{
    return ms_policy->free_rule == MS_POOL_FENCE && ms_policy->oom_wait_ms && ms_fence_can_close(heap) &&
           !is_shared(heap);
}

/* Somebody waited in vain for what is still not done. */
static bool is_suspended(const struct ms_heap *heap)
{
    return atomic_load_explicit(&heap->pending_sums.in_vain, memory_order_relaxed) >
           ms_fence_done(&heap->fence);
}

/* Until ms_heap_leave the context is not ended. */
static bool pending_visit(struct ms_heap *heap, uint32_t life)
{
    atomic_fetch_add(&heap->visitors, 1);
    if (atomic_load(&heap->state) == MS_HEAP_SERVING &&
        atomic_load_explicit(&heap->life, memory_order_acquire) == life)
        return true;
    ms_heap_leave(heap);
    return false;
}

/* The epoch that is to be over: the oldest with an event that suffices, or else the one that is open now. 0
 * if it cannot be waited for. Fence's lock held. */
static uint64_t snapshot(struct ms_heap *heap, uint64_t bound)
{
    const struct ms_fence_timeline *time = &heap->fence.time;
    uint64_t freed = atomic_load_explicit(&heap->pending_sums.freed_bytes, memory_order_relaxed), epoch = 0;
    for (uint32_t i = 0; i < time->count && !epoch; i++) {
        uint64_t upto = ms_fence_timeline_number(time, i);
        if (upto && freed <= ms_pending_freed_by(heap, upto) + bound)
            epoch = upto;
    }
    if (!epoch && ms_fence_close_locked(heap, NULL))
        epoch = ms_fence_timeline_covered(time);
    return epoch && !is_behind_joiner(heap, epoch) ? epoch : 0;
}

bool ms_pool_wait_begin(const struct ms_pool_block *block, struct ms_pool_wait *wait_p)
{
    struct ms_heap *heap = block->own_heap;
    uint64_t bound,
        epoch = 0,
        most_ms = ms_policy->oom_wait_ms < MS_PENDING_VAIN_MS ? ms_policy->oom_wait_ms : MS_PENDING_VAIN_MS;
    if (!pending_visit(heap, block->own_life))
        return false;
    if (may_wait(heap) && ms_pending_bytes(&heap->pending_sums) > (bound = pending_look(heap))) {
        ms_lock(&heap->fence.lock);
        ms_fence_poll_locked(heap);
        if (ms_pending_bytes(&heap->pending_sums) > bound && !is_suspended(heap))
            epoch = snapshot(heap, bound);
        ms_unlock(&heap->fence.lock);
    }
    if (epoch)
        atomic_fetch_add_explicit(&heap->free_waits, 1, memory_order_relaxed);
    ms_heap_leave(heap);
    *wait_p = (struct ms_pool_wait){heap, epoch, ms_clock_ns() + most_ms * 1000000u, block->own_life,
                                    ms_heap_generation()};
    return epoch != 0;
}

/* One look, in which the context does not end. */
static bool is_over(struct ms_heap *heap, const struct ms_pool_wait *wait)
{
    int status = CUDA_SUCCESS;
    if (heap->gpu->captures_are_frail && ms_captures_may_be_open()) /* nobody can look meanwhile */
        return true;
    ms_lock(&heap->fence.lock);
    if (ms_fence_timeline_reached(&heap->fence.time) < wait->own_epoch)
        status = ms_fence_poll_locked(heap);
    bool over =
        ms_fence_timeline_reached(&heap->fence.time) >= wait->own_epoch || status != CUDA_ERROR_NOT_READY;
    ms_unlock(&heap->fence.lock);
    return over;
}

bool ms_pool_wait_poll(const struct ms_pool_wait *wait)
{
    struct ms_heap *heap = wait->own_heap;
    if (wait->own_generation != ms_heap_generation() || !pending_visit(heap, wait->own_life))
        return true;
    bool over = is_over(heap, wait) || is_suspended(heap);
    if (!over && ms_clock_ns() >= wait->own_until_ns) {
        over = true;
        ms_raise(&heap->pending_sums.in_vain, wait->own_epoch);
        ms_pool_note("a free waited in vain for work that was issued before it; until that is done more than "
                     "MEMSHIM_LIMBO may be in limbo");
    }
    ms_heap_leave(heap);
    return over;
}
