/* dedicated.c - segments without a block, and blocks that are a whole segment.
 *
 * A vacant segment is memory of the vendor's that nobody uses: it may become a single again, be carved as a
 * chunk, or go back. They are kept in order of size, so that the exact one, or the one that fits most
 * closely, is found by halving. Heap's lock held. */
#include <string.h>

#include "pool/space/extents.h"
#include "pool/space/tables.h"

/* The first of at least `bytes`. */
static uint32_t first_of(const struct ms_extents *extents, uint64_t bytes)
{
    uint32_t low = 0, high = extents->vacant_count;
    while (low < high) {
        uint32_t middle = (low + high) / 2;
        if (extents->vacant[middle]->bytes < bytes)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static bool dedicated_make_room(struct ms_extents *extents)
{
    if (extents->vacant_count < extents->vacant_room)
        return true;
    uint32_t order, room = extents->vacant_room ? extents->vacant_room * 2 : 64;
    struct ms_segment **wider = ms_table_array(MS_ARRAY_OWN, room * sizeof(struct ms_segment *), &order);
    if (!wider)
        return false;
    if (extents->vacant_count)
        memcpy(wider, extents->vacant, extents->vacant_count * sizeof(struct ms_segment *));
    ms_table_drop_array(MS_ARRAY_OWN, extents->vacant, extents->vacant_order);
    extents->vacant = wider;
    extents->vacant_room = room;
    extents->vacant_order = order;
    return true;
}

void ms_vacant_put(struct ms_extents *extents, struct ms_segment *segment)
{
    atomic_store_explicit(&segment->use, segment->release ? MS_SEGMENT_NONE : MS_SEGMENT_FREE,
                          memory_order_release);
    if (segment->release) {
        segment->leaving_next = extents->leaving;
        extents->leaving = segment;
        extents->leaving_bytes += segment->bytes;
        return;
    }
    extents->vacant_bytes += segment->bytes;
    if (!dedicated_make_room(extents))
        return; /* it stays reserved and is used no more; nothing is lost but memory, on a host that has none
                 */
    uint32_t at = first_of(extents, segment->bytes);
    memmove(extents->vacant + at + 1, extents->vacant + at,
            (extents->vacant_count - at) * sizeof(struct ms_segment *));
    extents->vacant[at] = segment;
    extents->vacant_count++;
}

void ms_vacant_remove(struct ms_extents *extents, struct ms_segment *segment)
{
    uint32_t at = first_of(extents, segment->bytes);
    while (at < extents->vacant_count && extents->vacant[at] != segment)
        at++;
    if (at == extents->vacant_count)
        return;
    extents->vacant_count--;
    memmove(extents->vacant + at, extents->vacant + at + 1,
            (extents->vacant_count - at) * sizeof(struct ms_segment *));
    extents->vacant_bytes -= segment->bytes;
    extents->rules->opened(segment);
    atomic_store_explicit(&segment->use, MS_SEGMENT_NONE, memory_order_release);
}

static struct ms_slot *dedicated_take(struct ms_extents *extents, uint64_t bytes, uint64_t waste)
{
    uint32_t at = first_of(extents, bytes);
    if (at == extents->vacant_count || extents->vacant[at]->bytes - bytes > waste)
        return NULL;
    return ms_dedicated_open(extents, extents->vacant[at]);
}

struct ms_slot *ms_dedicated_take(struct ms_extents *extents, uint64_t bytes)
{
    return dedicated_take(extents, bytes, bytes / MS_DEDICATED_WASTE_SHARE);
}

struct ms_slot *ms_large_take(struct ms_extents *extents, const struct ms_fit *fit,
                              const struct ms_request *request)
{
    uint64_t bytes = request->granted;
    struct ms_slot *slot = dedicated_take(extents, bytes, 0);
    struct ms_extent *extent = slot ? NULL : ms_extent_take_fit(extents, fit, bytes, request->align);
    if (extent)
        return &extent->only;
    return slot ? slot : ms_dedicated_take(extents, bytes);
}

struct ms_slot *ms_dedicated_open(struct ms_extents *extents, struct ms_segment *segment)
{
    struct ms_extent *extent = ms_table_run();
    if (!extent)
        return NULL;
    ms_vacant_remove(extents, segment);
    extent->segment = segment;
    ms_extent_set(extent, segment->address, segment->bytes);
    ms_extent_make_block(extent);
    segment->first = extent;
    atomic_store_explicit(&segment->use, MS_SEGMENT_DEDICATED, memory_order_release);
    return &extent->only;
}

void ms_dedicated_put(struct ms_extents *extents, struct ms_extent *extent)
{
    struct ms_segment *segment = extent->segment;
    segment->first = NULL;
    ms_table_drop_run(extent);
    ms_vacant_put(extents, segment);
}

struct ms_segment *ms_vacant_for_run(struct ms_extents *extents, uint64_t bytes)
{
    uint32_t at = first_of(extents, bytes);
    uint64_t most = extents->rules->may_carve(extents, bytes);
    if (at < extents->vacant_count && extents->vacant[at]->bytes <= most)
        return extents->vacant[at];
    /* what never goes back is there to be carved */
    while (at < extents->vacant_count && !extents->vacant[at]->permanent)
        at++;
    return at < extents->vacant_count ? extents->vacant[at] : NULL;
}
