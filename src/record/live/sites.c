/* sites.c - sites: one row per stack, device, api and kind, in each shard that counts blocks of it.
 *
 * Floor 2. Everything here is under the lock of the row's shard. The table is append-only; the indices are
 * this process's own. The row in shard 0 stands for all: those of other shards name it, and are chained to
 * it. When the table is full, further sites count together at one without a stack for each device, function
 * and kind, in shard 0, for which the last rows are kept: so every total and every leak stays exact. */
#include <string.h>

#include "base/arena.h"
#include "record/live/internal.h"
#include "record/live/shards.h"
#include "record/file/process.h"
#include "unwind/python/python.h"

enum { INDEX_START = 64 };

struct ms_site *ms_site_at(uint32_t site)
{
    if (site >= ms_table_rows(MS_TABLE_SITES))
        return NULL;
    struct ms_site *row = &MS_ROWS(SITES, struct ms_site)[site];
    return atomic_load_explicit(&row->state, memory_order_acquire) ? row : NULL;
}

uint32_t ms_site_count(void)
{
    return (uint32_t)ms_table_rows(MS_TABLE_SITES);
}

uint64_t ms_sites_dropped(void)
{
    return ms_table_dropped(MS_TABLE_SITES);
}

uint64_t ms_sites_merged(void)
{
    return atomic_load_explicit(&ms_process()->merged_allocs, memory_order_relaxed);
}

static uint32_t sites_hash_of(uint64_t key)
{
    return (uint32_t)(key * 0x9e3779b97f4a7c15u >> 32);
}

static void sites_put(uint32_t *index, uint32_t mask, uint32_t number)
{
    const struct ms_site *site = &MS_ROWS(SITES, struct ms_site)[number];
    uint32_t place = sites_hash_of(ms_site_key(site->stack, site->api, site->kind)) & mask;
    while (index[place])
        place = (place + 1) & mask;
    index[place] = number + 1;
}

MS_NOINLINE uint32_t ms_shard_look_for_site(struct ms_shard *shard, uint64_t key)
{
    if (MS_UNLIKELY(!shard->site_index))
        return UINT32_MAX;
    uint32_t place = sites_hash_of(key) & shard->site_mask, number;
    for (; (number = shard->site_index[place]) != 0; place = (place + 1) & shard->site_mask) {
        const struct ms_site *site = ms_site_row(number - 1);
        if (ms_site_key(site->stack, site->api, site->kind) != key)
            continue;
        shard->latest_key = key;
        shard->latest_site = number - 1;
        shard->latest_row = ms_site_row(number - 1);
        shard->latest_until_ns = 0;
        return number - 1;
    }
    return UINT32_MAX;
}

/* Makes the index hold one more at half load. */
static bool sites_make_room(struct ms_shard *shard)
{
    uint32_t places = shard->site_index ? shard->site_mask + 1 : 0;
    if (shard->site_count < places / 2)
        return true;
    uint32_t more = places ? places * 2 : INDEX_START;
    uint32_t *index = ms_arena_alloc(more * sizeof *index);
    if (!index)
        return false;
    for (uint32_t i = 0; i < places; i++) {
        if (shard->site_index[i])
            sites_put(index, more - 1, shard->site_index[i] - 1);
    }
    shard->site_index = index;
    shard->site_mask = more - 1;
    return true;
}

static void chain(struct ms_site *site, uint32_t number, uint32_t whole)
{
    struct ms_site *home = &MS_ROWS(SITES, struct ms_site)[whole];
    site->whole = whole;
    site->next = home->next;
    home->next = number + 1;
}

/* A row, if there is room for it among the first `rows` of the table. */
static uint32_t make_row(struct ms_shard *shard, const struct ms_block *block, uint64_t now_ns, uint64_t rows)
{
    uint64_t number;
    if (ms_table_rows(MS_TABLE_SITES) >= rows || !sites_make_room(shard) ||
        !ms_table_take(MS_TABLE_SITES, 1, &number))
        return UINT32_MAX;
    struct ms_site *site = &MS_ROWS(SITES, struct ms_site)[number];
    site->stack = block->stack;
    site->device = block->device;
    site->api = block->api;
    site->kind = block->kind;
    site->shard = shard->number;
    site->first_ns = now_ns;
    site->span_shift = MS_SPAN_SHIFT_START;
    site->whole = (uint32_t)number;
    return (uint32_t)number;
}

/* For the report of a process that is killed. */
static void note_python(void)
{
    struct ms_process *process = ms_process();
    uint32_t version = atomic_load_explicit(&ms_python_seen, memory_order_relaxed);
    uint32_t is_read = atomic_load_explicit(&ms_python_is_read, memory_order_relaxed);
    atomic_store_explicit(&process->python_version, version, memory_order_relaxed);
    atomic_store_explicit(&process->python_is_read, is_read, memory_order_relaxed);
}

/* It is whole now, and is found. */
static uint32_t sites_publish(struct ms_shard *shard, uint32_t number)
{
    atomic_store_explicit(&ms_site_row(number)->state, 1, memory_order_release);
    sites_put(shard->site_index, shard->site_mask, number);
    shard->site_count++;
    note_python();
    return number;
}

/* In shard 0: the site without a stack stands for those that found no row. */
static uint32_t sites_merge(struct ms_shard *shard, const struct ms_block *block, uint64_t now_ns)
{
    struct ms_block without = *block;
    without.stack = 0;
    uint32_t number = ms_shard_find_site(shard, 0, block->api, block->kind);
    if (number == UINT32_MAX && (number = make_row(shard, &without, now_ns, MS_SITES_MAX)) != UINT32_MAX)
        sites_publish(shard, number);
    if (number == UINT32_MAX)
        ms_table_drop(MS_TABLE_SITES);
    else
        atomic_fetch_add_explicit(&ms_process()->merged_allocs, 1, memory_order_relaxed);
    return number;
}

uint32_t ms_shard_make_site(struct ms_shard *shard, const struct ms_block *block, uint64_t now_ns,
                            uint32_t whole)
{
    uint32_t number = ms_shard_find_site(shard, block->stack, block->api, block->kind);
    if (number != UINT32_MAX)
        return number;
    if (!shard->number) {
        number = make_row(shard, block, now_ns, MS_SITES_OWN_MAX);
        return number == UINT32_MAX ? sites_merge(shard, block, now_ns) : sites_publish(shard, number);
    }
    if (whole == UINT32_MAX || ms_site_row(whole)->stack != block->stack)
        return UINT32_MAX;
    number = make_row(shard, block, now_ns, MS_SITES_OWN_MAX);
    if (number == UINT32_MAX)
        return UINT32_MAX;
    chain(ms_site_row(number), number, whole);
    return sites_publish(shard, number);
}

void ms_site_merge(struct ms_site *sum, const struct ms_site *site)
{
    bool unused = !sum->total_count;
    sum->live_bytes += site->live_bytes;
    sum->live_count += site->live_count;
    sum->at_peak_bytes += site->at_peak_bytes;
    sum->kept_peak_bytes += site->kept_peak_bytes;
    sum->max_bytes += site->max_bytes;
    sum->last_ns = sum->last_ns > site->last_ns ? sum->last_ns : site->last_ns;
    sum->first_ns = unused || sum->first_ns > site->first_ns ? site->first_ns : sum->first_ns;
    sum->total_bytes += site->total_bytes;
    sum->total_count += site->total_count;
    sum->free_count += site->free_count;
    sum->lifetime_ns_sum += site->lifetime_ns_sum;
    sum->rounding_bytes += site->rounding_bytes;
    sum->total_rounding_bytes += site->total_rounding_bytes;
    sum->died_bytes += site->died_bytes;
    sum->died_count += site->died_count;
    sum->estimate.bytes += site->estimate.bytes;
    sum->estimate.count_q8 += site->estimate.count_q8;
    for (unsigned k = 0; k < MS_SIZE_CLASSES; k++)
        sum->size_hist[k] += site->size_hist[k];
    if (site->span_shift != sum->span_shift) {
        sum->span_shift = MS_SPAN_SHIFT_NONE;
        sum->span_last = 0;
    }
    for (unsigned i = 0; i < MS_SPANS; i++)
        sum->marks[i] += site->marks[i];
}
