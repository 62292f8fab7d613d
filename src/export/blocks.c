/* blocks.c - see blocks.h.
 *
 * Floor 4. A block of the trace that was never freed is the live block at its address. Traces of earlier
 * versions, and of what has no address, do not say where a block lay: then it is the live block of the same
 * size, on the same device, that was born in the same turn. */
#include "export/blocks.h"

#include <stdlib.h>
#include <string.h>

/* The address from which on memory without an address of its own is put: above what any device uses, below
 * 2^62, from where handles that wait to be used again are counted (docs/user/report.md). */
#define NOWHERE   ((uint64_t)1 << 61)
#define BYTES_MAX ((uint64_t)1 << 50)

struct making {
    struct ms_map *map;
    const struct ms_model *model;
    uint64_t nowhere; /* the next free address there */
    size_t block_room, site_room;
    size_t *site_of_id; /* plus one */
};

static uint64_t bytes_of(const json_t *row, const char *key)
{
    json_int_t value = ms_report_int(row, key);

    return value <= 0 ? 0 : (uint64_t)value > BYTES_MAX ? BYTES_MAX : (uint64_t)value;
}

/* The number of a hexadecimal text, cut to what fits into a number with a sign, as pickles and JSON have
 * it. */
static uint64_t hex_of(const json_t *row, const char *key)
{
    return strtoull(ms_report_text(row, key), NULL, 16) & INT64_MAX;
}

static uint64_t take_nowhere(struct making *making, uint64_t bytes)
{
    uint64_t address = making->nowhere;

    making->nowhere += (bytes + 511) & ~(uint64_t)511;
    return address;
}

static size_t site_of(const struct making *making, const json_t *piece)
{
    json_t *site = json_object_get(piece, "site");
    json_int_t id = json_is_integer(site) ? json_integer_value(site) : -1;

    return id >= 0 && (size_t)id < making->site_room && making->site_of_id[id] ? making->site_of_id[id] - 1
                                                                               : SIZE_MAX;
}

static int add_block(struct making *making, const struct ms_map_block *block)
{
    struct ms_map *map = making->map;

    if (map->block_count == making->block_room) {
        size_t room = making->block_room ? making->block_room * 2 : 1024;
        struct ms_map_block *blocks = realloc(map->blocks, room * sizeof(*blocks));

        if (!blocks)
            return -1;
        map->blocks = blocks;
        making->block_room = room;
    }
    map->blocks[map->block_count++] = *block;
    return 0;
}

static int blocks_add_gap(struct making *making, uint64_t from, uint64_t to)
{
    struct ms_map_block gap = {.address = from, .bytes = to - from, .state = MS_BLOCK_FREE, .site = SIZE_MAX};

    return to > from ? add_block(making, &gap) : 0;
}

static struct ms_map_block read_piece(const struct making *making, const json_t *piece, uint64_t address)
{
    const char *state = ms_report_text(piece, "state");
    bool live = !strcmp(state, "live");
    struct ms_map_block block = {
        .address = address, .bytes = bytes_of(piece, "bytes"), .requested = bytes_of(piece, "requested")};

    block.state = live                                                  ? MS_BLOCK_LIVE
                  : !strcmp(state, "limbo") || !strcmp(state, "pinned") ? MS_BLOCK_PENDING
                                                                        : MS_BLOCK_FREE;
    block.requested = !live ? 0 : block.requested < block.bytes ? block.requested : block.bytes;
    block.site = site_of(making, piece);
    block.born_ns = live && ms_report_int(piece, "born_ns") > 0 ? ms_report_int(piece, "born_ns") : 0;
    block.stream = hex_of(piece, "stream");
    return block;
}

static int add_pieces(struct making *making, const json_t *row, const struct ms_map_segment *segment)
{
    uint64_t at = segment->address, end = segment->address + segment->bytes;
    const json_t *piece;
    size_t i;

    json_array_foreach (ms_report_array(row, "blocks"), i, piece) {
        uint64_t offset = bytes_of(piece, "offset");
        struct ms_map_block block = read_piece(making, piece, segment->address + offset);

        if (block.address < at || !block.bytes || block.address >= end || block.bytes > end - block.address)
            continue;
        if (blocks_add_gap(making, at, block.address) < 0 || add_block(making, &block) < 0)
            return -1;
        at = block.address + block.bytes;
    }
    return blocks_add_gap(making, at, end);
}

static int add_segment(struct making *making, const json_t *row)
{
    struct ms_map *map = making->map;
    struct ms_map_segment *segment = &map->segments[map->segment_count];
    const char *space = ms_report_text(row, "space");
    const json_t *first = json_array_get(ms_report_array(row, "blocks"), 0);

    *segment = (struct ms_map_segment){.device = ms_report_device_of(making->model->report, row),
                                       .bytes = bytes_of(row, "bytes"),
                                       .tier = ms_report_text(row, "tier"),
                                       .first = map->block_count};
    if (segment->device == SIZE_MAX || !segment->bytes || (first && !ms_report_is_device_memory(first)))
        return 0;
    segment->address = hex_of(row, "address");
    if ((*space && strcmp(space, "address") != 0) || !segment->address || segment->address >= NOWHERE)
        segment->address = take_nowhere(making, segment->bytes);
    if (add_pieces(making, row, segment) < 0)
        return -1;
    segment->count = map->block_count - segment->first;
    map->segment_count++;
    return 0;
}

static int blocks_by_address(const void *a, const void *b)
{
    const struct ms_map_segment *x = a, *y = b;

    return x->address < y->address ? -1 : x->address > y->address;
}

/* Of segments that overlap the first stands. */
static void drop_overlaps(struct ms_map *map)
{
    size_t kept = 0;

    if (map->segment_count)
        qsort(map->segments, map->segment_count, sizeof(*map->segments), blocks_by_address);
    for (size_t i = 0; i < map->segment_count; i++)
        if (!kept ||
            map->segments[kept - 1].address + map->segments[kept - 1].bytes <= map->segments[i].address)
            map->segments[kept++] = map->segments[i];
    map->segment_count = kept;
}

static int index_sites(struct making *making)
{
    making->site_room = making->model->site_count;
    making->site_of_id = calloc(making->site_room + 1, sizeof(*making->site_of_id));
    for (size_t i = 0; making->site_of_id && i < making->model->site_count; i++) {
        json_int_t id = ms_report_int(making->model->sites[i].json, "id");

        if (id >= 0 && (size_t)id < making->site_room)
            making->site_of_id[id] = i + 1;
    }
    return making->site_of_id ? 0 : -1;
}

static int read_segments(struct making *making)
{
    json_t *rows = ms_report_array(making->model->report->root, "segments"), *row;
    size_t i;

    making->map->segments = calloc(json_array_size(rows) + 1, sizeof(*making->map->segments));
    if (!making->map->segments)
        return -1;
    json_array_foreach (rows, i, row)
        if (add_segment(making, row) < 0)
            return -1;
    drop_overlaps(making->map);
    return 0;
}

/* Live blocks, and what appeared and was never freed, in the order in which they are told to be the same. */
struct born {
    size_t device;
    uint64_t bytes;
    int64_t ns;
    size_t index; /* of a block, or of an event */
    uint64_t address;
    bool found; /* its other half */
};

static int by_birth(const void *a, const void *b)
{
    const struct born *x = a, *y = b;

    if (x->device != y->device)
        return x->device < y->device ? -1 : 1;
    if (x->bytes != y->bytes)
        return x->bytes < y->bytes ? -1 : 1;
    if (x->ns != y->ns)
        return x->ns < y->ns ? -1 : 1;
    return x->index < y->index ? -1 : x->index > y->index;
}

static struct born *list_live(const struct ms_map *map, size_t *count_p)
{
    struct born *list = calloc(map->block_count + 1, sizeof(*list));

    *count_p = 0;
    for (size_t s = 0; list && s < map->segment_count; s++)
        for (size_t i = map->segments[s].first; i < map->segments[s].first + map->segments[s].count; i++)
            if (map->blocks[i].state == MS_BLOCK_LIVE)
                list[(*count_p)++] = (struct born){map->segments[s].device, map->blocks[i].requested,
                                                   map->blocks[i].born_ns,  i,
                                                   map->blocks[i].address,  false};
    if (list && *count_p)
        qsort(list, *count_p, sizeof(*list), by_birth);
    return list;
}

static void add_event(struct ms_map *map, struct ms_map_event event)
{
    event.order = map->event_count;
    map->events[map->event_count++] = event;
}

static void add_live(struct ms_map *map, const struct born *born)
{
    const struct ms_map_block *block = &map->blocks[born->index];

    add_event(map, (struct ms_map_event){.ns = block->born_ns,
                                         .kind = MS_MAP_ALLOC,
                                         .device = born->device,
                                         .site = block->site,
                                         .address = block->address,
                                         .bytes = block->bytes,
                                         .stream = block->stream});
}

/* The events that by_id() compares, for qsort(). Ids count up, but nobody has to believe that: the two events
 * of a block are found by a table of the events in order of ids. */
static const struct ms_events *sorted;

static int by_id(const void *a, const void *b)
{
    size_t left = *(const size_t *)a, right = *(const size_t *)b;
    uint64_t x = sorted->rows[left].id, y = sorted->rows[right].id;

    return x != y ? (x < y ? -1 : 1) : left < right ? -1 : left > right;
}

/* For each event its other half, SIZE_MAX for none. */
static size_t *pair_events(const struct ms_events *events)
{
    size_t *order = calloc(events->count + 1, sizeof(*order)),
           *other = calloc(events->count + 1, sizeof(*other));

    if (!order || !other) {
        free(order);
        free(other);
        return NULL;
    }
    for (size_t i = 0; i < events->count; i++) {
        order[i] = i;
        other[i] = SIZE_MAX;
    }
    sorted = events;
    if (events->count)
        qsort(order, events->count, sizeof(*order), by_id);
    for (size_t i = 0; i + 1 < events->count; i++) {
        const struct ms_event *one = &events->rows[order[i]], *two = &events->rows[order[i + 1]];

        if (one->id == two->id && !one->free && two->free) {
            other[order[i]] = order[i + 1];
            other[order[i + 1]] = order[i];
        }
    }
    free(order);
    return other;
}

/* The segment that an address is in, of all devices; NULL for none. They are in the order of addresses. */
static const struct ms_map_segment *segment_at(const struct ms_map *map, uint64_t address)
{
    size_t low = 0, high = map->segment_count;

    while (low < high) { /* the first that begins behind it */
        size_t middle = low + (high - low) / 2;

        if (map->segments[middle].address <= address)
            low = middle + 1;
        else
            high = middle;
    }
    if (!low || address - map->segments[low - 1].address >= map->segments[low - 1].bytes)
        return NULL;
    return &map->segments[low - 1];
}

/* True if the whole block of an event that appeared is in one of the segments of its device. */
static bool is_in_segment(const struct ms_map *map, const struct ms_event *event, size_t device)
{
    const struct ms_map_segment *segment =
        event->address && event->address < NOWHERE ? segment_at(map, event->address) : NULL;

    return segment && segment->device == device && event->bytes <= segment->bytes &&
           event->address - segment->address <= segment->bytes - event->bytes;
}

static void add_gone(struct making *making, const struct ms_events *events, const size_t *other)
{
    uint64_t *address = calloc(events->count + 1, sizeof(*address));

    for (size_t i = 0; address && i < events->count; i++) {
        const struct ms_event *event = &events->rows[i], *came;
        size_t device = events->device[event->stream];
        bool inside;

        if (other[i] == SIZE_MAX || device == SIZE_MAX || !event->bytes)
            continue;
        came = event->free ? &events->rows[other[i]] : event;
        inside = is_in_segment(making->map, came, device);
        address[i] = event->free ? address[other[i]]
                     : inside    ? event->address
                                 : take_nowhere(making, event->bytes);
        add_event(making->map, (struct ms_map_event){.ns = event->ns,
                                                     .kind = event->free ? MS_MAP_FREE : MS_MAP_ALLOC,
                                                     .alone = !inside,
                                                     .device = device,
                                                     .site = came->site,
                                                     .address = address[i],
                                                     .bytes = event->bytes,
                                                     .stream = event->stream});
    }
    free(address);
}

static void add_oom(struct ms_map *map, const struct ms_model *model)
{
    const json_t *oom;
    size_t i;

    json_array_foreach (ms_report_array(model->report->root, "oom"), i, oom) {
        size_t device = ms_report_device_of(model->report, oom);
        json_int_t ns = ms_report_int(oom, "t_ns");

        if (device != SIZE_MAX)
            add_event(map, (struct ms_map_event){.ns = ns > 0 ? ns : 0,
                                                 .kind = MS_MAP_OOM,
                                                 .device = device,
                                                 .site = SIZE_MAX,
                                                 .bytes = bytes_of(oom, "requested"),
                                                 .left = bytes_of(oom, "largest_free")});
    }
}

static int by_time(const void *a, const void *b)
{
    const struct ms_map_event *x = a, *y = b;

    if (x->device != y->device)
        return x->device < y->device ? -1 : 1;
    if (x->ns != y->ns)
        return x->ns < y->ns ? -1 : 1;
    return x->order < y->order ? -1 : x->order > y->order;
}

/* Compares blocks by what is the same in the report and in the trace: where they lie, device, size; then by
 * the order in which they were born. Those whose other half was found come last. */
static int by_place(const void *a, const void *b)
{
    const struct born *x = a, *y = b;

    if (x->found != y->found)
        return x->found ? 1 : -1;
    return x->address != y->address ? (x->address < y->address ? -1 : 1) : by_birth(a, b);
}

/* Returns 0 if a block of the report may be that of the trace, and if not which of them comes first, as
 * by_place(). */
static int same_block(const struct born *live, const struct born *kept)
{
    return by_place(&(struct born){live->device, live->bytes, 0, 0, live->address, false},
                    &(struct born){kept->device, kept->bytes, 0, 0, kept->address, false});
}

/* Goes through both in order. */
static void match(struct ms_map *map, struct born *live, size_t live_count, struct born *kept, size_t count)
{
    size_t i = 0, k = 0;

    if (live_count)
        qsort(live, live_count, sizeof(*live), by_place);
    if (count)
        qsort(kept, count, sizeof(*kept), by_place);
    while (i < live_count && k < count && !live[i].found && !kept[k].found) {
        int order = same_block(&live[i], &kept[k]);

        if (order == 0) {
            map->blocks[live[i].index].born_ns = kept[k].ns;
            live[i].found = kept[k].found = true;
        }
        i += order <= 0;
        k += order >= 0;
    }
}

static void forget_places(struct born *list, size_t count)
{
    for (size_t i = 0; i < count; i++)
        list[i].address = 0;
}

/* Live blocks take the time of the trace where it has them, which is never before that of an earlier line: by
 * their addresses, and what is left over by size and order. */
static void take_times(struct ms_map *map, const struct ms_events *events, const size_t *other,
                       struct born *live, size_t live_count)
{
    struct born *kept = calloc(events->count + 1, sizeof(*kept));
    size_t count = 0;

    for (size_t i = 0; kept && i < events->count; i++)
        if (!events->rows[i].free && other[i] == SIZE_MAX)
            kept[count++] = (struct born){events->device[events->rows[i].stream],
                                          events->rows[i].bytes,
                                          events->rows[i].ns,
                                          i,
                                          events->rows[i].address,
                                          false};
    match(map, live, live_count, kept, count);
    forget_places(live, live_count);
    forget_places(kept, count);
    match(map, live, live_count, kept, count);
    if (live_count)
        qsort(live, live_count, sizeof(*live), by_birth);
    free(kept);
}

static int read_events(struct making *making, const struct ms_events *events)
{
    struct ms_map *map = making->map;
    size_t live_count, ooms = json_array_size(ms_report_array(making->model->report->root, "oom"));
    struct born *live = list_live(map, &live_count);
    size_t *other = events ? pair_events(events) : NULL;

    map->events = calloc(live_count + ooms + (events ? events->count : 0) + 1, sizeof(*map->events));
    if (!live || !map->events || (events && !other)) {
        free(live);
        free(other);
        return -1;
    }
    if (events) {
        take_times(map, events, other, live, live_count);
        add_gone(making, events, other);
    }
    for (size_t i = 0; i < live_count; i++)
        add_live(map, &live[i]);
    add_oom(map, making->model);
    if (map->event_count)
        qsort(map->events, map->event_count, sizeof(*map->events), by_time);
    free(live);
    free(other);
    return 0;
}

int ms_map_open(struct ms_map *map, const struct ms_model *model, const struct ms_events *events)
{
    struct making making = {.map = map, .model = model, .nowhere = NOWHERE};
    int result;

    *map = (struct ms_map){.segment_count = 0};
    result =
        index_sites(&making) < 0 || read_segments(&making) < 0 || read_events(&making, events) < 0 ? -1 : 0;
    free(making.site_of_id);
    if (result < 0)
        ms_map_close(map);
    return result;
}

void ms_map_close(struct ms_map *map)
{
    free(map->segments);
    free(map->blocks);
    free(map->events);
    memset(map, 0, sizeof(*map));
}
