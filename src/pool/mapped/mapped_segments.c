/* mapped_segments.c - a range as the observer sees it: one segment for each stretch of mapped pages.
 *
 * What was told is kept, and compared with what is there: one difference at a time is told, without a lock,
 * by whichever thread came first; others leave word that there may be more. */
#include "config.h"

#include <string.h>

#include "pool/mapped/mapped.h"

/* The stretch that begins at `address`, up to the next hole; of no bytes if there is a hole. Heap's lock
 * held. */
static struct ms_byte_range extent_at(const struct ms_backing *b, uint64_t address)
{
    uint64_t end = b->address + b->bytes;
    for (const struct ms_extent *hole = b->holes; hole; hole = hole->next) {
        if (ms_extent_address(hole) >= address && ms_extent_address(hole) < end)
            end = ms_extent_address(hole);
    }
    return (struct ms_byte_range){address, end - address};
}

/* The one behind a hole, or the first of all. */
static struct ms_byte_range extent_behind(const struct ms_backing *b, const struct ms_extent *hole)
{
    return extent_at(b, hole ? ms_extent_address(hole) + ms_extent_bytes(hole) : b->address);
}

static bool mapped_segments_make_room(struct ms_backing *b)
{
    if (b->told_count < b->told_room)
        return true;
    uint32_t order, room = b->told_room ? b->told_room * 2 : 16;
    struct ms_byte_range *wider = ms_table_array(MS_ARRAY_OWN, room * sizeof(*wider), &order);
    if (!wider)
        return false;
    if (b->told_count)
        memcpy(wider, b->told, b->told_count * sizeof(*wider));
    ms_table_drop_array(MS_ARRAY_OWN, b->told, b->told_order);
    b->told = wider;
    b->told_room = room;
    b->told_order = order;
    return true;
}

static bool was_told(const struct ms_backing *b, const struct ms_byte_range *range)
{
    for (uint32_t i = 0; i < b->told_count; i++) {
        if (b->told[i].address == range->address && b->told[i].bytes == range->bytes)
            return true;
    }
    return false;
}

/* It begins where the range does or a hole ends, and ends where the next one begins. */
static bool mapped_segments_is_there(const struct ms_backing *b, const struct ms_byte_range *told)
{
    if (!b->segment)
        return false;
    bool begins = told->address == b->address;
    for (const struct ms_extent *hole = b->holes; hole && !begins; hole = hole->next)
        begins = ms_extent_address(hole) + ms_extent_bytes(hole) == told->address;
    return begins && extent_at(b, told->address).bytes == told->bytes;
}

/* There, and not known yet. */
static bool is_new(struct ms_backing *b, struct ms_byte_range range)
{
    return range.bytes && !was_told(b, &range) && mapped_segments_make_room(b);
}

/* The next thing to tell; what is gone comes first. Heap's lock held. */
static bool next_change(struct ms_backing *b, struct ms_byte_range *extent_p, bool *added_p)
{
    for (uint32_t i = 0; i < b->told_count; i++) {
        if (!mapped_segments_is_there(b, &b->told[i])) {
            *extent_p = b->told[i];
            *added_p = false;
            b->told[i] = b->told[--b->told_count];
            return true;
        }
    }
    if (!b->segment)
        return false;
    const struct ms_extent *hole = NULL;
    do {
        struct ms_byte_range range = extent_behind(b, hole);
        if (is_new(b, range)) {
            *extent_p = b->told[b->told_count++] = range;
            *added_p = true;
            return true;
        }
        hole = hole ? hole->next : b->holes;
    } while (hole);
    return false;
}

void ms_backing_tell(struct ms_heap *heap)
{
    struct ms_backing *b = heap->backing;
    struct ms_byte_range range;
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
        while (next_change(b, &range, &added)) {
            const struct ms_pool_segment told = {.address = range.address,
                                                 .bytes = range.bytes,
                                                 .context = heap->context,
                                                 .device = heap->device,
                                                 .tier = MS_TIER_EXTENT,
                                                 .vmm = true};
            ms_unlock(&heap->lock);
            ms_figures_tell(&told, added);
            ms_lock(&heap->lock);
        }
    }
    b->telling = false;
    ms_unlock(&heap->lock);
}
