/* figures.c - where each byte is, what was done, and what lies where.
 *
 * A heap's figures are taken with all its locks held, so they agree with each other; a device's are sums over
 * its heaps, and what heaps left behind whose contexts are gone. The peak of reserved memory is noted
 * whenever the vendor gave some, with the parts of that moment, in which the block that it was asked for is
 * the program's already. No allocation; the observer is told without a lock. */
#include "pool/mapped/mapped.h"
#include "pool/api/internal.h"
#include "pool/external/external.h"

struct ms_lock ms_figures_lock = MS_LOCK_INIT(MS_RANK_POOL_TABLES);

static void figures_add(struct ms_pool_figures *sum, const struct ms_pool_figures *more)
{
    sum->reserved_bytes += more->reserved_bytes;
    ms_figure_add(&ms_figure_parts, &sum->parts, &more->parts);
    ms_figure_add(&ms_figure_pool, sum, more);
}

/* Free blocks in magazines keep their segment from being vacant; a segment in which nothing else is left is
 * not in use, though. */
static uint64_t unused_bytes(struct ms_heap *heap)
{
    uint64_t unused = 0;
    for (struct ms_segment *segment = heap->extents.segments; segment; segment = segment->next) {
        bool used = false;
        if (segment->backing) {
            unused += ms_backing_unused_bytes(heap);
            continue;
        }
        for (struct ms_extent *extent = segment->first; extent && !used; extent = extent->after) {
            for (uint32_t i = 0; !extent->free && i < ms_extent_slot_count(extent) && !used; i++) {
                enum ms_slot_state state = ms_slot_state(ms_extent_slot(extent, i));
                used = state != MS_SLOT_FREE && state != MS_SLOT_READY;
            }
        }
        unused += used ? 0 : segment->bytes;
    }
    return unused;
}

static void at_most(uint64_t *part, uint64_t *left)
{
    if (*part > *left)
        *part = *left;
    *left -= *part;
}

/* The parts add up to `reserved`: what is left over is stranded. A call that is under way in another thread
 * may hold a block that no counter has, or has put it into two of those that are no lock's; then what is
 * nobody's any more gives way. */
static void fit(struct ms_parts *p, uint64_t reserved)
{
    uint64_t left = reserved;
    at_most(&p->requested, &left);
    at_most(&p->rounding, &left);
    at_most(&p->pinned, &left);
    at_most(&p->pending, &left);
    at_most(&p->cached, &left);
    p->stranded = left;
}

/* `exact` looks at every block; otherwise only what is vacant counts as cached. */
static void parts_of(struct ms_heap *heap, struct ms_parts *p, bool exact)
{
    struct ms_live live = ms_heap_live(heap);
    *p = (struct ms_parts){.requested = live.requested, .rounding = live.granted - live.requested};
    p->pending = ms_tcache_settle(&heap->cache, ms_stop_done(heap)) +
                 atomic_load_explicit(&heap->away_bytes, memory_order_relaxed);
    p->pinned = atomic_load_explicit(&heap->pinned_bytes, memory_order_relaxed);
    p->cached = exact
                    ? unused_bytes(heap)
                    : heap->extents.vacant_bytes + heap->extents.leaving_bytes + ms_backing_free_bytes(heap);
    fit(p, heap->reserved_bytes);
}

/* All locks of the heap held. */
static void figures_of(struct ms_heap *heap, struct ms_pool_figures *f, bool exact)
{
    *f = (struct ms_pool_figures){.reserved_bytes = heap->reserved_bytes,
                                  .peak_reserved_bytes = heap->peak_reserved_bytes};
    f->peak_parts = heap->peak_parts;
    parts_of(heap, &f->parts, exact);
    for (int i = 0; i < MS_TCACHES; i++) {
        const struct ms_tcache *tcache = &heap->cache.tcaches[i];
        f->served_allocs += atomic_load_explicit(&tcache->allocs, memory_order_relaxed);
        f->served_frees += atomic_load_explicit(&tcache->frees, memory_order_relaxed);
        for (int tier = 0; tier < MS_TIER_COUNT; tier++)
            f->hits[tier] += atomic_load_explicit(&tcache->hits[tier], memory_order_relaxed);
    }
#define MS_COUNT(name, told, meaning) f->name = atomic_load_explicit(&heap->name, memory_order_relaxed);
#include "base/store/figures.def"
    f->largest_free_bytes = ms_extent_largest(&heap->extents);
    /* Pages can be put together. */
    uint64_t pages = ms_backing_free_bytes(heap);
    if (pages > f->largest_free_bytes)
        f->largest_free_bytes = pages;
    if (heap->extents.vacant_count &&
        heap->extents.vacant[heap->extents.vacant_count - 1]->bytes > f->largest_free_bytes)
        f->largest_free_bytes = heap->extents.vacant[heap->extents.vacant_count - 1]->bytes;
}

void ms_figures_tell(const struct ms_segment_record *segment, bool added)
{
    if (ms_observer && added && ms_observer->segment_added)
        ms_observer->segment_added(segment);
    if (ms_observer && !added && ms_observer->segment_removed)
        ms_observer->segment_removed(segment);
}

/* Sums over the heaps of a device. Not under ms_figures_lock. */
static void device_figures(int device, struct ms_pool_figures *sum, bool exact)
{
    struct ms_device *d = &ms_devices[device];
    struct ms_heap *heap;
    ms_lock_to_look(&ms_figures_lock);
    *sum = d->gone;
    sum->peak_reserved_bytes = d->peak_reserved_bytes;
    sum->peak_parts = d->peak_parts;
    ms_unlock_after_look(&ms_figures_lock);
    for (uint32_t i = 0; (heap = ms_heap_next(&i)) != NULL;) {
        struct ms_pool_figures f;
        if (heap->device != device)
            continue;
        ms_heap_lock_all(heap);
        figures_of(heap, &f, exact); /* zero if its context died just now */
        ms_heap_unlock_all(heap);
        figures_add(sum, &f);
    }
    ms_external_add_figures(device, sum);
    if (sum->reserved_bytes > sum->peak_reserved_bytes) { /* the growth is still to be told */
        sum->peak_reserved_bytes = sum->reserved_bytes;
        sum->peak_parts = sum->parts;
    }
}

/* The request that this thread has got memory for. */
static MS_TLS struct {
    struct ms_device *device;
    uint64_t requested, granted;
} coming;

/* No counter has the blocks that are on their way, so what they take seems stranded. Under ms_figures_lock.
 * */
static void count_coming(const struct ms_device *d, struct ms_parts *p)
{
    uint64_t granted = d->coming_granted < p->stranded ? d->coming_granted : p->stranded;
    uint64_t requested = d->coming_requested < granted ? d->coming_requested : granted;
    p->stranded -= granted;
    p->requested += requested;
    p->rounding += granted - requested;
}

void ms_figures_changed_on(int device)
{
    struct ms_device *d = &ms_devices[device];
    struct ms_pool_figures sum;
    device_figures(device, &sum, false);
    ms_lock(&ms_figures_lock);
    count_coming(d, &sum.parts);
    if (sum.reserved_bytes > d->peak_reserved_bytes) {
        d->peak_reserved_bytes = sum.peak_reserved_bytes = sum.reserved_bytes;
        d->peak_parts = sum.peak_parts = sum.parts;
    }
    ms_unlock(&ms_figures_lock);
    if (ms_observer && ms_observer->figures)
        ms_observer->figures(device, &sum);
}

uint64_t ms_figures_peak(int device)
{
    ms_lock(&ms_figures_lock);
    uint64_t peak = ms_devices[device].peak_reserved_bytes;
    ms_unlock(&ms_figures_lock);
    return peak;
}

void ms_figures_changed(struct ms_heap *heap)
{
    ms_figures_changed_on(heap->device);
}

void ms_figures_grew(struct ms_heap *heap, const struct ms_request *request)
{
    ms_figures_arrived();
    coming.device = &ms_devices[heap->device];
    coming.requested = request->requested;
    coming.granted = request->granted;
    ms_lock(&ms_figures_lock);
    coming.device->coming_requested += coming.requested;
    coming.device->coming_granted += coming.granted;
    ms_unlock(&ms_figures_lock);
    ms_figures_changed(heap);
}

void ms_figures_arrived(void)
{
    if (MS_LIKELY(!coming.device))
        return;
    ms_lock(&ms_figures_lock);
    coming.device->coming_requested -= coming.requested;
    coming.device->coming_granted -= coming.granted;
    ms_unlock(&ms_figures_lock);
    coming.device = NULL;
}

static void figures_reset(void)
{
    ms_lock_reset(&ms_figures_lock);
    coming.device = NULL;
}
MS_AT_FORK(MS_FORK_POOL, figures_reset);

void ms_figures_of_heap(struct ms_heap *heap, struct ms_pool_figures *figures_p)
{
    ms_heap_lock_all(heap);
    figures_of(heap, figures_p, false);
    ms_heap_unlock_all(heap);
}

void ms_figures_retire(struct ms_heap *heap)
{
    struct ms_pool_figures f;
    figures_of(heap, &f, false);
    f.reserved_bytes = f.largest_free_bytes = 0;
    f.parts = (struct ms_parts){0};
    ms_lock(&ms_figures_lock);
    figures_add(&ms_devices[heap->device].gone, &f);
    ms_unlock(&ms_figures_lock);
}

void ms_pool_figures(int device, struct ms_pool_figures *figures_p)
{
    *figures_p = (struct ms_pool_figures){0};
    if (device >= 0 && device < MS_DEVICES_MAX)
        device_figures(device, figures_p, true);
}

uint64_t ms_pool_charged(int device)
{
    return device >= 0 && device < MS_DEVICES_MAX
               ? atomic_load_explicit(&ms_devices[device].reserved_bytes, memory_order_relaxed)
               : 0;
}

uint64_t ms_pool_changes(int device)
{
    return device >= 0 && device < MS_DEVICES_MAX
               ? atomic_load_explicit(&ms_devices[device].changes, memory_order_seq_cst)
               : 0;
}

bool ms_pool_is_growing(int device)
{
    return device >= 0 && device < MS_DEVICES_MAX &&
           atomic_load_explicit(&ms_devices[device].growing, memory_order_seq_cst) != 0;
}

/* Memory that is free inside a chunk in use serves small requests only, so it does not count. */
uint64_t ms_pool_reclaimable(int device)
{
    uint64_t bytes = 0;
    struct ms_heap *heap;
    for (uint32_t i = 0; (heap = ms_heap_ref(&i, device)) != NULL;) {
        if (ms_fence_pending(heap) && ms_fence_close(heap))
            ms_fence_poll(heap);
        ms_tcache_flush(&heap->cache);
        ms_lock(&heap->lock);
        bytes += heap->extents.vacant_bytes + heap->extents.leaving_bytes + ms_backing_free_bytes(heap);
        ms_unlock(&heap->lock);
        ms_heap_leave(heap);
    }
    return bytes + ms_external_idle_bytes(device);
}
