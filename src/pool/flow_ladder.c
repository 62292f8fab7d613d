/* flow_ladder.c - how a request in stream order is answered when the flow has no block ready for it.
 *
 * In this order: memory of the flow that is free; what the stream has freed of another flow's; what came home
 * from other streams; all of it put together; what another flow of the pool has vacant, which becomes this
 * one's (flow_move.c), or a block of it, if nothing is under way there; more from the driver's pool. When the
 * driver has none: what the stream can be made to wait for on the device, if the pool's rules allow it
 * (flow_wait.c); for as long as MEMSHIM_OOM_WAIT_MS what is under way, and then the driver answers the
 * request as it stands, by the rules of its own pool. No lock is held where memory is asked for. */
#include "config.h"

#include "base/clock.h"
#include "pool/flow.h"
#include "pool/lease.h"
#include "pool/returns.h"

bool ms_flow_is_idle(struct ms_flow *flow)
{
    struct ms_stream *stream = atomic_load_explicit(&flow->stream, memory_order_relaxed);
    if (!stream)
        return flow->over;
    uint64_t point = ms_timeline_point(&stream->time);
    bool done = ms_stream_mark(stream) && ms_timeline_is_reached(&stream->time, point, MS_FLOW_LOOK_NS);
    ms_timeline_take_back(&stream->time, point);
    return done;
}

static bool has_free(struct ms_heap *heap, uint64_t bytes)
{
    ms_lock(&heap->lock);
    bool has = heap->run_free_bytes + heap->vacant_bytes >= bytes;
    ms_unlock(&heap->lock);
    return has;
}

/* A block of another flow's, which stays its home: taken first and looked at then, so that the event comes
 * after everything that was done to it. No lock held. */
static struct ms_slot *of_another(struct ms_flow *other, const struct ms_request *request, bool *busy_p)
{
    struct ms_slot *slot = ms_ladder_from_heap(other->heap, request, true);
    if (!slot)
        return NULL;
    uint64_t begin = ms_slot_address(slot);
    ms_lock(&ms_streams_lock);
    bool idle = ms_wait_is_over(other, begin, begin + slot->run->slot_bytes) || ms_flow_is_idle(other);
    ms_unlock(&ms_streams_lock);
    if (idle)
        return slot;
    *busy_p = true;
    struct ms_lease *lease = ms_lease_lock(other->heap);
    ms_lease_put_ready(other->heap, lease, slot);
    ms_lease_unlock(lease);
    return NULL;
}

/* What is vacant in another flow becomes this one's. */
static struct ms_slot *move_here(struct ms_flow *flow, const struct ms_request *request, bool flush)
{
    struct ms_flow *other = atomic_load_explicit(&flow->pool->flows, memory_order_acquire);
    struct ms_slot *slot = NULL;
    for (; other && !slot; other = other->next_of_pool) {
        if (other == flow)
            continue;
        if (flush)
            ms_lease_flush(other->heap);
        if (ms_flow_move(other, flow, request))
            slot = ms_ladder_from_heap(flow->heap, request, true);
    }
    return slot;
}

/* `busy`: there would be some, where something is under way. */
static struct ms_slot *borrow(struct ms_flow *flow, const struct ms_request *request, bool flush,
                              bool *busy_p)
{
    struct ms_mempool *pool = flow->pool;
    struct ms_slot *slot = move_here(flow, request, flush);
    for (struct ms_flow *other = atomic_load_explicit(&pool->flows, memory_order_acquire); other && !slot;
         other = other->next_of_pool) {
        if (other != flow && (flush || has_free(other->heap, request->granted)))
            slot = of_another(other, request, busy_p);
    }
    if (slot)
        atomic_fetch_add_explicit(&flow->borrowed, 1, memory_order_relaxed);
    return slot;
}

/* By chance another stream has got there: the pool's rule must allow that it is made use of. A block of
 * another flow's costs an event now and one when it is freed, so that is for where much lies idle. */
static bool may_borrow(struct ms_flow *flow, uint64_t granted)
{
    struct ms_mempool *pool = flow->pool;
    bool alone = !flow->next_of_pool && atomic_load_explicit(&pool->flows, memory_order_relaxed) == flow;
    if (alone || granted <= MS_SLAB_MAX_BYTES ||
        !atomic_load_explicit(&pool->opportunistic, memory_order_relaxed))
        return false;
    uint64_t held = atomic_load_explicit(&pool->held, memory_order_relaxed),
             used = atomic_load_explicit(&pool->used, memory_order_relaxed);
    return held > used + used / MS_FLOW_IDLE_SHARE + granted;
}

/* What graphs may know stays as long as any graph, but not where memory is short, nor behind the end of the
 * program's pool: what is free there the driver would have unmapped as well. */
static void forget_captured(struct ms_mempool *pool)
{
    struct ms_flow *flow = atomic_load_explicit(&pool->flows, memory_order_acquire);
    for (; flow; flow = flow->next_of_pool)
        ms_captured_forget(flow->heap);
}

/* What is vacant elsewhere goes to the driver, which may make one piece of it. */
static void give_back_others(const struct ms_flow *flow)
{
    struct ms_mempool *pool;
    for (uint32_t i = 0; (pool = ms_mempool_at(i)) != NULL; i++) {
        if (pool->device != flow->pool->device)
            continue;
        forget_captured(pool);
        ms_flow_give_back(pool, UINT64_MAX);
    }
}

/* The driver has refused. */
static struct ms_slot *out_of_memory(struct ms_heap *heap, const struct ms_request *request, int *status_p)
{
    uint64_t deadline = ms_clock_ns() + ms_policy->oom_wait_ms * 1000000u, pause = 0;
    struct ms_slot *slot = NULL;
    ms_wait_weigh(heap->flow);
    for (;;) {
        bool pending = ms_cross_pending() || ms_returns_pending(heap->device), busy = false;
        ms_cross_collect();
        ms_lease_flush(heap);
        if ((slot = ms_ladder_from_heap(heap, request, true)) != NULL)
            return slot;
        if ((slot = borrow(heap->flow, request, true, &busy)) != NULL)
            return slot;
        give_back_others(heap->flow);
        if ((slot = ms_flow_grow(heap, request, status_p)) != NULL || *status_p != CUDA_ERROR_OUT_OF_MEMORY)
            return slot;
        if ((slot = ms_wait_take(heap->flow, request)) != NULL)
            return slot;
        pending |= busy && atomic_load_explicit(&heap->flow->pool->internal, memory_order_relaxed);
        if (!pending || ms_clock_ns() >= deadline)
            return NULL;
        if (!pause)
            atomic_fetch_add_explicit(&heap->limbo_waits, 1, memory_order_relaxed);
        ms_clock_nap_longer(&pause);
    }
}

/* What the stream itself has freed of another flow's it may have at once, as it may its own. */
static struct ms_slot *freed_here(struct ms_flow *flow, const struct ms_request *request)
{
    return request->granted > MS_SLAB_MAX_BYTES
               ? ms_cross_take(flow, request, request->granted + request->granted / MS_FLOW_CLOSE_SHARE,
                               false)
               : NULL;
}

struct ms_slot *ms_flow_ladder(struct ms_heap *heap, const struct ms_request *request, int *status_p)
{
    struct ms_flow *flow = heap->flow;
    struct ms_slot *slot = ms_ladder_from_heap(heap, request, true);
    bool busy = false;
    if (slot || (slot = freed_here(flow, request)) != NULL)
        return slot;
    bool home = ms_cross_collect();
    if (home && (slot = ms_ladder_from_heap(heap, request, true)) != NULL)
        return slot;
    ms_lease_flush(heap);
    if ((slot = ms_ladder_from_heap(heap, request, true)) != NULL)
        return slot;
    if (may_borrow(flow, request->granted) &&
        (slot = borrow(flow, request, request->granted >= MS_MIB, &busy)) != NULL)
        return slot;
    *status_p = CUDA_SUCCESS;
    slot = ms_flow_grow(heap, request, status_p);
    if (!slot && *status_p == CUDA_ERROR_OUT_OF_MEMORY)
        slot = out_of_memory(heap, request, status_p);
    return slot;
}

/* --- giving back --------------------------------------------------------------------------------------- */

/* What is vacant, the largest first, linked by `leaving_next`; from here on no request finds it. */
static struct ms_segment *detach(struct ms_heap *heap, uint64_t bytes)
{
    struct ms_segment *all = NULL;
    uint64_t detached = 0;
    ms_lock(&heap->lock);
    for (uint32_t i = heap->vacant_count; i-- > 0 && detached < bytes;) {
        struct ms_segment *segment = heap->vacant[i];
        if (segment->captured)
            continue;
        ms_vacant_remove(heap, segment);
        ms_segment_unlink(heap, segment);
        detached += segment->bytes;
        segment->leaving_next = all;
        all = segment;
    }
    ms_unlock(&heap->lock);
    return all;
}

static bool nothing_under_way(struct ms_flow *flow)
{
    ms_lock(&ms_streams_lock);
    bool idle = ms_flow_is_idle(flow);
    ms_unlock(&ms_streams_lock);
    return idle || ms_cross_context_is_idle(flow);
}

/* What is vacant goes back if nothing is under way after it was set aside: where the driver gave it to
 * another stream, and made that one wait, the wait would be for what was issued up to now, not up to the
 * free. */
static uint64_t give_back(struct ms_flow *flow, uint64_t bytes)
{
    uint64_t given = 0;
    ms_lease_flush(flow->heap);
    struct ms_segment *segment = detach(flow->heap, bytes), *next;
    bool idle = segment && nothing_under_way(flow);
    flow->idle = idle;
    for (; segment; segment = next) {
        next = segment->leaving_next;
        given += idle ? segment->bytes : 0;
        if (idle)
            ms_segment_return(flow->heap, &segment, 1);
        else
            ms_segment_attach(flow->heap, segment);
    }
    flow->idle = false;
    if (given) {
        atomic_fetch_add_explicit(&flow->heap->trims, 1, memory_order_relaxed);
        ms_figures_changed(flow->heap);
    }
    return given;
}

uint64_t ms_flow_give_back(struct ms_mempool *pool, uint64_t bytes)
{
    bool gone = !atomic_load_explicit(&pool->handle, memory_order_acquire);
    uint64_t given = 0;
    ms_stream_notice_ends();
    ms_cross_collect();
    if (gone)
        forget_captured(pool);
    for (struct ms_flow *flow = atomic_load_explicit(&pool->flows, memory_order_acquire);
         flow && given < bytes; flow = flow->next_of_pool) {
        atomic_fetch_add(&flow->leaving, 1);
        if (gone && ms_flow_may_return(flow->heap)) { /* nobody will be made to wait */
            ms_lease_flush(flow->heap);
            given += ms_keep_give_back(flow->heap, bytes - given, true);
        } else {
            given += give_back(flow, bytes - given);
        }
        atomic_fetch_sub(&flow->leaving, 1);
    }
    if (given)
        ms_returns_await(pool->device, true, ms_clock_ns() + MS_FLOW_LOOK_NS);
    return given;
}

/* What goes back stays with the driver's pool until that is told: not every allocation of the driver's takes
 * it from there. */
static uint64_t trim(struct ms_mempool *pool)
{
    uint64_t given = ms_flow_give_back(pool, UINT64_MAX);
    if (atomic_load_explicit(&pool->freed, memory_order_relaxed))
        ms_mempool_trim_to(pool, 0);
    return given;
}

uint64_t ms_stream_trim(int device)
{
    struct ms_mempool *pool;
    uint64_t given = ms_returns_settle(device);
    for (uint32_t i = 0; (pool = ms_mempool_at(i)) != NULL; i++) {
        if (pool->device == device)
            given += trim(pool);
    }
    return given;
}

uint64_t ms_stream_reclaimable(int device)
{
    struct ms_mempool *pool;
    uint64_t bytes = 0;
    for (uint32_t i = 0; (pool = ms_mempool_at(i)) != NULL; i++) {
        struct ms_flow *flow = atomic_load_explicit(&pool->flows, memory_order_acquire);
        for (; pool->device == device && flow; flow = flow->next_of_pool) {
            ms_lease_flush(flow->heap);
            ms_lock(&flow->heap->lock);
            bytes += flow->heap->vacant_bytes;
            ms_unlock(&flow->heap->lock);
        }
    }
    return bytes;
}

/* What is held beyond what is in use, the pool's own threshold and MEMSHIM_KEEP; of a pool that was
 * destroyed, what came home since its last block was freed. */
static void settle(struct ms_mempool *pool)
{
    struct ms_flow *flow = atomic_load_explicit(&pool->flows, memory_order_acquire);
    uint64_t handle = atomic_load_explicit(&pool->handle, memory_order_acquire);
    uint64_t held = atomic_load_explicit(&pool->held, memory_order_relaxed),
             used = atomic_load_explicit(&pool->used, memory_order_relaxed),
             keep = atomic_load_explicit(&pool->threshold, memory_order_relaxed);
    if (flow && !handle && held > used)
        ms_flow_give_back(pool, UINT64_MAX);
    if (!flow || !handle)
        return;
    if (keep < flow->heap->keep_bytes)
        keep = flow->heap->keep_bytes;
    if (held <= used || held - used <= keep || !ms_flow_give_back(pool, held - used - keep))
        return;
    ms_mempool_trim_to(pool, used + keep);
}

void ms_stream_at_sync(const struct ms_gpu *gpu, int device)
{
    struct ms_mempool *pool;
    ms_returns_settle(device);
    for (uint32_t i = 0; (pool = ms_mempool_at(i)) != NULL; i++) {
        if (pool->device == device && pool->gpu == gpu)
            settle(pool);
    }
}
