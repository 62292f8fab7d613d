/* snapshot.c - copying the record.
 *
 * Floor 2. The pool is stopped first, then all stripes are locked, all accounts and their shards in the order
 * of their addresses, and what is kept of the pool: the order in which whoever serves a block takes these
 * locks. The end of a process may come from a signal handler above a thread that holds one of them: every
 * wait is bounded, and what could not be locked is copied as it is (tables are never unmapped or moved) and
 * said to be so. Meanwhile nothing is done but copying. */
#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include "record/footprint/granules.h"
#include "record/phases/phases.h"
#include "record/reader/snapshot_heaps.h"
#include "record/reader/snapshot_pool.h"

enum { LOCK_TIMEOUT_MS = 1000 };

/* The locks that were taken, beside what blocks.c and accounts.c know of themselves. */
struct locks {
    bool stopped, phases, pools, all;
};

static void lock_all(struct locks *locks)
{
    bool has_source;
    locks->stopped = ms_snapshot_pool_stop(LOCK_TIMEOUT_MS, &has_source);
    bool stripes = ms_blocks_lock_all(LOCK_TIMEOUT_MS);
    locks->phases = ms_phases_lock_within(LOCK_TIMEOUT_MS);
    bool accounts = ms_accounts_lock_all(LOCK_TIMEOUT_MS);
    locks->pools = ms_pools_lock_within(LOCK_TIMEOUT_MS);
    locks->all = stripes && locks->phases && accounts && locks->pools && (locks->stopped || !has_source);
}

static void unlock_all(const struct locks *locks)
{
    if (locks->pools)
        ms_pools_unlock();
    ms_accounts_unlock_all();
    if (locks->phases)
        ms_phases_unlock();
    ms_blocks_unlock_all();
    if (locks->stopped)
        ms_snapshot_pool_go();
}

/* Cuts the next piece off the mapping. */
static void *carve(char **cursor_p, size_t bytes)
{
    char *piece = *cursor_p;
    *cursor_p += (bytes + 63) / 64 * 64;
    return piece;
}

static size_t carved(size_t bytes)
{
    return (bytes + 63) / 64 * 64;
}

/* A row that is not whole yet counts, so that there is room for it. */
static uint32_t count_sites(uint32_t rows)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < rows; i++)
        count += !ms_site_at(i) || ms_site_at(i)->whole == i;
    return count;
}

static uint64_t **snapshot_line_of(struct ms_snapshot_device *device, enum ms_series series)
{
    switch (series) {
    case MS_SERIES_RESERVED:
        return &device->reserved;
    case MS_SERIES_PENDING:
        return &device->pending;
    default:
        return &device->timeline;
    }
}

static size_t bytes_of_pool(const struct ms_snapshot *snapshot)
{
    return carved(snapshot->flow_room * sizeof *snapshot->flows) +
           carved(snapshot->segment_room * sizeof *snapshot->segments) +
           carved(snapshot->piece_room * sizeof *snapshot->pieces) +
           carved(snapshot->told_room * sizeof *snapshot->told);
}

/* Room for everything, counted under the locks. */
static int map_memory(struct ms_snapshot *snapshot, uint64_t blocks_max, uint64_t inner_max)
{
    size_t timeline_bytes = snapshot->timeline_count * sizeof(uint64_t);
    snapshot->row_count = ms_site_count();
    snapshot->site_count = count_sites(snapshot->row_count);
    uint64_t blocks = 0;
    for (unsigned layer = 0; layer < MS_LAYERS; layer++) {
        struct ms_snapshot_blocks *of = &snapshot->blocks[layer];
        of->total = ms_blocks_count(layer);
        uint64_t most = layer == MS_LAYER_INNER ? inner_max : blocks_max;
        of->room = of->total < most ? of->total : most;
        blocks += of->room;
    }
    unsigned timelines = 0;
    for (unsigned i = 0; i < MS_ACCOUNTS; i++) {
        for (unsigned series = 0; series < MS_SERIES_COUNT; series++)
            timelines += ms_history_of_series(series, i, false) != NULL;
    }
    snapshot->memory_bytes =
        carved(snapshot->site_count * sizeof *snapshot->sites) +
        carved(snapshot->row_count * sizeof *snapshot->places) + carved(blocks * sizeof(struct ms_block)) +
        timelines * carved(timeline_bytes) + carved(snapshot->counts_count * sizeof *snapshot->counts) +
        carved(MS_INVALID_FREES_MAX * sizeof *snapshot->invalid_frees) +
        carved(snapshot->footprint_room * sizeof *snapshot->footprints) +
        carved(snapshot->heap_count * sizeof *snapshot->heaps) + bytes_of_pool(snapshot) + 4096;
    void *memory = mmap(NULL, snapshot->memory_bytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED)
        return -1;
    char *cursor = memory;
    snapshot->memory = memory;
    snapshot->sites = carve(&cursor, snapshot->site_count * sizeof *snapshot->sites);
    snapshot->places = carve(&cursor, snapshot->row_count * sizeof *snapshot->places);
    struct ms_block *list = carve(&cursor, blocks * sizeof *list);
    for (unsigned layer = 0; layer < MS_LAYERS; list += snapshot->blocks[layer].room, layer++)
        snapshot->blocks[layer].list = list;
    snapshot->heaps = carve(&cursor, snapshot->heap_count * sizeof *snapshot->heaps);
    snapshot->counts = carve(&cursor, snapshot->counts_count * sizeof *snapshot->counts);
    snapshot->invalid_frees = carve(&cursor, MS_INVALID_FREES_MAX * sizeof *snapshot->invalid_frees);
    snapshot->footprints = carve(&cursor, snapshot->footprint_room * sizeof *snapshot->footprints);
    snapshot->flows = carve(&cursor, snapshot->flow_room * sizeof *snapshot->flows);
    snapshot->segments = carve(&cursor, snapshot->segment_room * sizeof *snapshot->segments);
    snapshot->pieces = carve(&cursor, snapshot->piece_room * sizeof *snapshot->pieces);
    snapshot->told = carve(&cursor, snapshot->told_room * sizeof *snapshot->told);
    for (unsigned i = 0; i < MS_ACCOUNTS; i++) {
        for (unsigned series = 0; series < MS_SERIES_COUNT; series++)
            *snapshot_line_of(&snapshot->devices[i], series) =
                ms_history_of_series(series, i, false) ? carve(&cursor, timeline_bytes) : NULL;
    }
    return 0;
}

/* The coarsest of the devices' timelines, and no finer than what reaches from the start until now. */
static void choose_timeline(struct ms_snapshot *snapshot)
{
    unsigned shift = 20;
    for (unsigned i = 0; i < MS_ACCOUNTS * MS_SERIES_COUNT; i++) {
        unsigned own =
            ms_history_shift(ms_history_of_series(i % MS_SERIES_COUNT, i / MS_SERIES_COUNT, false));
        shift = own > shift ? own : shift;
    }
    while (snapshot->now_ns >> shift >= ms_history_buckets())
        shift++;
    snapshot->timeline_shift = shift;
    snapshot->timeline_count = (unsigned)(snapshot->now_ns >> shift) + 1;
}

static void copy_line(struct ms_snapshot *snapshot, unsigned account, enum ms_series series, uint64_t now)
{
    uint64_t *line = *snapshot_line_of(&snapshot->devices[account], series);
    if (line)
        ms_history_copy(ms_history_of_series(series, account, false), snapshot->timeline_shift,
                        snapshot->now_ns, now, line, snapshot->timeline_count);
}

static void copy_devices(struct ms_snapshot *snapshot)
{
    for (unsigned i = 0; i < MS_ACCOUNTS; i++) {
        struct ms_snapshot_device *device = &snapshot->devices[i];
        ms_account_sum(i, &device->account);
        if (i < MS_LAYER_ACCOUNTS) {
            device->has_pool = ms_pools_read((int)i, &device->pool);
            device->peak_held_bytes = ms_pools_held_most((int)i);
        }
        device->driver_rounding_bytes = i < MS_DEVICES_MAX ? ms_granules_beyond((int)i) : 0;
        for (unsigned moment = 0; i < MS_DEVICES_MAX && moment < MS_BALANCE_MOMENTS; moment++)
            device->has_balance[moment] = ms_balance_read((int)i, moment, &device->balances[moment]);
        for (unsigned miss = 0; i < MS_DEVICES_MAX && miss < MS_BALANCE_MISSES; miss++)
            device->balance_missed[miss] = ms_balance_missed((int)i, miss);
        copy_line(snapshot, i, MS_SERIES_LIVE, device->account.device.live_bytes);
        copy_line(snapshot, i, MS_SERIES_PENDING, device->pool.parts.pending);
    }
    for (unsigned kind = 0; kind < MS_KIND_COUNT; kind++)
        ms_kind_amount(kind, &snapshot->kinds[kind]);
}

/* One row, up to date. */
static void copy_row(const struct ms_site *row, uint64_t now_ns, struct ms_site *copy_p)
{
    memcpy((void *)copy_p, row, sizeof *row);
    ms_site_mark(copy_p, now_ns, row->live_bytes);
    ms_site_cut_marks(copy_p, now_ns); /* of a row that nobody could lock, or of another processor's clock */
    copy_p->at_peak_bytes = ms_site_at_device_peak(ms_account_of(row->device), row);
    copy_p->kept_peak_bytes = ms_site_at_peak(ms_account_of(row->device)->peaks, row);
}

/* A site never held more than its shards held, nor more than the device. */
static void limit_max(const struct ms_snapshot *snapshot, struct ms_site *site)
{
    const struct ms_account *account = &snapshot->devices[ms_account_number(site->device)].account;
    if (ms_kind_is_device(site->kind) && site->max_bytes > account->device.peak_live_bytes)
        site->max_bytes = account->device.peak_live_bytes;
}

/* A row that is not whole yet is of the outer layer. */
static enum ms_layer layer_of_row(const struct ms_site *row)
{
    return row ? ms_device_layer(row->device) : MS_LAYER_OUTER;
}

/* The rows that stand for all shards of a site. Returns how many there are by then. */
static uint32_t copy_whole_sites(struct ms_snapshot *snapshot, enum ms_layer layer, uint32_t count)
{
    for (uint32_t i = 0; i < snapshot->row_count; i++) {
        const struct ms_site *row = ms_site_at(i);
        if ((row && row->whole != i) || layer_of_row(row) != layer || count == snapshot->site_count)
            continue;
        struct ms_snapshot_site *copy = &snapshot->sites[count];
        copy->live_first_ns = UINT64_MAX;
        copy->row = i;
        snapshot->places[i] = count++;
        if (row)
            copy_row(row, snapshot->now_ns, &copy->site);
    }
    return count;
}

/* Rows of shard 0 come first, since the others are added to them. */
static void copy_sites(struct ms_snapshot *snapshot)
{
    for (uint32_t i = 0; i < snapshot->row_count; i++)
        snapshot->places[i] = UINT32_MAX;
    snapshot->outer_sites = copy_whole_sites(snapshot, MS_LAYER_OUTER, 0);
    snapshot->site_count = copy_whole_sites(snapshot, MS_LAYER_INNER, snapshot->outer_sites);
    for (uint32_t i = 0; i < snapshot->row_count; i++) {
        const struct ms_site *row = ms_site_at(i);
        struct ms_site copy;
        if (!row)
            continue;
        snapshot->devices[ms_account_number(row->device)].freed_count += row->free_count;
        snapshot->places[i] = ms_snapshot_place(snapshot, row->whole);
        if (row->whole == i || snapshot->places[i] == UINT32_MAX)
            continue;
        copy_row(row, snapshot->now_ns, &copy);
        struct ms_snapshot_site *sum = &snapshot->sites[snapshot->places[i]];
        sum->max_is_bound |= sum->site.total_count && copy.total_count;
        ms_site_merge(&sum->site, &copy);
        limit_max(snapshot, &sum->site);
    }
}

static bool is_smaller(const struct ms_block *a, const struct ms_block *b)
{
    return a->bytes < b->bytes;
}

/* The opposite of the final order, for the heap below yields its least first. */
static bool is_later(const struct ms_block *a, const struct ms_block *b)
{
    if (a->device != b->device)
        return a->device > b->device;
    if (a->space != b->space)
        return a->space > b->space;
    return a->key > b->key;
}

static void swap(struct ms_block *a, struct ms_block *b)
{
    struct ms_block old = *a;
    *a = *b;
    *b = old;
}

typedef bool (*order_func_t)(const struct ms_block *a, const struct ms_block *b);

/* Restores a heap, with the least at 0, whose element at `i` may be too large for its place. Not qsort: that
 * allocates. */
static void sift_down(struct ms_block *blocks, uint64_t count, uint64_t i, order_func_t less)
{
    for (uint64_t child; (child = 2 * i + 1) < count; i = child) {
        if (child + 1 < count && less(&blocks[child + 1], &blocks[child]))
            child++;
        if (!less(&blocks[child], &blocks[i]))
            return;
        swap(&blocks[child], &blocks[i]);
    }
}

static void make_heap(struct ms_block *blocks, uint64_t count, order_func_t less)
{
    for (uint64_t i = count / 2; i-- > 0;)
        sift_down(blocks, count, i, less);
}

struct copying {
    struct ms_snapshot *snapshot;
    bool anew; /* what is live is counted by the blocks */
};

/* If locks were not to be had, above all at an end that comes from a signal handler in the middle of a call,
 * a block may count already, or still, that is none: what is live is what the blocks say. */
static void forget_amount(struct ms_amount *amount)
{
    amount->live_bytes = amount->live_count = 0;
}

static void forget_live(struct ms_snapshot *snapshot)
{
    for (unsigned i = 0; i < MS_ACCOUNTS; i++) {
        forget_amount(&snapshot->devices[i].account.device);
        for (unsigned kind = 0; kind < MS_KIND_COUNT; kind++)
            forget_amount(&snapshot->devices[i].account.kinds[kind]);
    }
    for (unsigned kind = 0; kind < MS_KIND_COUNT; kind++)
        if (!ms_kind_is_device(kind))
            forget_amount(&snapshot->kinds[kind]);
    for (uint32_t i = 0; i < snapshot->site_count; i++) {
        struct ms_site *site = &snapshot->sites[i].site;
        site->live_bytes = site->live_count = site->rounding_bytes = 0;
    }
}

static void count_amount(struct ms_amount *amount, uint64_t bytes)
{
    amount->live_bytes += bytes;
    amount->live_count++;
    if (amount->peak_live_bytes < amount->live_bytes)
        amount->peak_live_bytes = amount->live_bytes;
}

static void count_live(struct ms_snapshot *snapshot, const struct ms_block *block,
                       struct ms_snapshot_site *copy)
{
    struct ms_account *account = &snapshot->devices[ms_account_number(block->device)].account;
    count_amount(&account->kinds[block->kind], block->bytes);
    if (ms_kind_is_device(block->kind))
        count_amount(&account->device, block->bytes);
    else
        count_amount(&snapshot->kinds[block->kind], block->bytes);
    if (!copy)
        return;
    copy->site.live_bytes += block->bytes;
    copy->site.live_count++;
    copy->site.rounding_bytes += block->bytes - block->requested;
}

/* A site's past, as its rows tell it, is made to agree with what is live. */
static void fit_past(struct ms_snapshot *snapshot)
{
    for (unsigned i = 0; i < MS_ACCOUNTS; i++)
        snapshot->devices[i].freed_count = 0;
    for (uint32_t i = 0; i < snapshot->site_count; i++) {
        struct ms_site *site = &snapshot->sites[i].site;
        uint64_t known = site->live_count + site->died_count;
        if (site->total_count < known)
            site->total_count = known;
        if (site->total_bytes < site->live_bytes + site->died_bytes)
            site->total_bytes = site->live_bytes + site->died_bytes;
        if (site->max_bytes < site->live_bytes)
            site->max_bytes = site->live_bytes;
        site->free_count = site->total_count - known;
        snapshot->devices[ms_account_number(site->device)].freed_count += site->free_count;
    }
}

static void count_in_heap(struct ms_snapshot *snapshot, const struct ms_block *block)
{
    uint32_t heap = ms_inner_heap(block);
    if (!heap || heap > snapshot->heap_count)
        return;
    snapshot->heaps[heap - 1].live_bytes += block->bytes;
    snapshot->heaps[heap - 1].live_count++;
}

static void leave_out(struct ms_snapshot *snapshot, const struct ms_block *block)
{
    struct ms_snapshot_device *device = &snapshot->devices[ms_account_number(block->device)];
    device->left_out_bytes += block->bytes;
    device->left_out_count++;
}

/* Keeps the largest: once there is no more room the blocks are a heap with the smallest first. */
static void keep_block(struct ms_snapshot *snapshot, const struct ms_block *block)
{
    struct ms_snapshot_blocks *of = &snapshot->blocks[ms_device_layer(block->device)];
    if (of->count < of->room) {
        of->list[of->count++] = *block;
        if (of->count == of->room)
            make_heap(of->list, of->room, is_smaller);
    } else if (of->room && is_smaller(&of->list[0], block)) {
        leave_out(snapshot, &of->list[0]);
        of->list[0] = *block;
        sift_down(of->list, of->room, 0, is_smaller);
    } else {
        leave_out(snapshot, block);
    }
}

static void copy_block(void *arg, const struct ms_block *original)
{
    struct copying *copying = arg;
    struct ms_snapshot *snapshot = copying->snapshot;
    struct ms_block copy = *original;
    const struct ms_block *block = &copy;
    copy.site = ms_snapshot_place(snapshot, original->site);
    if (block->is_served)
        snapshot->devices[ms_account_number(block->device)].served_bytes += block->bytes;
    if (block->kind == MS_KIND_INNER)
        count_in_heap(snapshot, block);
    if (copying->anew)
        count_live(snapshot, block,
                   block->site < snapshot->site_count ? &snapshot->sites[block->site] : NULL);
    if (block->site < snapshot->site_count) {
        struct ms_snapshot_site *site = &snapshot->sites[block->site];
        site->live_first_ns = block->born_ns < site->live_first_ns ? block->born_ns : site->live_first_ns;
        site->live_last_ns = block->born_ns > site->live_last_ns ? block->born_ns : site->live_last_ns;
        if (block->kind == MS_KIND_GRAPH && block->space == MS_SPACE_ADDRESS) {
            site->owed_bytes += block->bytes;
            site->owed_count++;
        }
        if (site->site.estimate.bytes)
            ms_estimate_add(&site->live_estimate, block->bytes);
    }
    keep_block(snapshot, block);
}

static void sort_blocks(struct ms_snapshot_blocks *blocks)
{
    make_heap(blocks->list, blocks->count, is_later);
    for (uint64_t left = blocks->count; left > 1; left--) {
        swap(&blocks->list[0], &blocks->list[left - 1]);
        sift_down(blocks->list, left - 1, 0, is_later);
    }
}

/* Calls are counted without a lock. */
static void copy_counts(struct ms_snapshot *snapshot)
{
    for (uint32_t api = 0; api < snapshot->counts_count; api++)
        ms_counts_sum(api, &snapshot->counts[api]);
}

static void copy_all(struct ms_snapshot *snapshot, bool is_told)
{
    struct copying copying = {snapshot, !snapshot->consistent};
    copy_devices(snapshot);
    copy_sites(snapshot);
    if (copying.anew)
        forget_live(snapshot);
    ms_blocks_each(copy_block, &copying);
    for (unsigned i = 0; i < MS_LAYER_ACCOUNTS; i++) /* behind the blocks, which say what is served */
        copy_line(snapshot, i, MS_SERIES_RESERVED, ms_snapshot_held(&snapshot->devices[i]));
    if (copying.anew)
        fit_past(snapshot);
    ms_snapshot_pool_copy(snapshot, is_told);
    copy_counts(snapshot);
}

int ms_snapshot_take(struct ms_snapshot *snapshot, uint64_t blocks_max, uint64_t inner_max)
{
    struct locks locks;
    int saved_errno = errno;
    memset(snapshot, 0, sizeof *snapshot);
    lock_all(&locks);
    bool is_told = locks.stopped && locks.all;
    snapshot->consistent = locks.all;
    snapshot->now_ns = ms_ledger_now();
    if (is_told)
        ms_snapshot_pool_figures(snapshot);
    choose_timeline(snapshot);
    ms_snapshot_pool_count(snapshot, is_told);
    snapshot->counts_count = (uint32_t)ms_table_rows(MS_TABLE_APIS);
    snapshot->footprint_room = (uint32_t)ms_table_rows(MS_TABLE_FOOTPRINTS);
    snapshot->heap_count = (uint32_t)ms_table_rows(MS_TABLE_HEAPS);
    int result = map_memory(snapshot, blocks_max, inner_max);
    if (result == 0) {
        ms_heaps_copy(snapshot->heaps, snapshot->heap_count);
        copy_all(snapshot, is_told);
        ms_phases_copy(snapshot);
        ms_uses_copy(&snapshot->lives);
        snapshot->consistent &=
            ms_invalid_frees_copy(snapshot->invalid_frees, &snapshot->misfree_count, LOCK_TIMEOUT_MS);
        snapshot->consistent &= ms_footprints_copy(snapshot->footprints, snapshot->footprint_room,
                                                   &snapshot->footprint_count, LOCK_TIMEOUT_MS);
    }
    snapshot->consistent &= ms_events_copy(&snapshot->events, LOCK_TIMEOUT_MS);
    unlock_all(&locks);
    for (unsigned layer = 0; result == 0 && layer < MS_LAYERS; layer++)
        sort_blocks(&snapshot->blocks[layer]);
    if (result == 0)
        ms_snapshot_heaps_bound(snapshot);
    errno = saved_errno;
    return result;
}

void ms_snapshot_release(struct ms_snapshot *snapshot)
{
    if (snapshot->memory)
        munmap(snapshot->memory, snapshot->memory_bytes);
    snapshot->memory = NULL;
    ms_phases_release(snapshot);
    ms_uses_release(&snapshot->lives);
}
