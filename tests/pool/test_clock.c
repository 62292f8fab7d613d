/* test_clock.c - the pool's clock by itself: which captures are open, and when a point of a stream's is
 * reached. */
#include "config.h"

#include "pool/clock/captures.h"
#include "pool/clock/fence_timeline.h"
#include "tests/pool/fake.h"
#include "tests/tap.h"

enum { ONE = 0x100, OTHER = 0x200, STREAM = 0x1000 };

static struct fake_context *context;
static struct ms_fence_timeline line;

static void test_captures(void)
{
    ms_captures_reset();
    ms_capture_set(STREAM, ONE, true);
    ms_capture_set(STREAM, ONE, true);
    ms_capture_set(STREAM + 16, OTHER, true);
    is_int(ms_open_captures, 2, "a capture that is told of twice is one");
    ok(ms_captures_in(ONE) && ms_captures_in(OTHER) && ms_captures_in(0), "each is in its own context");
    ms_capture_set(STREAM, ONE, false);
    ok(!ms_captures_in(ONE) && ms_captures_in(OTHER) && ms_captures_in(0), "one ends, another goes on");
    ms_capture_set(2, ONE, true);
    ok(ms_capture_is_open(2, ONE) && !ms_capture_is_open(2, OTHER),
       "the stream that each thread has is another one in each context");
    ms_captures_context_died(OTHER);
    ok(!ms_captures_in(OTHER) && !ms_capture_is_open(STREAM + 16, OTHER) && ms_captures_in(ONE),
       "what was open in a context ends with it");
    ms_capture_set(2, ONE, false);
    ok(!ms_captures_in(0) && ms_open_captures == 0, "and then none is");
}

static void fresh(void)
{
    const struct ms_gpu *gpu = fake_fresh((uint64_t)1 << 30);
    context = fake_context(0);
    fake_set_current(context);
    line = (struct ms_fence_timeline){0};
    ms_fence_timeline_begin(&line, gpu, (uintptr_t)context, MS_EVENTS_OF_STREAM);
}

static bool reached(uint64_t point)
{
    return ms_fence_timeline_is_reached(&line, point, 0);
}

static bool mark_in(uint64_t stream, uint64_t number)
{
    return ms_fence_timeline_mark(&line, (CUstream)stream, number) == CUDA_SUCCESS;
}

static bool mark(void)
{
    return mark_in(STREAM, ms_fence_timeline_latest(&line));
}

static void test_points(void)
{
    fresh();
    fake_issue(context);
    uint64_t a = ms_fence_timeline_point(&line), b = ms_fence_timeline_point(&line);
    ok(reached(0) && !reached(a), "without an event nothing is known of a point");
    ok(mark() && !reached(a) && !reached(b), "nor while it is not done");
    is_u64(ms_fence_timeline_covered(&line), b, "an event covers all points up to now");
    ok(!ms_fence_timeline_exact(&line, a) && ms_fence_timeline_exact(&line, b),
       "and is exact for the latest alone");
    uint64_t c = ms_fence_timeline_point(&line);
    mark();
    fake_finish(context);
    ok(reached(c), "a point is reached when its event is done");
    uint64_t asked = fake.calls[FAKE_QUERY];
    ok(reached(a) && reached(b) && fake.calls[FAKE_QUERY] == asked, "and so is what came before, unasked");
    uint64_t d = ms_fence_timeline_point(&line);
    ok(!reached(d) && !ms_fence_timeline_exact(&line, c), "what comes later is not");
}

static void test_taken_back(void)
{
    fresh();
    uint64_t a = ms_fence_timeline_point(&line);
    mark();
    fake_issue(context);
    uint64_t b = ms_fence_timeline_point(&line);
    mark();
    ms_fence_timeline_take_back(&line, b);
    ms_fence_timeline_take_back(&line, b);
    is_u64(ms_fence_timeline_covered(&line), a, "a mark that is taken back covers nothing");
    ok(reached(a) && !reached(b), "the one before it stays");
}

/* A host that is far ahead. */
static void test_full(void)
{
    enum { MANY = 3 * MS_EVENTS_OF_STREAM };
    uint64_t points[MANY], exact = 0, recorded = 0;
    fresh();
    fake_issue(context);
    for (int i = 0; i < MANY; i++) {
        points[i] = ms_fence_timeline_point(&line);
        recorded += mark();
    }
    for (int i = MANY - MS_EVENTS_OF_STREAM / 4; i < MANY; i++)
        exact += ms_fence_timeline_exact(&line, points[i]) != NULL;
    is_u64(recorded, MANY, "where there are too many marks there are new ones all the same");
    ok(ms_fence_timeline_exact(&line, points[0]) != NULL, "the oldest tells how far the stream got");
    is_u64(exact, MS_EVENTS_OF_STREAM / 4, "and the newest are exact");
    ok(!reached(points[MANY / 2]), "what lost its own is covered by a later one");
    fake_finish(context);
    ms_fence_timeline_poll(&line);
    ok(reached(points[MANY / 2]) && reached(points[MANY - 1]) && line.count == 0,
       "all are reached in the end");
}

/* A context without an event of its own: one in each of its streams. */
static void test_several(void)
{
    fresh();
    uint64_t a = ms_fence_timeline_point(&line);
    fake_issue(context);
    ok(mark_in(STREAM, 0) && ms_fence_timeline_covered(&line) == 0, "one of several events covers nothing");
    mark_in(STREAM + 16, a);
    ok(ms_fence_timeline_covered(&line) == a && !reached(a), "the last of them does");
    fake_finish(context);
    is_int(ms_fence_timeline_poll(&line), CUDA_SUCCESS, "when each is done");
    ok(reached(a) && line.count == 0, "it is reached");
    uint64_t b = ms_fence_timeline_point(&line);
    fake.takes_in = STREAM;
    mark_in(STREAM, 0);
    fake.takes_in = 0;
    mark_in(STREAM + 16, b);
    ms_fence_timeline_poll(&line);
    ok(!reached(b) && ms_fence_timeline_covered(&line) == a && line.count == 0,
       "what a capture took one of the events of is neither reached nor covered");
    mark_in(STREAM, b);
    ms_fence_timeline_poll(&line);
    ok(reached(b), "until another one tells");
    fake_issue(context);
    uint64_t c = ms_fence_timeline_point(&line), d = ms_fence_timeline_point(&line);
    mark_in(STREAM, c);
    mark_in(STREAM, 0);
    ms_fence_timeline_reach(&line, c);
    ok(reached(c) && !reached(d) && line.count == 1,
       "a wait of the program's reaches what was before it alone");
    uint64_t made = fake.calls[FAKE_EVENT_CREATE];
    mark_in(STREAM, d);
    is_u64(fake.calls[FAKE_EVENT_CREATE], made, "events are used again");
    for (uint32_t i = 0; i < 2 * MS_EVENTS_OF_STREAM; i++)
        mark_in(STREAM, 0);
    ok(line.count == MS_EVENTS_OF_STREAM && !mark_in(STREAM, d),
       "where there is no room for all of them there is none");
    fake_finish(context);
    ms_fence_timeline_poll(&line);
    ok(reached(d) && line.count == 0 && line.spare_count <= MS_EVENTS_OF_STREAM / 64, "and few are kept");
}

static void test_ends(void)
{
    fresh();
    fake_issue(context);
    uint64_t a = ms_fence_timeline_point(&line);
    mark();
    ms_fence_timeline_close(&line);
    ok(!reached(a), "when the stream ends its work goes on");
    fake_finish(context);
    ok(reached(a) && line.spare_count == 0, "and no event of it is kept");
    fake_issue(context);
    uint64_t b = ms_fence_timeline_point(&line);
    mark();
    ms_fence_timeline_end(&line, true);
    ok(reached(b), "with its context everything is over");
    ms_fence_timeline_begin(&line, line.gpu, (uintptr_t)context, MS_EVENTS_OF_STREAM);
    uint64_t c = ms_fence_timeline_point(&line);
    ok(reached(a) && reached(b) && !reached(c), "what begins in its place begins no number anew");
    fake.fail_at = fake.all_calls + 1;
    fake.fail_status = CUDA_ERROR_OUT_OF_MEMORY;
    ok(!mark() && ms_fence_timeline_covered(&line) < c, "an event that the driver refuses covers nothing");
}

int main(void)
{
    test_captures();
    test_points();
    test_taken_back();
    test_full();
    test_several();
    test_ends();
    return done();
}
