/* mapped_pages.c - which pages of a range a growth takes, and where it puts them.
 *
 * Heap's lock held throughout; calls nobody. A request that fits nowhere is put where the fewest pages are
 * missing: into a hole, together with what is free on either side of it. The pages that are missing are taken
 * from free extents in which they lie as a whole, small runs first, so that large ones stay for large blocks.
 * Holes are runs without memory; they begin and end with pages, and two of them are never neighbours. */
#include "pool/mapped/mapped.h"

static bool is_hole(const struct ms_extent *extent)
{
    return extent && extent->vacuum == MS_VACUUM_HOLE;
}

static uint64_t run_end(const struct ms_extent *extent)
{
    return ms_extent_address(extent) + ms_extent_bytes(extent);
}

static uint64_t round_down(uint64_t value, uint64_t step)
{
    return value / step * step;
}

bool ms_backing_suits(const struct ms_extent *extent, uint64_t bytes)
{
    const struct ms_backing *b = extent->segment->backing;
    if (b->lax)
        return true;
    if (bytes >= MS_PAGE_BYTES)
        return ms_extent_address(extent) < b->border;
    return ms_extent_address(extent) >= b->border || ms_extent_bytes(extent) < b->page_bytes;
}

/* True if the handle that begins at `at` lies in the extent as a whole, and may be unmapped. */
static bool may_leave(const struct ms_backing *b, const struct ms_extent *extent, uint64_t at)
{
    return at < run_end(extent) && ms_handle_end(b, at) <= run_end(extent) &&
           !ms_backing_page(b, at)->captured;
}

/* The handles that lie in a free extent as a whole and may be unmapped: the first such stretch at or after
 * `from`. Returns its bytes. */
static uint64_t whole_handles(const struct ms_backing *b, const struct ms_extent *extent, uint64_t from,
                              uint64_t *begin_p)
{
    uint64_t at = from > ms_extent_address(extent) ? from : ms_extent_address(extent);
    if (at < run_end(extent) && ms_handle_begin(b, at) != at)
        at = ms_handle_end(b, at);
    while (at < run_end(extent) && !may_leave(b, extent, at))
        at = ms_handle_end(b, at);
    *begin_p = at;
    while (may_leave(b, extent, at))
        at = ms_handle_end(b, at);
    return at - *begin_p;
}

/* Runs of one bin differ by less than a half: if this one is much too short, so are the others. */
static bool may_hold_page(const struct ms_backing *b, const struct ms_extent *extent)
{
    return 2 * ms_extent_bytes(extent) >= b->page_bytes;
}

uint64_t ms_backing_movable_bytes(const struct ms_heap *heap)
{
    const struct ms_backing *b = heap->backing;
    uint64_t sum = 0, begin, bytes;
    if (!b || !b->segment)
        return 0;
    for (uint32_t rows = heap->extents.rows; rows; rows &= rows - 1) {
        uint32_t row = (uint32_t)__builtin_ctz(rows);
        for (uint32_t columns = heap->extents.columns[row]; columns; columns &= columns - 1) {
            const struct ms_extent *extent = heap->extents.bins[row][__builtin_ctz(columns)];
            if (!extent || !may_hold_page(b, extent))
                continue;
            for (; extent; extent = extent->next) {
                for (uint64_t from = 0;
                     extent->segment->backing == b && (bytes = whole_handles(b, extent, from, &begin)) != 0;
                     from = begin + bytes)
                    sum += bytes;
            }
        }
    }
    return sum;
}

uint64_t ms_backing_free_bytes(const struct ms_heap *heap)
{
    const struct ms_backing *b = heap->backing;
    uint64_t sum = ms_backing_movable_bytes(heap),
             most = sum && b->mapped_bytes > b->floor_bytes ? b->mapped_bytes - b->floor_bytes : 0;
    return sum < most ? sum : most;
}

/* --- holes --- */

static void link_hole(struct ms_backing *b, struct ms_extent *hole)
{
    hole->previous = NULL;
    hole->next = b->holes;
    if (b->holes)
        b->holes->previous = hole;
    b->holes = hole;
}

static void unlink_hole(struct ms_backing *b, struct ms_extent *hole)
{
    if (hole->previous)
        hole->previous->next = hole->next;
    else
        b->holes = hole->next;
    if (hole->next)
        hole->next->previous = hole->previous;
    hole->next = hole->previous = NULL;
}

static void swallow(struct ms_extent *hole, struct ms_extent *after)
{
    ms_extent_set(hole, ms_extent_address(hole), ms_extent_bytes(hole) + ms_extent_bytes(after));
    hole->after = after->after;
    if (hole->after)
        hole->after->before = hole;
    after->vacuum = MS_VACUUM_NONE;
    ms_table_drop_run(after);
}

void ms_pages_make_hole(struct ms_backing *b, struct ms_extent *extent)
{
    extent->vacuum = MS_VACUUM_HOLE;
    extent->free = false;
    extent->class_index = MS_NO_CLASS;
    if (is_hole(extent->after)) {
        unlink_hole(b, extent->after);
        swallow(extent, extent->after);
    }
    if (is_hole(extent->before)) {
        extent = extent->before;
        swallow(extent, extent->after);
        return;
    }
    link_hole(b, extent);
}

/* The part of a hole at [begin, begin + bytes), held. NULL without memory for tables, then the hole is as it
 * was, but perhaps in two. */
static struct ms_extent *take_of_hole(struct ms_backing *b, struct ms_extent *hole, uint64_t begin,
                                      uint64_t bytes)
{
    struct ms_extent *part = hole;
    if (begin > ms_extent_address(hole)) {
        part = ms_extent_cut(hole, begin - ms_extent_address(hole));
        if (!part)
            return NULL;
    } else {
        unlink_hole(b, hole);
    }
    if (ms_extent_bytes(part) > bytes) {
        struct ms_extent *rest = ms_extent_cut(part, bytes);
        if (!rest) {
            ms_pages_make_hole(b, part);
            return NULL;
        }
        rest->vacuum = MS_VACUUM_HOLE;
        rest->free = false;
        rest->class_index = MS_NO_CLASS;
        link_hole(b, rest);
    }
    part->vacuum = MS_VACUUM_FILLING;
    part->free = false;
    part->class_index = MS_NO_CLASS;
    return part;
}

/* --- where a block goes --- */

struct place {
    struct ms_extent *hole, *before, *after;
    uint64_t begin, bytes; /* of the hole: these pages are missing */
    uint64_t end;          /* of the block */
};

/* Finds out what it takes to put the block into this hole, on this side of the border. */
static bool weigh(const struct ms_backing *b, struct ms_extent *hole, uint64_t bytes, uint64_t align,
                  struct place *p)
{
    uint64_t low = ms_extent_address(hole), high = run_end(hole);
    bool small = bytes < MS_PAGE_BYTES, cut = small ? low < b->border : high > b->border;
    if (small && low < b->border)
        low = b->border;
    if (!small && high > b->border)
        high = b->border;
    if (low >= high)
        return false;
    *p = (struct place){.hole = hole};
    if (hole->before && hole->before->free && !(small && cut))
        p->before = hole->before;
    uint64_t start = ms_round_up(p->before ? ms_extent_address(p->before) : low, align), end = start + bytes;
    if (start >= low)
        p->before = NULL;
    p->begin = start > low ? round_down(start, b->page_bytes) : low;
    uint64_t needed = ms_round_up(end, b->page_bytes);
    if (needed > high) {
        p->after = !(cut && !small) && hole->after && hole->after->free ? hole->after : NULL;
        if (!p->after || end > run_end(p->after))
            return false;
        needed = high;
    }
    if (needed <= p->begin)
        return false;
    p->bytes = needed - p->begin;
    p->end = end;
    return true;
}

static bool mapped_pages_find_place(const struct ms_backing *b, uint64_t bytes, uint64_t align,
                                    struct place *best)
{
    struct place p;
    for (struct ms_extent *hole = b->holes; hole; hole = hole->next) {
        if (weigh(b, hole, bytes, align, &p) &&
            (!best->hole || p.bytes < best->bytes || (p.bytes == best->bytes && p.begin < best->begin)))
            *best = p;
    }
    return best->hole != NULL;
}

static struct ms_extent *mapped_pages_hold(struct ms_heap *heap, struct ms_extent *extent, uint64_t begin,
                                           uint64_t bytes)
{
    struct ms_extent *part = ms_extent_hold(&heap->extents, extent, begin, bytes);
    if (!part)
        return NULL;
    if (ms_extent_bytes(part) != bytes) { /* no memory for what is behind it */
        ms_extent_merge(&heap->extents, part);
        return NULL;
    }
    part->vacuum = MS_VACUUM_HELD;
    part->class_index = MS_NO_CLASS;
    return part;
}

static void mapped_pages_let_go(struct ms_heap *heap, struct ms_extent *extent)
{
    if (!extent)
        return;
    extent->vacuum = MS_VACUUM_NONE;
    ms_extent_merge(&heap->extents, extent);
}

bool ms_backing_has_plenty(const struct ms_heap *heap, uint64_t bytes)
{
    return ms_heap_left(heap) >= bytes + (heap->backing->mapped_bytes + bytes) / MS_MAPPED_LEFT_SHARE;
}

/* How many pages a handle may have for `bytes` more. One that is long moves, and goes back, only as a whole:
 * what that may keep from others is a share of all, and nothing near the end of the device's memory. */
static uint32_t handle_pages(const struct ms_heap *heap, uint64_t bytes)
{
    const struct ms_backing *b = heap->backing;
    uint64_t most = (b->mapped_bytes + bytes) / MS_HANDLE_SHARE / b->page_bytes;
    return most > 1 && ms_backing_has_plenty(heap, bytes) ? (uint32_t)ms_least(most, UINT32_MAX) : 1;
}

bool ms_pages_plan(struct ms_heap *heap, uint64_t bytes, uint64_t align, struct ms_growth *growth)
{
    struct ms_backing *b = heap->backing;
    struct place p = {0};
    if (!mapped_pages_find_place(b, bytes, align, &p))
        return false;
    *growth = (struct ms_growth){.region = take_of_hole(b, p.hole, p.begin, p.bytes),
                                 .handle_pages = handle_pages(heap, p.bytes)};
    if (!growth->region)
        return false;
    if (p.before)
        growth->before =
            mapped_pages_hold(heap, p.before, ms_extent_address(p.before), ms_extent_bytes(p.before));
    if (p.after) /* what is behind the block may be moved in front of it */
        growth->after =
            mapped_pages_hold(heap, p.after, ms_extent_address(p.after), p.end - ms_extent_address(p.after));
    if (ms_page_set(p.begin, p.bytes, b->segment))
        return true;
    ms_pages_settle(heap, growth, false);
    return false;
}

/* --- pages in which nothing lies --- */

/* Of the handles in [*begin_p, *begin_p + bytes) those that lie beside each other and are `most` bytes, or
 * come closest to that from below; the last such ones. Returns their bytes. */
static uint64_t closest(const struct ms_backing *b, uint64_t *begin_p, uint64_t bytes, uint64_t most)
{
    uint64_t end = *begin_p + bytes, low = *begin_p, best = 0;
    for (uint64_t at = low; at < end;) {
        at = ms_handle_end(b, at);
        while (at - low > most)
            low = ms_handle_end(b, low);
        if (at - low >= best && at > low) {
            best = at - low;
            *begin_p = low;
        }
    }
    return best;
}

static bool add_source(struct ms_heap *heap, struct ms_growth *growth, struct ms_extent *extent,
                       uint64_t begin, uint64_t bytes)
{
    struct ms_extent *part =
        growth->source_count < MS_SOURCES ? mapped_pages_hold(heap, extent, begin, bytes) : NULL;
    if (!part)
        return false;
    ms_page_clear(begin, bytes, heap->backing->segment);
    growth->sources[growth->source_count++] = part;
    growth->moved += bytes / heap->backing->page_bytes;
    return true;
}

/* As many as `growth` has room for out of one extent. Returns whether the extent was cut up. */
static bool collect_from(struct ms_heap *heap, struct ms_growth *growth, struct ms_extent *extent,
                         uint64_t count)
{
    const struct ms_backing *b = heap->backing;
    uint64_t begin, bytes = whole_handles(b, extent, 0, &begin),
                    most = (count - growth->moved) * b->page_bytes;
    if (bytes)
        bytes = closest(b, &begin, bytes, most);
    return bytes && add_source(heap, growth, extent, begin, bytes);
}

static bool collect_from_bin(struct ms_heap *heap, struct ms_growth *growth, struct ms_extent *extent,
                             uint64_t count)
{
    for (; extent; extent = extent->next) {
        if (extent->segment->backing == heap->backing && collect_from(heap, growth, extent, count))
            return true;
    }
    return false;
}

void ms_pages_collect(struct ms_heap *heap, struct ms_growth *growth, uint64_t count)
{
    const struct ms_backing *b = heap->backing;
    for (uint32_t row = 0; row < MS_EXTENT_ROWS; row++) {
        for (uint32_t column = 0; column < MS_EXTENT_COLUMNS && heap->extents.columns[row]; column++) {
            struct ms_extent *const *head = &heap->extents.bins[row][column];
            while (growth->moved < count && *head && may_hold_page(b, *head) &&
                   collect_from_bin(heap, growth, *head, count))
                continue;
        }
    }
}

struct choice {
    struct ms_extent *extent;
    uint64_t begin, bytes;
};

/* The shortest handle of an extent that is `least` bytes or more, if it is shorter than what was chosen. */
static void mapped_pages_choose(const struct ms_backing *b, struct ms_extent *extent, uint64_t least,
                                struct choice *best)
{
    uint64_t begin, bytes;
    for (uint64_t from = 0; (bytes = whole_handles(b, extent, from, &begin)) != 0; from = begin + bytes) {
        for (uint64_t at = begin, next; at < begin + bytes; at = next) {
            next = ms_handle_end(b, at);
            if (next - at >= least && (!best->extent || next - at < best->bytes))
                *best = (struct choice){extent, at, next - at};
        }
    }
}

void ms_pages_collect_one(struct ms_heap *heap, struct ms_growth *growth, uint64_t least, uint64_t most)
{
    const struct ms_backing *b = heap->backing;
    struct choice best = {0};
    for (uint32_t row = 0; row < MS_EXTENT_ROWS; row++) {
        for (uint32_t column = 0; column < MS_EXTENT_COLUMNS && heap->extents.columns[row]; column++) {
            for (struct ms_extent *extent = heap->extents.bins[row][column]; extent; extent = extent->next) {
                if (extent->segment->backing == b && ms_extent_bytes(extent) >= least * b->page_bytes)
                    mapped_pages_choose(b, extent, least * b->page_bytes, &best);
            }
        }
    }
    if (best.extent && best.bytes <= most * b->page_bytes)
        add_source(heap, growth, best.extent, best.begin, best.bytes);
}

static void mapped_pages_mark(struct ms_backing *b, const struct ms_extent *extent, bool mapped)
{
    for (uint64_t at = ms_extent_address(extent); at < run_end(extent); at += b->page_bytes) {
        struct ms_backing_page *page = ms_backing_page(b, at);
        page->mapped = mapped;
        page->captured = false;
    }
    uint64_t *top = ms_extent_address(extent) < b->border ? &b->top : &b->high;
    if (mapped && run_end(extent) > *top)
        *top = run_end(extent);
}

/* The first `gone` pages of a source are unmapped; the others are as they were. */
static void settle_source(struct ms_heap *heap, struct ms_extent *extent, uint64_t gone)
{
    struct ms_backing *b = heap->backing;
    uint64_t bytes = gone * b->page_bytes;
    struct ms_extent *rest = !gone                             ? extent
                             : bytes < ms_extent_bytes(extent) ? ms_extent_cut(extent, bytes)
                                                               : NULL;
    if (gone) {
        if (!rest && bytes < ms_extent_bytes(extent))
            return; /* no memory for tables: held for ever */
        mapped_pages_mark(b, extent, false);
        ms_pages_make_hole(b, extent);
    }
    if (!rest)
        return;
    rest->class_index = MS_NO_CLASS;
    ms_page_set(ms_extent_address(rest), ms_extent_bytes(rest), b->segment);
    mapped_pages_let_go(heap, rest);
}

void ms_pages_settle(struct ms_heap *heap, struct ms_growth *growth, bool filled)
{
    struct ms_backing *b = heap->backing;
    uint64_t gone = growth->emptied;
    for (uint32_t i = 0; i < growth->source_count; i++) {
        uint64_t pages = ms_extent_bytes(growth->sources[i]) / b->page_bytes,
                 here = gone < pages ? gone : pages;
        settle_source(heap, growth->sources[i], here);
        gone -= here;
    }
    b->moved_pages += filled ? growth->moved : 0;
    b->mapped_bytes += (growth->made - growth->lost) * b->page_bytes;
    heap->reserved_bytes += (growth->made - growth->lost) * b->page_bytes;
    if (heap->peak_reserved_bytes < heap->reserved_bytes)
        heap->peak_reserved_bytes = heap->reserved_bytes;
    mapped_pages_let_go(heap, growth->before);
    mapped_pages_let_go(heap, growth->after);
    if (!growth->region)
        return;
    if (filled) {
        mapped_pages_mark(b, growth->region, true);
        mapped_pages_let_go(heap, growth->region);
        return;
    }
    ms_page_clear(ms_extent_address(growth->region), ms_extent_bytes(growth->region), b->segment);
    ms_pages_make_hole(b, growth->region);
}
