/* backing_tell.c - a range as the observer sees it: one segment for each stretch of mapped pages.
 *
 * What was told is kept, and compared with what is there: one difference at a time is told, without a lock,
 * by whichever thread came first; others leave word that there may be more. */
#include "config.h"

#include <string.h>

#include "pool/backing.h"

/* The first stretch at or after `from`; of no bytes where there is none. Heap's lock held. */
static struct ms_extent extent_from(const struct ms_run **at)
{
    const struct ms_run *run = *at;
    struct ms_extent extent = {0, 0};
    while (run && run->vacuum == MS_VACUUM_HOLE)
        run = run->after;
    if (run)
        extent.address = ms_run_address(run);
    for (; run && run->vacuum != MS_VACUUM_HOLE; run = run->after)
        extent.bytes += ms_run_bytes(run);
    *at = run;
    return extent;
}

static bool make_room(struct ms_backing *b)
{
    if (b->told_count < b->told_room)
        return true;
    uint32_t order, room = b->told_room ? b->told_room * 2 : 16;
    struct ms_extent *wider = ms_table_array(room * sizeof(*wider), &order);
    if (!wider)
        return false;
    if (b->told_count)
        memcpy(wider, b->told, b->told_count * sizeof(*wider));
    ms_table_drop_array(b->told, b->told_order);
    b->told = wider;
    b->told_room = room;
    b->told_order = order;
    return true;
}

static bool was_told(const struct ms_backing *b, const struct ms_extent *extent)
{
    for (uint32_t i = 0; i < b->told_count; i++) {
        if (b->told[i].address == extent->address && b->told[i].bytes == extent->bytes)
            return true;
    }
    return false;
}

static bool is_there(const struct ms_backing *b, const struct ms_extent *told)
{
    const struct ms_run *run = b->segment ? b->segment->first : NULL;
    while (run) {
        struct ms_extent extent = extent_from(&run);
        if (extent.bytes == told->bytes && extent.address == told->address)
            return true;
    }
    return false;
}

/* The next thing to tell; what is gone comes first. Heap's lock held. */
static bool next_change(struct ms_backing *b, struct ms_extent *extent_p, bool *added_p)
{
    for (uint32_t i = 0; i < b->told_count; i++) {
        if (!is_there(b, &b->told[i])) {
            *extent_p = b->told[i];
            *added_p = false;
            b->told[i] = b->told[--b->told_count];
            return true;
        }
    }
    for (const struct ms_run *run = b->segment ? b->segment->first : NULL; run;) {
        struct ms_extent extent = extent_from(&run);
        if (extent.bytes && !was_told(b, &extent) && make_room(b)) {
            *extent_p = b->told[b->told_count++] = extent;
            *added_p = true;
            return true;
        }
    }
    return false;
}

void ms_backing_tell(struct ms_heap *heap)
{
    struct ms_backing *b = heap->backing;
    struct ms_extent extent;
    bool added;
    ms_lock(&heap->lock);
    b->changed = true;
    if (b->telling) {
        ms_unlock(&heap->lock);
        return;
    }
    b->telling = true;
    while (b->changed) {
        b->changed = false;
        while (next_change(b, &extent, &added)) {
            const struct ms_pool_segment told = {.address = extent.address,
                                                 .bytes = extent.bytes,
                                                 .context = heap->context,
                                                 .device = heap->device,
                                                 .tier = MS_TIER_RUN,
                                                 .vmm = true};
            ms_unlock(&heap->lock);
            if (added && ms_observer && ms_observer->segment_added)
                ms_observer->segment_added(&told);
            if (!added && ms_observer && ms_observer->segment_removed)
                ms_observer->segment_removed(&told);
            ms_lock(&heap->lock);
        }
    }
    b->telling = false;
    ms_unlock(&heap->lock);
}
