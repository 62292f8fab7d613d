/* snapshot_pool.c - what a snapshot has of the pool: figures, segments, and the pieces that lie in them.
 *
 * Floor 2. In the process the pool itself says all that, through ms_pool_source, while it stands still and
 * the record is locked: so figures, pieces and the rows of their blocks are of one moment. Of a record that
 * was read from a file, and where the pool cannot be stopped, there are the rows that the pool told last, and
 * no pieces. Runs under the snapshot's locks alone, on one thread at a time; nothing is allocated. */
#include "record/reader/snapshot_pool.h"

enum { PIECES_OF_SEGMENT_MAX = 10000, PIECES_MAX = 400000 };

static const struct ms_pool_source *_Atomic source;

/* The snapshot that is being told, and whether it is only counted what there is to tell. */
static struct ms_snapshot *listener;
static bool is_counting;
static uint64_t latest_address; /* of the segment that is being counted */

void ms_ledger_set_pool_source(const struct ms_pool_source *from)
{
    atomic_store_explicit(&source, from, memory_order_release);
}

bool ms_snapshot_pool_stop(unsigned timeout_ms, bool *has_source_p)
{
    const struct ms_pool_source *from = atomic_load_explicit(&source, memory_order_acquire);
    *has_source_p = from != NULL;
    return from && from->stop(timeout_ms);
}

void ms_snapshot_pool_go(void)
{
    atomic_load_explicit(&source, memory_order_acquire)->go();
}

void ms_snapshot_put_pool(int device, const struct ms_pool_figures *record)
{
    ms_pools_put(device, record, listener->now_ns);
}

void ms_snapshot_put_stream_arena(uint32_t i, const struct ms_stream_figures *record)
{
    ms_stream_arenas_put(i, record, listener->now_ns);
}

void ms_snapshot_pool_figures(struct ms_snapshot *snapshot)
{
    listener = snapshot;
    atomic_load_explicit(&source, memory_order_acquire)->tell_figures();
}

/* --- pieces --- */

static void count_piece(const struct ms_piece_record *piece)
{
    listener->segment_count += piece->segment->address != latest_address;
    latest_address = piece->segment->address;
    listener->piece_count += listener->piece_count < PIECES_MAX;
    listener->told_count += piece->record_id && listener->told_count < PIECES_MAX;
}

static struct ms_snapshot_segment *snapshot_pool_segment_of(const struct ms_segment_record *record)
{
    struct ms_snapshot_segment *latest = listener->segments + listener->segment_count;
    if (listener->segment_count && latest[-1].record.address == record->address)
        return latest - 1;
    if (listener->segment_count == listener->segment_room)
        return NULL;
    *latest = (struct ms_snapshot_segment){.record = *record, .first_piece = listener->piece_count};
    listener->segment_count++;
    return latest;
}

/* Tells what the record says of the block behind a record id: its number among those told, + 1; 0 if the
 * record says nothing of it: a call is under way between the two. */
static uint32_t block_of(uint32_t record_id, uint64_t address)
{
    struct ms_block block;
    if (!record_id || listener->told_count == listener->told_room || !ms_blocks_read(record_id, &block) ||
        !block.is_served || block.key != address)
        return 0;
    block.site = ms_snapshot_place(listener, block.site);
    listener->told[listener->told_count++] = block;
    return listener->told_count;
}

/* Neighbours of one use are one piece, unless they are blocks. */
static bool continues(const struct ms_snapshot_piece *last, const struct ms_piece_record *piece)
{
    return last->state == piece->state && piece->state != MS_PIECE_LIVE && !piece->requested &&
           !last->requested && last->offset + last->bytes == piece->offset;
}

static void put_piece(const struct ms_piece_record *piece)
{
    struct ms_snapshot_segment *segment = snapshot_pool_segment_of(piece->segment);
    struct ms_snapshot_piece *next = listener->pieces + listener->piece_count;
    if (!segment)
        return;
    if (segment->pieces && !segment->pieces_left_out && continues(next - 1, piece)) {
        next[-1].bytes += piece->bytes;
    } else if (segment->pieces < PIECES_OF_SEGMENT_MAX && listener->piece_count < listener->piece_room) {
        *next = (struct ms_snapshot_piece){.offset = piece->offset,
                                           .bytes = piece->bytes,
                                           .requested = piece->requested,
                                           .state = piece->state};
        next->block = block_of(piece->record_id, piece->segment->address + piece->offset);
        listener->piece_count++;
        segment->pieces++;
    } else {
        segment->pieces_left_out++;
    }
}

void ms_snapshot_put_piece(const struct ms_piece_record *piece)
{
    if (is_counting)
        count_piece(piece);
    else
        put_piece(piece);
}

static void tell_pieces(struct ms_snapshot *snapshot, bool counting)
{
    listener = snapshot;
    is_counting = counting;
    latest_address = UINT64_MAX;
    atomic_load_explicit(&source, memory_order_acquire)->tell_pieces();
}

/* --- rows --- */

static uint32_t count_flows(void)
{
    struct ms_stream_figures flow;
    uint32_t count = 0;
    while (ms_stream_arenas_read(count, &flow))
        count++;
    return count;
}

static void copy_flows(struct ms_snapshot *snapshot)
{
    snapshot->flow_count = 0;
    while (snapshot->flow_count < snapshot->flow_room &&
           ms_stream_arenas_read(snapshot->flow_count, &snapshot->flows[snapshot->flow_count]))
        snapshot->flow_count++;
}

static void copy_rows(struct ms_snapshot *snapshot)
{
    bool past = false;
    for (uint64_t i = 0; !past && snapshot->segment_count < snapshot->segment_room; i++) {
        const struct ms_segment_row *row = ms_segments_at(i, &past);
        if (row)
            snapshot->segments[snapshot->segment_count++] =
                (struct ms_snapshot_segment){.record = row->record};
    }
}

void ms_snapshot_pool_count(struct ms_snapshot *snapshot, bool is_told)
{
    bool past = false;
    snapshot->flow_room = count_flows();
    snapshot->segment_count = snapshot->piece_count = snapshot->told_count = 0;
    if (is_told)
        tell_pieces(snapshot, true);
    for (uint64_t i = 0; !is_told && !past; i++)
        snapshot->segment_count += ms_segments_at(i, &past) != NULL;
    snapshot->segment_room = snapshot->segment_count;
    snapshot->piece_room = snapshot->piece_count;
    snapshot->told_room = snapshot->told_count;
    snapshot->segment_count = snapshot->piece_count = snapshot->told_count = 0;
}

void ms_snapshot_pool_copy(struct ms_snapshot *snapshot, bool is_told)
{
    copy_flows(snapshot);
    if (is_told)
        tell_pieces(snapshot, false);
    else
        copy_rows(snapshot);
}
