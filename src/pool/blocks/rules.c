/* rules.c - what the bytes of a heap ask of it (extents.h): captures, pages that are mapped, and what may be
 * carved. Heap's lock held. */
#include "pool/mapped/mapped.h"

static void used(struct ms_extent *extent)
{
    if (MS_UNLIKELY(ms_fence_captured(extent->segment->heap)))
        ms_backing_capture_run(extent);
}

static void opened(struct ms_segment *segment)
{
    segment->captured |= ms_fence_captured(segment->heap);
}

static uint64_t rules_less(uint64_t a, uint64_t b)
{
    return a > b ? a - b : 0;
}

/* A segment that is carved can neither go back nor be what it was, before all of it is free: so the device
 * has to have several times as much left, and what is left over must not be too much, by itself and with all
 * that lies free between blocks already. Pages that are most of all that is in use may leave over anything: a
 * program that tries out one size after the other would give back and ask for each. Of a stream arena's
 * nothing has to be whole. */
static uint64_t may_carve(const struct ms_extents *extents, uint64_t bytes)
{
    const struct ms_heap *heap = ms_heap_with(extents);
    if (heap->source->packed)
        return UINT64_MAX;
    uint64_t used = heap->reserved_bytes - extents->vacant_bytes - extents->run_free_bytes,
             pages = ms_round_up(bytes, MS_PAGE_BYTES), most = ms_heap_left(heap) / MS_SPLIT_LEFT_SHARE;
    if (bytes < MS_PAGE_BYTES || used >= bytes)
        most = ms_least(most, pages + used / MS_SPLIT_USED_SHARE);
    if (bytes >= heap->single_min_bytes && used >= bytes)
        most = ms_least(most, pages + rules_less(used / MS_SPLIT_FREE_SHARE + MS_SPLIT_FREE_BYTES,
                                                 extents->run_free_bytes));
    return most > pages ? most : pages;
}

const struct ms_extent_rules ms_extent_rules = {ms_backing_suits, used, opened, may_carve};
