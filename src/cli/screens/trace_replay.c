/* trace_replay.c - segments as they were at a moment of a recorded trace; see frag.h.
 *
 * Floor 5. A report has its segments as of its end, a trace where each block lay and when. Together they say
 * what lay at any moment in those segments that are there to the end. What lay between these blocks is not
 * known, and neither is a segment in which none of them lay: it may not have been there. The segments of
 * tensors are the blocks of that moment, which the trace has; what lies between tensors is free. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "cli/screens/frag.h"
#include "report/read/layer.h"

struct block {
    uint64_t address, bytes;
    size_t device;
    json_int_t site; /* its id; -1: not known */
};

struct range {
    uint64_t address, bytes;
    size_t device;
    const json_t *row;
};

struct playing {
    const struct ms_report *report;
    const struct ms_events *events;
    struct ms_frag_then *then; /* as long as devices[] */
    size_t devices;
    size_t *until;   /* by device: how many events of the list that is looked at had happened */
    size_t *born_of; /* by id: the event with which the block appeared, + 1 */
    bool *gone;      /* by that event */
    struct block *blocks;
    size_t block_count;
    struct range *ranges;
    size_t range_count;
};

static size_t trace_replay_device_of(const struct playing *playing, const struct ms_event *event)
{
    size_t device = playing->events->device[event->stream];

    return device < playing->devices ? device : SIZE_MAX;
}

/* --- the moment ----------------------------------------------------------------------------------------- */

/* Behind the event with which most was live, by device. */
static void find_peaks(struct playing *playing)
{
    json_int_t *live = calloc(playing->devices + 1, sizeof(*live));

    for (size_t i = 0; live && i < playing->events->count; i++) {
        const struct ms_event *event = &playing->events->rows[i];
        size_t d = trace_replay_device_of(playing, event);

        if (d == SIZE_MAX)
            continue;
        live[d] = ms_report_sum(live[d], event->free ? -(json_int_t)event->bytes : (json_int_t)event->bytes);
        if (live[d] > playing->then[d].live) {
            playing->then[d] = (struct ms_frag_then){.known = true, .ns = event->ns, .live = live[d]};
            playing->until[d] = i + 1;
        }
    }
    free(live);
}

/* Behind all events up to then. */
static void go_to(struct playing *playing, size_t device, json_int_t ns)
{
    struct ms_frag_then *then = &playing->then[device];

    *then = (struct ms_frag_then){.known = true, .ns = ns};
    playing->until[device] = 0;
    while (playing->until[device] < playing->events->count &&
           playing->events->rows[playing->until[device]].ns <= ns)
        playing->until[device]++;
    for (size_t i = 0; i < playing->until[device]; i++) {
        const struct ms_event *event = &playing->events->rows[i];

        if (trace_replay_device_of(playing, event) == device)
            then->live =
                ms_report_sum(then->live, event->free ? -(json_int_t)event->bytes : (json_int_t)event->bytes);
    }
}

static void find_ooms(struct playing *playing)
{
    json_t *oom;
    size_t i;

    for (i = 0; i < playing->devices; i++)
        playing->then[i].ns = -1;
    json_array_foreach (ms_report_array(playing->report->root, "oom"), i, oom) {
        size_t device = ms_report_device_of(playing->report, oom);

        if (device < playing->devices)
            playing->then[device].ns = ms_report_int(oom, "t_ns");
    }
    for (i = 0; i < playing->devices; i++)
        if (playing->then[i].ns >= 0)
            go_to(playing, i, playing->then[i].ns);
}

/* --- what was live -------------------------------------------------------------------------------------- */

/* Ids count up from 1 with the blocks that appear; what does not is left as if it had never gone. */
static void find_gone(struct playing *playing, const struct ms_event *rows, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const struct ms_event *event = &rows[i];
        size_t d = trace_replay_device_of(playing, event), born;

        if (event->id > count)
            continue;
        if (!event->free) {
            playing->born_of[event->id] = i + 1;
            continue;
        }
        born = playing->born_of[event->id];
        if (born && d != SIZE_MAX && i < playing->until[d])
            playing->gone[born - 1] = true;
    }
}

static int trace_replay_by_address(const void *a, const void *b)
{
    const struct block *x = a, *y = b;

    return x->address < y->address ? -1 : x->address > y->address;
}

static void list_live(struct playing *playing, const struct ms_event *rows, size_t count)
{
    find_gone(playing, rows, count);
    for (size_t i = 0; i < count; i++) {
        const struct ms_event *event = &rows[i];
        size_t d = trace_replay_device_of(playing, event);

        if (event->free || playing->gone[i] || d == SIZE_MAX || i >= playing->until[d])
            continue;
        playing->blocks[playing->block_count++] = (struct block){
            .address = event->address,
            .bytes = event->bytes,
            .device = d,
            .site = event->site == SIZE_MAX
                        ? -1
                        : ms_report_int(json_array_get(playing->report->sites, event->site), "id")};
    }
    if (playing->block_count)
        qsort(playing->blocks, playing->block_count, sizeof(*playing->blocks), trace_replay_by_address);
}

/* --- segments ------------------------------------------------------------------------------------------- */

static int by_range(const void *a, const void *b)
{
    const struct range *x = a, *y = b;

    return x->address < y->address ? -1 : x->address > y->address;
}

/* Those of the pool that have addresses. */
static void list_ranges(struct playing *playing, const json_t *segments)
{
    json_t *row;
    size_t i;

    json_array_foreach (segments, i, row) {
        const char *space = ms_report_text(row, "space");
        struct range range = {.address = strtoull(ms_report_text(row, "address"), NULL, 16),
                              .bytes = (uint64_t)ms_report_int(row, "bytes"),
                              .device = ms_report_device_of(playing->report, row),
                              .row = row};

        if (range.device < playing->devices && range.address && range.bytes <= (uint64_t)1 << 50 &&
            range.address < (uint64_t)1 << 62 && strcmp(ms_report_text(row, "tier"), "followed") != 0 &&
            (!*space || !strcmp(space, "address")))
            playing->ranges[playing->range_count++] = range;
    }
    if (playing->range_count)
        qsort(playing->ranges, playing->range_count, sizeof(*playing->ranges), by_range);
}

/* The blocks of that moment, in which tensors lay. */
static void list_blocks(struct playing *playing, json_t *made)
{
    const struct ms_events *events = playing->events;

    size_t *until = playing->until, *blocks_until = calloc(playing->devices + 1, sizeof(*blocks_until));

    for (size_t d = 0; blocks_until && d < playing->devices; d++) {
        while (blocks_until[d] < events->block_count && playing->then[d].known &&
               events->blocks[blocks_until[d]].ns <= playing->then[d].ns)
            blocks_until[d]++;
    }
    if (blocks_until) {
        playing->until = blocks_until;
        list_live(playing, events->blocks, events->block_count);
        playing->until = until;
    }
    free(blocks_until);
    for (size_t i = 0; i < playing->block_count; i++) {
        const struct block *block = &playing->blocks[i];
        const json_t *device =
            json_array_get(ms_report_array(playing->report->root, "devices"), block->device);
        json_t *row;

        if (!block->address || !block->bytes || block->bytes > (uint64_t)1 << 50)
            continue;
        row = json_pack("{s:o, s:I, s:s, s:s, s:s, s:O}", "address",
                        json_sprintf("0x%llx", (unsigned long long)block->address), "bytes",
                        (json_int_t)block->bytes, "tier", "framework", "backing", "vendor", "space",
                        "address", "device", json_object_get(device, "index"));
        if (json_object_get(device, "api"))
            json_object_set(row, "device_api", json_object_get(device, "api"));
        json_array_append_new(made, row);
    }
    memset(playing->gone, 0, events->block_count * sizeof(*playing->gone));
    playing->block_count = 0;
}

static void trace_replay_add_gap(json_t *pieces, uint64_t from, uint64_t to, const char *state)
{
    if (to > from)
        json_array_append_new(pieces,
                              json_pack("{s:I, s:I, s:I, s:s}", "offset", (json_int_t)from, "bytes",
                                        (json_int_t)(to - from), "requested", (json_int_t)0, "state", state));
}

/* The row of a segment with the blocks from *next_p on that lay in it; NULL if none did. */
static json_t *row_then(struct playing *playing, const struct range *range, size_t *next_p)
{
    json_t *pieces = json_array(), *row;
    const char *between = ms_report_is_inner(playing->report) ? "free" : "unknown";
    uint64_t at = 0;

    for (; *next_p < playing->block_count && playing->blocks[*next_p].address < range->address + range->bytes;
         ++*next_p) {
        const struct block *block = &playing->blocks[*next_p];
        uint64_t offset = block->address - range->address;
        json_t *piece;

        if (block->address < range->address + at || block->device != range->device || !block->bytes ||
            block->bytes > range->bytes - offset)
            continue; /* elsewhere, or nothing that a process says */
        trace_replay_add_gap(pieces, at, offset, between);
        piece = json_pack("{s:I, s:I, s:I, s:s}", "offset", (json_int_t)offset, "bytes",
                          (json_int_t)block->bytes, "requested", (json_int_t)block->bytes, "state", "live");
        if (block->site >= 0)
            json_object_set_new(piece, "site", json_integer(block->site));
        json_array_append_new(pieces, piece);
        at = offset + block->bytes;
        playing->then[block->device].placed_count++;
        playing->then[block->device].placed =
            ms_report_sum(playing->then[block->device].placed, (json_int_t)block->bytes);
    }
    if (!at) {
        json_decref(pieces);
        return NULL;
    }
    trace_replay_add_gap(pieces, at, range->bytes, between);
    row = json_copy((json_t *)(uintptr_t)range->row);
    json_object_set_new(row, "blocks", pieces);
    return row;
}

static json_t *make_segments(struct playing *playing)
{
    json_t *segments = json_array();
    size_t next = 0;

    for (size_t i = 0; i < playing->range_count; i++) {
        json_t *row = row_then(playing, &playing->ranges[i], &next);

        if (row)
            json_array_append_new(segments, row);
    }
    for (size_t i = 0; i < playing->block_count; i++)
        playing->then[playing->blocks[i].device].count++;
    return segments;
}

static void choose_moment(struct playing *playing, const struct ms_frag_moment *moment)
{
    if (moment->kind == MS_FRAG_AT_PEAK)
        find_peaks(playing);
    else if (moment->kind == MS_FRAG_AT_OOM)
        find_ooms(playing);
    for (size_t i = 0; moment->kind == MS_FRAG_AT_TIME && i < playing->devices; i++)
        go_to(playing, i, moment->ns);
}

json_t *ms_frag_segments_then(const struct ms_report *report, const struct ms_events *events,
                              const struct ms_frag_moment *moment, struct ms_frag_then *then)
{
    json_t *rows = ms_report_array(report->root, "segments"), *segments = NULL, *made = json_array();
    size_t most = events->count + events->block_count + 1;
    struct playing playing = {.report = report,
                              .events = events,
                              .then = then,
                              .devices = json_array_size(ms_report_array(report->root, "devices"))};

    playing.until = calloc(playing.devices + 1, sizeof(*playing.until));
    playing.born_of = calloc(most, sizeof(*playing.born_of));
    playing.gone = calloc(most, sizeof(*playing.gone));
    playing.blocks = calloc(most, sizeof(*playing.blocks));
    playing.ranges = calloc(json_array_size(rows) + most, sizeof(*playing.ranges));
    if (playing.until && playing.born_of && playing.gone && playing.blocks && playing.ranges) {
        choose_moment(&playing, moment);
        if (ms_report_is_inner(report)) {
            list_blocks(&playing, made);
            list_ranges(&playing, made);
        } else {
            list_ranges(&playing, rows);
        }
        list_live(&playing, events->rows, events->count);
        segments = make_segments(&playing);
    }
    free(playing.until);
    free(playing.born_of);
    free(playing.gone);
    free(playing.blocks);
    free(playing.ranges);
    json_decref(made);
    return segments;
}
