/* json_pools.c - pools[], and those of segments[] that belong to memshim's pool.
 *
 * Floor 4. In the process the pool has told what lies in a segment; of a record that was read from a file
 * only the live blocks are known, and what lies between them is one piece of unknown use. */
#include <stdlib.h>
#include <string.h>

#include "report/write/json.h"

enum { BLOCKS_OF_SEGMENT_MAX = 10000, STREAMS_OF_POOL_MAX = 256 };

static const char *const state_names[MS_PIECE_STATES] = {"live", "limbo", "free", "pinned"};

/* The figures of a device hold those of the program's own pools, which have rows of their own. */
static struct ms_pool_figures without_flows(const struct ms_snapshot *snapshot, int device)
{
    struct ms_pool_figures rest = snapshot->devices[device].pool;
    for (uint32_t i = 0; i < snapshot->flow_count; i++) {
        if (snapshot->flows[i].pool && snapshot->flows[i].device == device)
            ms_figure_less(&ms_figure_pool, &rest, &ms_figure_stream, &snapshot->flows[i]);
    }
    return rest;
}

static json_t *stream_json(const struct ms_stream_figures *flow)
{
    json_t *json = json_pack("{s:I, s:b, s:I}", "stream", (json_int_t)flow->stream, "ended", (int)flow->ended,
                             "hits", (json_int_t)(flow->hits[0] + flow->hits[1] + flow->hits[2]));
    ms_json_figures(json, &ms_figure_stream, MS_FIGURE_STREAM, flow);
    if (!flow->hoarded_bytes)
        json_object_del(json, "hoarded_bytes");
    return json;
}

static void set_pool(json_t *json, const char *kind, const struct ms_figure_list *list, unsigned told,
                     const void *figures)
{
    json_t *hits = json_object();
    ms_json_figures(hits, list, MS_FIGURE_TIER, figures);
    json_object_set_new(json, "kind", json_string(kind));
    json_object_set_new(json, "tier_hits", hits);
    ms_json_figures(json, list, told, figures);
}

static const char *json_pools_kind_of(const struct ms_stream_figures *flow)
{
    return flow->former ? "ended" : flow->by_program ? "program" : "default";
}

/* One of the program's own pools, with all its streams; or what is left of those that it destroyed. */
static json_t *mempool_json(const struct ms_snapshot *snapshot, int id, uint64_t number)
{
    struct ms_stream_figures sum;
    json_t *streams = json_array();
    memset(&sum, 0, sizeof sum);
    for (uint32_t i = 0; i < snapshot->flow_count; i++) {
        const struct ms_stream_figures *flow = &snapshot->flows[i];
        if (flow->pool != number)
            continue;
        ms_figure_add(&ms_figure_stream, &sum, flow);
        sum.device = flow->device;
        sum.by_program = flow->by_program;
        sum.former = flow->former;
        if (!flow->former && json_array_size(streams) < STREAMS_OF_POOL_MAX)
            json_array_append_new(streams, stream_json(flow));
    }
    json_t *json = json_pack("{s:i}", "id", id);
    ms_json_set_device(json, sum.device);
    set_pool(json, json_pools_kind_of(&sum), &ms_figure_stream, MS_FIGURE_POOL, &sum);
    json_object_set_new(json, "streams", streams);
    return json;
}

/* In the order of their numbers. */
static uint64_t next_pool(const struct ms_snapshot *snapshot, uint64_t number)
{
    uint64_t next = 0;
    for (uint32_t i = 0; i < snapshot->flow_count; i++) {
        uint64_t pool = snapshot->flows[i].pool;
        if (pool > number && (!next || pool < next))
            next = pool;
    }
    return next;
}

static json_t *pool_json(const struct ms_snapshot *snapshot, int id, int device)
{
    const struct ms_pool_figures own = without_flows(snapshot, device);
    json_t *json = json_pack("{s:i}", "id", id);
    ms_json_set_device(json, device);
    set_pool(json, "sync", &ms_figure_pool, MS_FIGURE_POOL | MS_FIGURE_OWN, &own);
    return json;
}

void ms_json_pools(struct ms_out *out, const struct ms_report_input *input)
{
    const struct ms_snapshot *snapshot = input->snapshot;
    int id = 0;
    ms_out_key(out, "pools");
    ms_out_begin_array(out);
    for (int i = 0; i < MS_DEVICES_MAX; i++) {
        if (snapshot->devices[i].has_pool)
            ms_out_element(out, pool_json(snapshot, id++, i));
    }
    for (uint64_t number = next_pool(snapshot, 0); number; number = next_pool(snapshot, number))
        ms_out_element(out, mempool_json(snapshot, id++, number));
    ms_out_end_array(out);
}

static json_t *piece_json(const struct ms_snapshot_piece *piece, const struct ms_snapshot *snapshot)
{
    json_t *json = json_pack("{s:I, s:I, s:I, s:s}", "offset", (json_int_t)piece->offset, "bytes",
                             (json_int_t)piece->bytes, "requested", (json_int_t)piece->requested, "state",
                             state_names[piece->state]);
    if (piece->state == MS_PIECE_LIVE && piece->block)
        ms_json_describe_block(json, &snapshot->told[piece->block - 1]);
    return json;
}

static json_t *told_blocks(const struct ms_snapshot_segment *segment, const struct ms_snapshot *snapshot)
{
    json_t *blocks = json_array();
    for (uint32_t i = 0; i < segment->pieces; i++)
        json_array_append_new(blocks, piece_json(&snapshot->pieces[segment->first_piece + i], snapshot));
    return blocks;
}

/* The first of the snapshot's blocks, which are in order, at or after this address of the device. */
static uint64_t first_block(const struct ms_snapshot *snapshot, int device, uint64_t address)
{
    const struct ms_snapshot_blocks *blocks = &snapshot->blocks[MS_LAYER_OUTER];
    uint64_t low = 0, high = blocks->count;
    while (low < high) {
        uint64_t middle = low + (high - low) / 2;
        const struct ms_block *block = &blocks->list[middle];
        bool before = block->device != device ? block->device < device
                                              : block->space == MS_SPACE_ADDRESS && block->key < address;
        if (before)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static void json_pools_add_gap(json_t *blocks, uint64_t offset, uint64_t end)
{
    if (end > offset)
        json_array_append_new(blocks,
                              json_pack("{s:I, s:I, s:i, s:s}", "offset", (json_int_t)offset, "bytes",
                                        (json_int_t)(end - offset), "requested", 0, "state", "unknown"));
}

static json_t *known_blocks(const struct ms_snapshot_segment *row, const struct ms_snapshot *snapshot)
{
    const struct ms_segment_record *segment = &row->record;
    const struct ms_snapshot_blocks *all = &snapshot->blocks[MS_LAYER_OUTER];
    json_t *blocks = json_array();
    uint64_t offset = 0, i = first_block(snapshot, segment->device, segment->address);
    for (unsigned kept = 0; i < all->count && kept < BLOCKS_OF_SEGMENT_MAX; i++) {
        const struct ms_block *block = &all->list[i];
        uint64_t at = block->key - segment->address;
        if (block->device != segment->device || block->space != MS_SPACE_ADDRESS || at >= segment->bytes)
            break;
        if (!block->is_served || at < offset || block->bytes > segment->bytes - at)
            continue;
        json_pools_add_gap(blocks, offset, at);
        json_t *json =
            json_pack("{s:I, s:I, s:I, s:s}", "offset", (json_int_t)at, "bytes", (json_int_t)block->bytes,
                      "requested", (json_int_t)block->requested, "state", "live");
        ms_json_describe_block(json, block);
        json_array_append_new(blocks, json);
        offset = at + block->bytes;
        kept++;
    }
    json_pools_add_gap(blocks, offset, segment->bytes);
    return blocks;
}

static json_t *segment_json(const struct ms_snapshot_segment *segment, const struct ms_snapshot *snapshot)
{
    const struct ms_segment_record *record = &segment->record;
    json_t *json = json_object(),
           *blocks = segment->pieces ? told_blocks(segment, snapshot) : known_blocks(segment, snapshot);
    ms_json_set_device(json, record->device);
    json_t *rest =
        json_pack("{s:o, s:I, s:s, s:s, s:o, s:I, s:b}", "address", ms_out_hex(record->address), "bytes",
                  (json_int_t)record->bytes, "tier", ms_figure_pool.rows[record->tier].key, "backing",
                  record->vmm ? "vmm" : "malloc", "blocks", blocks, "context", (json_int_t)record->context,
                  "pinned", (int)record->pinned);
    json_object_update(json, rest);
    json_decref(rest);
    if (segment->pieces_left_out)
        json_object_set_new(json, "blocks_left_out", json_integer(segment->pieces_left_out));
    return json;
}

void ms_json_pool_segments(struct ms_out *out, const struct ms_report_input *input)
{
    for (uint32_t i = 0; i < input->snapshot->segment_count; i++)
        ms_out_element(out, segment_json(&input->snapshot->segments[i], input->snapshot));
}
