/* recover_pools.c - what a loaded ledger says of the pool, made whole; see recover.h.
 *
 * Floor 2, command line only; one thread. Figures are as old as the pool's last word; segments and live
 * blocks are known better, so the parts of reserved memory are made from them. */
#include <stdlib.h>
#include <string.h>

#include "record/reader/recover.h"
#include "record/live/internal.h"

enum { MANY = 2048 }; /* so many of the largest amount still add up */

struct place {
    uint64_t begin, end, live_bytes;
    struct ms_segment_row *row;
};

struct places {
    struct place *place;
    size_t count;
};

static void clamp(uint64_t *value)
{
    if (*value > INT64_MAX / MANY)
        *value = INT64_MAX / MANY;
}

static void clean_parts(struct ms_parts *parts, uint64_t *whole)
{
    clamp(whole);
    if (ms_figure_bound(&ms_figure_parts, parts, INT64_MAX / MANY) != *whole)
        *parts = (struct ms_parts){.stranded = *whole};
}

static void clean_pool(struct ms_pool_figures *pool)
{
    ms_figure_bound(&ms_figure_pool, pool, INT64_MAX / MANY);
    clean_parts(&pool->parts, &pool->reserved_bytes);
    clean_parts(&pool->peak_parts, &pool->peak_reserved_bytes);
}

/* Rows of no device are dropped: they get a pool of number 0. */
static void clean_flows(void)
{
    uint64_t rows = ms_table_rows(MS_TABLE_STREAM_ARENAS);
    struct ms_stream_arena_row *flows = rows ? MS_ROWS(STREAM_ARENAS, struct ms_stream_arena_row) : NULL;
    for (uint64_t i = 0; i < rows; i++) {
        struct ms_stream_figures *f = &flows[i].record;
        ms_figure_bound(&ms_figure_stream, f, INT64_MAX / MANY);
        clamp(&f->pool);
        clamp(&f->stream);
        if (f->device < 0 || f->device >= MS_DEVICES_MAX)
            f->pool = 0;
        *(unsigned char *)&f->by_program &= 1;
        *(unsigned char *)&f->ended &= 1;
        *(unsigned char *)&f->former &= 1;
    }
}

static bool recover_pools_is_sound(const struct ms_segment_record *s)
{
    return s->bytes && s->bytes <= INT64_MAX / MANY && s->address <= INT64_MAX - s->bytes && s->device >= 0 &&
           s->device < MS_DEVICES_MAX && s->tier < MS_TIER_COUNT && s->context <= INT64_MAX;
}

static int recover_pools_by_address(const void *a, const void *b)
{
    const struct place *left = a, *right = b;
    return (left->begin > right->begin) - (left->begin < right->begin);
}

static struct place *place_at(const struct places *places, uint64_t address)
{
    size_t low = 0, high = places->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (places->place[middle].end <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return low < places->count && places->place[low].begin <= address ? &places->place[low] : NULL;
}

/* Segments that make no sense are none: outside the address space, of no device, over each other. */
static void find_places(struct places *places)
{
    uint64_t rows = ms_table_rows(MS_TABLE_SEGMENTS);
    size_t kept = 0;
    places->place = calloc(rows + 1, sizeof *places->place);
    for (uint64_t i = 0; i < rows; i++) {
        struct ms_segment_row *row = &MS_ROWS(SEGMENTS, struct ms_segment_row)[i];
        *(uint8_t *)&row->record.pinned &= 1;
        *(uint8_t *)&row->record.vmm &= 1;
        if (atomic_load(&row->state) != MS_SEGMENT_THERE || !recover_pools_is_sound(&row->record) ||
            !places->place)
            atomic_store(&row->state, MS_SEGMENT_GONE);
        else
            places->place[places->count++] = (struct place){
                .begin = row->record.address, .end = row->record.address + row->record.bytes, .row = row};
    }
    if (places->count)
        qsort(places->place, places->count, sizeof *places->place, recover_pools_by_address);
    for (size_t i = 0; i < places->count; i++) {
        if (kept && places->place[i].begin < places->place[kept - 1].end)
            atomic_store(&places->place[i].row->state, MS_SEGMENT_GONE);
        else
            places->place[kept++] = places->place[i];
    }
    places->count = kept;
}

static void add_block(void *arg, const struct ms_block *block)
{
    struct places *places = arg;
    struct place *place = block->is_served ? place_at(places, block->key) : NULL;
    if (place && place->live_bytes + block->bytes <= place->end - place->begin)
        place->live_bytes += block->bytes;
}

/* Memory between live blocks was free, pending, or rounding: it counts as stranded, or as cached in a segment
 * without a block. */
static void add_place(const struct place *place, struct ms_pool_figures *pool)
{
    uint64_t bytes = place->end - place->begin;
    pool->reserved_bytes += bytes;
    pool->parts.requested += place->live_bytes;
    *(place->live_bytes ? &pool->parts.stranded : &pool->parts.cached) += bytes - place->live_bytes;
}

static bool has_room(const struct ms_pool_figures *pool, const struct place *place)
{
    return place->end - place->begin <= INT64_MAX / MANY - pool->reserved_bytes;
}

void ms_recover_pools(void)
{
    struct places places = {.count = 0};
    uint64_t rows = ms_table_rows(MS_TABLE_POOLS);
    struct ms_pool_row *pools = rows ? MS_ROWS(POOLS, struct ms_pool_row) : NULL;
    clean_flows();
    find_places(&places);
    ms_blocks_each(add_block, &places);
    for (uint64_t i = 0; i < rows; i++) {
        clean_pool(&pools[i].record);
        if (atomic_load(&pools[i].peak_held_bytes) > INT64_MAX)
            atomic_store(&pools[i].peak_held_bytes, 0);
        pools[i].record.reserved_bytes = 0;
        pools[i].record.parts = (struct ms_parts){.requested = 0};
    }
    for (size_t i = 0; i < places.count; i++) {
        if ((uint64_t)places.place[i].row->record.device < rows &&
            has_room(&pools[places.place[i].row->record.device].record, &places.place[i]))
            add_place(&places.place[i], &pools[places.place[i].row->record.device].record);
        else
            atomic_store(&places.place[i].row->state, MS_SEGMENT_GONE);
    }
    for (uint64_t i = 0; i < rows; i++) {
        struct ms_pool_figures *pool = &pools[i].record;
        if (pool->peak_reserved_bytes < pool->reserved_bytes) {
            pool->peak_reserved_bytes = pool->reserved_bytes;
            pool->peak_parts = pool->parts;
        }
        if (pool->reserved_bytes && !pools[i].latest_ns)
            pools[i].latest_ns = 1; /* killed before the pool had told a figure */
    }
    free(places.place);
}
