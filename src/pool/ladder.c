/* ladder.c - how a request is answered when no magazine has a block for it, and what is tried before it
 * fails.
 *
 * In this order: memory of the heap's that is free; large blocks that other leases hold; what a fence sets
 * free, waiting for no longer than an allocation of the vendor's takes; all that leases hold; more memory
 * from the vendor. When the vendor refuses: limbo, for as long as MEMSHIM_OOM_WAIT_MS; giving back what is
 * vacant; both here and in other contexts on the device; the vendor again; and then the vendor's own status.
 * No lock is held where the vendor is called. */
#include "config.h"

#include <sched.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/size.h"
#include "pool/backing.h"
#include "pool/flow.h"
#include "pool/foreign.h"
#include "pool/lease.h"
#include "pool/returns.h"

struct ms_slot *ms_ladder_from_heap(struct ms_heap *heap, const struct ms_request *request,
                                    bool even_if_sated)
{
    struct ms_lease *lease = ms_lease_lock(heap);
    struct ms_slot *slot = ms_lease_take(heap, lease, request);
    if (!slot && (even_if_sated || !ms_lease_sated(lease, request)))
        slot = ms_lease_refill(heap, lease, request);
    if (slot)
        /* it may have been in limbo, and is in no bag now that says it no longer is */
        ms_slot_set(slot, MS_SLOT_READY);
    ms_lease_unlock(lease);
    return slot;
}

/* What was freed up to now comes out of limbo, if that takes no longer than an allocation of the vendor's.
 * While a thread gives memory back, no longer than that takes: it may be all that the context is busy with,
 * and to grow for it would be absurd. */
static void fence(struct ms_heap *heap)
{
    uint64_t freed = ms_fence_freed(heap);
    bool closed = freed > ms_fence_done(heap) && ms_fence_close(heap);
    ms_fence_poll(heap);
    if (!closed || ms_fence_done(heap) >= freed)
        return;
    uint64_t price = atomic_load_explicit(&heap->vendor_ns, memory_order_relaxed);
    uint64_t begin = ms_clock_ns();
    price = price < MS_FENCE_LEAST_NS  ? MS_FENCE_LEAST_NS
            : price > MS_FENCE_MOST_NS ? MS_FENCE_MOST_NS
                                       : price;
    atomic_fetch_add_explicit(&heap->limbo_waits, 1, memory_order_relaxed);
    for (;;) {
        bool in_time = ms_clock_ns() - begin < price;
        bool returning = atomic_load_explicit(&heap->returning, memory_order_acquire) > 0;
        ms_fence_poll(heap);
        if (ms_fence_done(heap) >= freed || (!in_time && !returning))
            return;
        if (!in_time)
            sched_yield();
    }
}

static uint64_t least_segment(const struct ms_request *request)
{
    return ms_round_up(request->granted, MS_PAGE_BYTES);
}

static uint64_t chunk_for_runs(const struct ms_heap *heap)
{
    uint64_t share = heap->chunk_bytes / MS_CHUNK_SHARE;
    int64_t calls = ms_budget_left(heap);
    if (share < MS_CHUNK_BYTES)
        share = MS_CHUNK_BYTES;
    return calls <= 0 ? share : share * MS_CHUNK_HALVING_CALLS / (MS_CHUNK_HALVING_CALLS + (uint64_t)calls);
}

/* The first chunk is as small as it can be: there may be no second. A whole number of blocks like the one
 * that is asked for. */
static uint64_t wanted_segment(const struct ms_heap *heap, const struct ms_request *request)
{
    uint64_t least = least_segment(request), chunk = heap->chunk_bytes / MS_CHUNK_SPAN_SHARE,
             most = ms_heap_left(heap) / MS_CHUNK_LEFT_SHARE;
    if (request->single || request->large || least >= MS_ALONE_BYTES)
        return least;
    if (request->granted > MS_MIB && heap->chunk_bytes)
        chunk = chunk_for_runs(heap);
    if (chunk > most)
        chunk = most;
    return chunk > least ? ms_round_up(chunk, least) : least;
}

struct ms_slot *ms_ladder_carve(struct ms_heap *heap, const struct ms_request *request,
                                struct ms_segment *segment)
{
    struct ms_slot *slot = NULL;
    if (request->single || (request->large && segment->bytes == request->granted))
        return ms_single_open(heap, segment);
    ms_vacant_remove(heap, segment);
    if (!ms_run_open(heap, segment)) {
        ms_vacant_put(heap, segment);
        return NULL;
    }
    if (request->magazine < MS_CLASSES) {
        ms_slab_take(heap, request->magazine, &slot, 1);
    } else {
        struct ms_run *run = ms_run_take(heap, request->granted, ms_run_align(heap, request->granted));
        slot = run ? &run->only : NULL;
    }
    /* What another thread has freed while the vendor was asked may fit more closely. */
    ms_run_close(heap, segment);
    return slot;
}

static struct ms_slot *from_vendor(struct ms_heap *heap, const struct ms_request *request, uint64_t bytes,
                                   int *status_p)
{
    if (MS_UNLIKELY(ms_backing_on(heap))) {
        struct ms_slot *mapped = ms_backing_alloc(heap, request, status_p);
        if (mapped || *status_p == CUDA_ERROR_OUT_OF_MEMORY)
            return mapped;
        bytes = least_segment(request);
    }
    struct ms_segment *segment = ms_segment_new(heap, bytes, status_p);
    if (!segment)
        return NULL;
    ms_budget_grew(heap, request->granted, segment->bytes);
    struct ms_slot *slot = ms_ladder_carve(heap, request, segment);
    ms_unlock(&heap->lock);
    atomic_fetch_add_explicit(&heap->misses, 1, memory_order_relaxed);
    if (slot)
        ms_figures_grew(heap, request);
    else
        ms_figures_changed(heap);
    if (!slot)
        *status_p = CUDA_ERROR_OUT_OF_MEMORY;
    return slot;
}

struct ms_slot *ms_ladder_grow(struct ms_heap *heap, const struct ms_request *request, int *status_p)
{
    ms_lock(&heap->lock);
    uint64_t wanted = wanted_segment(heap, request), least = least_segment(request);
    ms_unlock(&heap->lock);
    ms_keep_before_growth(heap, wanted, request->granted);
    wanted = ms_keep_within_bound(heap, wanted, request->granted);
    struct ms_slot *slot = from_vendor(heap, request, wanted, status_p);
    if (!slot && wanted > least && *status_p == CUDA_ERROR_OUT_OF_MEMORY)
        slot = from_vendor(heap, request, least, status_p);
    return slot;
}

/* From all contexts on the device. */
static uint64_t give_back(const struct ms_heap *heap, uint64_t bytes)
{
    uint64_t given = 0;
    struct ms_heap *other;
    for (uint32_t i = 0; given < bytes && (other = ms_heap_visit(&i, heap->device)) != NULL;) {
        if (other != heap) {
            fence(other);
            ms_lease_flush(other);
        }
        ms_keep_forget_captured(other);
        given += ms_keep_give_back(other, bytes - given, false);
        if (given < bytes)
            given += ms_keep_give_back_async(other, bytes - given);
        ms_heap_leave(other);
    }
    if (given < bytes)
        given += ms_stream_trim(heap->device);
    return given < bytes ? given + ms_foreign_trim(heap->device, 0) : given;
}

/* A block that should be an allocation of the vendor's comes out of a chunk before the program hears that
 * there is no memory, and out of what was preallocated. */
static struct ms_slot *not_whole(struct ms_heap *heap, const struct ms_request *request)
{
    if (ms_policy->pack == MS_POOL_PACK_NONE || __atomic_load_n(&ms_policy->export_whole, __ATOMIC_RELAXED))
        return NULL;
    ms_lock(&heap->lock);
    struct ms_run *run = ms_run_take(heap, request->granted, ms_run_align(heap, request->granted));
    ms_unlock(&heap->lock);
    return run ? &run->only : NULL;
}

/* Behind a wait on the device it takes the vendor a while to have it. */
static bool returned(const struct ms_heap *heap, uint64_t bytes, uint64_t deadline)
{
    bool given = give_back(heap, bytes) > 0;
    if (given)
        ms_returns_await(heap->device, true, deadline);
    return given;
}

/* The vendor has refused. */
static struct ms_slot *out_of_memory(struct ms_heap *heap, const struct ms_request *request, int *status_p)
{
    uint64_t deadline = ms_clock_ns() + ms_policy->oom_wait_ms * 1000000u, pause = 0;
    if (heap->total_bytes && request->granted > heap->total_bytes)
        return NULL; /* nothing that could be given back would make room for it */
    for (;;) {
        bool pending = ms_room_may_come(heap->device);
        fence(heap);
        ms_lease_flush(heap);
        struct ms_slot *slot = ms_ladder_from_heap(heap, request, true);
        if (slot)
            return slot;
        /* Pages are put together before any goes back. */
        int refused;
        if (ms_backing_on(heap) && (slot = ms_backing_alloc(heap, request, &refused)) != NULL)
            return slot;
        if (returned(heap, least_segment(request), deadline) &&
            ((slot = from_vendor(heap, request, least_segment(request), status_p)) != NULL ||
             *status_p != CUDA_ERROR_OUT_OF_MEMORY))
            return slot;
        if ((request->single || request->large) && (slot = not_whole(heap, request)) != NULL)
            return slot;
        if ((!pending && !ms_room_may_come(heap->device)) || ms_clock_ns() >= deadline)
            return NULL;
        ms_clock_nap_longer(&pause);
    }
}

static MS_NOINLINE void say_not_preallocated(const struct ms_heap *heap, uint64_t bytes)
{
    char line[160], size[MS_SIZE_BYTES];
    ms_size_write(bytes, size, sizeof size);
    snprintf(line, sizeof line, "MEMSHIM_PREALLOC: device %d does not give %s; the pool begins without it",
             atomic_load_explicit(&heap->device, memory_order_relaxed), size);
    ms_pool_warn(line);
}

static void preallocate(struct ms_heap *heap)
{
    int status;
    if (atomic_exchange_explicit(&heap->preallocated, true, memory_order_relaxed))
        return;
    uint64_t asked = ms_policy->size_of('P', heap->total_bytes), bytes = ms_round_up(asked, MS_PAGE_BYTES);
    bool sane = asked < UINT64_MAX - MS_PAGE_BYTES;
    if (!asked || (sane && ms_backing_on(heap) && ms_backing_prealloc(heap, bytes)))
        return;
    struct ms_segment *segment = sane ? ms_segment_new(heap, bytes, &status) : NULL;
    if (!segment) {
        say_not_preallocated(heap, asked);
        return;
    }
    segment->permanent = true;
    ms_vacant_remove(heap, segment);
    if (!ms_run_open(heap, segment))
        ms_vacant_put(heap, segment);
    ms_unlock(&heap->lock);
    ms_figures_changed(heap);
}

/* Before something that is larger is split: what was freed and can be used again lies together again where it
 * did, and may fit more closely. Nothing is waited for. */
static void before_splitting(struct ms_heap *heap, const struct ms_request *request)
{
    ms_lock(&heap->lock);
    ms_limbo_retire(heap);
    bool splits = ms_run_fit(heap, request->granted, ms_run_align(heap, request->granted)) > request->granted;
    bool may_fence = splits && ms_budget_may_fence(heap);
    ms_unlock(&heap->lock);
    if (may_fence && ms_fence_pending(heap) && ms_fence_close(heap))
        ms_fence_poll(heap);
    if (splits)
        ms_lease_flush_from(heap, MS_SLAB_MAX_BYTES + 1);
}

/* Whether more is free than was freed since the last event: then that is used before another one is
 * recorded. */
static bool has_spare(struct ms_heap *heap)
{
    ms_lock(&heap->lock);
    uint64_t free_bytes = heap->run_free_bytes + heap->vacant_bytes;
    ms_unlock(&heap->lock);
    return free_bytes > ms_limbo_gathered(&heap->limbo_sums);
}

static bool is_large(const struct ms_heap *heap, const struct ms_request *request)
{
    return request->granted > MS_MIB && !ms_backing_on(heap);
}

/* The first step: what is free, and fits or may be split. */
static struct ms_slot *free_already(struct ms_heap *heap, const struct ms_request *request)
{
    if (request->granted > MS_SLAB_MAX_BYTES && !request->single && !ms_backing_on(heap))
        before_splitting(heap, request);
    return ms_ladder_from_heap(heap, request, is_large(heap, request) && has_spare(heap));
}

struct ms_slot *ms_ladder_at_hand(struct ms_heap *heap, const struct ms_request *request)
{
    if (heap->flow || !atomic_load_explicit(&heap->preallocated, memory_order_relaxed))
        return NULL;
    return free_already(heap, request);
}

struct ms_slot *ms_ladder_alloc(struct ms_heap *heap, const struct ms_request *request, int *status_p)
{
    if (heap->flow)
        return ms_flow_ladder(heap, request, status_p);
    if (MS_UNLIKELY(!atomic_load_explicit(&heap->preallocated, memory_order_relaxed)))
        preallocate(heap);
    struct ms_slot *slot = free_already(heap, request);
    if (slot)
        return slot;
    if (is_large(heap, request) && ms_lease_flush_others(heap, MS_MIB) &&
        (slot = ms_ladder_from_heap(heap, request, true)) != NULL)
        return slot;
    fence(heap);
    if ((slot = ms_ladder_from_heap(heap, request, true)) != NULL)
        return slot;
    ms_lease_flush(heap);
    if ((slot = ms_ladder_from_heap(heap, request, true)) != NULL)
        return slot;
    *status_p = CUDA_SUCCESS;
    slot = ms_ladder_grow(heap, request, status_p);
    if (!slot && *status_p == CUDA_ERROR_OUT_OF_MEMORY)
        slot = out_of_memory(heap, request, status_p);
    return slot;
}
