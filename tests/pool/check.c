/* check.c - what must hold of the pool whenever nobody is in it; see checks.h.
 *
 *   heap      reserved = sum of segments = parts of figures.c; vacant = sum of vacant segments, in order of
 *             size
 *   segment   bytes = sum of its runs, which follow each other without a gap; no two free ones are
 *             neighbours; each used run is found through the units from
 *             its first address, its last, and two in between
 *   bins      a free run is in the bin of its size and in no other; bytes and numbers add up
 *   span      slots = used + bits of the map; a slot is FREE where its bit is set; in its class's list if and
 *             only if one is
 *   slots     neither free nor live nor pinned = items of all batches
 *   counters  granted to live blocks = what thread caches count; each byte of a segment has one state
 *   fence     done <= covered < open; epochs of batches <= freed <= open
 *
 * All locks of a heap are held while it is looked at. Answers with the line that does not hold. */
#include "config.h"

#include "pool/mapped/mapped.h"
#include "pool/api/internal.h"
#include "checks.h"

struct sums {
    uint64_t live, requested, pinned, bagged, free_runs, free_run_bytes, segments, vacant, leaving;
};

#define MUST(condition, line)                                                                                \
    do {                                                                                                     \
        if (!(condition))                                                                                    \
            return line;                                                                                     \
    } while (0)

static const char *check_slots(struct ms_extent *extent, struct sums *sums)
{
    uint32_t used = 0;
    for (uint32_t i = 0; i < ms_extent_slot_count(extent); i++) {
        const struct ms_slot *slot = ms_extent_slot(extent, i);
        enum ms_slot_state state = ms_slot_state(slot);
        bool marked = extent->class_index != MS_NO_CLASS && extent->map[i / 64] >> i % 64 & 1;
        MUST(slot->extent == extent && slot->index == i, "a slot does not know its run");
        MUST(marked == (state == MS_SLOT_FREE), "a slot's state and its bit differ");
        used += !marked;
        sums->live += state == MS_SLOT_LIVE || state == MS_SLOT_RETIRING ? extent->slot_bytes : 0;
        if (state == MS_SLOT_LIVE || state == MS_SLOT_RETIRING)
            sums->requested += atomic_load_explicit(&slot->requested, memory_order_relaxed);
        sums->pinned += state == MS_SLOT_PINNED ? extent->slot_bytes : 0;
        sums->bagged += state == MS_SLOT_READY || state == MS_SLOT_PENDING;
    }
    MUST(extent->class_index == MS_NO_CLASS || used == extent->span.used, "a span miscounts its slots");
    MUST(extent->class_index == MS_NO_CLASS || extent->listed == (used < ms_extent_slot_count(extent)),
         "a span with room is not listed, or one without is");
    MUST(ms_extent_slot_count(extent) * extent->slot_bytes <= ms_extent_bytes(extent),
         "slots are longer than their span");
    return NULL;
}

/* A used run is found by any address of it. */
static const char *check_used(const struct ms_segment *segment, struct ms_extent *extent, struct sums *sums)
{
    uint64_t at = ms_extent_address(extent) + ms_extent_bytes(extent);
    uint64_t middle = ms_extent_address(extent) + ms_extent_bytes(extent) / 2,
             third = at - ms_extent_bytes(extent) / 3;
    MUST(ms_extent_at(segment, ms_extent_address(extent)) == extent &&
             ms_extent_at(segment, at - 1) == extent && ms_extent_at(segment, middle) == extent &&
             ms_extent_at(segment, third) == extent,
         "a used run is not found by address");
    return check_slots(extent, sums);
}

static const char *check_chunk(const struct ms_segment *segment, struct sums *sums)
{
    uint64_t at = segment->address, free_bytes = 0;
    const struct ms_extent *before = NULL;
    for (struct ms_extent *extent = segment->first; extent; before = extent, extent = extent->after) {
        MUST(extent->segment == segment && extent->before == before,
             "runs of a chunk are not linked both ways");
        MUST(ms_extent_address(extent) == at && ms_extent_bytes(extent) > 0,
             "runs of a chunk leave a gap or overlap");
        MUST(!before || !before->free || !extent->free, "two free runs are neighbours");
        at += ms_extent_bytes(extent);
        if (extent->free) {
            free_bytes += ms_extent_bytes(extent);
            sums->free_runs++;
            continue;
        }
        const char *wrong = check_used(segment, extent, sums);
        MUST(!wrong, wrong);
    }
    MUST(at == segment->address + segment->bytes, "runs of a chunk do not add up to it");
    MUST(free_bytes < segment->bytes, "an empty chunk is not vacant");
    sums->free_run_bytes += free_bytes;
    return NULL;
}

/* Whether no page of a hole has a handle. What lies beyond the tops never had one. */
static bool is_empty(const struct ms_backing *b, const struct ms_extent *hole)
{
    uint64_t at = ms_extent_address(hole), end = at + ms_extent_bytes(hole);
    for (; at < end && at < b->high; at += b->page_bytes) {
        if (at >= b->top && at < b->border)
            at = b->border;
        const struct ms_backing_page *page = ms_backing_page(b, at);
        if (at < b->high && at < end && (page->mapped || page->captured))
            return false;
    }
    return true;
}

/* Every byte that is free or in use lies in a page that has a handle, and no byte of a hole does. */
static const char *check_range(const struct ms_segment *segment, struct sums *sums)
{
    const struct ms_backing *b = segment->backing;
    uint64_t at = segment->address, backed = 0, free_bytes = 0, holes = 0, linked = 0;
    for (struct ms_extent *extent = segment->first; extent; extent = extent->after) {
        MUST(extent->segment == segment && ms_extent_address(extent) == at && ms_extent_bytes(extent) > 0 &&
                 (!extent->after || extent->after->before == extent),
             "runs of a range leave a gap or overlap");
        at += ms_extent_bytes(extent);
        if (extent->vacuum == MS_VACUUM_HOLE) {
            MUST(!extent->after || extent->after->vacuum != MS_VACUUM_HOLE, "two holes are neighbours");
            MUST(at % b->page_bytes == 0 && ms_extent_bytes(extent) % b->page_bytes == 0,
                 "a hole is not made of pages");
            MUST(is_empty(b, extent), "a page of a hole has a handle");
            MUST(!ms_page_segment(ms_extent_address(extent)), "a hole is in the page map");
            holes++;
            continue;
        }
        if (extent->vacuum != MS_VACUUM_NONE)
            continue; /* nobody is in the pool: it could not be unmapped, and is used no more */
        for (uint64_t page = ms_extent_address(extent) / b->page_bytes * b->page_bytes; page < at;
             page += b->page_bytes)
            MUST(ms_backing_page(b, page)->mapped, "a page in use has no handle");
        MUST(ms_page_segment(at - 1) == segment, "a page of a range is not in the page map");
        MUST(!extent->free || !extent->after || !extent->after->free, "two free runs are neighbours");
        backed += ms_extent_bytes(extent);
        if (extent->free) {
            free_bytes += ms_extent_bytes(extent);
            sums->free_runs++;
            continue;
        }
        const char *wrong = check_used(segment, extent, sums);
        MUST(!wrong, wrong);
    }
    for (const struct ms_extent *hole = b->holes; hole; hole = hole->next)
        linked++;
    MUST(at == segment->address + segment->bytes && holes == linked, "runs of a range do not add up to it");
    uint64_t mapped = 0;
    const uint64_t parts[2][2] = {{b->address, b->top}, {b->border, b->high}};
    for (int i = 0; i < 2; i++) {
        for (uint64_t page = parts[i][0]; page < parts[i][1]; page += b->page_bytes)
            mapped += ms_backing_page(b, page)->mapped ? b->page_bytes : 0;
    }
    MUST(mapped == b->mapped_bytes && backed <= mapped, "handles do not add up to what is mapped");
    sums->segments += b->mapped_bytes;
    sums->free_run_bytes += free_bytes;
    return NULL;
}

static const char *check_segment(struct ms_heap *heap, const struct ms_segment *segment, struct sums *sums)
{
    uint32_t use = atomic_load_explicit(&segment->use, memory_order_relaxed);
    MUST(segment->heap == heap, "a segment does not know its heap");
    if (segment->backing)
        return check_range(segment, sums);
    MUST(segment->address % MS_PAGE_BYTES == 0 && segment->bytes % MS_PAGE_BYTES == 0,
         "a segment is not made of pages");
    MUST(ms_page_segment(segment->address) == segment &&
             ms_page_segment(segment->address + segment->bytes - 1) == segment,
         "a segment is not in the page map");
    sums->segments += segment->bytes;
    if (use == MS_SEGMENT_CHUNK)
        return check_chunk(segment, sums);
    if (use == MS_SEGMENT_DEDICATED) {
        MUST(segment->first && segment->first->class_index == MS_NO_CLASS &&
                 ms_extent_bytes(segment->first) == segment->bytes,
             "a single is not one block");
        return check_slots(segment->first, sums);
    }
    MUST(use == (segment->release ? MS_SEGMENT_NONE : MS_SEGMENT_FREE) && !segment->first,
         "a segment has neither a use nor none");
    if (segment->release)
        sums->leaving += segment->bytes;
    else
        sums->vacant += segment->bytes;
    return NULL;
}

static const char *check_bins(const struct ms_heap *heap, const struct sums *sums)
{
    uint64_t count = 0, bytes = 0;
    for (int row = 0; row < MS_EXTENT_ROWS; row++) {
        MUST(!(heap->extents.rows >> row & 1) == !heap->extents.columns[row],
             "the map of rows of bins is wrong");
        for (int column = 0; column < MS_EXTENT_COLUMNS; column++) {
            MUST(!(heap->extents.columns[row] >> column & 1) == !heap->extents.bins[row][column],
                 "the map of bins is wrong");
            for (const struct ms_extent *extent = heap->extents.bins[row][column]; extent;
                 extent = extent->next) {
                MUST(extent->free && (!extent->next || extent->next->previous == extent),
                     "a bin holds a run that is used, or is not linked");
                count++;
                bytes += ms_extent_bytes(extent);
            }
        }
    }
    MUST(count == sums->free_runs && count == heap->extents.run_free_count,
         "bins hold another number of free runs than chunks do");
    MUST(bytes == sums->free_run_bytes && bytes == heap->extents.run_free_bytes,
         "bins hold other free bytes than chunks do");
    return NULL;
}

static uint64_t items_of_batches(const struct ms_heap *heap)
{
    uint64_t items = 0;
    for (int i = 0; i < MS_TCACHES; i++) {
        for (int k = 0; k < MS_CLASSES; k++) {
            const struct ms_magazine *m = &heap->cache.tcaches[i].magazines[k];
            items += (m->ready ? m->ready->count : 0) + (m->freed ? m->freed->count : 0);
        }
        items += heap->cache.tcaches[i].extents ? heap->cache.tcaches[i].extents->count : 0;
    }
    for (const struct ms_batch *batch = heap->cache.pending; batch; batch = batch->next)
        items += batch->count;
    return items;
}

/* The newest epoch of what waits. */
static uint64_t newest_of_batches(const struct ms_heap *heap)
{
    uint64_t newest = 0;
    for (int i = 0; i < MS_TCACHES; i++) {
        for (int k = 0; k <= MS_CLASSES; k++) {
            const struct ms_tcache *tcache = &heap->cache.tcaches[i];
            const struct ms_batch *batch = k < MS_CLASSES ? tcache->magazines[k].freed : tcache->extents;
            newest = batch && batch->count && batch->epoch > newest ? batch->epoch : newest;
        }
    }
    for (const struct ms_batch *batch = heap->cache.pending; batch; batch = batch->next)
        newest = batch->epoch > newest ? batch->epoch : newest;
    return newest;
}

static const char *check_counters(const struct ms_heap *heap, const struct sums *sums)
{
    uint64_t granted = 0, requested = 0;
    for (int i = 0; i < MS_TCACHES; i++) {
        granted += atomic_load_explicit(&heap->cache.tcaches[i].granted, memory_order_relaxed);
        requested += atomic_load_explicit(&heap->cache.tcaches[i].requested, memory_order_relaxed);
    }
    MUST(granted == sums->live && requested == sums->requested,
         "live blocks do not add up to what leases count");
    MUST(sums->pinned == atomic_load_explicit(&heap->pinned_bytes, memory_order_relaxed),
         "pinned blocks do not add up");
    MUST(sums->bagged ==
             items_of_batches(heap) + atomic_load_explicit(&heap->away_count, memory_order_relaxed),
         "a block is in no bag, or in two");
    MUST(sums->segments == heap->reserved_bytes, "segments do not add up to what is reserved");
    MUST(sums->vacant == heap->extents.vacant_bytes && sums->leaving == heap->extents.leaving_bytes,
         "vacant segments do not add up");
    for (uint32_t i = 1; i < heap->extents.vacant_count; i++)
        MUST(heap->extents.vacant[i - 1]->bytes <= heap->extents.vacant[i]->bytes,
             "vacant segments are not in order of size");
    const struct ms_fence *fence = &heap->fence;
    MUST(heap->arena ||
             (ms_fence_timeline_covered(&fence->time) < fence->time.now && fence->freed <= fence->time.now),
         "epochs are out of order");
    MUST(heap->arena || newest_of_batches(heap) <= ms_fence_freed(&heap->fence),
         "something waits for an epoch that tags nothing");
    return NULL;
}

static const char *check_heap(struct ms_heap *heap)
{
    struct sums sums = {0};
    const char *wrong = NULL;
    for (const struct ms_segment *segment = heap->extents.segments; segment && !wrong;
         segment = segment->next)
        wrong = check_segment(heap, segment, &sums);
    if (!wrong)
        wrong = check_bins(heap, &sums);
    return wrong ? wrong : check_counters(heap, &sums);
}

static const char *check_parts(int device)
{
    struct ms_pool_figures f;
    ms_pool_figures(device, &f);
    const struct ms_parts *p = &f.parts;
    MUST(p->requested + p->rounding + p->pending + p->cached + p->stranded + p->pinned == f.reserved_bytes,
         "the parts do not add up to what is reserved");
    p = &f.peak_parts;
    MUST(p->requested + p->rounding + p->pending + p->cached + p->stranded + p->pinned ==
             f.peak_reserved_bytes,
         "the parts at the peak do not add up to it");
    return NULL;
}

const char *ms_pool_check(void)
{
    struct ms_heap *heap;
    for (uint32_t i = 0; (heap = ms_heap_next(&i)) != NULL;) {
        ms_heap_lock_all(heap);
        const char *wrong = check_heap(heap);
        ms_heap_unlock_all(heap);
        if (!wrong)
            wrong = check_parts(heap->device);
        MUST(!wrong, wrong);
    }
    return NULL;
}
