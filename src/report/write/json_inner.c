/* json_inner.c - the inner layer: heaps[], inner_devices[], inner_sites[], inner_leaks[], inner_segments[],
 * inner_timeline.
 *
 * Floor 4. Nothing is written where no allocator of the program's reported anything. The lists have the
 * members of those of the outer layer, so that whoever reads a report may take them in their place. */
#include <string.h>

#include "record/reader/snapshot_heaps.h"
#include "report/write/json.h"

enum { PIECES_OF_SEGMENT_MAX = 10000, EMPTY_SEGMENTS_MAX = 10000 };

static json_t *heap_json(const struct ms_heap_row *heap)
{
    uint64_t reserved = atomic_load(&heap->reserved_bytes), peak = atomic_load(&heap->peak_reserved_bytes);
    json_t *json =
        json_pack("{s:o, s:s}", "name", ms_out_string(heap->name), "api", ms_events_api_name(heap->api));
    ms_json_set_device(json, heap->device);
    json_object_set_new(json, "live_bytes", json_integer((json_int_t)heap->live_bytes));
    json_object_set_new(json, "live_count", json_integer((json_int_t)heap->live_count));
    if (!peak)
        return json;
    json_object_set_new(json, "reserved_bytes", json_integer((json_int_t)reserved));
    json_object_set_new(json, "peak_reserved_bytes", json_integer((json_int_t)peak));
    json_object_set_new(
        json, "cached_bytes",
        json_integer(reserved > heap->live_bytes ? (json_int_t)(reserved - heap->live_bytes) : 0));
    return json;
}

static json_t *inner_device_json(int number, const struct ms_snapshot *snapshot)
{
    const struct ms_account *account = &snapshot->devices[MS_LAYER_ACCOUNTS + (unsigned)number].account;
    const struct ms_amount *amount = &account->device;
    struct ms_device_info info;
    uint64_t reserved, most;
    if (!ms_events_device(number, &info))
        memset(&info, 0, sizeof info);
    ms_snapshot_heaps(snapshot, number, &reserved, &most);
    reserved = reserved > amount->live_bytes ? reserved : amount->live_bytes;
    most = most > amount->peak_live_bytes ? most : amount->peak_live_bytes;
    return json_pack("{s:i, s:s, s:o, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I}", "index",
                     ms_device_index(number), "api", ms_device_api(number), "name", ms_out_string(info.name),
                     "total_bytes", (json_int_t)info.total_bytes, "live_bytes",
                     (json_int_t)amount->live_bytes, "live_count", (json_int_t)amount->live_count,
                     "peak_live_bytes", (json_int_t)amount->peak_live_bytes, "peak_ns",
                     (json_int_t)account->peak_ns, "held_bytes", (json_int_t)reserved, "peak_held_bytes",
                     (json_int_t)(most > reserved ? most : reserved), "cached_bytes",
                     (json_int_t)(reserved - amount->live_bytes), "allocated_bytes",
                     (json_int_t)amount->total_bytes, "allocated_count", (json_int_t)amount->total_count);
}

/* --- the segments in which inner blocks lie --- */

static bool is_segment(const struct ms_block *outer, const struct ms_block *inner)
{
    return outer->space == MS_SPACE_ADDRESS && outer->device == ms_device_plain(inner->device) &&
           inner->key >= outer->key && inner->key - outer->key < outer->bytes;
}

/* The outer block around an inner one; NULL if none is known: its memory is mapped piece by piece, or was not
 * among those that were kept. Both lists are in order, so that the search goes on where it was. */
static const struct ms_block *segment_around(const struct ms_snapshot_blocks *outer, uint64_t *at_p,
                                             const struct ms_block *inner)
{
    int device = ms_device_plain(inner->device);
    while (*at_p < outer->count) {
        const struct ms_block *block = &outer->list[*at_p];
        if (is_segment(block, inner))
            return block;
        if (block->device > device ||
            (block->device == device && (block->space > MS_SPACE_ADDRESS || block->key > inner->key)))
            return NULL;
        ++*at_p;
    }
    return NULL;
}

static void pieces_add(json_t *pieces, uint64_t offset, uint64_t bytes, const struct ms_block *inner,
                       uint32_t outer_sites)
{
    json_t *json =
        json_pack("{s:I, s:I, s:I, s:s}", "offset", (json_int_t)offset, "bytes", (json_int_t)bytes,
                  "requested", (json_int_t)(inner ? inner->requested : 0), "state", inner ? "live" : "free");
    if (inner && inner->site != UINT32_MAX)
        json_object_set_new(json, "site", json_integer(inner->site - outer_sites));
    if (inner) {
        json_object_set_new(json, "api", json_string(ms_events_api_name(inner->api)));
        json_object_set_new(json, "kind", json_string(ms_json_kind_name(inner->kind)));
        json_object_set_new(json, "thread", json_integer(inner->thread));
        json_object_set_new(json, "born_ns", json_integer((json_int_t)inner->born_ns));
        const char *name = ms_phase_text_at((uint32_t)inner->stream);
        if (*name)
            json_object_set_new(json, "name", ms_out_string(name));
    }
    json_array_append_new(pieces, json);
}

/* The end of the stretch that begins with the inner block at `at`: its segment's, or, where none is known,
 * that of the last block that lies side by side with it. */
static uint64_t stretch_end(const struct ms_snapshot_blocks *inner, uint64_t at,
                            const struct ms_block *segment)
{
    if (segment)
        return segment->key + segment->bytes;
    uint64_t end = inner->list[at].key + inner->list[at].bytes;
    for (at++; at < inner->count && inner->list[at].key == end &&
               inner->list[at].device == inner->list[at - 1].device;
         at++)
        end += inner->list[at].bytes;
    return end;
}

/* One segment with the inner blocks from `at` on. Returns the first that lies behind it. */
static uint64_t write_segment(struct ms_out *out, const struct ms_snapshot *snapshot, uint64_t at,
                              const struct ms_block *segment)
{
    const struct ms_snapshot_blocks *inner = &snapshot->blocks[MS_LAYER_INNER];
    int device = segment ? segment->device : ms_device_plain(inner->list[at].device);
    uint64_t begin = segment ? segment->key : inner->list[at].key, end = stretch_end(inner, at, segment),
             place = begin;
    uint64_t left_out = 0;
    json_t *pieces = json_array(), *json = json_object();
    for (;
         at < inner->count && ms_device_plain(inner->list[at].device) == device && inner->list[at].key < end;
         at++) {
        const struct ms_block *block = &inner->list[at];
        if (block->key < place || block->bytes > end - block->key ||
            json_array_size(pieces) >= PIECES_OF_SEGMENT_MAX) {
            left_out++;
            continue;
        }
        if (block->key > place)
            pieces_add(pieces, place - begin, block->key - place, NULL, 0);
        pieces_add(pieces, block->key - begin, block->bytes, block, snapshot->outer_sites);
        place = block->key + block->bytes;
    }
    if (end > place && json_array_size(pieces) < PIECES_OF_SEGMENT_MAX)
        pieces_add(pieces, place - begin, end - place, NULL, 0);
    ms_json_set_device(json, device);
    json_t *rest = json_pack("{s:o, s:I, s:s, s:s, s:o, s:s}", "address", ms_out_hex(begin), "bytes",
                             (json_int_t)(end - begin), "tier", segment ? "framework" : "mapped", "backing",
                             "vendor", "blocks", pieces, "space", "address");
    json_object_update(json, rest);
    json_decref(rest);
    if (left_out)
        json_object_set_new(json, "blocks_left_out", json_integer((json_int_t)left_out));
    if (segment && segment->site != UINT32_MAX)
        json_object_set_new(json, "outer_site", json_integer(segment->site));
    ms_out_element(out, json);
    return at;
}

static void write_segments(struct ms_out *out, const struct ms_snapshot *snapshot)
{
    const struct ms_snapshot_blocks *inner = &snapshot->blocks[MS_LAYER_INNER];
    uint64_t outer_at = 0;
    for (uint64_t at = 0; at < inner->count;) {
        const struct ms_block *segment =
            segment_around(&snapshot->blocks[MS_LAYER_OUTER], &outer_at, &inner->list[at]);
        at = write_segment(out, snapshot, at, segment);
    }
}

/* Segments in which no piece lies; only PyTorch's are known to be any. */
static void write_empty_segments(struct ms_out *out, const struct ms_snapshot *snapshot)
{
    const struct ms_snapshot_blocks *inner = &snapshot->blocks[MS_LAYER_INNER],
                                    *outer = &snapshot->blocks[MS_LAYER_OUTER];
    uint64_t at = 0, written = 0;
    for (uint64_t i = 0; i < outer->count && written < EMPTY_SEGMENTS_MAX; i++) {
        const struct ms_block *segment = &outer->list[i];
        while (at < inner->count && (ms_device_plain(inner->list[at].device) < segment->device ||
                                     (ms_device_plain(inner->list[at].device) == segment->device &&
                                      inner->list[at].key < segment->key)))
            at++;
        if (segment->space != MS_SPACE_ADDRESS || !ms_kind_is_device(segment->kind) || segment->device < 0 ||
            (at < inner->count && is_segment(segment, &inner->list[at])) ||
            !ms_snapshot_is_pytorchs(snapshot, segment))
            continue;
        write_segment(out, snapshot, at, segment);
        written++;
    }
}

/* An allocator may have no memory for its first piece. */
static bool has_inner_oom(const struct ms_events_copy *events)
{
    for (unsigned i = 0; i < events->oom_count; i++) {
        if (ms_device_is_inner(events->ooms[i].device))
            return true;
    }
    return false;
}

void ms_json_inner(struct ms_out *out, const struct ms_report_input *input)
{
    const struct ms_snapshot *snapshot = input->snapshot;
    if (!snapshot->heap_count && snapshot->site_count == snapshot->outer_sites) {
        if (has_inner_oom(&snapshot->events))
            ms_json_ooms(out, input, MS_LAYER_INNER);
        return;
    }
    ms_out_key(out, "heaps");
    ms_out_begin_array(out);
    for (uint32_t i = 0; i < snapshot->heap_count; i++) {
        if (snapshot->heaps[i].device >= 0 || snapshot->heaps[i].live_count) /* else it is but a name */
            ms_out_element(out, heap_json(&snapshot->heaps[i]));
    }
    ms_out_end_array(out);

    ms_out_key(out, "inner_devices");
    ms_out_begin_array(out);
    for (int i = 0; i < MS_DEVICES_MAX; i++) {
        if (snapshot->devices[MS_LAYER_ACCOUNTS + i].account.device.total_count)
            ms_out_element(out, inner_device_json(i, snapshot));
    }
    ms_out_end_array(out);

    ms_json_layer_sites(out, input, MS_LAYER_INNER);
    ms_out_key(out, "inner_segments");
    ms_out_begin_array(out);
    write_segments(out, snapshot);
    write_empty_segments(out, snapshot);
    ms_out_end_array(out);
    ms_json_timeline(out, snapshot, MS_LAYER_INNER);
    ms_json_ooms(out, input, MS_LAYER_INNER);
}
