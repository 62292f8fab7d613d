/* test_timeline.c - each stretch holds the most that was live in it, however long the run becomes. */
#include "config.h"

#include "record/live/internal.h"
#include "tests/tap.h"

enum { BUCKETS = 16 };
static const uint64_t stretch = UINT64_C(1) << 20;

int main(void)
{
    struct ms_history *timeline;
    uint64_t values[BUCKETS];
    plan(14);
    ms_history_configure(BUCKETS);
    timeline = ms_history_of(3, true);
    if (!timeline)
        bail("no memory for a timeline");
    is_u64(ms_history_shift(NULL), 0, "nothing has no stretch");
    is_u64(ms_history_copy(NULL, 20, 3 * stretch, 0, values, BUCKETS), 4, "nothing is as long as the run");
    is_u64(values[3], 0, "and empty");

    ms_history_note(timeline, stretch / 2, 0, 100);
    ms_history_note(timeline, stretch / 2 + 1, 100, 30);
    ms_history_note(timeline, 4 * stretch, 30, 50);
    ms_history_copy(timeline, 20, 6 * stretch, 50, values, BUCKETS);
    is_u64(values[0], 100, "a peak within a stretch is kept");
    is_u64(values[2], 30, "what lives on is carried over stretches without events");
    is_u64(values[4], 50, "a later event");
    is_u64(values[6], 50, "and on to now");
    ms_history_note(timeline, 2 * stretch, 50, 70);
    ms_history_copy(timeline, 20, 6 * stretch, 70, values, BUCKETS);
    is_u64(values[4], 70, "a note that comes late counts in the latest stretch");

    ms_history_note(timeline, 100 * stretch, 70, 20);
    is_u64(ms_history_shift(timeline), 23, "stretches grow until the run fits");
    unsigned count = ms_history_copy(timeline, 23, 100 * stretch, 20, values, BUCKETS);
    is_u64(count, 13, "the run has as many as it needs");
    is_u64(values[0], 100, "and the peak is still there");
    is_u64(values[11], 70, "what lived on is, too");
    is_u64(values[12], 70, "the last stretch began with it");
    ms_history_copy(timeline, 24, 100 * stretch, 20, values, BUCKETS);
    ok(values[0] == 100 && values[6] == 70, "a copy can be coarser");
    return done();
}
