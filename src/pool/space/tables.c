/* tables.c - records of fixed types, and arrays, for the pool's own books.
 *
 * Owns what it hands out for ever: a record that is dropped keeps its type and is handed out again, never
 * given to the system, so that a reader without a lock reads a record of the right type whatever happens. One
 * lock, the innermost of the pool; memory comes from the arena. Nothing here is in device memory. */
#include <string.h>

#include "base/arena.h"
#include "base/lock.h"
#include "base/records.h"
#include "pool/space/tables.h"
#include "pool/space/units.h"

enum { BATCH = 64, ORDERS = 40, SMALLEST_ORDER = 6 };

/* The head that lies before an array. */
struct array {
    struct array *next;
} MS_CACHELINE;

/* The link of a dropped record is a word of it that nobody reads without a lock. */
static struct {
    struct ms_lock lock;
    struct ms_records extents, segments;
    struct array *arrays[MS_ARRAY_KINDS][ORDERS];
    _Atomic uint64_t serial;
} tables = {.lock = MS_LOCK_INIT(MS_RANK_POOL_TABLES),
            .extents = MS_RECORDS(struct ms_extent, next, BATCH),
            .segments = MS_RECORDS(struct ms_segment, next, BATCH),
            .serial = 1};

struct ms_extent *ms_table_run(void)
{
    ms_lock(&tables.lock);
    struct ms_extent *extent = ms_records_take(&tables.extents);
    ms_unlock(&tables.lock);
    if (extent) {
        extent->before = extent->after = extent->next = extent->previous = NULL;
        extent->free = extent->listed = false;
        extent->class_index = MS_NO_CLASS;
    }
    return extent;
}

void ms_table_drop_run(struct ms_extent *extent)
{
    ms_extent_set(extent, 0, 0);
    atomic_store_explicit(&extent->only.state_word, MS_SLOT_FREE, memory_order_relaxed);
    ms_lock(&tables.lock);
    ms_records_drop(&tables.extents, extent);
    ms_unlock(&tables.lock);
}

struct ms_segment *ms_table_segment(void)
{
    ms_lock(&tables.lock);
    struct ms_segment *segment = ms_records_take(&tables.segments);
    ms_unlock(&tables.lock);
    if (segment) {
        segment->next = segment->previous = NULL;
        segment->permanent = segment->captured = segment->release = false;
        segment->first = NULL;
        segment->units = NULL;
    }
    return segment;
}

void ms_table_drop_segment(struct ms_segment *segment)
{
    ms_lock(&tables.lock);
    ms_records_drop(&tables.segments, segment);
    ms_unlock(&tables.lock);
}

static uint32_t order_of(uint64_t bytes)
{
    uint32_t order = SMALLEST_ORDER;
    while (((uint64_t)1 << order) < bytes)
        order++;
    return order;
}

/* The bytes that lie before an array beside its head. */
static uint64_t front_of(enum ms_array_kind kind, uint32_t order)
{
    return kind == MS_ARRAY_UNITS ? ms_units_front((uint64_t)1 << order) : 0;
}

void *ms_table_array(enum ms_array_kind kind, uint64_t bytes, uint32_t *order_p)
{
    uint32_t order = order_of(bytes);
    if (order >= ORDERS)
        return NULL;
    ms_lock(&tables.lock);
    struct array *array = tables.arrays[kind][order];
    if (array)
        tables.arrays[kind][order] = array->next;
    ms_unlock(&tables.lock);
    *order_p = order;
    uint64_t front = front_of(kind, order);
    if (array && kind == MS_ARRAY_OWN)
        memset(array + 1, 0, bytes);
    if (!array)
        array = ms_arena_alloc(sizeof(*array) + front + ((uint64_t)1 << order));
    return array ? (char *)(array + 1) + front : NULL;
}

void ms_table_drop_array(enum ms_array_kind kind, void *items, uint32_t order)
{
    if (!items)
        return;
    struct array *array = (struct array *)((char *)items - front_of(kind, order)) - 1;
    ms_lock(&tables.lock);
    array->next = tables.arrays[kind][order];
    tables.arrays[kind][order] = array;
    ms_unlock(&tables.lock);
}

uint64_t ms_table_serials(uint64_t count)
{
    return atomic_fetch_add_explicit(&tables.serial, count, memory_order_relaxed);
}

static void table_reset(void)
{
    ms_lock_reset(&tables.lock);
    tables.extents.spare = NULL;
    tables.segments.spare = NULL;
    memset(tables.arrays, 0, sizeof(tables.arrays));
}
MS_AT_FORK(MS_FORK_POOL, table_reset);
