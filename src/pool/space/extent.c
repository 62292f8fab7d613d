/* extent.c - carving chunks: two-level segregated fit, with coalescing at once.
 *
 * Free runs are in bins by size, 32 for each power of two. A search begins in the bin of the very size and
 * looks at a bounded number of extents in it before it goes to the next bin that holds any, so that what fits
 * most closely is found and the end of the search is known. Runs in use are found again through the chunk's
 * units (space/units.h). Heap's lock held, except where it says otherwise. */
#include "pool/space/extents.h"
#include "pool/space/tables.h"
#include "pool/space/units.h"

enum { STEP_BITS = 9, COLUMN_BITS = 5 };

static void bin_of(uint64_t bytes, uint32_t *row_p, uint32_t *column_p)
{
    uint64_t steps = bytes >> STEP_BITS;
    if (steps < MS_EXTENT_COLUMNS) {
        *row_p = 0;
        *column_p = (uint32_t)steps;
        return;
    }
    uint32_t top = 63 - (uint32_t)__builtin_clzll(steps);
    *row_p = top - COLUMN_BITS + 1;
    *column_p = (uint32_t)(steps >> (top - COLUMN_BITS)) & (MS_EXTENT_COLUMNS - 1);
}

static void bin_add(struct ms_extents *extents, struct ms_extent *extent)
{
    uint32_t row, column;
    bin_of(ms_extent_bytes(extent), &row, &column);
    struct ms_extent **head = &extents->bins[row][column];
    extent->free = true;
    extent->previous = NULL;
    extent->next = *head;
    if (*head)
        (*head)->previous = extent;
    *head = extent;
    if (!extent->next) {
        extents->rows |= 1u << row;
        extents->columns[row] |= 1u << column;
    }
    extents->run_free_bytes += ms_extent_bytes(extent);
    extents->run_free_count++;
}

static void bin_remove(struct ms_extents *extents, struct ms_extent *extent)
{
    uint32_t row, column;
    bin_of(ms_extent_bytes(extent), &row, &column);
    struct ms_extent *before = extent->previous, *after = extent->next;
    if (before)
        before->next = after;
    else
        extents->bins[row][column] = after;
    if (after)
        after->previous = before;
    extent->next = extent->previous = NULL;
    extent->free = false;
    if (!before && !after) {
        extents->columns[row] &= ~(1u << column);
        if (!extents->columns[row])
            extents->rows &= ~(1u << row);
    }
    extents->run_free_bytes -= ms_extent_bytes(extent);
    extents->run_free_count--;
}

/* The next bin that holds something, from (row, column) on. */
static bool next_bin(const struct ms_extents *extents, uint32_t *row_p, uint32_t *column_p)
{
    uint32_t columns = *column_p < MS_EXTENT_COLUMNS ? extents->columns[*row_p] & (~0u << *column_p) : 0;
    if (!columns) {
        uint32_t rows = *row_p + 1 < MS_EXTENT_ROWS ? extents->rows & (~0u << (*row_p + 1)) : 0;
        if (!rows)
            return false;
        *row_p = (uint32_t)__builtin_ctz(rows);
        columns = extents->columns[*row_p];
    }
    *column_p = (uint32_t)__builtin_ctz(columns);
    return true;
}

/* `align` is a power of two. */
static uint64_t place_in(const struct ms_extent *extent, uint64_t bytes, uint64_t align)
{
    uint64_t place = (ms_extent_address(extent) + align - 1) & -align;
    return place + bytes <= ms_extent_address(extent) + ms_extent_bytes(extent) ? place : 0;
}

static bool suits(const struct ms_extents *extents, const struct ms_extent *extent, uint64_t bytes,
                  uint64_t align)
{
    return place_in(extent, bytes, align) &&
           (MS_LIKELY(!extent->segment->backing) || extents->rules->suits(extent, bytes));
}

/* The first that has room: those of a bin differ by a thirty-second at most. */
static struct ms_extent *first_of_bin(const struct ms_extents *extents, struct ms_extent *extent,
                                      uint64_t bytes, uint64_t align)
{
    while (extent && !suits(extents, extent, bytes, align))
        extent = extent->next;
    return extent;
}

static struct ms_extent *search(const struct ms_extents *extents, uint64_t bytes, uint64_t align)
{
    uint32_t row, column;
    struct ms_extent *extent = NULL;
    bin_of(bytes, &row, &column);
    for (; !extent && next_bin(extents, &row, &column); column++)
        extent = first_of_bin(extents, extents->bins[row][column], bytes, align);
    return extent;
}

struct ms_extent *ms_extent_cut(struct ms_extent *extent, uint64_t bytes)
{
    struct ms_extent *rest = ms_table_run();
    if (!rest)
        return NULL;
    rest->segment = extent->segment;
    rest->vacuum = MS_VACUUM_NONE;
    ms_extent_set(rest, ms_extent_address(extent) + bytes, ms_extent_bytes(extent) - bytes);
    ms_extent_set(extent, ms_extent_address(extent), bytes);
    rest->before = extent;
    rest->after = extent->after;
    if (extent->after)
        extent->after->before = rest;
    extent->after = rest;
    return rest;
}

/* Blocks that have to be aligned go to the front of a free extent, small blocks to its end, so that the room
 * for large ones stays whole. */
static uint64_t gap_in(const struct ms_extent *extent, uint64_t bytes, uint64_t align)
{
    if (bytes < MS_PAGE_BYTES)
        return ms_extent_bytes(extent) - bytes;
    return place_in(extent, bytes, align) - ms_extent_address(extent);
}

struct ms_extent *ms_extent_hold(struct ms_extents *extents, struct ms_extent *extent, uint64_t begin,
                                 uint64_t bytes)
{
    uint64_t gap = begin - ms_extent_address(extent);
    struct ms_extent *rest;
    bin_remove(extents, extent);
    if (gap) {
        rest = ms_extent_cut(extent, gap);
        bin_add(extents, extent);
        if (!rest)
            return NULL;
        extent = rest;
    }
    if (ms_extent_bytes(extent) > bytes) {
        if ((rest = ms_extent_cut(extent, bytes)) != NULL)
            bin_add(extents, rest);
    }
    extent->free = false;
    return extent;
}

/* For pages what is vacant competes with what is free in chunks; for less it comes after it. */
struct ms_fit ms_extent_fit(struct ms_extents *extents, uint64_t bytes, uint64_t align)
{
    struct ms_extent *extent = search(extents, bytes, align);
    uint64_t run_bytes = extent ? ms_extent_bytes(extent) : 0;
    if (run_bytes == bytes || (extent && bytes < MS_PAGE_BYTES))
        return (struct ms_fit){extent, NULL, run_bytes};
    struct ms_segment *vacant = extents->vacant_count ? ms_vacant_for_run(extents, bytes) : NULL;
    if (vacant && (!extent || vacant->bytes < run_bytes))
        return (struct ms_fit){NULL, vacant, vacant->bytes};
    return (struct ms_fit){extent, NULL, run_bytes};
}

/* A block out of a free extent. */
static struct ms_extent *extent_take_of(struct ms_extents *extents, struct ms_extent *extent, uint64_t begin,
                                        uint64_t bytes)
{
    extent = ms_extent_hold(extents, extent, begin, bytes);
    if (!extent)
        return NULL;
    ms_extent_make_block(extent);
    ms_units_set(extent);
    if (MS_UNLIKELY(extent->segment->backing))
        extents->rules->used(extent);
    return extent;
}

/* A vacant segment is opened first; without memory for that, whatever run fits. */
static struct ms_extent *take_vacant(struct ms_extents *extents, struct ms_segment *vacant, uint64_t bytes,
                                     uint64_t align)
{
    ms_vacant_remove(extents, vacant);
    if (!ms_extent_open(extents, vacant))
        ms_vacant_put(extents, vacant);
    struct ms_extent *extent = search(extents, bytes, align);
    extent = extent ? extent_take_of(extents, extent,
                                     ms_extent_address(extent) + gap_in(extent, bytes, align), bytes)
                    : NULL;
    ms_extent_close(extents, vacant);
    return extent;
}

struct ms_extent *ms_extent_take_fit(struct ms_extents *extents, const struct ms_fit *fit, uint64_t bytes,
                                     uint64_t align)
{
    if (fit->vacant)
        return take_vacant(extents, fit->vacant, bytes, align);
    struct ms_extent *extent = fit->extent;
    return extent ? extent_take_of(extents, extent, ms_extent_address(extent) + gap_in(extent, bytes, align),
                                   bytes)
                  : NULL;
}

struct ms_extent *ms_extent_take(struct ms_extents *extents, uint64_t bytes, uint64_t align)
{
    struct ms_fit fit = ms_extent_fit(extents, bytes, align);
    return ms_extent_take_fit(extents, &fit, bytes, align);
}

struct ms_slot *ms_extent_take_for(struct ms_extents *extents, const struct ms_request *request)
{
    struct ms_extent *extent = ms_extent_take(extents, request->granted, request->align);
    return extent ? &extent->only : NULL;
}

struct ms_extent *ms_extent_take_within(struct ms_extents *extents, struct ms_segment *segment,
                                        uint64_t begin, uint64_t end, uint64_t bytes)
{
    for (struct ms_extent *extent = segment->first; extent && ms_extent_address(extent) < end;
         extent = extent->after) {
        uint64_t from = ms_extent_address(extent), to = from + ms_extent_bytes(extent);
        from = from > begin ? from : begin;
        to = to < end ? to : end;
        if (extent->free && from < to && to - from >= bytes)
            return extent_take_of(extents, extent, from, bytes);
    }
    return NULL;
}

static void swallow(struct ms_extent *extent, struct ms_extent *after)
{
    ms_extent_set(extent, ms_extent_address(extent), ms_extent_bytes(extent) + ms_extent_bytes(after));
    extent->after = after->after;
    if (extent->after)
        extent->after->before = extent;
    ms_table_drop_run(after);
}

void ms_extent_fetch(const struct ms_slot *slot)
{
    __builtin_prefetch(slot, 1);
    __builtin_prefetch((const char *)slot + _Alignof(struct ms_extent), 1); /* and its run's neighbours */
}

void ms_extent_fetch_neighbours(const struct ms_extent *extent)
{
    const struct ms_segment *segment = extent->segment;
    ms_unit *units = atomic_load_explicit(&segment->units, memory_order_relaxed);
    if (extent->class_index != MS_NO_CLASS || !units)
        return;
    __builtin_prefetch(&units[(ms_extent_address(extent) - segment->address) / MS_UNIT_BYTES], 1);
    __builtin_prefetch(extent->before, 1);
    __builtin_prefetch(extent->after, 1);
}

void ms_extent_put(struct ms_extents *extents, struct ms_extent *extent)
{
    ms_units_clear(extent);
    ms_extent_merge(extents, extent);
}

void ms_extent_merge(struct ms_extents *extents, struct ms_extent *extent)
{
    struct ms_segment *segment = extent->segment;
    if (extent->after && extent->after->free) {
        bin_remove(extents, extent->after);
        swallow(extent, extent->after);
    }
    if (extent->before && extent->before->free) {
        struct ms_extent *before = extent->before;
        bin_remove(extents, before);
        swallow(before, extent);
        extent = before;
    }
    if (ms_extent_bytes(extent) < segment->bytes) {
        bin_add(extents, extent);
        return;
    }
    segment->first = NULL;
    ms_table_drop_run(extent);
    void *units = (void *)atomic_load_explicit(&segment->units, memory_order_relaxed);
    atomic_store_explicit(&segment->units, NULL, memory_order_release);
    ms_table_drop_array(MS_ARRAY_UNITS, units, segment->unit_order);
    extents->chunk_bytes -= segment->bytes;
    ms_vacant_put(extents, segment);
}

void ms_extent_forget(struct ms_extent *extent)
{
    uint32_t count = 0;
    struct ms_slot *slots = ms_span_slots(extent, &count);
    bool used = !extent->free && extent->vacuum == MS_VACUUM_NONE;
    if (used && atomic_load_explicit(&extent->segment->units, memory_order_relaxed))
        ms_units_clear(extent);
    extent->vacuum = MS_VACUUM_NONE;
    for (uint32_t i = 0; i < count; i++)
        ms_slot_set(&slots[i], MS_SLOT_FREE);
    ms_span_set_slots(extent, NULL, 0);
    ms_table_drop_array(MS_ARRAY_SLOTS, slots, extent->span.order);
    ms_table_drop_run(extent);
}

bool ms_extent_open(struct ms_extents *extents, struct ms_segment *segment)
{
    struct ms_extent *extent = ms_table_run();
    void *units = ms_table_array(MS_ARRAY_UNITS, segment->bytes / MS_UNIT_BYTES * sizeof(ms_unit),
                                 &segment->unit_order);
    if (!extent || !units) {
        if (extent)
            ms_table_drop_run(extent);
        ms_table_drop_array(MS_ARRAY_UNITS, units, segment->unit_order);
        return false;
    }
    atomic_store_explicit(&segment->units, units, memory_order_release);
    segment->first = extent;
    extent->segment = segment;
    ms_extent_set(extent, segment->address, segment->bytes);
    extents->chunk_bytes += segment->bytes;
    bin_add(extents, extent);
    atomic_store_explicit(&segment->use, MS_SEGMENT_CHUNK, memory_order_release);
    return true;
}

void ms_extent_close(struct ms_extents *extents, struct ms_segment *segment)
{
    struct ms_extent *extent = segment->first;
    if (atomic_load_explicit(&segment->use, memory_order_relaxed) != MS_SEGMENT_CHUNK || !extent->free ||
        ms_extent_bytes(extent) < segment->bytes)
        return;
    bin_remove(extents, extent);
    ms_extent_merge(extents, extent);
}

uint64_t ms_extent_largest(const struct ms_extents *extents)
{
    if (!extents->rows)
        return 0;
    uint32_t row = 31 - (uint32_t)__builtin_clz(extents->rows);
    uint32_t column = 31 - (uint32_t)__builtin_clz(extents->columns[row]);
    uint64_t largest = 0;
    for (const struct ms_extent *extent = extents->bins[row][column]; extent; extent = extent->next)
        largest = ms_extent_bytes(extent) > largest ? ms_extent_bytes(extent) : largest;
    return largest;
}

static bool holds(const struct ms_extent *extent, uint64_t address)
{
    return address - ms_extent_address(extent) < ms_extent_bytes(extent);
}

struct ms_extent *ms_extent_at(const struct ms_segment *segment, uint64_t address)
{
    uint64_t unit = 0;
    ms_unit *units = ms_segment_units(segment, address, &unit);
    struct ms_extent *extent = units ? ms_units_last(units, unit) : NULL;
    if (extent && unit && ms_extent_address(extent) > address)
        extent = ms_units_last(units, unit - 1);
    return extent && holds(extent, address) ? extent : NULL;
}
