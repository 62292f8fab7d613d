/* grow.c - how much is asked of the vendor for a request that nothing in its heap answers.
 *
 * Chunks are larger the more is carved already; what is too much goes back before (keep.c). Stream arenas ask
 * by rules of their own (arena_source.c). No lock is held where the vendor is called. */
#include <stdio.h>

#include "base/size.h"
#include "pool/mapped/mapped.h"

/* How much may be reserved before it is more than what is live and a share of that: beyond it what is missing
 * lies pending or between live blocks, and comes back without a chunk. */
static uint64_t room(const struct ms_heap *heap, uint64_t granted)
{
    uint64_t live = ms_heap_live(heap).requested + granted, allowed = live + live / MS_CHUNK_LIVE_SHARE;
    return allowed > heap->reserved_bytes ? allowed - heap->reserved_bytes : 0;
}

/* The first chunk is as small as it can be: there may be no second. A whole number of blocks like the one
 * that is asked for. Heap's lock held. */
static uint64_t wanted_segment(const struct ms_heap *heap, const struct ms_request *request)
{
    uint64_t least = ms_request_pages(request), chunk = heap->extents.chunk_bytes / MS_CHUNK_SHARE;
    if (request->single || request->large)
        return least;
    chunk = ms_least(ms_least(chunk, MS_CHUNK_MOST_BYTES), ms_heap_left(heap) / MS_CHUNK_LEFT_SHARE);
    chunk = ms_least(chunk, room(heap, request->granted));
    return chunk > least ? (chunk + least / 2) / least * least : least;
}

/* Heap's lock held. A block of a vacant segment, whole or out of it; NULL without host memory. */
static struct ms_slot *carve(struct ms_heap *heap, const struct ms_request *request,
                             struct ms_segment *segment)
{
    struct ms_slot *slot = NULL;
    if (request->single || (request->large && segment->bytes == request->granted))
        return ms_dedicated_open(&heap->extents, segment);
    ms_vacant_remove(&heap->extents, segment);
    if (!ms_extent_open(&heap->extents, segment)) {
        ms_vacant_put(&heap->extents, segment);
        return NULL;
    }
    if (request->class_index < MS_CLASSES)
        ms_slab_take(&heap->extents, request->class_index, &slot, 1);
    else
        slot = ms_extent_take_for(&heap->extents, request);
    /* An extent that another thread has freed while the vendor was asked may fit more closely. */
    ms_extent_close(&heap->extents, segment);
    return slot;
}

struct ms_slot *ms_grow_by(struct ms_heap *heap, const struct ms_request *request, uint64_t bytes,
                           uint64_t asked, int *status_p)
{
    struct ms_segment *segment = ms_segment_new(heap, bytes, asked, status_p);
    if (!segment)
        return NULL;
    ms_budget_grew(heap);
    struct ms_slot *slot = carve(heap, request, segment);
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

struct ms_slot *ms_grow_least(struct ms_heap *heap, const struct ms_request *request, int *status_p)
{
    struct ms_slot *mapped = NULL;
    if (MS_UNLIKELY(ms_backing_on(heap)) && ((mapped = ms_backing_alloc(heap, request, status_p)) != NULL ||
                                             *status_p == CUDA_ERROR_OUT_OF_MEMORY))
        return mapped;
    return ms_grow_by(heap, request, ms_request_pages(request), 0, status_p);
}

struct ms_slot *ms_grow(struct ms_heap *heap, const struct ms_request *request, int *status_p)
{
    ms_lock(&heap->lock);
    uint64_t wanted = wanted_segment(heap, request);
    ms_unlock(&heap->lock);
    struct ms_slot *slot;
    ms_device_ask(heap->device, request->requested, wanted);
    ms_keep_before_growth(heap, !request->single && !request->large);
    if (ms_backing_on(heap)) {
        ms_device_answered(heap->device, wanted);
        slot = ms_grow_least(heap, request, status_p);
    } else {
        slot = ms_grow_by(heap, request, wanted, wanted, status_p);
        if (!slot && wanted > ms_request_pages(request) && *status_p == CUDA_ERROR_OUT_OF_MEMORY)
            slot = ms_grow_by(heap, request, ms_request_pages(request), 0, status_p);
    }
    ms_device_unask(heap->device, request->requested);
    return slot;
}

static MS_NOINLINE void say_not_preallocated(const struct ms_heap *heap, uint64_t bytes)
{
    char line[160], size[MS_SIZE_BYTES];
    ms_size_write(bytes, size, sizeof size);
    snprintf(line, sizeof line, "MEMSHIM_PREALLOC: device %d does not give %s; the pool begins without it",
             atomic_load_explicit(&heap->device, memory_order_relaxed), size);
    ms_pool_warn(line);
}

void ms_grow_preallocated(struct ms_heap *heap)
{
    int status;
    if (atomic_exchange_explicit(&heap->preallocated, true, memory_order_relaxed))
        return;
    uint64_t asked = ms_least(ms_policy->size_of('P', heap->total_bytes), ms_quota_limit(heap->device)),
             bytes = ms_round_up(asked, MS_PAGE_BYTES);
    bool sane = asked < UINT64_MAX - MS_PAGE_BYTES;
    if (asked && ms_heap_gives_whole(heap)) {
        ms_pool_warn("MEMSHIM_PREALLOC is left out: each block is an allocation of the driver's "
                     "(MEMSHIM_PACK=none, MEMSHIM_IPC=native, or beside MPI)");
        return;
    }
    if (!asked || (sane && ms_backing_on(heap) && ms_backing_prealloc(heap, bytes)))
        return;
    struct ms_segment *segment = sane ? ms_segment_new(heap, bytes, 0, &status) : NULL;
    if (!segment) {
        say_not_preallocated(heap, asked);
        return;
    }
    segment->permanent = true;
    ms_vacant_remove(&heap->extents, segment);
    if (!ms_extent_open(&heap->extents, segment))
        ms_vacant_put(&heap->extents, segment);
    ms_unlock(&heap->lock);
    ms_figures_changed(heap);
}
