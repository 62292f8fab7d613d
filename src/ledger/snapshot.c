/* snapshot.c - copying the record.
 *
 * Floor 2. Holds all shards, then all accounts, in the order of their addresses. The end of a process may
 * come from a signal handler above a thread that holds one of them: every wait is bounded, and what could not
 * be locked is copied as it is (tables are never unmapped or moved) and said to be so. */
#include "config.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#include "ledger/snapshot.h"

enum { LOCK_TIMEOUT_MS = 1000 };

/* Which accounts were locked, beside MS_SHARDS of blocks.c. */
struct locks {
    bool accounts[MS_ACCOUNTS];
    bool all;
};

static struct ms_account *account_number(unsigned i)
{
    return ms_account_of(i < MS_DEVICES_MAX ? (int)i : MS_DEVICE_NONE);
}

static void lock_all(struct locks *locks)
{
    unsigned timeout_ms = LOCK_TIMEOUT_MS;
    locks->all = ms_blocks_lock_all(timeout_ms);
    for (unsigned i = 0; i < MS_ACCOUNTS; i++) {
        locks->accounts[i] = ms_account_lock_within(account_number(i), timeout_ms);
        if (!locks->accounts[i]) {
            locks->all = false;
            timeout_ms = 0;
        }
    }
}

static void unlock_all(const struct locks *locks)
{
    for (unsigned i = MS_ACCOUNTS; i-- > 0;) {
        if (locks->accounts[i])
            ms_account_unlock(account_number(i));
    }
    ms_blocks_unlock_all();
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

/* Room for everything, counted under the locks. */
static int map_memory(struct ms_snapshot *snapshot, uint64_t blocks_max)
{
    size_t timeline_bytes = snapshot->timeline_count * sizeof(uint64_t);
    snapshot->site_count = ms_site_count();
    snapshot->block_total = ms_blocks_count();
    uint64_t blocks = snapshot->block_total < blocks_max ? snapshot->block_total : blocks_max;
    unsigned timelines = 0;
    for (unsigned i = 0; i < MS_ACCOUNTS; i++)
        timelines += ms_timeline_of(i, false) != NULL;
    snapshot->memory_bytes = carved(snapshot->site_count * sizeof *snapshot->sites) +
                             carved(blocks * sizeof *snapshot->blocks) + timelines * carved(timeline_bytes) +
                             4096;
    void *memory = mmap(NULL, snapshot->memory_bytes, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED)
        return -1;
    char *cursor = memory;
    snapshot->memory = memory;
    snapshot->sites = carve(&cursor, snapshot->site_count * sizeof *snapshot->sites);
    snapshot->blocks = carve(&cursor, blocks * sizeof *snapshot->blocks);
    for (unsigned i = 0; i < MS_ACCOUNTS; i++)
        snapshot->devices[i].timeline = ms_timeline_of(i, false) ? carve(&cursor, timeline_bytes) : NULL;
    return 0;
}

/* The coarsest of the devices' timelines, and no finer than what reaches from the start until now. */
static void choose_timeline(struct ms_snapshot *snapshot)
{
    unsigned shift = 20;
    for (unsigned i = 0; i < MS_ACCOUNTS; i++) {
        unsigned own = ms_timeline_shift(ms_timeline_of(i, false));
        shift = own > shift ? own : shift;
    }
    while (snapshot->now_ns >> shift >= ms_timeline_buckets())
        shift++;
    snapshot->timeline_shift = shift;
    snapshot->timeline_count = (unsigned)(snapshot->now_ns >> shift) + 1;
}

static void copy_devices(struct ms_snapshot *snapshot)
{
    for (unsigned i = 0; i < MS_ACCOUNTS; i++) {
        struct ms_snapshot_device *device = &snapshot->devices[i];
        const struct ms_account *account = account_number(i);
        device->account = *account;
        if (device->timeline)
            ms_timeline_copy(ms_timeline_of(i, false), snapshot->timeline_shift, snapshot->now_ns,
                             account->device.live_bytes, device->timeline, snapshot->timeline_count);
    }
    for (unsigned kind = 0; kind < MS_KIND_COUNT; kind++)
        ms_kind_amount(kind, &snapshot->kinds[kind]);
}

static void copy_sites(struct ms_snapshot *snapshot)
{
    for (uint32_t i = 0; i < snapshot->site_count; i++) {
        struct ms_snapshot_site *copy = &snapshot->sites[i];
        const struct ms_site *site = ms_site_at(i);
        copy->live_first_ns = UINT64_MAX;
        if (!site)
            continue;
        struct ms_account *account = ms_account_of(site->device);
        memcpy((void *)&copy->site, site, sizeof *site);
        ms_site_mark(&copy->site, snapshot->now_ns, site->live_bytes);
        copy->site.at_peak_bytes = ms_site_at_peak(account, site);
        snapshot->devices[ms_account_number(site->device)].freed_count += site->free_count;
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
    uint64_t room;
};

/* Keeps the largest: once there is no more room the blocks are a heap with the smallest first. */
static void copy_block(void *arg, const struct ms_block *block)
{
    struct copying *copying = arg;
    struct ms_snapshot *snapshot = copying->snapshot;
    if (block->site < snapshot->site_count) {
        struct ms_snapshot_site *site = &snapshot->sites[block->site];
        site->live_first_ns = block->born_ns < site->live_first_ns ? block->born_ns : site->live_first_ns;
        site->live_last_ns = block->born_ns > site->live_last_ns ? block->born_ns : site->live_last_ns;
        if (site->site.estimate.bytes)
            ms_estimate_add(&site->live_estimate, block->bytes);
    }
    if (snapshot->block_count < copying->room) {
        snapshot->blocks[snapshot->block_count++] = *block;
        if (snapshot->block_count == copying->room)
            make_heap(snapshot->blocks, copying->room, is_smaller);
    } else if (copying->room && is_smaller(&snapshot->blocks[0], block)) {
        snapshot->blocks[0] = *block;
        sift_down(snapshot->blocks, copying->room, 0, is_smaller);
    }
}

static void sort_blocks(struct ms_snapshot *snapshot)
{
    make_heap(snapshot->blocks, snapshot->block_count, is_later);
    for (uint64_t left = snapshot->block_count; left > 1; left--) {
        swap(&snapshot->blocks[0], &snapshot->blocks[left - 1]);
        sift_down(snapshot->blocks, left - 1, 0, is_later);
    }
}

int ms_snapshot_take(struct ms_snapshot *snapshot, uint64_t blocks_max)
{
    int saved_errno = errno;
    struct locks locks;
    memset(snapshot, 0, sizeof *snapshot);
    lock_all(&locks);
    snapshot->now_ns = ms_ledger_now();
    snapshot->consistent = locks.all;
    choose_timeline(snapshot);
    int result = map_memory(snapshot, blocks_max);
    if (result == 0) {
        struct copying copying = {snapshot,
                                  snapshot->block_total < blocks_max ? snapshot->block_total : blocks_max};
        copy_devices(snapshot);
        copy_sites(snapshot);
        ms_blocks_each(copy_block, &copying);
    }
    unlock_all(&locks);
    if (result == 0)
        sort_blocks(snapshot);
    errno = saved_errno;
    return result;
}

void ms_snapshot_release(struct ms_snapshot *snapshot)
{
    if (snapshot->memory)
        munmap(snapshot->memory, snapshot->memory_bytes);
    snapshot->memory = NULL;
}
