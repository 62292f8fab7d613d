/* events.c - see events.h.
 *
 * Floor 4. */
#include "export/events.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report/read/layer.h"
#include "trace/reader.h"

/* The record has rows beside those of the report: threads count some sites apart. */
enum { SITE_ROOM = 1 << 17 };

struct reader {
    struct ms_trace_reader *trace;
    const char *path;
    const struct ms_report *report;
    struct ms_events *events;
    size_t *site_rows; /* by the number in the trace: row of sites[], plus one */
    size_t room, block_room, numbers;
    char *error;
    size_t error_bytes;
};

static int fail(const struct reader *reader, const char *what)
{
    snprintf(reader->error, reader->error_bytes, "%s: %s", reader->path, what);
    return -1;
}

static int events_add(const struct reader *reader, struct ms_event **rows_p, size_t *count_p, size_t *room_p,
                      const struct ms_event *event)
{
    if (*count_p == *room_p) {
        size_t room = *room_p ? *room_p * 2 : 4096;
        struct ms_event *rows = realloc(*rows_p, room * sizeof(*rows));

        if (!rows)
            return fail(reader, "no memory for its events");
        *rows_p = rows;
        *room_p = room;
    }
    (*rows_p)[(*count_p)++] = *event;
    return 0;
}

/* A trace numbers sites as the record did. */
static json_int_t site_number(const json_t *site)
{
    const json_t *row = json_object_get(site, "row");

    return json_is_integer(row) ? json_integer_value(row) : ms_report_int(site, "id");
}

static int index_sites(struct reader *reader)
{
    const json_t *site;
    size_t i;

    reader->numbers = 2 * json_array_size(reader->report->sites) + SITE_ROOM;
    reader->site_rows = calloc(reader->numbers, sizeof(*reader->site_rows));
    json_array_foreach (reader->report->sites, i, site) {
        json_int_t number = site_number(site);

        if (reader->site_rows && number >= 0 && (size_t)number < reader->numbers)
            reader->site_rows[number] = i + 1;
    }
    return reader->site_rows ? 0 : fail(reader, "no memory for its sites");
}

static int take_event(struct reader *reader, const struct ms_trace_event *read)
{
    struct ms_events *events = reader->events;
    struct ms_event event = {.ns = (int64_t)read->ns,
                             .id = read->id,
                             .bytes = read->bytes,
                             .stream = read->stream,
                             .free = read->op == MS_TRACE_FREE,
                             .site = SIZE_MAX,
                             .address = read->address};
    bool is_inner = read->layer == MS_LAYER_INNER;

    if (read->op > MS_TRACE_FREE)
        return 0;
    if (is_inner != ms_report_is_inner(reader->report)) /* sites are of the layer that is shown */
        return is_inner
                   ? 0
                   : events_add(reader, &events->blocks, &events->block_count, &reader->block_room, &event);
    if (read->site < reader->numbers && reader->site_rows[read->site])
        event.site = reader->site_rows[read->site] - 1;
    return events_add(reader, &events->rows, &events->count, &reader->room, &event);
}

static int check_process(const struct reader *reader)
{
    json_int_t pid = ms_report_int(json_object_get(reader->report->root, "run"), "pid");
    long long its = (long long)ms_trace_head(reader->trace)->pid;

    if (its == pid)
        return 0;
    snprintf(reader->error, reader->error_bytes,
             "%s: a trace of process %lld; the report is of process %" JSON_INTEGER_FORMAT, reader->path, its,
             pid);
    return -1;
}

static void find_device(const struct reader *reader, unsigned stream)
{
    const struct ms_trace_stream *known = ms_trace_stream(reader->trace, stream);
    json_t *row = known->is_known
                      ? json_pack("{s:I, s:s}", "device", (json_int_t)known->device, "device_api", known->api)
                      : NULL;

    reader->events->device[stream] = row ? ms_report_device_of(reader->report, row) : SIZE_MAX;
    json_decref(row);
}

static int read_events(struct reader *reader)
{
    struct ms_trace_event event;
    int result = check_process(reader);

    while (result == 0 && (result = ms_trace_next(reader->trace, &event)) > 0)
        result = take_event(reader, &event);
    for (unsigned i = 0; i < MS_EVENT_STREAMS; i++)
        find_device(reader, i);
    return result;
}

int ms_events_read(const char *path, const struct ms_report *report, struct ms_events *events, char *error,
                   size_t error_bytes)
{
    struct reader reader = {
        .path = path, .report = report, .events = events, .error = error, .error_bytes = error_bytes};
    int result;

    memset(events, 0, sizeof(*events));
    reader.trace = ms_trace_open(path, error, error_bytes);
    if (!reader.trace)
        return -1;
    result = index_sites(&reader) < 0 ? -1 : read_events(&reader);
    free(reader.site_rows);
    ms_trace_close(reader.trace);
    if (result < 0)
        ms_events_close(events);
    return result;
}

void ms_events_close(struct ms_events *events)
{
    free(events->rows);
    free(events->blocks);
    memset(events, 0, sizeof(*events));
}
