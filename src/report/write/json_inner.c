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

/* Of live pieces that are not shown. */
static void set_left_out(json_t *json, uint64_t count, uint64_t bytes)
{
    if (!count)
        return;
    json_object_set_new(json, "blocks_left_out", json_integer((json_int_t)count));
    json_object_set_new(json, "bytes_left_out", json_integer((json_int_t)bytes));
}

static json_t *inner_device_json(int number, const struct ms_snapshot *snapshot)
{
    const struct ms_snapshot_device *device = &snapshot->devices[MS_LAYER_ACCOUNTS + (unsigned)number];
    const struct ms_account *account = &device->account;
    const struct ms_amount *amount = &account->device;
    struct ms_device_info info;
    uint64_t reserved, most;
    if (!ms_events_device(number, &info))
        memset(&info, 0, sizeof info);
    ms_snapshot_heaps(snapshot, number, &reserved, &most);
    reserved = reserved > amount->live_bytes ? reserved : amount->live_bytes;
    most = most > amount->peak_live_bytes ? most : amount->peak_live_bytes;
    json_t *json =
        json_pack("{s:i, s:s, s:o, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I}", "index",
                  ms_device_index(number), "api", ms_device_api(number), "name", ms_out_string(info.name),
                  "total_bytes", (json_int_t)info.total_bytes, "live_bytes", (json_int_t)amount->live_bytes,
                  "live_count", (json_int_t)amount->live_count, "peak_live_bytes",
                  (json_int_t)amount->peak_live_bytes, "peak_ns", (json_int_t)account->peak_ns, "held_bytes",
                  (json_int_t)reserved, "peak_held_bytes", (json_int_t)(most > reserved ? most : reserved),
                  "cached_bytes", (json_int_t)(reserved - amount->live_bytes), "allocated_bytes",
                  (json_int_t)amount->total_bytes, "allocated_count", (json_int_t)amount->total_count);
    set_left_out(json, device->left_out_count, device->left_out_bytes);
    return json;
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

static void pieces_add(json_t *pieces, uint64_t offset, uint64_t bytes, const char *state,
                       const struct ms_block *inner, uint32_t outer_sites)
{
    json_t *json = json_pack("{s:I, s:I, s:I, s:s}", "offset", (json_int_t)offset, "bytes", (json_int_t)bytes,
                             "requested", (json_int_t)(inner ? inner->requested : 0), "state", state);
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

/* A damaged ledger may have blocks that end behind all addresses. */
static uint64_t end_of(uint64_t key, uint64_t bytes)
{
    return bytes < UINT64_MAX - key ? key + bytes : UINT64_MAX;
}

/* The end of the stretch that begins with the inner block at `at`: its segment's, or, where none is known,
 * that of the last block that lies side by side with it. */
static uint64_t stretch_end(const struct ms_snapshot_blocks *inner, uint64_t at,
                            const struct ms_block *segment)
{
    if (segment)
        return end_of(segment->key, segment->bytes);
    uint64_t end = end_of(inner->list[at].key, inner->list[at].bytes);
    for (at++; at < inner->count && inner->list[at].key == end &&
               inner->list[at].device == inner->list[at - 1].device;
         at++)
        end = end_of(end, inner->list[at].bytes);
    return end;
}

struct stretch {
    uint64_t begin, end, place; /* place: the end of what was added last */
    uint64_t left_out_count, left_out_bytes;
    const char *gap; /* the state of what lies between */
    json_t *pieces;
};

static bool is_full(const struct stretch *stretch)
{
    return json_array_size(stretch->pieces) >= PIECES_OF_SEGMENT_MAX;
}

static void stretch_add(struct stretch *stretch, const struct ms_block *block, uint32_t outer_sites)
{
    if (block->key < stretch->place || block->bytes > stretch->end - block->key || is_full(stretch)) {
        stretch->left_out_count++;
        stretch->left_out_bytes += block->bytes;
        return;
    }
    if (block->key > stretch->place)
        pieces_add(stretch->pieces, stretch->place - stretch->begin, block->key - stretch->place,
                   stretch->gap, NULL, 0);
    pieces_add(stretch->pieces, block->key - stretch->begin, block->bytes, "live", block, outer_sites);
    stretch->place = block->key + block->bytes;
}

/* Pieces that are not shown lie between others, or behind all: what seems free there may be theirs. */
static void stretch_close(struct stretch *stretch)
{
    if (stretch->end > stretch->place)
        pieces_add(stretch->pieces, stretch->place - stretch->begin, stretch->end - stretch->place,
                   is_full(stretch) ? "unknown" : stretch->gap, NULL, 0);
}

static json_t *segment_json(const struct stretch *stretch, const struct ms_block *segment, int device)
{
    json_t *json = json_object();
    ms_json_set_device(json, device);
    json_t *rest =
        json_pack("{s:o, s:I, s:s, s:s, s:o, s:s}", "address", ms_out_hex(stretch->begin), "bytes",
                  (json_int_t)(stretch->end - stretch->begin), "tier", segment ? "framework" : "mapped",
                  "backing", "vendor", "blocks", stretch->pieces, "space", "address");
    json_object_update(json, rest);
    json_decref(rest);
    set_left_out(json, stretch->left_out_count, stretch->left_out_bytes);
    if (segment && segment->site != UINT32_MAX)
        json_object_set_new(json, "outer_site", json_integer(segment->site));
    return json;
}

/* One segment with the inner blocks from `*at_p` on, which is the first behind it then. Returns how many of
 * them are not shown. */
static uint64_t write_segment(struct ms_out *out, const struct ms_snapshot *snapshot, uint64_t *at_p,
                              const struct ms_block *segment)
{
    const struct ms_snapshot_blocks *inner = &snapshot->blocks[MS_LAYER_INNER];
    uint64_t at = *at_p;
    int device = segment ? segment->device : ms_device_plain(inner->list[at].device);
    bool all = !snapshot->devices[ms_account_number(ms_device_inner(device))].left_out_count;
    struct stretch stretch = {.begin = segment ? segment->key : inner->list[at].key,
                              .end = stretch_end(inner, at, segment),
                              .gap = all ? "free" : "unknown",
                              .pieces = json_array()};
    stretch.place = stretch.begin;
    for (; at < inner->count && ms_device_plain(inner->list[at].device) == device &&
           inner->list[at].key < stretch.end;
         at++)
        stretch_add(&stretch, &inner->list[at], snapshot->outer_sites);
    stretch_close(&stretch);
    ms_out_element(out, segment_json(&stretch, segment, device));
    *at_p = at;
    return stretch.left_out_count;
}

/* Returns how many live pieces are not shown. */
static uint64_t write_segments(struct ms_out *out, const struct ms_snapshot *snapshot)
{
    const struct ms_snapshot_blocks *inner = &snapshot->blocks[MS_LAYER_INNER];
    uint64_t outer_at = 0, left_out = inner->total - inner->count;
    for (uint64_t at = 0; at < inner->count;) {
        const struct ms_block *segment =
            segment_around(&snapshot->blocks[MS_LAYER_OUTER], &outer_at, &inner->list[at]);
        if (stretch_end(inner, at, segment) > inner->list[at].key) {
            left_out += write_segment(out, snapshot, &at, segment);
        } else { /* none that has a length, which a damaged ledger may have */
            left_out++;
            at++;
        }
    }
    return left_out;
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
        write_segment(out, snapshot, &at, segment); /* in which none lies */
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

void ms_json_inner(struct ms_out *out, struct ms_report_input *input)
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
    input->pieces_left_out = write_segments(out, snapshot);
    write_empty_segments(out, snapshot);
    ms_out_end_array(out);
    ms_json_timeline(out, snapshot, MS_LAYER_INNER);
    ms_json_ooms(out, input, MS_LAYER_INNER);
}
