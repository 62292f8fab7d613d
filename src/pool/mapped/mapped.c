/* mapped.c - a heap's memory as handles in a range of addresses: see mapped.h.
 *
 * Growth: under the heap's lock it is planned where the block goes and which pages are moved there, and all
 * of that is held; without a lock the vendor is called; under the lock again what is held becomes what it is
 * now. Pages are moved, and given back, only while the context is quiet: the vendor's unmap may wait for the
 * device. Where the vendor cannot map, the fallback chain asks it for an allocation instead, and the report
 * says so once.
 *
 * The observer sees one segment for each stretch of mapped pages. What was told is kept, and compared with
 * what is there: one difference at a time is told, without a lock, by whichever thread came first; others
 * leave word that there may be more. */
#include <string.h>

#include "base/arena.h"
#include "pool/mapped/mapped.h"
#include "pool/stream/driver_frees.h"
#include "pool/space/units.h"

void ms_backing_want(struct ms_heap *heap)
{
    bool wanted = ms_policy->vmm && ms_backing_record(heap);
    atomic_store_explicit(&heap->backing_state, wanted ? MS_BACKING_WANTED : MS_BACKING_OFF,
                          memory_order_release);
}

struct ms_backing *ms_backing_record(struct ms_heap *heap)
{
    if (!heap->backing)
        heap->backing = ms_arena_alloc(sizeof(*heap->backing));
    return heap->backing;
}

static void mapped_say(struct ms_heap *heap, const char *line)
{
    bool said = __atomic_exchange_n(&heap->backing->failed, true, __ATOMIC_RELAXED);
    if (!said)
        ms_pool_note(line);
}

/* --- the range --- */

/* Arrays for the range: those of a life before where they are long enough. Heap's lock held. */
static bool mapped_make_room(struct ms_backing *b, const struct ms_backing *made)
{
    if (b->pages && made->bytes <= b->room_bytes && made->page_bytes >= b->room_page_bytes)
        return true;
    b->pages = ms_arena_alloc(made->bytes / made->page_bytes * sizeof(*b->pages));
    uint64_t unit_bytes = made->bytes / MS_UNIT_BYTES * sizeof(ms_unit), front = ms_units_front(unit_bytes);
    char *units = ms_arena_alloc(front + unit_bytes);
    b->units = units ? (ms_unit *)(units + front) : NULL;
    b->room_bytes = b->pages && b->units ? made->bytes : 0;
    b->room_page_bytes = made->page_bytes;
    return b->room_bytes != 0;
}

/* Heap's lock held: the range becomes a chunk that is one hole. */
static bool install(struct ms_heap *heap, const struct ms_backing *made)
{
    struct ms_backing *b = heap->backing;
    struct ms_segment *segment = ms_table_segment();
    struct ms_extent *extent = segment ? ms_table_run() : NULL;
    if (!extent || !mapped_make_room(b, made)) {
        if (extent)
            ms_table_drop_run(extent);
        if (segment)
            ms_table_drop_segment(segment);
        return false;
    }
    b->address = made->address;
    b->bytes = made->bytes;
    b->page_bytes = made->page_bytes;
    b->border = made->border;
    b->top = made->top;
    b->high = made->high;
    b->rdma = made->rdma;
    b->segment = segment;
    ms_segment_place(segment, heap, made->address, made->bytes);
    segment->backing = b;
    segment->first = extent;
    atomic_store_explicit(&segment->units, b->units, memory_order_release);
    extent->segment = segment;
    ms_extent_set(extent, made->address, made->bytes);
    ms_pages_make_hole(b, extent);
    segment->next = heap->extents.segments;
    if (heap->extents.segments)
        heap->extents.segments->previous = segment;
    heap->extents.segments = segment;
    atomic_store_explicit(&segment->use, MS_SEGMENT_CHUNK, memory_order_release);
    return true;
}

/* No lock held. Whether there is a range. */
static bool open_range(struct ms_heap *heap)
{
    struct ms_backing made;
    uint32_t state = atomic_load_explicit(&heap->backing_state, memory_order_acquire);
    if (state != MS_BACKING_WANTED)
        return state == MS_BACKING_ON;
    bool there = ms_map_open(heap, &made), installed = false;
    ms_lock(&heap->lock);
    state = atomic_load_explicit(&heap->backing_state, memory_order_relaxed);
    if (state == MS_BACKING_WANTED) {
        installed = there && install(heap, &made);
        state = installed ? MS_BACKING_ON : MS_BACKING_OFF;
        atomic_store_explicit(&heap->backing_state, state, memory_order_release);
    }
    ms_unlock(&heap->lock);
    if (there && !installed)
        ms_map_close(heap, &made); /* another thread was first, or there is no memory for tables */
    if (state == MS_BACKING_OFF)
        mapped_say(
            heap, "pool: the driver cannot map memory by handle here; MEMSHIM_BACKING=vmm goes on as malloc");
    return state == MS_BACKING_ON;
}

/* --- what the observer sees --- */

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

static bool told_make_room(struct ms_backing *b)
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
static bool told_is_there(const struct ms_backing *b, const struct ms_byte_range *told)
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
    return range.bytes && !was_told(b, &range) && told_make_room(b);
}

/* The next thing to tell; what is gone comes first. Heap's lock held. */
static bool next_change(struct ms_backing *b, struct ms_byte_range *extent_p, bool *added_p)
{
    for (uint32_t i = 0; i < b->told_count; i++) {
        if (!told_is_there(b, &b->told[i])) {
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

/* Tells the observer what has changed since it was told last. No lock held. */
static void backing_notify(struct ms_heap *heap)
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
            const struct ms_segment_record told = {.address = range.address,
                                                   .bytes = range.bytes,
                                                   .context = heap->context,
                                                   .device = (int16_t)heap->device,
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

/* --- growth --- */

/* Heap's lock held. */
static struct ms_slot *mapped_take(struct ms_heap *heap, const struct ms_request *request, bool lax)
{
    struct ms_slot *slot = NULL;
    heap->backing->lax = lax;
    if (request->class_index < MS_CLASSES)
        ms_slab_take(&heap->extents, request->class_index, &slot, 1);
    else
        slot = ms_extent_take_for(&heap->extents, request);
    heap->backing->lax = false;
    return slot;
}

static uint64_t run_bytes_of(const struct ms_request *request)
{
    return request->class_index < MS_CLASSES ? 2 * MS_UNIT_BYTES
                                             : request->granted; /* a span of the fewest slots */
}

/* Access was given to another device while the region was not yet known. Heap's lock held, and let go
 * meanwhile. */
static void catch_up(struct ms_heap *heap, uint64_t address, uint64_t bytes, uint32_t version)
{
    int status;
    while (version != heap->backing->peers_version) {
        version = heap->backing->peers_version;
        ms_unlock(&heap->lock);
        ms_map_access(heap, address, bytes, &status);
        ms_lock(&heap->lock);
    }
}

/* Moving is not to be a habit: where each page was moved many times, a program whose blocks lie otherwise in
 * every round gets some memory more, while the device has plenty. Heap's lock held. */
static bool makes_instead(struct ms_heap *heap, uint64_t bytes)
{
    struct ms_backing *b = heap->backing;
    if (b->moved_pages * b->page_bytes < MS_MAPPED_MOVES * b->mapped_bytes ||
        b->mapped_bytes > ms_heap_live(heap).granted + MS_MAPPED_BYTES || !ms_backing_has_plenty(heap, bytes))
        return false;
    b->moved_pages /= 2;
    return true;
}

/* Plans, calls the vendor and settles. Heap's lock held, and let go meanwhile. False if nothing grew, with
 * the vendor's status. */
static bool mapped_grow(struct ms_heap *heap, uint64_t bytes, uint64_t align, bool quiet, int *status_p)
{
    struct ms_growth growth;
    *status_p = CUDA_ERROR_NOT_SUPPORTED;
    if (!ms_pages_plan(heap, bytes, align, &growth))
        return false;
    uint64_t address = ms_extent_address(growth.region), region_bytes = ms_extent_bytes(growth.region);
    uint32_t version = heap->backing->peers_version,
             life = atomic_load_explicit(&heap->life, memory_order_relaxed);
    if (quiet && !makes_instead(heap, region_bytes))
        ms_pages_collect(heap, &growth, region_bytes / heap->backing->page_bytes);
    ms_unlock(&heap->lock);
    ms_device_grows(heap->device, true);
    bool filled = ms_map_fill(heap, &growth, status_p);
    if (filled && growth.made)
        atomic_fetch_add_explicit(&heap->misses, 1, memory_order_relaxed);
    ms_lock(&heap->lock);
    if (life != atomic_load_explicit(&heap->life, memory_order_relaxed)) {
        ms_device_grows(heap->device, false);
        return false; /* the context has ended under the caller's feet, and all its memory */
    }
    if (filled)
        catch_up(heap, address, region_bytes, version);
    ms_pages_settle(heap, &growth, filled);
    ms_device_grows(heap->device, false);
    return filled;
}

struct ms_slot *ms_backing_alloc(struct ms_heap *heap, const struct ms_request *request, int *status_p)
{
    *status_p = CUDA_ERROR_NOT_SUPPORTED;
    if (request->single || !open_range(heap))
        return NULL;
    ms_lock(&heap->lock);
    bool movable = ms_backing_movable_bytes(heap) > 0;
    ms_unlock(&heap->lock);
    bool quiet = movable && ms_fence_quiet(heap);
    ms_lock(&heap->lock);
    /* Memory that would be moved, were the device idle, is used where it lies. */
    struct ms_slot *slot = mapped_take(heap, request, movable && !quiet);
    if (slot) {
        ms_unlock(&heap->lock);
        return slot;
    }
    bool grown = mapped_grow(heap, run_bytes_of(request), request->align, quiet, status_p);
    slot = mapped_take(heap, request, !grown);
    ms_unlock(&heap->lock);
    backing_notify(heap);
    if (slot)
        ms_figures_grew(heap, request);
    else
        ms_figures_changed(heap);
    if (!slot && grown)
        *status_p = CUDA_ERROR_OUT_OF_MEMORY; /* others were faster; the fallback chain comes again */
    if (!slot && *status_p != CUDA_ERROR_OUT_OF_MEMORY)
        mapped_say(heap,
                   "pool: the driver failed to map memory by handle; it was asked for an allocation instead");
    return slot;
}

bool ms_backing_prealloc(struct ms_heap *heap, uint64_t bytes)
{
    int status;
    if (!open_range(heap))
        return false;
    ms_lock(&heap->lock);
    bool grown = mapped_grow(heap, bytes, heap->backing->page_bytes, false, &status);
    if (grown)
        heap->backing->floor_bytes = heap->backing->mapped_bytes;
    ms_unlock(&heap->lock);
    backing_notify(heap);
    ms_figures_changed(heap);
    return grown;
}

uint64_t ms_backing_give_back(struct ms_heap *heap, uint64_t bytes)
{
    uint64_t given = 0, before;
    if (atomic_load_explicit(&heap->backing_state, memory_order_acquire) != MS_BACKING_ON)
        return 0;
    do {
        struct ms_growth growth = {0};
        before = given;
        ms_lock(&heap->lock);
        uint64_t most = ms_backing_free_bytes(heap), page_bytes = heap->backing->page_bytes;
        uint64_t pages = most / page_bytes, short_of = ms_least(bytes - given, most),
                 wanted = ms_least(ms_round_up(short_of, page_bytes) / page_bytes, pages);
        ms_pages_collect(heap, &growth, wanted);
        if (growth.moved < wanted)
            ms_pages_collect_one(heap, &growth, wanted - growth.moved, pages - growth.moved);
        if (growth.source_count)
            ms_driver_frees_begin(heap->device);
        ms_unlock(&heap->lock);
        if (!growth.source_count)
            break;
        ms_device_grows(heap->device, true);
        ms_map_empty(heap, &growth);
        ms_lock(&heap->lock);
        ms_pages_settle(heap, &growth, false);
        ms_unlock(&heap->lock);
        ms_device_grows(heap->device, false);
        ms_driver_frees_end(heap->device);
        given += growth.emptied * page_bytes;
    } while (given < bytes && given != before);
    if (given)
        backing_notify(heap);
    return given;
}

/* --- what is said of pages --- */

static bool in_use(struct ms_extent *extent, uint64_t begin, uint64_t end)
{
    for (uint32_t i = 0; i < ms_extent_slot_count(extent); i++) {
        enum ms_slot_state state = ms_slot_state(ms_extent_slot(extent, i));
        uint64_t at = ms_extent_address(extent) + i * extent->slot_bytes;
        if (state != MS_SLOT_FREE && state != MS_SLOT_READY && at < end && at + extent->slot_bytes > begin)
            return true;
    }
    return false;
}

uint64_t ms_backing_unused_bytes(const struct ms_heap *heap)
{
    const struct ms_backing *b = heap->backing;
    uint64_t used = 0, counted = 0; /* up to this address everything is counted */
    if (!b || !b->segment)
        return 0;
    for (struct ms_extent *extent = b->segment->first; extent; extent = extent->after) {
        uint64_t begin = ms_extent_address(extent), end = begin + ms_extent_bytes(extent);
        if (extent->free || extent->vacuum != MS_VACUUM_NONE)
            continue;
        for (uint64_t at = ms_handle_begin(b, begin), next; at < end; at = next) {
            next = ms_handle_end(b, at);
            if (at >= counted && in_use(extent, at, next)) {
                used += next - at;
                counted = next;
            }
        }
    }
    return b->mapped_bytes - used;
}

void ms_backing_capture_run(const struct ms_extent *extent)
{
    struct ms_backing *b = extent->segment->backing;
    uint64_t end = ms_extent_address(extent) + ms_extent_bytes(extent);
    for (uint64_t at = ms_handle_begin(b, ms_extent_address(extent)); at < end; at = ms_handle_end(b, at))
        ms_backing_page(b, at)->captured = true;
}

void ms_backing_captured(struct ms_heap *heap, bool captured)
{
    struct ms_backing *b = heap->backing;
    if (!b || !b->segment)
        return;
    for (const struct ms_extent *extent = b->segment->first; extent; extent = extent->after) {
        if (captured && !extent->free && extent->vacuum == MS_VACUUM_NONE)
            ms_backing_capture_run(extent);
    }
    const uint64_t parts[2][2] = {{b->address, b->top}, {b->border, b->high}};
    for (int i = 0; !captured && i < 2; i++) {
        for (uint64_t at = parts[i][0]; at < parts[i][1]; at += b->page_bytes)
            ms_backing_page(b, at)->captured = false;
    }
}

/* --- the end of a context --- */

void ms_backing_detach(struct ms_heap *heap)
{
    struct ms_backing *b = heap->backing;
    struct ms_segment *segment = b ? b->segment : NULL;
    if (!segment)
        return;
    ms_page_clear(b->address, b->top - b->address, segment);
    ms_page_clear(b->border, b->high - b->border, segment);
    ms_pins_forget(b->address, b->bytes);
    for (struct ms_extent *extent = segment->first, *after; extent; extent = after) {
        after = extent->after;
        ms_extent_forget(extent);
    }
    if (segment->previous)
        segment->previous->next = segment->next;
    else
        heap->extents.segments = segment->next;
    if (segment->next)
        segment->next->previous = segment->previous;
    segment->first = NULL;
    segment->backing = NULL;
    atomic_store_explicit(&segment->units, NULL, memory_order_release);
    ms_table_drop_segment(segment);
    b->segment = NULL;
    b->holes = NULL;
}

void ms_backing_retire(struct ms_heap *heap)
{
    struct ms_backing *b = heap->backing;
    bool on = atomic_load_explicit(&heap->backing_state, memory_order_acquire) == MS_BACKING_ON;
    if (b && on) {
        ms_map_retire(heap);
        backing_notify(heap);
    }
    if (b) {
        memset(b->peers, 0, sizeof(b->peers));
        b->mapped_bytes = b->floor_bytes = b->moved_pages = 0;
        b->failed = false;
    }
    atomic_store_explicit(&heap->backing_state, MS_BACKING_OFF, memory_order_release);
}
