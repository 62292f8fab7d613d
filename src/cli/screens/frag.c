/* frag.c - see frag.h.
 *
 * Floor 5. What a segment strands is laid to the call sites whose blocks lie in it, in proportion to what
 * they hold there: free those blocks, and the segment can be given back. */
#include "cli/screens/frag.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

json_int_t ms_frag_fragmented(const struct ms_frag_segment *segment)
{
    return segment->blocks ? segment->uses[MS_FRAG_FREE] + segment->uses[MS_FRAG_UNKNOWN] : 0;
}

json_int_t ms_frag_index(const struct ms_frag_device *device)
{
    if (device->free_bytes <= 0 || device->largest_free >= device->free_bytes)
        return 0;
    return 1000 - (json_int_t)(1000.0 * (double)device->largest_free / (double)device->free_bytes + 0.5);
}

static enum ms_frag_use use_of(const char *state)
{
    static const char *const names[MS_FRAG_USES] = {
        [MS_FRAG_LIVE] = "live", [MS_FRAG_PENDING] = "limbo",   [MS_FRAG_PINNED] = "pinned",
        [MS_FRAG_FREE] = "free", [MS_FRAG_UNKNOWN] = "unknown", [MS_FRAG_ROUNDING] = "rounding",
    };
    for (unsigned use = 0; use < MS_FRAG_USES; use++)
        if (!strcmp(state, names[use]))
            return (enum ms_frag_use)use;
    return MS_FRAG_FREE;
}

/* A figure of a report, cut to what makes sense in a segment. */
static json_int_t within(json_int_t value, json_int_t most)
{
    return value < 0 ? 0 : value > most ? most : value;
}

/* A piece of unknown use may be one of those that are left out: it is not told as free. */
static void add_piece(struct ms_frag_segment *segment, const json_t *piece, bool is_hidden)
{
    enum ms_frag_use use = use_of(ms_report_text(piece, "state"));
    json_int_t bytes = within(ms_report_int(piece, "bytes"), segment->bytes);
    json_int_t requested = within(ms_report_int(piece, "requested"), bytes);

    if (use == MS_FRAG_UNKNOWN && is_hidden) {
        segment->hidden_bytes += bytes;
        return;
    }
    if (use == MS_FRAG_LIVE) {
        segment->blocks++;
        segment->uses[MS_FRAG_ROUNDING] += bytes - requested;
        bytes = requested;
    }
    segment->uses[use] += bytes;
    if ((use == MS_FRAG_FREE || use == MS_FRAG_UNKNOWN) && bytes > segment->largest_gap)
        segment->largest_gap = bytes;
}

static bool read_segment(const json_t *json, struct ms_frag_segment *segment, bool is_hidden)
{
    json_t *piece;
    size_t i;

    *segment = (struct ms_frag_segment){.json = json, .bytes = ms_report_int(json, "bytes")};
    segment->address = (json_int_t)strtoll(ms_report_text(json, "address"), NULL, 16);
    if (segment->bytes <= 0 || segment->bytes > (json_int_t)1 << 50 ||
        !strcmp(ms_report_text(json, "tier"), "followed"))
        return false;
    json_array_foreach (ms_report_array(json, "blocks"), i, piece)
        add_piece(segment, piece, is_hidden);
    return true;
}

static int by_stranded(const void *a, const void *b)
{
    const struct ms_frag_segment *x = a, *y = b;
    json_int_t left = ms_frag_fragmented(x), right = ms_frag_fragmented(y);

    if (left != right)
        return left > right ? -1 : 1;
    return x->address < y->address ? -1 : x->address > y->address;
}

static int by_site(const void *a, const void *b)
{
    const struct ms_frag_holder *x = a, *y = b;

    return x->site < y->site ? -1 : x->site > y->site;
}

static int by_bytes(const void *a, const void *b)
{
    const struct ms_frag_holder *x = a, *y = b;

    if (x->stranded != y->stranded)
        return x->stranded > y->stranded ? -1 : 1;
    return by_site(a, b);
}

/* One row per live block of a segment that strands something; then rows of one site become one. */
static size_t list_holders(const struct ms_frag_segment *segment, struct ms_frag_holder *rows)
{
    json_int_t stranded = ms_frag_fragmented(segment), live = segment->uses[MS_FRAG_LIVE];
    size_t count = 0, i;
    json_t *piece;

    json_array_foreach (ms_report_array(segment->json, "blocks"), i, piece) {
        json_int_t bytes = within(ms_report_int(piece, "requested"), segment->bytes);
        json_t *site = json_object_get(piece, "site");

        if (!site || use_of(ms_report_text(piece, "state")) != MS_FRAG_LIVE)
            continue;
        rows[count++] = (struct ms_frag_holder){
            .site = json_integer_value(site),
            .live = bytes,
            .segments = 1,
            .stranded = live > 0 ? (json_int_t)((double)stranded * (double)bytes / (double)live) : 0};
    }
    return count;
}

static size_t merge_holders(struct ms_frag_holder *rows, size_t count, bool same_segment)
{
    size_t kept = 0, i;

    if (count)
        qsort(rows, count, sizeof(*rows), by_site);
    for (i = 0; i < count; i++) {
        if (kept && rows[kept - 1].site == rows[i].site) {
            rows[kept - 1].stranded += rows[i].stranded;
            rows[kept - 1].live += rows[i].live;
            rows[kept - 1].segments += same_segment ? 0 : rows[i].segments;
        } else {
            rows[kept++] = rows[i];
        }
    }
    return kept;
}

static int find_holders(struct ms_frag_device *device)
{
    size_t blocks = 0, i, first;

    for (i = 0; i < device->segment_count; i++)
        blocks += (size_t)device->segments[i].blocks;
    device->holders = calloc(blocks + 1, sizeof(*device->holders));
    if (!device->holders)
        return -1;
    for (i = 0; i < device->segment_count; i++) {
        if (!ms_frag_fragmented(&device->segments[i]))
            continue;
        first = device->holder_count;
        device->holder_count += merge_holders(
            device->holders + first, list_holders(&device->segments[i], device->holders + first), true);
    }
    device->holder_count = merge_holders(device->holders, device->holder_count, false);
    if (device->holder_count)
        qsort(device->holders, device->holder_count, sizeof(*device->holders), by_bytes);
    return 0;
}

static void add_segment(struct ms_frag_device *device, const json_t *row)
{
    struct ms_frag_segment *segment = &device->segments[device->segment_count];

    json_int_t left_out = ms_report_int(row, "bytes_left_out") ? ms_report_int(row, "blocks_left_out") : 0;

    if (!read_segment(row, segment, left_out || ms_report_int(device->json, "bytes_left_out")))
        return;
    device->left_out = ms_report_sum(device->left_out, left_out);
    device->segment_count++;
    device->free_bytes =
        ms_report_sum(device->free_bytes, segment->uses[MS_FRAG_FREE] + segment->uses[MS_FRAG_UNKNOWN]);
    device->unknown = device->unknown || segment->uses[MS_FRAG_UNKNOWN] > 0;
    if (segment->largest_gap > device->largest_free)
        device->largest_free = segment->largest_gap;
}

static int finish_device(struct ms_frag_device *device)
{
    if (device->segment_count)
        qsort(device->segments, device->segment_count, sizeof(*device->segments), by_stranded);
    return find_holders(device);
}

/* Room for each device's segments: a first pass counts them. Two rows of one device share nothing; the first
 * has them all. */
static int frag_make_room(const struct ms_report *report, struct ms_frag *frag, const json_t *segments)
{
    size_t *counts = calloc(frag->device_count + 1, sizeof(*counts)), i;
    int result = counts ? 0 : -1;
    json_t *row;

    json_array_foreach (segments, i, row) {
        size_t device = counts ? ms_report_device_of(report, row) : SIZE_MAX;

        if (device < frag->device_count)
            counts[device]++;
    }
    for (i = 0; i < frag->device_count && result == 0; i++) {
        frag->devices[i].segments = calloc(counts[i] + 1, sizeof(*frag->devices[i].segments));
        result = frag->devices[i].segments ? 0 : -1;
    }
    free(counts);
    return result;
}

/* The segments of an earlier moment. */
static int go_back(const struct ms_report *report, const struct ms_events *events, struct ms_frag *frag)
{
    frag->then = calloc(json_array_size(ms_report_array(report->root, "devices")) + 1, sizeof(*frag->then));
    if (frag->then)
        frag->segments = ms_frag_segments_then(report, events, &frag->moment, frag->then);
    return frag->segments ? 0 : -1;
}

int ms_frag_open(const struct ms_report *report, const struct ms_frag_moment *moment,
                 const struct ms_events *events, struct ms_frag *frag)
{
    json_t *devices = ms_report_array(report->root, "devices"), *row, *segments;
    int result;
    size_t i;

    *frag = (struct ms_frag){.devices = calloc(json_array_size(devices) + 1, sizeof(*frag->devices)),
                             .moment = *moment};
    if (!frag->devices || (moment->kind != MS_FRAG_AT_END && go_back(report, events, frag) < 0)) {
        ms_frag_close(frag);
        return -1;
    }
    segments = frag->segments ? frag->segments : ms_report_array(report->root, "segments");
    json_array_foreach (devices, i, row)
        frag->devices[frag->device_count++] =
            (struct ms_frag_device){.json = row,
                                    .index = ms_report_int(row, "index"),
                                    .left_out = ms_report_int(row, "blocks_left_out")};
    result = frag_make_room(report, frag, segments);
    json_array_foreach (segments, i, row) {
        size_t device = result == 0 ? ms_report_device_of(report, row) : SIZE_MAX;

        if (device < frag->device_count)
            add_segment(&frag->devices[device], row);
    }
    for (i = 0; i < frag->device_count && result == 0; i++)
        result = finish_device(&frag->devices[i]);
    if (result < 0)
        ms_frag_close(frag);
    return result;
}

void ms_frag_close(struct ms_frag *frag)
{
    size_t i;

    for (i = 0; i < frag->device_count; i++) {
        free(frag->devices[i].segments);
        free(frag->devices[i].holders);
    }
    free(frag->devices);
    free(frag->then);
    json_decref(frag->segments);
    *frag = (struct ms_frag){.device_count = 0};
}
