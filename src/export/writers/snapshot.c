/* snapshot.c - a snapshot as PyTorch's memory_viz reads it, of all memory of the devices.
 *
 * Floor 4. Reference: torch/csrc/cuda/memory_snapshot.cpp, torch/cuda/_memory_viz.py and MemoryViz.js: blocks
 * tile their segment, a free is asked for and completed, every block lies in a segment. Frames are written
 * once and meant again: files would be many times as large. */
#include <stdlib.h>
#include <string.h>

#include "export/blocks.h"
#include "export/export.h"
#include "export/pickle.h"

enum key {
    ACTION,
    ACTIVE_SIZE,
    ADDR,
    ADDRESS,
    ALLOCATED_SIZE,
    BLOCKS,
    DEVICE,
    DEVICE_FREE,
    EXPANDABLE,
    FILENAME,
    FRAMES,
    LINE,
    NAME,
    POOL_ID,
    REQUESTED_SIZE,
    SEGMENT_TYPE,
    SIZE,
    STATE,
    STREAM,
    TIME_US,
    TOTAL_SIZE,
    KEYS
};

static const char *const key_names[KEYS] = {
    "action",         "active_size",   "addr",     "address", "allocated_size", "blocks",  "device",
    "device_free",    "is_expandable", "filename", "frames",  "line",           "name",    "segment_pool_id",
    "requested_size", "segment_type",  "size",     "state",   "stream",         "time_us", "total_size"};

/* A snapshot that is written. The pickle keeps values under numbers from the first on: keys, then frames,
 * then the stacks of sites. */
struct snapshot {
    FILE *out;
    const struct ms_model *model;
    const struct ms_map *map;
    bool kept[KEYS];
    bool *frame_kept, *site_kept;
    int64_t start_us;
};

static void put_key(struct snapshot *snapshot, enum key key)
{
    if (snapshot->kept[key]) {
        ms_pickle_again(snapshot->out, (uint32_t)key);
        return;
    }
    ms_pickle_text(snapshot->out, key_names[key]);
    ms_pickle_keep(snapshot->out, (uint32_t)key);
    snapshot->kept[key] = true;
}

static void snapshot_put_number(struct snapshot *snapshot, enum key key, uint64_t value)
{
    put_key(snapshot, key);
    ms_pickle_number(snapshot->out, (int64_t)(value & INT64_MAX));
}

static void put_text(struct snapshot *snapshot, enum key key, const char *text)
{
    put_key(snapshot, key);
    ms_pickle_text(snapshot->out, text);
}

static void snapshot_put_frame(struct snapshot *snapshot, uint32_t number)
{
    const struct ms_model_frame *frame = &snapshot->model->frames[number];

    if (snapshot->frame_kept[number]) {
        ms_pickle_again(snapshot->out, (uint32_t)KEYS + number);
        return;
    }
    ms_pickle_dict(snapshot->out);
    put_text(snapshot, NAME, frame->name);
    put_text(snapshot, FILENAME, *frame->file ? frame->file : "??");
    snapshot_put_number(snapshot, LINE, (uint64_t)frame->line);
    ms_pickle_dict_end(snapshot->out);
    ms_pickle_keep(snapshot->out, (uint32_t)KEYS + number);
    snapshot->frame_kept[number] = true;
}

/* Innermost first. The first of a site's own frames is the device, which has a place of its own here. */
static void snapshot_put_frames(struct snapshot *snapshot, size_t site)
{
    const struct ms_model *model = snapshot->model;
    uint32_t number = (uint32_t)(KEYS + model->frame_count + site);
    struct ms_pickle_list list;

    put_key(snapshot, FRAMES);
    if (site != SIZE_MAX && snapshot->site_kept[site]) {
        ms_pickle_again(snapshot->out, number);
        return;
    }
    list = ms_pickle_list(snapshot->out);
    for (size_t k = site == SIZE_MAX ? 1 : model->sites[site].depth; k > 1; k--) {
        ms_pickle_next(snapshot->out, &list);
        snapshot_put_frame(snapshot, model->path[model->sites[site].first + k - 1]);
    }
    ms_pickle_list_end(snapshot->out);
    if (site == SIZE_MAX)
        return;
    ms_pickle_keep(snapshot->out, number);
    snapshot->site_kept[site] = true;
}

static void put_block(struct snapshot *snapshot, const struct ms_map_block *block)
{
    static const char *const states[] = {[MS_BLOCK_LIVE] = "active_allocated",
                                         [MS_BLOCK_PENDING] = "active_pending_free",
                                         [MS_BLOCK_FREE] = "inactive"};

    ms_pickle_dict(snapshot->out);
    snapshot_put_number(snapshot, ADDRESS, block->address);
    snapshot_put_number(snapshot, SIZE, block->bytes);
    snapshot_put_number(snapshot, REQUESTED_SIZE, block->requested);
    put_text(snapshot, STATE, states[block->state]);
    snapshot_put_frames(snapshot, block->state == MS_BLOCK_LIVE ? block->site : SIZE_MAX);
    ms_pickle_dict_end(snapshot->out);
}

/* The stream of the first block that is live. */
static uint64_t stream_of(const struct ms_map *map, const struct ms_map_segment *segment)
{
    for (size_t i = segment->first; i < segment->first + segment->count; i++)
        if (map->blocks[i].state == MS_BLOCK_LIVE)
            return map->blocks[i].stream;
    return 0;
}

static void put_sums(struct snapshot *snapshot, const struct ms_map_segment *segment)
{
    uint64_t live = 0, pending = 0, requested = 0;

    for (size_t i = segment->first; i < segment->first + segment->count; i++) {
        const struct ms_map_block *block = &snapshot->map->blocks[i];

        live += block->state == MS_BLOCK_LIVE ? block->bytes : 0;
        pending += block->state == MS_BLOCK_PENDING ? block->bytes : 0;
        requested += block->requested;
    }
    snapshot_put_number(snapshot, ALLOCATED_SIZE, live);
    snapshot_put_number(snapshot, ACTIVE_SIZE, live + pending);
    snapshot_put_number(snapshot, REQUESTED_SIZE, requested);
}

static void put_segment(struct snapshot *snapshot, const struct ms_map_segment *segment)
{
    struct ms_pickle_list list;

    ms_pickle_dict(snapshot->out);
    snapshot_put_number(snapshot, DEVICE, segment->device);
    snapshot_put_number(snapshot, ADDRESS, segment->address);
    snapshot_put_number(snapshot, TOTAL_SIZE, segment->bytes);
    put_sums(snapshot, segment);
    snapshot_put_number(snapshot, STREAM, stream_of(snapshot->map, segment));
    put_text(snapshot, SEGMENT_TYPE, !strcmp(segment->tier, "run") ? "small" : "large");
    put_key(snapshot, POOL_ID);
    ms_pickle_pair(snapshot->out);
    put_key(snapshot, EXPANDABLE);
    ms_pickle_flag(snapshot->out, false);
    snapshot_put_frames(snapshot, SIZE_MAX);
    put_key(snapshot, BLOCKS);
    list = ms_pickle_list(snapshot->out);
    for (size_t i = segment->first; i < segment->first + segment->count; i++) {
        ms_pickle_next(snapshot->out, &list);
        put_block(snapshot, &snapshot->map->blocks[i]);
    }
    ms_pickle_list_end(snapshot->out);
    ms_pickle_dict_end(snapshot->out);
}

static void put_entry(struct snapshot *snapshot, struct ms_pickle_list *list, const char *action,
                      const struct ms_map_event *event)
{
    ms_pickle_next(snapshot->out, list);
    ms_pickle_dict(snapshot->out);
    put_text(snapshot, ACTION, action);
    if (event->kind == MS_MAP_OOM)
        snapshot_put_number(snapshot, DEVICE_FREE, event->left);
    else
        snapshot_put_number(snapshot, ADDR, event->address);
    snapshot_put_number(snapshot, SIZE, event->bytes);
    snapshot_put_number(snapshot, STREAM, event->stream);
    snapshot_put_number(snapshot, TIME_US, (uint64_t)(snapshot->start_us + event->ns / 1000));
    snapshot_put_frames(snapshot, event->site);
    ms_pickle_dict_end(snapshot->out);
}

/* A block that was a segment by itself comes with that, and takes it with it. */
static void put_event(struct snapshot *snapshot, struct ms_pickle_list *list,
                      const struct ms_map_event *event)
{
    switch (event->kind) {
    case MS_MAP_ALLOC:
        if (event->alone)
            put_entry(snapshot, list, "segment_alloc", event);
        put_entry(snapshot, list, "alloc", event);
        break;
    case MS_MAP_FREE:
        put_entry(snapshot, list, "free_requested", event);
        put_entry(snapshot, list, "free_completed", event);
        if (event->alone)
            put_entry(snapshot, list, "segment_free", event);
        break;
    case MS_MAP_OOM:
    default:
        put_entry(snapshot, list, "oom", event);
    }
}

static void put_traces(struct snapshot *snapshot)
{
    size_t devices = json_array_size(ms_report_array(snapshot->model->report->root, "devices"));
    struct ms_pickle_list traces = ms_pickle_list(snapshot->out);
    size_t i = 0;

    for (size_t device = 0; device < devices; device++) {
        struct ms_pickle_list list;

        ms_pickle_next(snapshot->out, &traces);
        list = ms_pickle_list(snapshot->out);
        for (; i < snapshot->map->event_count && snapshot->map->events[i].device == device; i++)
            put_event(snapshot, &list, &snapshot->map->events[i]);
        ms_pickle_list_end(snapshot->out);
    }
    ms_pickle_list_end(snapshot->out);
}

static void put_snapshot(struct snapshot *snapshot)
{
    struct ms_pickle_list list;

    ms_pickle_begin(snapshot->out);
    ms_pickle_dict(snapshot->out);
    ms_pickle_text(snapshot->out, "segments");
    list = ms_pickle_list(snapshot->out);
    for (size_t i = 0; i < snapshot->map->segment_count; i++) {
        ms_pickle_next(snapshot->out, &list);
        put_segment(snapshot, &snapshot->map->segments[i]);
    }
    ms_pickle_list_end(snapshot->out);
    ms_pickle_text(snapshot->out, "device_traces");
    put_traces(snapshot);
    ms_pickle_text(snapshot->out, "allocator_settings");
    ms_pickle_dict(snapshot->out);
    ms_pickle_dict_end(snapshot->out);
    ms_pickle_dict_end(snapshot->out);
    ms_pickle_end(snapshot->out);
}

int ms_export_snapshot(FILE *out, const struct ms_export *job)
{
    json_int_t start = ms_report_int(json_object_get(job->model->report->root, "run"), "start_unix_ns");
    struct ms_map map;
    struct snapshot snapshot = {.out = out,
                                .model = job->model,
                                .map = &map,
                                .frame_kept = calloc(job->model->frame_count + 1, sizeof(bool)),
                                .site_kept = calloc(job->model->site_count + 1, sizeof(bool)),
                                .start_us = start > 0 ? start / 1000 : 0};
    int result = snapshot.frame_kept && snapshot.site_kept ? ms_map_open(&map, job->model, job->events) : -1;

    if (result == 0) {
        put_snapshot(&snapshot);
        ms_map_close(&map);
    }
    free(snapshot.frame_kept);
    free(snapshot.site_kept);
    return result;
}
