/* test_pools.c - what the record holds of the pool: figures, segments that come and go, the map for the
 * report. */
#include "config.h"

#include "record/footprint/balance.h"
#include "record/live/internal.h"
#include "record/reader/snapshot.h"
#include "tests/tap.h"

static const struct ms_api_info apis[] = {{"alloc", "test"}};
static struct ms_snapshot snapshot;

static void add(uint64_t address, uint64_t bytes)
{
    ms_ledger_segment_added(&(struct ms_segment_record){
        .address = address, .bytes = bytes, .context = 7, .device = 1, .tier = 1});
}

static const struct ms_segment_row *segment_at(uint64_t address)
{
    bool past = false;

    for (uint64_t i = 0; !past; i++) {
        const struct ms_segment_row *row = ms_segments_at(i, &past);
        if (row && row->record.address == address)
            return row;
    }
    return NULL;
}

static unsigned segment_count(void)
{
    unsigned count = 0;
    bool past = false;

    for (uint64_t i = 0; !past; i++)
        count += ms_segments_at(i, &past) != NULL;
    return count;
}

/* --- a pool that tells what it is like --- */

static struct ms_pool_figures told_record;
static struct ms_stream_figures told_flow;
static unsigned stops, goes, big_pieces;
static bool may_stop;
static uint32_t tickets[2];

static bool stop(unsigned timeout_ms)
{
    stops++;
    return timeout_ms && may_stop;
}

static void go(void)
{
    goes++;
}

static void tell_figures(void)
{
    ms_snapshot_put_pool(1, &told_record);
    ms_snapshot_put_stream_arena(0, &told_flow);
}

static void piece(uint64_t address, uint64_t offset, uint64_t bytes, enum ms_piece_state state,
                  uint32_t record_id)
{
    const struct ms_segment_record segment = {
        .address = address, .bytes = 1 << 20, .device = 1, .tier = 2, .pinned = true};
    const struct ms_piece_record record = {.segment = &segment,
                                           .offset = offset,
                                           .bytes = bytes,
                                           .state = (uint8_t)state,
                                           .record_id = record_id,
                                           .requested = state == MS_PIECE_LIVE ? bytes : 0};

    ms_snapshot_put_piece(&record);
}

enum { A = 2 << 21, B = 4 << 21, BIG = 6 << 21, NEVER_TOLD = 8 << 21 };

static void tell_pieces(void)
{
    piece(A, 0, 4096, MS_PIECE_LIVE, tickets[0]);
    piece(A, 4096, 4096, MS_PIECE_LIVE, tickets[1]);
    piece(A, 8192, 512, MS_PIECE_FREE, 0);
    piece(A, 8704, 512, MS_PIECE_FREE, 0);
    piece(A, 9216, 512, MS_PIECE_PENDING, 0);
    piece(B, 0, 512, MS_PIECE_FREE, 0);
    for (uint64_t i = 0; i < big_pieces; i++)
        piece(BIG, i * 64, 64, MS_PIECE_LIVE, 0);
    piece(NEVER_TOLD, 0, 512, MS_PIECE_FREE, 0);
}

static const struct ms_pool_source source = {stop, tell_figures, tell_pieces, go};

static const struct ms_snapshot_segment *shown(uint64_t address)
{
    for (uint32_t i = 0; i < snapshot.segment_count; i++) {
        if (snapshot.segments[i].record.address == address)
            return &snapshot.segments[i];
    }
    return NULL;
}

static const struct ms_snapshot_piece *shown_piece(uint64_t address, uint32_t i)
{
    return &snapshot.pieces[shown(address)->first_piece + i];
}

static void take(void)
{
    if (ms_snapshot_take(&snapshot, 10, 10) != 0)
        bail("no memory for a snapshot");
}

static void test_segments(void)
{
    for (uint64_t i = 1; i <= 3000; i++)
        add(i << 21, 1 << 20);
    is_u64(segment_count(), 3000, "segments are there");
    for (uint64_t i = 1; i <= 3000; i += 2)
        ms_ledger_segment_removed(i << 21);
    ms_ledger_segment_removed(12345);
    is_u64(segment_count(), 1500, "until they go; one that never was changes nothing");
    ok(!segment_at(1 << 21) && segment_at(2 << 21) && segment_at(2 << 21)->record.context == 7,
       "and the right ones did");
    uint64_t rows = ms_table_rows(MS_TABLE_SEGMENTS);
    for (uint64_t i = 1; i <= 1500; i++)
        add((i + 5000) << 21, 1 << 20);
    ok(segment_count() == 3000 && ms_table_rows(MS_TABLE_SEGMENTS) == rows, "their rows are used again");
}

static uint32_t serve(uint64_t key)
{
    return ms_ledger_serve(&(struct ms_block){.key = key, .bytes = 4096, .requested = 4096, .device = 1});
}

static void test_told(void)
{
    tickets[0] = serve(A);
    tickets[1] = serve(A + 4096);
    ms_ledger_unserve(tickets[1], A + 4096, NULL);
    tickets[1] = serve(12345); /* has the same slot, and lies elsewhere */
    told_record = (struct ms_pool_figures){
        .reserved_bytes = 4 << 20, .peak_reserved_bytes = 4 << 20, .parts = {.cached = 4 << 20}};
    told_flow = (struct ms_stream_figures){.pool = 3, .stream = 4, .device = 1};
    may_stop = true;
    ms_ledger_set_pool_source(&source);
    take();
    ok(snapshot.consistent && stops == 1 && goes == 1, "the pool is stopped once, and goes on");
    ok(snapshot.devices[1].pool.reserved_bytes == 4 << 20 && snapshot.flow_count == 1 &&
           snapshot.flows[0].stream == 4,
       "its figures are those of that moment");
    ok(shown(A)->pieces == 4 && shown_piece(A, 2)->bytes == 1024,
       "free neighbours are one piece, blocks are not");
    ok(shown_piece(A, 0)->block && snapshot.told[shown_piece(A, 0)->block - 1].key == A,
       "a block is described by the record");
    ok(!shown_piece(A, 1)->block && shown_piece(A, 1)->state == MS_PIECE_LIVE,
       "but not where its ticket is another block's by now");
    ok(shown(A)->record.tier == 2 && shown(A)->record.pinned, "a segment is as it is used now");
    ok(shown(B)->pieces == 1 && shown_piece(B, 0)->bytes == 512, "the next segment has its own");
    ok(shown(NEVER_TOLD) && snapshot.segment_count == 3,
       "what the pool holds is what is shown, whatever was told before");
    ms_ledger_pool(1, &(struct ms_pool_figures){.reserved_bytes = 77});
    ms_ledger_segment_removed(A);
    ok(snapshot.devices[1].pool.reserved_bytes == 4 << 20 && shown(A),
       "what is told later changes nothing of it");
    ms_snapshot_release(&snapshot);
    big_pieces = 10010;
    take();
    ok(shown(BIG)->pieces == 10000 && shown(BIG)->pieces_left_out == 10,
       "what is too much of one segment is counted");
    ms_snapshot_release(&snapshot);
    may_stop = false;
    take();
    ok(!snapshot.consistent && goes == 2 && !snapshot.piece_count &&
           snapshot.segment_count == segment_count(),
       "where the pool cannot be stopped the record's own rows are shown, and that is said");
    ms_snapshot_release(&snapshot);
    ms_ledger_set_pool_source(NULL);
    ms_ledger_unserve(tickets[0], A, NULL);
    ms_ledger_unserve(tickets[1], 12345, NULL);
}

static uint64_t most(const uint64_t *line)
{
    uint64_t most = 0;

    for (unsigned i = 0; line && i < snapshot.timeline_count; i++)
        most = line[i] > most ? line[i] : most;
    return most;
}

static void test_figures(void)
{
    struct ms_pool_figures record = {.reserved_bytes = 100, .peak_reserved_bytes = 100, .misses = 3};

    record.parts = record.peak_parts = (struct ms_parts){.requested = 60, .pending = 40};
    ok(!ms_pools_read(1, &record), "no figures at first");
    ms_ledger_pool(1, &record);
    record.reserved_bytes = 80;
    record.parts = (struct ms_parts){.cached = 80};
    record.peak_reserved_bytes = 90;
    ms_ledger_pool(1, &record);
    ms_ledger_pool(-1, &record);
    ms_ledger_pool(MS_DEVICES_MAX, &record);
    take();
    const struct ms_snapshot_device *device = &snapshot.devices[1];
    ok(device->has_pool && !snapshot.devices[0].has_pool, "a device's own");
    ok(device->pool.reserved_bytes == 80 && device->pool.parts.cached == 80 && device->pool.misses == 3,
       "the latest");
    ok(device->pool.peak_reserved_bytes == 100 && device->pool.peak_parts.pending == 40,
       "but the highest peak, though it was heard before");
    is_u64(most(device->reserved), 100, "the timeline has the most that was reserved");
    is_u64(most(device->pending), 40, "and that was in limbo");
    ms_snapshot_release(&snapshot);
}

/* --- the course of what the program has of a device --- */

enum { COURSE_DEVICE = 3, COURSE_BUCKETS = 64, COURSE_EVENTS = 20000 };

/* The most that was held at any time in each bucket. */
struct course {
    uint64_t most[COURSE_BUCKETS];
    uint64_t held, bucket, peak;
};

static void course_goes_to(struct course *course, uint64_t bucket, uint64_t held)
{
    for (; course->bucket < bucket; course->bucket++)
        course->most[course->bucket + 1] = course->held;
    course->held = held;
    course->most[bucket] = held > course->most[bucket] ? held : course->most[bucket];
    course->peak = held > course->peak ? held : course->peak;
}

static uint32_t random_below(uint32_t bound)
{
    static uint64_t state = 7;

    state = state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(state >> 33) % bound;
}

/* Nearly all changes are within what was noted before, and none of those may be lost for it. */
static void test_course(void)
{
    static struct course course;
    struct ms_block_row rows[32] = {{.bytes = 0}};
    struct ms_pool_figures record = {.reserved_bytes = 0};
    const uint64_t stretch = (uint64_t)1
                             << ms_history_shift(ms_history_of_series(MS_SERIES_RESERVED, 0, true));
    uint64_t beside = 0, wrong = 0;

    for (unsigned i = 0; i < COURSE_EVENTS; i++) {
        struct ms_block_row *row = &rows[random_below(32)];
        uint64_t now_ns = stretch * COURSE_BUCKETS / COURSE_EVENTS * i;
        bool is_pool = random_below(10) == 0, comes = !is_pool && !row->bytes;

        if (is_pool)
            record.reserved_bytes = random_below(5000);
        else if (comes)
            *row = (struct ms_block_row){
                .bytes = 1 + random_below(1000), .device = COURSE_DEVICE, .tags = MS_KIND_HANDLE};
        beside += comes ? row->bytes : is_pool ? 0 : -row->bytes;
        course_goes_to(&course, now_ns / stretch, record.reserved_bytes + beside);
        if (is_pool)
            ms_pools_put(COURSE_DEVICE, &record, now_ns);
        else if (comes)
            ms_balance_follow(row, now_ns);
        else
            ms_balance_unfollow(row, now_ns);
        if (!is_pool && !comes)
            row->bytes = 0;
    }
    const struct ms_history *history =
        ms_history_of_series(MS_SERIES_RESERVED, ms_account_number(COURSE_DEVICE), false);
    for (unsigned i = 0; i <= course.bucket; i++)
        wrong += history->values[i] != course.most[i];
    is_u64(history->last, course.bucket, "the course goes on to its end");
    is_u64(wrong, 0, "and each stretch has the most that was held in it");
    is_u64(ms_pools_held_most(COURSE_DEVICE), course.peak, "as the peak is the most of all");
}

int main(void)
{
    plan(24);
    ms_ledger_init(apis, 1);
    test_segments();
    test_figures();
    test_told();
    test_course();
    return done();
}
