/* pools.c - see pools.h.
 *
 * Floor 2. Rows of POOLS are the devices; rows of SEGMENTS are used again once their segment is gone (the
 * state word is written last, as of a block). One lock (MS_RANK_TIMELINE) covers them and their timelines. */
#include <errno.h>
#include <stddef.h>
#include <string.h>

#include "record/footprint/balance.h"
#include "record/live/internal.h"

enum { BUCKET_BITS = 16, BUCKETS = 1 << BUCKET_BITS };

static struct ms_lock lock = MS_LOCK_INIT(MS_RANK_TIMELINE);
static uint32_t buckets[BUCKETS]; /* row + 1 of the first segment whose address falls into it */
static bool any_segment;          /* in a bucket, ever */
static uint32_t free_rows;        /* likewise of the rows that are free */
/* Until then, and up to so much, what the program has of the device changes nothing of what is noted. */
static struct quiet {
    _Atomic uint64_t until_ns, most_bytes;
} quiet[MS_DEVICES_MAX];
static _Atomic uint64_t reserved_now[MS_DEVICES_MAX];

static struct ms_pool_row *pool_row(int device)
{
    return &MS_ROWS(POOLS, struct ms_pool_row)[device];
}

static struct ms_segment_row *segment_row(uint32_t row)
{
    return &MS_ROWS(SEGMENTS, struct ms_segment_row)[row];
}

static uint32_t *pools_bucket_of(uint64_t address)
{
    return &buckets[(address >> 9) * 0x9e3779b97f4a7c15u >> (64 - BUCKET_BITS)];
}

static bool open_pool_row(int device)
{
    if (device < 0 || device >= MS_DEVICES_MAX)
        return false;
    if (MS_LIKELY(ms_table_rows(MS_TABLE_POOLS) > (uint64_t)device))
        return true;
    if (!ms_table_reserve(MS_TABLE_POOLS, (uint64_t)device + 1))
        return false;
    ms_table_publish(MS_TABLE_POOLS, (uint64_t)device + 1);
    return true;
}

static void pools_note(enum ms_series series, int device, uint64_t now_ns, uint64_t before, uint64_t now)
{
    ms_history_note(ms_history_of_series(series, ms_account_number(device), true), now_ns, before, now);
}

/* The bytes that the program has of the device, whoever gave them. */
static uint64_t held_now(int device)
{
    return atomic_load(&reserved_now[device]) + ms_balance_beside(device);
}

/* Under the lock: it has just changed by `change`. Of `quiet` the time is written last and read first, so
 * that no later bucket goes with an earlier one's bytes. */
static void note_held(int device, struct ms_pool_row *row, uint64_t now_ns, uint64_t change)
{
    uint64_t held = held_now(device);
    struct ms_history *history = ms_history_of_series(MS_SERIES_RESERVED, ms_account_number(device), true);
    if (held > atomic_load(&row->peak_held_bytes))
        atomic_store(&row->peak_held_bytes, held);
    ms_history_note(history, now_ns, held - change, held);
    if (history) {
        atomic_store(&quiet[device].most_bytes, history->values[history->last]);
        atomic_store(&quiet[device].until_ns, ms_history_until(history));
    }
}

static MS_NOINLINE void note_beside(int device, uint64_t now_ns, uint64_t change)
{
    int saved_errno = errno;
    ms_lock(&lock);
    if (open_pool_row(device))
        note_held(device, pool_row(device), now_ns, change);
    ms_unlock(&lock);
    errno = saved_errno;
}

void ms_pools_beside(int device, uint64_t now_ns, uint64_t beside_bytes, uint64_t change)
{
    if (now_ns >= atomic_load(&quiet[device].until_ns) ||
        atomic_load(&reserved_now[device]) + beside_bytes > atomic_load(&quiet[device].most_bytes))
        note_beside(device, now_ns, change);
}

uint64_t ms_pools_held_most(int device)
{
    return device >= 0 && (uint64_t)device < ms_table_rows(MS_TABLE_POOLS)
               ? atomic_load(&pool_row(device)->peak_held_bytes)
               : 0;
}

void ms_pools_put(int device, const struct ms_pool_figures *record, uint64_t now_ns)
{
    if (!open_pool_row(device))
        return;
    struct ms_pool_row *row = pool_row(device);
    struct ms_pool_figures before = row->record;
    uint64_t sequence = atomic_load_explicit(&row->sequence, memory_order_relaxed);
    atomic_store_explicit(&row->sequence, sequence | 1, memory_order_relaxed);
    atomic_thread_fence(memory_order_release);
    row->record = *record;
    if (before.peak_reserved_bytes > record->peak_reserved_bytes) { /* heard out of turn */
        row->record.peak_reserved_bytes = before.peak_reserved_bytes;
        row->record.peak_parts = before.peak_parts;
    }
    row->latest_ns = now_ns;
    atomic_store(&reserved_now[device], record->reserved_bytes);
    note_held(device, row, now_ns, record->reserved_bytes - before.reserved_bytes);
    atomic_store_explicit(&row->sequence, (sequence | 1) + 1, memory_order_release);
    pools_note(MS_SERIES_PENDING, device, now_ns, before.parts.pending, record->parts.pending);
}

void ms_ledger_pool(int device, const struct ms_pool_figures *record)
{
    int saved_errno = errno;
    uint64_t now_ns = ms_ledger_now();
    ms_lock(&lock);
    ms_pools_put(device, record, now_ns);
    ms_unlock(&lock);
    errno = saved_errno;
}

void ms_stream_arenas_put(uint32_t i, const struct ms_stream_figures *record, uint64_t now_ns)
{
    if (!ms_table_reserve(MS_TABLE_STREAM_ARENAS, (uint64_t)i + 1))
        return;
    struct ms_stream_arena_row *row = &MS_ROWS(STREAM_ARENAS, struct ms_stream_arena_row)[i];
    uint64_t sequence = atomic_load_explicit(&row->sequence, memory_order_relaxed);
    if (ms_table_rows(MS_TABLE_STREAM_ARENAS) < (uint64_t)i + 1)
        ms_table_publish(MS_TABLE_STREAM_ARENAS, (uint64_t)i + 1);
    atomic_store_explicit(&row->sequence, sequence | 1, memory_order_relaxed);
    atomic_thread_fence(memory_order_release);
    row->record = *record;
    row->latest_ns = now_ns;
    atomic_store_explicit(&row->sequence, (sequence | 1) + 1, memory_order_release);
}

void ms_ledger_stream_arena(uint32_t i, const struct ms_stream_figures *record)
{
    int saved_errno = errno;
    ms_lock(&lock);
    ms_stream_arenas_put(i, record, ms_ledger_now());
    ms_unlock(&lock);
    errno = saved_errno;
}

/* A row that no segment has; UINT32_MAX without room. */
static uint32_t pools_take_row(void)
{
    uint64_t first;
    if (free_rows) {
        uint32_t row = free_rows - 1;
        free_rows = segment_row(row)->next;
        return row;
    }
    return ms_table_take(MS_TABLE_SEGMENTS, 1, &first) ? (uint32_t)first : UINT32_MAX;
}

void ms_ledger_segment_added(const struct ms_segment_record *segment)
{
    int saved_errno = errno;
    ms_lock(&lock);
    /* A reader of the file has the figures of the device by it, though the pool has told none yet. */
    uint32_t number = open_pool_row(segment->device) ? pools_take_row() : UINT32_MAX;
    if (number == UINT32_MAX) {
        ms_table_drop(MS_TABLE_SEGMENTS);
    } else {
        struct ms_segment_row *row = segment_row(number);
        row->record = *segment;
        row->born_ns = ms_ledger_now();
        row->next = *pools_bucket_of(segment->address);
        *pools_bucket_of(segment->address) = number + 1;
        any_segment = true;
        atomic_store_explicit(&row->state, MS_SEGMENT_THERE, memory_order_release);
    }
    ms_unlock(&lock);
    errno = saved_errno;
}

/* The link that leads to the row of the segment at this address; to 0 if there is none. */
static uint32_t *link_of(uint64_t address)
{
    uint32_t *link = pools_bucket_of(address);
    while (*link && segment_row(*link - 1)->record.address != address)
        link = &segment_row(*link - 1)->next;
    return link;
}

void ms_ledger_segment_removed(uint64_t address)
{
    ms_lock(&lock);
    uint32_t *link = link_of(address), number = *link;
    if (number) {
        struct ms_segment_row *row = segment_row(number - 1);
        atomic_store_explicit(&row->state, MS_SEGMENT_GONE, memory_order_release);
        *link = row->next;
        row->next = free_rows;
        free_rows = number;
    }
    ms_unlock(&lock);
}

/* --- reading --- */

bool ms_pools_read(int device, struct ms_pool_figures *record_p)
{
    if (device < 0 || (uint64_t)device >= ms_table_rows(MS_TABLE_POOLS) || !pool_row(device)->latest_ns)
        return false;
    *record_p = pool_row(device)->record;
    return true;
}

bool ms_stream_arenas_read(uint32_t i, struct ms_stream_figures *record_p)
{
    if (i >= ms_table_rows(MS_TABLE_STREAM_ARENAS))
        return false;
    *record_p = MS_ROWS(STREAM_ARENAS, struct ms_stream_arena_row)[i].record;
    return true;
}

const struct ms_segment_row *ms_segments_at(uint64_t i, bool *past_p)
{
    *past_p = i >= ms_table_rows(MS_TABLE_SEGMENTS);
    if (*past_p)
        return NULL;
    const struct ms_segment_row *row = segment_row((uint32_t)i);
    return atomic_load_explicit(&row->state, memory_order_acquire) == MS_SEGMENT_THERE ? row : NULL;
}

bool ms_pools_lock_within(unsigned timeout_ms)
{
    return ms_lock_within(&lock, timeout_ms);
}

void ms_pools_unlock(void)
{
    ms_unlock(&lock);
}

static void pools_reset(void)
{
    if (any_segment) /* or else its pages stay untouched */
        memset(buckets, 0, sizeof buckets);
    any_segment = false;
    free_rows = 0;
    memset(quiet, 0, sizeof quiet);
    memset(reserved_now, 0, sizeof reserved_now);
    ms_lock_reset(&lock);
}
MS_AT_FORK(MS_FORK_RECORD, pools_reset);
