/* single.c - segments without a block, and blocks that are a whole segment.
 *
 * A vacant segment is memory of the vendor's that nobody uses: it may become a single again, be carved as a
 * chunk, or go back. They are kept in order of size, so that the exact one, or the one that fits most
 * closely, is found by halving. Heap's lock held. */
#include "config.h"

#include <string.h>

#include "pool/internal.h"

/* The first of at least `bytes`. */
static uint32_t first_of(const struct ms_heap *heap, uint64_t bytes)
{
    uint32_t low = 0, high = heap->vacant_count;
    while (low < high) {
        uint32_t middle = (low + high) / 2;
        if (heap->vacant[middle]->bytes < bytes)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static bool make_room(struct ms_heap *heap)
{
    if (heap->vacant_count < heap->vacant_room)
        return true;
    uint32_t order, room = heap->vacant_room ? heap->vacant_room * 2 : 64;
    struct ms_segment **wider = ms_table_array(MS_ARRAY_OWN, room * sizeof(struct ms_segment *), &order);
    if (!wider)
        return false;
    if (heap->vacant_count)
        memcpy(wider, heap->vacant, heap->vacant_count * sizeof(struct ms_segment *));
    ms_table_drop_array(MS_ARRAY_OWN, heap->vacant, heap->vacant_order);
    heap->vacant = wider;
    heap->vacant_room = room;
    heap->vacant_order = order;
    return true;
}

void ms_vacant_put(struct ms_heap *heap, struct ms_segment *segment)
{
    atomic_store_explicit(&segment->use, segment->release ? MS_SEGMENT_NONE : MS_SEGMENT_FREE,
                          memory_order_release);
    if (segment->release) {
        segment->leaving_next = heap->leaving;
        heap->leaving = segment;
        heap->leaving_bytes += segment->bytes;
        return;
    }
    heap->vacant_bytes += segment->bytes;
    if (!make_room(heap))
        return; /* it stays reserved and is used no more; nothing is lost but memory, on a host that has none
                 */
    uint32_t at = first_of(heap, segment->bytes);
    memmove(heap->vacant + at + 1, heap->vacant + at,
            (heap->vacant_count - at) * sizeof(struct ms_segment *));
    heap->vacant[at] = segment;
    heap->vacant_count++;
}

void ms_vacant_remove(struct ms_heap *heap, struct ms_segment *segment)
{
    uint32_t at = first_of(heap, segment->bytes);
    while (at < heap->vacant_count && heap->vacant[at] != segment)
        at++;
    if (at == heap->vacant_count)
        return;
    heap->vacant_count--;
    memmove(heap->vacant + at, heap->vacant + at + 1,
            (heap->vacant_count - at) * sizeof(struct ms_segment *));
    heap->vacant_bytes -= segment->bytes;
    segment->captured |= ms_fence_captured(heap);
    atomic_store_explicit(&segment->use, MS_SEGMENT_NONE, memory_order_release);
}

static struct ms_slot *take(struct ms_heap *heap, uint64_t bytes, uint64_t waste)
{
    uint32_t at = first_of(heap, bytes);
    if (at == heap->vacant_count || heap->vacant[at]->bytes - bytes > waste)
        return NULL;
    return ms_single_open(heap, heap->vacant[at]);
}

struct ms_slot *ms_single_take(struct ms_heap *heap, uint64_t bytes)
{
    return take(heap, bytes, bytes / MS_SINGLE_WASTE_SHARE);
}

struct ms_slot *ms_large_take(struct ms_heap *heap, const struct ms_fit *fit,
                              const struct ms_request *request)
{
    uint64_t bytes = request->granted;
    struct ms_slot *slot = take(heap, bytes, 0);
    struct ms_run *run = slot ? NULL : ms_run_take_fit(heap, fit, bytes, request->align);
    if (run)
        return &run->only;
    return slot ? slot : ms_single_take(heap, bytes);
}

struct ms_slot *ms_single_open(struct ms_heap *heap, struct ms_segment *segment)
{
    struct ms_run *run = ms_table_run();
    if (!run)
        return NULL;
    ms_vacant_remove(heap, segment);
    run->segment = segment;
    ms_run_set(run, segment->address, segment->bytes);
    ms_run_make_block(run);
    segment->first = run;
    atomic_store_explicit(&segment->use, MS_SEGMENT_SINGLE, memory_order_release);
    return &run->only;
}

void ms_single_put(struct ms_heap *heap, struct ms_run *run)
{
    struct ms_segment *segment = run->segment;
    segment->first = NULL;
    ms_table_drop_run(run);
    ms_vacant_put(heap, segment);
}

/* The longest segment that may be carved for a block. What is carved can neither go back nor be what it was,
 * before all of it is free: so the device has to have several times as much left, and what is left over must
 * not be too much. Pages that are most of all that is in use may leave over anything: a program that tries
 * out one size after the other would give back and ask for each. Of a flow's nothing has to be whole. */
static uint64_t worth_carving(const struct ms_heap *heap, uint64_t bytes)
{
    uint64_t used = heap->reserved_bytes - heap->vacant_bytes - heap->run_free_bytes,
             pages = ms_round_up(bytes, MS_PAGE_BYTES), most = ms_heap_left(heap) / MS_SPLIT_LEFT_SHARE;
    if (heap->source->packed)
        return UINT64_MAX;
    if (bytes < MS_PAGE_BYTES || used >= bytes)
        most = ms_least(most, pages + used / MS_SPLIT_USED_SHARE);
    return most > pages ? most : pages;
}

struct ms_segment *ms_vacant_for_run(struct ms_heap *heap, uint64_t bytes)
{
    uint32_t at = first_of(heap, bytes);
    uint64_t most = worth_carving(heap, bytes);
    if (at < heap->vacant_count && heap->vacant[at]->bytes <= most)
        return heap->vacant[at];
    /* what never goes back is there to be carved */
    while (at < heap->vacant_count && !heap->vacant[at]->permanent)
        at++;
    return at < heap->vacant_count ? heap->vacant[at] : NULL;
}
