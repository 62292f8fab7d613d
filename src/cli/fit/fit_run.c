/* fit_run.c - a run of a program, by its trace and its report; see fit.h.
 *
 * Floor 5. */
#include "cli/fit/fit.h"

#include <stdlib.h>
#include <string.h>

#include "cli/array.h"
#include "cli/cli.h"
#include "cli/load.h"
#include "record/live/ledger.h"
#include "report/read/layer.h"
#include "trace/reader.h"

/* --- blocks that hold no tensors --- */

struct live_block {
    uint64_t address, bytes, id;
};

struct beside {
    struct live_block *live; /* blocks with an address, by it */
    size_t count, room;
    bool *holds; /* by id: a tensor lay in it; as far as `holds_room` */
    size_t holds_room;
};

static size_t live_find(const struct beside *beside, uint64_t address)
{
    size_t low = 0, high = beside->count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;

        if (beside->live[middle].address <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return low; /* the first behind it */
}

static int live_put(struct beside *beside, const struct ms_trace_event *event)
{
    size_t place = live_find(beside, event->address);
    struct live_block *live = ms_array_grow(beside->live, sizeof(*live), beside->count, &beside->room, 1024);

    if (!live)
        return -1;
    beside->live = live;
    memmove(&live[place + 1], &live[place], (beside->count - place) * sizeof(*live));
    live[place] = (struct live_block){event->address, event->bytes, event->id};
    beside->count++;
    return 0;
}

static void live_take(struct beside *beside, const struct ms_trace_event *event)
{
    for (size_t place = live_find(beside, event->address); place-- > 0;)
        if (beside->live[place].id == event->id) {
            beside->count--;
            memmove(&beside->live[place], &beside->live[place + 1],
                    (beside->count - place) * sizeof(*beside->live));
            return;
        }
}

static int holds_note(struct beside *beside, uint64_t id)
{
    while (id >= beside->holds_room) {
        size_t before = beside->holds_room;
        bool *holds = ms_array_grow(beside->holds, sizeof(*holds), before, &beside->holds_room, 4096);

        if (!holds)
            return -1;
        memset(holds + before, 0, beside->holds_room - before);
        beside->holds = holds;
    }
    beside->holds[id] = true;
    return 0;
}

/* Memory by handle has no address of its own in a trace: it is an allocator's that maps it, as PyTorch's
 * expandable segments. */
static bool has_place(const struct ms_trace_event *event)
{
    return event->layer == MS_LAYER_OUTER && event->address;
}

/* Which blocks a tensor ever lay in. */
static int beside_look(struct beside *beside, const struct ms_trace_event *event)
{
    size_t place;

    if (has_place(event) && event->op == MS_TRACE_ALLOC)
        return live_put(beside, event);
    if (has_place(event) && event->op == MS_TRACE_FREE)
        live_take(beside, event);
    if (event->layer == MS_LAYER_OUTER || event->op != MS_TRACE_ALLOC)
        return 0;
    place = live_find(beside, event->address);
    if (place && event->address - beside->live[place - 1].address < beside->live[place - 1].bytes)
        return holds_note(beside, beside->live[place - 1].id);
    return 0;
}

static int each_event(const char *path, int (*look)(struct beside *, const struct ms_trace_event *),
                      struct beside *beside)
{
    char error[512];
    struct ms_trace_event event;
    struct ms_trace_reader *reader = ms_trace_open(path, error, sizeof(error));
    int more = reader ? 1 : -1;

    while (more > 0 && (more = ms_trace_next(reader, &event)) > 0)
        if (look(beside, &event) < 0) {
            snprintf(error, sizeof(error), "%s: there is no memory to read it", path);
            more = -1;
        }
    if (reader)
        ms_trace_close(reader);
    if (more < 0)
        ms_cli_error("%s", error);
    return more;
}

struct most {
    struct beside beside; /* the first: each_event() hands it on */
    uint64_t live, most;
};

static int most_look(struct beside *beside, const struct ms_trace_event *event)
{
    struct most *most = (struct most *)beside;

    if (!has_place(event) || (event->id < beside->holds_room && beside->holds[event->id]))
        return 0;
    most->live = event->op == MS_TRACE_ALLOC ? most->live + event->bytes : most->live - event->bytes;
    most->most = most->live > most->most ? most->live : most->most;
    return 0;
}

static int beside_count(struct ms_fit_run *run)
{
    struct most most = {.live = 0};
    int status = each_event(run->trace, beside_look, &most.beside);

    if (status == 0)
        status = each_event(run->trace, most_look, &most.beside);
    run->beside_blocks = most.most;
    free(most.beside.live);
    free(most.beside.holds);
    return status;
}

/* --- the report --- */

static bool is_report(const char *path)
{
    FILE *file = fopen(path, "r");
    int first = file ? fgetc(file) : EOF;

    if (file)
        fclose(file);
    return first == '{';
}

static const char *trace_of(const struct ms_report *report)
{
    const json_t *row;
    size_t i;

    json_array_foreach (ms_report_array(report->root, "config"), i, row) {
        const char *value = json_string_value(json_object_get(row, "value"));

        if (value && strcmp(ms_report_text(row, "name"), "MEMSHIM_TRACE") == 0 && strcmp(value, "none") != 0)
            return value;
    }
    return NULL;
}

/* At the moment at which most was in use. */
static uint64_t others_of(const struct ms_report *report)
{
    const json_t *row;
    size_t i;
    json_int_t most = 0, others = 0;

    json_array_foreach (ms_report_array(report->root, "balances"), i, row) {
        if (strcmp(ms_report_text(row, "moment"), "peak") != 0 || ms_report_int(row, "in_use_bytes") < most)
            continue;
        most = ms_report_int(row, "in_use_bytes");
        others = ms_report_int(row, "contexts") + ms_report_int(row, "untracked");
    }
    return others > 0 ? (uint64_t)others : 0;
}

/* The stack of a site, which is the same in all runs: a hash of it, by the site's number in the trace. */
static int names_open(struct ms_fit_run *run)
{
    const json_t *site;
    size_t i;

    json_array_foreach (run->report.sites, i, site) {
        const json_t *row = json_object_get(site, "row");
        json_int_t number = json_is_integer(row) ? json_integer_value(row) : ms_report_int(site, "id");

        if (number >= 0 && (size_t)number < UINT32_MAX && (size_t)number >= run->name_count)
            run->name_count = (size_t)number + 1;
    }
    run->names = calloc(run->name_count + 1, sizeof(*run->names));
    if (!run->names)
        return -1;
    json_array_foreach (run->report.sites, i, site) {
        const json_t *row = json_object_get(site, "row");
        json_int_t number = json_is_integer(row) ? json_integer_value(row) : ms_report_int(site, "id");

        if (number >= 0 && (size_t)number < run->name_count)
            run->names[number] = strtoull(ms_report_text(site, "hash"), NULL, 16);
    }
    return 0;
}

static int report_open(struct ms_fit_run *run, const char *path)
{
    const char *trace;

    if (ms_cli_load(path, &run->report) < 0)
        return -1;
    run->has_report = true;
    run->others = others_of(&run->report);
    trace = trace_of(&run->report);
    if (!trace) {
        ms_cli_error("%s: its run wrote no trace (memshim run --trace FILE)", path);
        return -1;
    }
    run->trace = strdup(trace);
    if (run->trace && names_open(run) == 0)
        return 0;
    ms_cli_error("there is no memory for %s", path);
    return -1;
}

int ms_fit_run_open(struct ms_fit_run *run, const char *path)
{
    char error[512];

    ms_cli_layer = MS_CLI_TENSORS_IF_ANY;
    if (is_report(path) ? report_open(run, path) < 0 : !(run->trace = strdup(path)))
        return -1;
    if (ms_course_read(run->trace, false, &run->blocks, error, sizeof(error)) < 0 ||
        ms_course_read(run->trace, true, &run->tensors, error, sizeof(error)) < 0) {
        ms_cli_error("%s", error);
        return -1;
    }
    run->has_tensors = run->tensors.count > 0;
    return run->has_tensors ? beside_count(run) : 0;
}

void ms_fit_run_close(struct ms_fit_run *run)
{
    ms_course_close(&run->blocks);
    ms_course_close(&run->tensors);
    if (run->has_report)
        ms_report_close(&run->report);
    free(run->names);
    free(run->trace);
}

const struct ms_course *ms_fit_course(const struct ms_fit_run *run, const struct ms_fit_way *way)
{
    return way->of_tensors ? &run->tensors : &run->blocks;
}

uint64_t ms_fit_beside(const struct ms_fit_run *run, const struct ms_fit_way *way)
{
    return run->others + (way->of_tensors ? run->beside_blocks : 0);
}
