/* timeline.c - a device's live bytes over time, in a bounded number of equal stretches.
 *
 * Floor 2. Called under the device's account lock; the stretches come from the arena once. When time runs
 * past the last stretch, each pair becomes one and the stretch twice as long: memory is constant and the
 * resolution follows the run.
 *
 * Invariant: values[i] is the most that was live in [i << shift, (i + 1) << shift), for all i <= last. */
#include "config.h"

#include <stddef.h>

#include "base/arena.h"
#include "ledger/internal.h"

enum { SHIFT_START = 20, BUCKETS_DEFAULT = 2048 }; /* a stretch is about a millisecond at first */

struct ms_timeline {
    unsigned shift, last;
    uint64_t values[];
};

static unsigned buckets = BUCKETS_DEFAULT;

void ms_timeline_configure(unsigned count)
{
    buckets = count;
}

unsigned ms_timeline_buckets(void)
{
    return buckets;
}

static uint64_t larger(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

static void halve(struct ms_timeline *timeline)
{
    unsigned count = timeline->last + 1;
    for (unsigned i = 0; i < count; i += 2)
        timeline->values[i / 2] = larger(timeline->values[i], i + 1 < count ? timeline->values[i + 1] : 0);
    timeline->last /= 2;
    timeline->shift++;
}

/* Stretches up to that of `now_ns` exist, and hold what was live since the last note. */
static void advance(struct ms_timeline *timeline, uint64_t now_ns, uint64_t live)
{
    while (now_ns >> timeline->shift >= buckets)
        halve(timeline);
    unsigned now = (unsigned)(now_ns >> timeline->shift);
    while (timeline->last < now)
        timeline->values[++timeline->last] = live;
}

void ms_timeline_note(struct ms_timeline **timeline_p, uint64_t now_ns, uint64_t before, uint64_t live)
{
    struct ms_timeline *timeline = *timeline_p;
    if (!timeline) {
        timeline = ms_arena_alloc(sizeof *timeline + buckets * sizeof timeline->values[0]);
        if (!timeline)
            return;
        timeline->shift = SHIFT_START;
        *timeline_p = timeline;
    }
    advance(timeline, now_ns, before);
    /* The clock was read before the lock was taken: a note may come late, and counts in the latest stretch
     * then. */
    timeline->values[timeline->last] = larger(timeline->values[timeline->last], live);
}

unsigned ms_timeline_shift(const struct ms_timeline *timeline)
{
    return timeline ? timeline->shift : 0;
}

unsigned ms_timeline_copy(const struct ms_timeline *timeline, unsigned shift, uint64_t now_ns, uint64_t live,
                          uint64_t *values, unsigned max)
{
    unsigned count = (unsigned)(now_ns >> shift) + 1;
    if (count > max)
        count = max;
    for (unsigned i = 0; i < count; i++)
        values[i] = 0;
    if (!timeline)
        return count;
    for (unsigned i = 0; i <= timeline->last; i++) {
        unsigned target = i >> (shift - timeline->shift);
        if (target < count)
            values[target] = larger(values[target], timeline->values[i]);
    }
    for (unsigned i = (timeline->last >> (shift - timeline->shift)) + 1; i < count; i++)
        values[i] = live;
    return count;
}
