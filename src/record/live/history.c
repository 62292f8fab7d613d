/* history.c - a device's live bytes over time, in a bounded number of equal buckets.
 *
 * Floor 2. Called under the device's account lock, or that of pools.c for what the pool
 * holds; each account that needs one has a bucket of the table.
 * When time runs past the last bucket, each pair becomes one and the bucket twice as long: memory is
 * constant and the resolution follows the run.
 *
 * Invariant: values[i] is the most that was live in [i << shift, (i + 1) << shift), for all i <= last. While
 * that is not so `shift` has the bit CHANGING. */
#include <stddef.h>

#include "record/live/internal.h"

enum {
    SHIFT_START = 20,
    BUCKETS_DEFAULT = 2048,
    BUCKETS_MIN = 16,
    BUCKETS_MAX = 1 << 20
}; /* a bucket is about a millisecond at first */

static unsigned buckets = BUCKETS_DEFAULT;
/* Of a device, and of its inner layer, which has its live bytes alone. */
enum { LINES = MS_SERIES_COUNT + 1, LINES_ALL = LINES * MS_LAYER_ACCOUNTS };
static struct ms_history *_Atomic timelines[LINES_ALL];

void ms_history_configure(unsigned count)
{
    buckets = count;
}

unsigned ms_history_buckets(void)
{
    return buckets;
}

/* Device by device, so that few devices need few rows. Memory of no device comes first: it is rare, but
 * devices are numbered from 0. */
static unsigned history_place_of(enum ms_series series, unsigned account)
{
    unsigned line = account < MS_LAYER_ACCOUNTS ? series : MS_SERIES_COUNT;
    return (account + 1) % MS_LAYER_ACCOUNTS * LINES + line;
}

struct ms_history *ms_history_of(unsigned account, bool create)
{
    return ms_history_of_series(MS_SERIES_LIVE, account, create);
}

struct ms_history *ms_history_of_series(enum ms_series series, unsigned account, bool create)
{
    if (account >= MS_LAYER_ACCOUNTS && series != MS_SERIES_LIVE)
        return NULL;
    uint64_t place = history_place_of(series, account), rows = buckets + 1;
    struct ms_history *timeline = atomic_load_explicit(&timelines[place], memory_order_relaxed);
    if (timeline || !create || !ms_table_reserve(MS_TABLE_TIMELINE, (place + 1) * rows))
        return timeline;
    if (ms_table_rows(MS_TABLE_TIMELINE) < (place + 1) * rows)
        ms_table_publish(MS_TABLE_TIMELINE, (place + 1) * rows);
    timeline = (void *)(MS_ROWS(TIMELINE, uint64_t) + place * rows);
    timeline->shift = SHIFT_START;
    atomic_store_explicit(&timelines[place], timeline, memory_order_relaxed);
    return timeline;
}

static uint64_t larger(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

static void halve(struct ms_history *timeline)
{
    unsigned count = timeline->last + 1, shift = timeline->shift;
    timeline->shift = shift | MS_HISTORY_CHANGING;
    atomic_signal_fence(memory_order_seq_cst);
    for (unsigned i = 0; i < count; i += 2)
        timeline->values[i / 2] = larger(timeline->values[i], i + 1 < count ? timeline->values[i + 1] : 0);
    timeline->last /= 2;
    atomic_thread_fence(memory_order_release);
    timeline->shift = shift + 1;
}

/* Stretches up to that of `now_ns` exist, and hold what was live since the last note. */
static void advance(struct ms_history *timeline, uint64_t now_ns, uint64_t live)
{
    while (now_ns >> timeline->shift >= buckets)
        halve(timeline);
    unsigned now = (unsigned)(now_ns >> timeline->shift);
    while (timeline->last < now) {
        timeline->values[timeline->last + 1] = live;
        timeline->last++;
    }
}

void ms_history_note(struct ms_history *timeline, uint64_t now_ns, uint64_t before, uint64_t live)
{
    if (!timeline)
        return;
    advance(timeline, now_ns, before);
    /* The clock was read before the lock was taken: a note may come late, and counts in the latest bucket
     * then. */
    timeline->values[timeline->last] = larger(timeline->values[timeline->last], live);
}

uint64_t ms_history_until(const struct ms_history *timeline)
{
    return (timeline->last + UINT64_C(1)) << timeline->shift;
}

unsigned ms_history_shift(const struct ms_history *timeline)
{
    return timeline ? timeline->shift % MS_HISTORY_CHANGING : 0;
}

unsigned ms_history_copy(const struct ms_history *timeline, unsigned shift, uint64_t now_ns, uint64_t live,
                         uint64_t *values, unsigned max)
{
    unsigned count = (unsigned)(now_ns >> shift) + 1;
    if (count > max)
        count = max;
    for (unsigned i = 0; i < count; i++)
        values[i] = 0;
    if (!timeline)
        return count;
    unsigned coarser = shift - ms_history_shift(timeline);
    for (unsigned i = 0; i <= timeline->last; i++) {
        uint64_t target = (uint64_t)i >> coarser;
        if (target < count)
            values[target] = larger(values[target], timeline->values[i]);
    }
    for (uint64_t i = ((uint64_t)timeline->last >> coarser) + 1; i < count; i++)
        values[i] = live;
    return count;
}

static bool is_whole(const struct ms_history *timeline)
{
    return timeline->shift && timeline->shift < 63 && timeline->last < buckets;
}

void ms_history_adopt(unsigned count)
{
    buckets = count >= BUCKETS_MIN && count <= BUCKETS_MAX ? count : BUCKETS_DEFAULT;
    for (uint64_t place = 0; place < LINES_ALL; place++) {
        uint64_t rows = buckets + 1;
        struct ms_history *timeline = (void *)(MS_ROWS(TIMELINE, uint64_t) + place * rows);
        if (ms_table_reserved(MS_TABLE_TIMELINE) < (place + 1) * rows || !is_whole(timeline))
            continue;
        for (unsigned k = 0; k <= timeline->last; k++)
            timeline->values[k] &= INT64_MAX;
        atomic_store_explicit(&timelines[place], timeline, memory_order_relaxed);
    }
}

static void timeline_reset(void)
{
    for (unsigned i = 0; i < LINES_ALL; i++)
        atomic_store_explicit(&timelines[i], NULL, memory_order_relaxed);
}
MS_AT_FORK(MS_FORK_RECORD, timeline_reset);
