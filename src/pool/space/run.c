/* run.c - carving chunks: two-level segregated fit, with coalescing at once.
 *
 * Free runs are in bins by size, 32 for each power of two. A search begins in the bin of the very size and
 * looks at a bounded number of runs in it before it goes to the next bin that holds any, so that what fits
 * most closely is found and the end of the search is known. Runs in use are found again through the chunk's
 * units (space/units.h). Heap's lock held, except where it says otherwise. */
#include "config.h"

#include "pool/space/extents.h"
#include "pool/space/tables.h"
#include "pool/space/units.h"

enum { STEP_BITS = 9, COLUMN_BITS = 5 };

static void bin_of(uint64_t bytes, uint32_t *row_p, uint32_t *column_p)
{
    uint64_t steps = bytes >> STEP_BITS;
    if (steps < MS_RUN_COLUMNS) {
        *row_p = 0;
        *column_p = (uint32_t)steps;
        return;
    }
    uint32_t top = 63 - (uint32_t)__builtin_clzll(steps);
    *row_p = top - COLUMN_BITS + 1;
    *column_p = (uint32_t)(steps >> (top - COLUMN_BITS)) & (MS_RUN_COLUMNS - 1);
}

static void bin_add(struct ms_extents *extents, struct ms_run *run)
{
    uint32_t row, column;
    bin_of(ms_run_bytes(run), &row, &column);
    struct ms_run **head = &extents->bins[row][column];
    run->free = true;
    run->previous = NULL;
    run->next = *head;
    if (*head)
        (*head)->previous = run;
    *head = run;
    if (!run->next) {
        extents->rows |= 1u << row;
        extents->columns[row] |= 1u << column;
    }
    extents->run_free_bytes += ms_run_bytes(run);
    extents->run_free_count++;
}

static void bin_remove(struct ms_extents *extents, struct ms_run *run)
{
    uint32_t row, column;
    bin_of(ms_run_bytes(run), &row, &column);
    struct ms_run *before = run->previous, *after = run->next;
    if (before)
        before->next = after;
    else
        extents->bins[row][column] = after;
    if (after)
        after->previous = before;
    run->next = run->previous = NULL;
    run->free = false;
    if (!before && !after) {
        extents->columns[row] &= ~(1u << column);
        if (!extents->columns[row])
            extents->rows &= ~(1u << row);
    }
    extents->run_free_bytes -= ms_run_bytes(run);
    extents->run_free_count--;
}

/* The next bin that holds something, from (row, column) on. */
static bool next_bin(const struct ms_extents *extents, uint32_t *row_p, uint32_t *column_p)
{
    uint32_t columns = *column_p < MS_RUN_COLUMNS ? extents->columns[*row_p] & (~0u << *column_p) : 0;
    if (!columns) {
        uint32_t rows = *row_p + 1 < MS_RUN_ROWS ? extents->rows & (~0u << (*row_p + 1)) : 0;
        if (!rows)
            return false;
        *row_p = (uint32_t)__builtin_ctz(rows);
        columns = extents->columns[*row_p];
    }
    *column_p = (uint32_t)__builtin_ctz(columns);
    return true;
}

/* `align` is a power of two. */
static uint64_t place_in(const struct ms_run *run, uint64_t bytes, uint64_t align)
{
    uint64_t place = (ms_run_address(run) + align - 1) & -align;
    return place + bytes <= ms_run_address(run) + ms_run_bytes(run) ? place : 0;
}

static bool suits(const struct ms_extents *extents, const struct ms_run *run, uint64_t bytes, uint64_t align)
{
    return place_in(run, bytes, align) &&
           (MS_LIKELY(!run->segment->backing) || extents->rules->suits(run, bytes));
}

/* The first that has room: those of a bin differ by a thirty-second at most. */
static struct ms_run *first_of_bin(const struct ms_extents *extents, struct ms_run *run, uint64_t bytes,
                                   uint64_t align)
{
    while (run && !suits(extents, run, bytes, align))
        run = run->next;
    return run;
}

static struct ms_run *search(const struct ms_extents *extents, uint64_t bytes, uint64_t align)
{
    uint32_t row, column;
    struct ms_run *run = NULL;
    bin_of(bytes, &row, &column);
    for (; !run && next_bin(extents, &row, &column); column++)
        run = first_of_bin(extents, extents->bins[row][column], bytes, align);
    return run;
}

struct ms_run *ms_run_cut(struct ms_run *run, uint64_t bytes)
{
    struct ms_run *rest = ms_table_run();
    if (!rest)
        return NULL;
    rest->segment = run->segment;
    rest->vacuum = MS_VACUUM_NONE;
    ms_run_set(rest, ms_run_address(run) + bytes, ms_run_bytes(run) - bytes);
    ms_run_set(run, ms_run_address(run), bytes);
    rest->before = run;
    rest->after = run->after;
    if (run->after)
        run->after->before = rest;
    run->after = rest;
    return rest;
}

/* What has to be aligned goes to the front of a free run, small blocks to its end, so that the room for large
 * ones stays whole. */
static uint64_t gap_in(const struct ms_run *run, uint64_t bytes, uint64_t align)
{
    if (bytes < MS_PAGE_BYTES)
        return ms_run_bytes(run) - bytes;
    return place_in(run, bytes, align) - ms_run_address(run);
}

struct ms_run *ms_run_hold(struct ms_extents *extents, struct ms_run *run, uint64_t begin, uint64_t bytes)
{
    uint64_t gap = begin - ms_run_address(run);
    struct ms_run *rest;
    bin_remove(extents, run);
    if (gap) {
        rest = ms_run_cut(run, gap);
        bin_add(extents, run);
        if (!rest)
            return NULL;
        run = rest;
    }
    if (ms_run_bytes(run) > bytes) {
        if ((rest = ms_run_cut(run, bytes)) != NULL)
            bin_add(extents, rest);
    }
    run->free = false;
    return run;
}

/* For pages what is vacant competes with what is free in chunks; for less it comes after it. */
struct ms_fit ms_run_fit(struct ms_extents *extents, uint64_t bytes, uint64_t align)
{
    struct ms_run *run = search(extents, bytes, align);
    uint64_t run_bytes = run ? ms_run_bytes(run) : 0;
    if (run_bytes == bytes || (run && bytes < MS_PAGE_BYTES))
        return (struct ms_fit){run, NULL, run_bytes};
    struct ms_segment *vacant = extents->vacant_count ? ms_vacant_for_run(extents, bytes) : NULL;
    if (vacant && (!run || vacant->bytes < run_bytes))
        return (struct ms_fit){NULL, vacant, vacant->bytes};
    return (struct ms_fit){run, NULL, run_bytes};
}

/* A block out of a free run. */
static struct ms_run *take_of(struct ms_extents *extents, struct ms_run *run, uint64_t begin, uint64_t bytes)
{
    run = ms_run_hold(extents, run, begin, bytes);
    if (!run)
        return NULL;
    ms_run_make_block(run);
    ms_units_set(run);
    if (MS_UNLIKELY(run->segment->backing))
        extents->rules->used(run);
    return run;
}

/* A vacant segment is opened first; without memory for that, whatever run fits. */
static struct ms_run *take_vacant(struct ms_extents *extents, struct ms_segment *vacant, uint64_t bytes,
                                  uint64_t align)
{
    ms_vacant_remove(extents, vacant);
    if (!ms_run_open(extents, vacant))
        ms_vacant_put(extents, vacant);
    struct ms_run *run = search(extents, bytes, align);
    run = run ? take_of(extents, run, ms_run_address(run) + gap_in(run, bytes, align), bytes) : NULL;
    ms_run_close(extents, vacant);
    return run;
}

struct ms_run *ms_run_take_fit(struct ms_extents *extents, const struct ms_fit *fit, uint64_t bytes,
                               uint64_t align)
{
    if (fit->vacant)
        return take_vacant(extents, fit->vacant, bytes, align);
    struct ms_run *run = fit->run;
    return run ? take_of(extents, run, ms_run_address(run) + gap_in(run, bytes, align), bytes) : NULL;
}

struct ms_run *ms_run_take(struct ms_extents *extents, uint64_t bytes, uint64_t align)
{
    struct ms_fit fit = ms_run_fit(extents, bytes, align);
    return ms_run_take_fit(extents, &fit, bytes, align);
}

struct ms_slot *ms_run_take_for(struct ms_extents *extents, const struct ms_request *request)
{
    struct ms_run *run = ms_run_take(extents, request->granted, request->align);
    return run ? &run->only : NULL;
}

struct ms_run *ms_run_take_within(struct ms_extents *extents, struct ms_segment *segment, uint64_t begin,
                                  uint64_t end, uint64_t bytes)
{
    for (struct ms_run *run = segment->first; run && ms_run_address(run) < end; run = run->after) {
        uint64_t from = ms_run_address(run), to = from + ms_run_bytes(run);
        from = from > begin ? from : begin;
        to = to < end ? to : end;
        if (run->free && from < to && to - from >= bytes)
            return take_of(extents, run, from, bytes);
    }
    return NULL;
}

static void swallow(struct ms_run *run, struct ms_run *after)
{
    ms_run_set(run, ms_run_address(run), ms_run_bytes(run) + ms_run_bytes(after));
    run->after = after->after;
    if (run->after)
        run->after->before = run;
    ms_table_drop_run(after);
}

void ms_run_fetch(const struct ms_slot *slot)
{
    __builtin_prefetch(slot, 1);
    __builtin_prefetch((const char *)slot + _Alignof(struct ms_run), 1); /* and its run's neighbours */
}

void ms_run_fetch_neighbours(const struct ms_run *run)
{
    const struct ms_segment *segment = run->segment;
    ms_unit *units = atomic_load_explicit(&segment->units, memory_order_relaxed);
    if (run->class_index != MS_NO_CLASS || !units)
        return;
    __builtin_prefetch(&units[(ms_run_address(run) - segment->address) / MS_UNIT_BYTES], 1);
    __builtin_prefetch(run->before, 1);
    __builtin_prefetch(run->after, 1);
}

void ms_run_put(struct ms_extents *extents, struct ms_run *run)
{
    ms_units_clear(run);
    ms_run_join(extents, run);
}

void ms_run_join(struct ms_extents *extents, struct ms_run *run)
{
    struct ms_segment *segment = run->segment;
    if (run->after && run->after->free) {
        bin_remove(extents, run->after);
        swallow(run, run->after);
    }
    if (run->before && run->before->free) {
        struct ms_run *before = run->before;
        bin_remove(extents, before);
        swallow(before, run);
        run = before;
    }
    if (ms_run_bytes(run) < segment->bytes) {
        bin_add(extents, run);
        return;
    }
    segment->first = NULL;
    ms_table_drop_run(run);
    void *units = (void *)atomic_load_explicit(&segment->units, memory_order_relaxed);
    atomic_store_explicit(&segment->units, NULL, memory_order_release);
    ms_table_drop_array(MS_ARRAY_UNITS, units, segment->unit_order);
    extents->chunk_bytes -= segment->bytes;
    ms_vacant_put(extents, segment);
}

void ms_run_forget(struct ms_run *run)
{
    uint32_t count = 0;
    struct ms_slot *slots = ms_span_slots(run, &count);
    bool used = !run->free && run->vacuum == MS_VACUUM_NONE;
    if (used && atomic_load_explicit(&run->segment->units, memory_order_relaxed))
        ms_units_clear(run);
    run->vacuum = MS_VACUUM_NONE;
    for (uint32_t i = 0; i < count; i++)
        ms_slot_set(&slots[i], MS_SLOT_FREE);
    ms_span_set_slots(run, NULL, 0);
    ms_table_drop_array(MS_ARRAY_SLOTS, slots, run->span.order);
    ms_table_drop_run(run);
}

bool ms_run_open(struct ms_extents *extents, struct ms_segment *segment)
{
    struct ms_run *run = ms_table_run();
    void *units = ms_table_array(MS_ARRAY_UNITS, segment->bytes / MS_UNIT_BYTES * sizeof(ms_unit),
                                 &segment->unit_order);
    if (!run || !units) {
        if (run)
            ms_table_drop_run(run);
        ms_table_drop_array(MS_ARRAY_UNITS, units, segment->unit_order);
        return false;
    }
    atomic_store_explicit(&segment->units, units, memory_order_release);
    segment->first = run;
    run->segment = segment;
    ms_run_set(run, segment->address, segment->bytes);
    extents->chunk_bytes += segment->bytes;
    bin_add(extents, run);
    atomic_store_explicit(&segment->use, MS_SEGMENT_CHUNK, memory_order_release);
    return true;
}

void ms_run_close(struct ms_extents *extents, struct ms_segment *segment)
{
    struct ms_run *run = segment->first;
    if (atomic_load_explicit(&segment->use, memory_order_relaxed) != MS_SEGMENT_CHUNK || !run->free ||
        ms_run_bytes(run) < segment->bytes)
        return;
    bin_remove(extents, run);
    ms_run_join(extents, run);
}

uint64_t ms_run_largest(const struct ms_extents *extents)
{
    if (!extents->rows)
        return 0;
    uint32_t row = 31 - (uint32_t)__builtin_clz(extents->rows);
    uint32_t column = 31 - (uint32_t)__builtin_clz(extents->columns[row]);
    uint64_t largest = 0;
    for (const struct ms_run *run = extents->bins[row][column]; run; run = run->next)
        largest = ms_run_bytes(run) > largest ? ms_run_bytes(run) : largest;
    return largest;
}

static bool holds(const struct ms_run *run, uint64_t address)
{
    return address - ms_run_address(run) < ms_run_bytes(run);
}

struct ms_run *ms_run_at(const struct ms_segment *segment, uint64_t address)
{
    uint64_t unit = 0;
    ms_unit *units = ms_segment_units(segment, address, &unit);
    struct ms_run *run = units ? ms_units_last(units, unit) : NULL;
    if (run && unit && ms_run_address(run) > address)
        run = ms_units_last(units, unit - 1);
    return run && holds(run, address) ? run : NULL;
}
