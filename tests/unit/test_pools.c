/* test_pools.c - what the record holds of the pool: figures, segments that come and go, the map for the report. */
#include "config.h"

#include "ledger/internal.h"
#include "ledger/snapshot.h"
#include "tests/tap.h"

static const struct ms_api_info apis[] = {{"alloc", "test"}};
static struct ms_snapshot snapshot;

static void add(uint64_t address, uint64_t bytes)
{
    ms_ledger_segment_added(
        &(struct ms_segment_record){.address = address, .bytes = bytes, .context = 7, .device = 1, .tier = 1});
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

static void piece(uint64_t address, uint64_t offset, uint64_t bytes, enum ms_piece_state state, uint32_t ticket)
{
    const struct ms_segment_record segment = {.address = address, .bytes = 1 << 20, .device = 1, .tier = 2, .pinned = true};
    const struct ms_piece_record record = {.offset = offset, .bytes = bytes, .state = (uint8_t)state, .ticket = ticket,
                                           .requested = state == MS_PIECE_LIVE ? bytes : 0};

    ms_ledger_map_piece(&segment, &record);
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
    ok(!segment_at(1 << 21) && segment_at(2 << 21) && segment_at(2 << 21)->record.context == 7, "and the right ones did");
    uint64_t rows = ms_table_rows(MS_TABLE_SEGMENTS);
    for (uint64_t i = 1; i <= 1500; i++)
        add((i + 5000) << 21, 1 << 20);
    ok(segment_count() == 3000 && ms_table_rows(MS_TABLE_SEGMENTS) == rows, "their rows are used again");
}

static void test_map(void)
{
    uint64_t a = 2 << 21, b = 4 << 21;

    ok(ms_ledger_map_begin(), "a map can be made");
    piece(a, 0, 4096, MS_PIECE_LIVE, 9);
    piece(a, 4096, 4096, MS_PIECE_LIVE, 10);
    piece(a, 8192, 512, MS_PIECE_FREE, 0);
    piece(a, 8704, 512, MS_PIECE_FREE, 0);
    piece(a, 9216, 512, MS_PIECE_LIMBO, 0);
    piece(b, 0, 512, MS_PIECE_FREE, 0);
    piece(12345, 0, 512, MS_PIECE_FREE, 0);
    const struct ms_segment_row *row = segment_at(a);
    ok(row->pieces == 4 && ms_pieces_of(row, 2)->bytes == 1024 && !ms_pieces_of(row, 4),
       "free neighbours are one piece, blocks are not");
    is_u64(ms_pieces_of(row, 1)->ticket, 10, "a block has its ticket");
    ok(row->record.tier == 2 && row->record.pinned, "how the segment is used is known now");
    ok(segment_at(b)->pieces == 1 && ms_pieces_of(segment_at(b), 0)->bytes == 512, "the next segment has its own");
    ms_ledger_map_begin();
    ok(!segment_at(a)->pieces, "a new map begins empty");
    for (uint64_t i = 0; i < 10010; i++)
        piece(a, i * 64, 64, MS_PIECE_LIVE, 1);
    ok(row->pieces == 10000 && row->pieces_left_out == 10, "what is too much of one segment is counted");
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
    struct ms_pool_record record = {.reserved_bytes = 100, .peak_reserved_bytes = 100, .misses = 3};

    record.parts = record.peak_parts = (struct ms_parts){.requested = 60, .limbo = 40};
    ok(!ms_pools_read(1, &record), "no figures at first");
    ms_ledger_pool(1, &record);
    record.reserved_bytes = 80;
    record.parts = (struct ms_parts){.cached = 80};
    record.peak_reserved_bytes = 90;
    ms_ledger_pool(1, &record);
    ms_ledger_pool(-1, &record);
    ms_ledger_pool(MS_DEVICES_MAX, &record);
    if (ms_snapshot_take(&snapshot, 10) != 0)
        bail("no memory for a snapshot");
    const struct ms_snapshot_device *device = &snapshot.devices[1];
    ok(device->has_pool && !snapshot.devices[0].has_pool, "a device's own");
    ok(device->pool.reserved_bytes == 80 && device->pool.parts.cached == 80 && device->pool.misses == 3, "the latest");
    ok(device->pool.peak_reserved_bytes == 100 && device->pool.peak_parts.limbo == 40,
       "but the highest peak, though it was heard before");
    is_u64(most(device->reserved), 100, "the timeline has the most that was reserved");
    is_u64(most(device->limbo), 40, "and that was in limbo");
    ms_snapshot_release(&snapshot);
}

int main(void)
{
    plan(17);
    ms_ledger_init(apis, 1);
    test_segments();
    test_map();
    test_figures();
    return done();
}
