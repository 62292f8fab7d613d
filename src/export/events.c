/* events.c - see events.h.
 *
 * Floor 4. */
#include "export/events.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/files.h"
#include "report/read/layer.h"

#define NS_OF_US 1000
#define US_MAX   (INT64_MAX / NS_OF_US)

/* The record has rows beside those of the report: threads count some sites apart. */
enum { SITE_ROOM = 1 << 17 };

struct reader {
    const char *path;
    const struct ms_report *report;
    struct ms_events *events;
    size_t *site_rows; /* by the number in the trace: row of sites[], plus one */
    size_t room, block_room, line, numbers;
    char *error;
    size_t error_bytes;
};

static int fail(const struct reader *reader, const char *what)
{
    snprintf(reader->error, reader->error_bytes, "%s: line %zu %s", reader->path, reader->line, what);
    return -1;
}

/* "# stream N: [api ]device D, ..." */
static void introduce(struct ms_events *events, const struct ms_report *report, const char *text)
{
    char api[33] = "cuda";
    unsigned stream;
    long long device;
    json_t *row;

    if (sscanf(text, "# stream %u: device %lld,", &stream, &device) != 2 &&
        sscanf(text, "# stream %u: %32s device %lld,", &stream, api, &device) != 3)
        return;
    row = stream < MS_EVENT_STREAMS ? json_pack("{s:I, s:s}", "device", (json_int_t)device, "device_api", api)
                                    : NULL;
    if (row)
        events->device[stream] = ms_report_device_of(report, row);
    json_decref(row);
}

static int events_add(const struct reader *reader, struct ms_event **rows_p, size_t *count_p, size_t *room_p,
                      const struct ms_event *event)
{
    if (*count_p && (*rows_p)[*count_p - 1].ns > event->ns)
        return fail(reader, "is earlier than the one before it");
    if (*count_p == *room_p) {
        size_t room = *room_p ? *room_p * 2 : 4096;
        struct ms_event *rows = realloc(*rows_p, room * sizeof(*rows));

        if (!rows)
            return fail(reader, "finds no memory");
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
    return reader->site_rows ? 0 : fail(reader, "finds no memory");
}

/* " SITE 0xADDRESS", or nothing, as traces of earlier versions have it. */
static bool read_place(const struct reader *reader, const char *text, struct ms_event *event)
{
    uint64_t number;
    int end = 0;

    event->site = SIZE_MAX;
    if (*text == '\n')
        return true;
    if (sscanf(text, " - 0x%" SCNx64 "%n", &event->address, &end) == 1)
        return text[end] == '\n';
    if (sscanf(text, " %" SCNu64 " 0x%" SCNx64 "%n", &number, &event->address, &end) != 2)
        return false;
    if (number < reader->numbers && reader->site_rows[number])
        event->site = reader->site_rows[number] - 1;
    return text[end] == '\n';
}

static bool is_inner(char op)
{
    return op == 'A' || op == 'F';
}

static int read_event(struct reader *reader, const char *text)
{
    struct ms_events *events = reader->events;
    struct ms_event event = {.ns = 0};
    uint64_t us;
    char op;
    int end = 0;

    if (sscanf(text, "%" SCNu64 " %c %" SCNu64 " %" SCNu64 " %" SCNu32 "%n", &us, &op, &event.id,
               &event.bytes, &event.stream, &end) != 5 ||
        !strchr("afAF", op) || us > US_MAX || event.stream >= MS_EVENT_STREAMS || event.bytes > INT64_MAX ||
        !read_place(reader, text + end, &event))
        return fail(reader, "is no line of a trace: microseconds a|f|A|F id bytes stream [site address]");
    event.ns = (int64_t)us * NS_OF_US;
    event.free = op == 'f' || op == 'F';
    if (is_inner(op) == ms_report_is_inner(reader->report))
        return events_add(reader, &events->rows, &events->count, &reader->room, &event);
    if (is_inner(op))
        return 0;
    event.site = SIZE_MAX; /* it is of the other layer */
    return events_add(reader, &events->blocks, &events->block_count, &reader->block_room, &event);
}

/* "# memshim VERSION: PROGRAM, process PID": the last number of the first line. */
static int check_process(struct reader *reader, const char *text)
{
    const json_t *run = json_object_get(reader->report->root, "run");
    const char *process = NULL, *next = text;
    json_int_t pid = ms_report_int(run, "pid");

    while ((next = strstr(next, ", process ")) != NULL)
        process = next++;
    if (strncmp(text, "# memshim ", 10) != 0 || !process)
        return fail(reader, "does not begin a trace of memshim's");
    if (strtoll(process + strlen(", process "), NULL, 10) != pid) {
        snprintf(reader->error, reader->error_bytes,
                 "%s: a trace of process %lld; the report is of process %" JSON_INTEGER_FORMAT, reader->path,
                 strtoll(process + strlen(", process "), NULL, 10), pid);
        return -1;
    }
    return 0;
}

static int read_lines(struct reader *reader, FILE *file)
{
    char *text = NULL;
    size_t room = 0;
    ssize_t length;
    int result = 0;

    while (result == 0 && (length = getline(&text, &room, file)) > 0 && text[length - 1] == '\n') {
        if (++reader->line == 1)
            result = check_process(reader, text);
        else if (*text == '#')
            introduce(reader->events, reader->report, text);
        else
            result = read_event(reader, text);
    }
    if (result == 0 && !reader->line)
        result = fail(reader, "does not begin a trace of memshim's");
    free(text);
    return result;
}

int ms_events_read(const char *path, const struct ms_report *report, struct ms_events *events, char *error,
                   size_t error_bytes)
{
    struct reader reader = {
        .path = path, .report = report, .events = events, .error = error, .error_bytes = error_bytes};
    struct stat st;
    int fd = ms_file_open_regular(path, &st), result;
    FILE *file = fd >= 0 ? fdopen(fd, "r") : NULL;

    memset(events, 0, sizeof(*events));
    for (size_t i = 0; i < MS_EVENT_STREAMS; i++)
        events->device[i] = SIZE_MAX;
    introduce(events, report, "# stream 0: device 0,"); /* the only one that no line is about */
    if (!file) {
        snprintf(error, error_bytes, "cannot read %s: %s", path,
                 errno == EINVAL ? "no regular file" : strerror(errno));
        if (fd >= 0)
            close(fd);
        return -1;
    }
    result = index_sites(&reader) < 0 ? -1 : read_lines(&reader, file);
    free(reader.site_rows);
    fclose(file);
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
