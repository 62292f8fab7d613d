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
    uint32_t block; /* counted as a course counts them */
};

struct beside {
    struct live_block *live; /* blocks with an address, by it */
    size_t count, room;
    uint32_t block_count;
    bool *holds; /* by block: a tensor lay in it, or it is an allocator's for other reasons */
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
    live[place] = (struct live_block){event->address, event->bytes, event->id, beside->block_count};
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

/* Memory by handle has no address of its own in a trace: it is an allocator's that maps it, as PyTorch's
 * expandable segments. */
static int beside_look(struct beside *beside, const struct ms_trace_event *event)
{
    size_t place;
    int status = 0;

    if (event->layer == MS_LAYER_OUTER && event->op == MS_TRACE_ALLOC) {
        if (event->address)
            status = live_put(beside, event);
        else
            beside->holds[beside->block_count] = true;
        beside->block_count++;
        return status;
    }
    if (event->layer == MS_LAYER_OUTER) {
        if (event->op == MS_TRACE_FREE && event->address)
            live_take(beside, event);
        return 0;
    }
    if (event->op != MS_TRACE_ALLOC)
        return 0;
    place = live_find(beside, event->address);
    if (place && event->address - beside->live[place - 1].address < beside->live[place - 1].bytes)
        beside->holds[beside->live[place - 1].block] = true;
    return 0;
}

static int beside_find(struct beside *beside, const char *path)
{
    char error[512];
    struct ms_trace_event event;
    struct ms_trace_reader *reader = ms_trace_open(path, error, sizeof(error));
    int more = reader ? 1 : -1;

    while (more > 0 && (more = ms_trace_next(reader, &event)) > 0)
        if (beside_look(beside, &event) < 0) {
            snprintf(error, sizeof(error), "%s: there is no memory to read it", path);
            more = -1;
        }
    if (reader)
        ms_trace_close(reader);
    if (more < 0)
        ms_cli_error("%s", error);
    return more;
}

/* One more event of the whole; blocks are counted behind tensors. */
static void whole_add(struct ms_course *whole, const struct ms_course_event *event, uint32_t blocks_before,
                      uint64_t *bytes, uint64_t *live_p)
{
    struct ms_course_event *added = &whole->events[whole->count];

    *added = *event;
    added->block += blocks_before;
    if (event->bytes)
        bytes[added->block] = event->bytes;
    *live_p = event->bytes ? *live_p + event->bytes : *live_p - bytes[added->block];
    if (*live_p > whole->live_peak) {
        whole->live_peak = *live_p;
        whole->live_peak_event = whole->count;
    }
    whole->count++;
}

/* Tensors and the blocks that hold none, in the order of time. `beside_p`: the most that is live of these
 * blocks. */
static int whole_make(struct ms_fit_run *run, const bool *holds, uint64_t *beside_p)
{
    const struct ms_course *tensors = &run->tensors, *blocks = &run->blocks;
    uint64_t *bytes = calloc((size_t)tensors->block_count + blocks->block_count + 1, sizeof(*bytes));
    uint64_t *beside = bytes ? bytes + tensors->block_count : NULL, live = 0, live_beside = 0;
    size_t t = 0;

    run->whole = *tensors;
    run->whole.count = run->whole.live_peak = 0;
    run->whole.block_count += blocks->block_count;
    run->whole.events = calloc(tensors->count + blocks->count + 1, sizeof(*run->whole.events));
    if (!run->whole.events || !bytes) {
        free(bytes);
        ms_cli_error("there is no memory for %s", run->trace);
        return -1;
    }
    for (size_t b = 0; b < blocks->count; b++) {
        const struct ms_course_event *event = &blocks->events[b];

        if (holds[event->block])
            continue;
        for (; t < tensors->count && tensors->events[t].ns < event->ns; t++)
            whole_add(&run->whole, &tensors->events[t], 0, bytes, &live);
        whole_add(&run->whole, event, tensors->block_count, bytes, &live);
        live_beside = event->bytes ? live_beside + event->bytes : live_beside - beside[event->block];
        *beside_p = live_beside > *beside_p ? live_beside : *beside_p;
    }
    for (; t < tensors->count; t++)
        whole_add(&run->whole, &tensors->events[t], 0, bytes, &live);
    free(bytes);
    return 0;
}

static int beside_count(struct ms_fit_run *run)
{
    struct beside beside = {.holds = calloc((size_t)run->blocks.block_count + 1, sizeof(bool))};
    int status = -1;

    if (!beside.holds)
        ms_cli_error("there is no memory for %s", run->trace);
    else if (beside_find(&beside, run->trace) == 0)
        status = whole_make(run, beside.holds, &run->beside_blocks);
    free(beside.live);
    free(beside.holds);
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
    trace = ms_report_text(json_object_get(run->report.root, "run"), "trace");
    if (!*trace) {
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
    free(run->whole.events);
    if (run->has_report)
        ms_report_close(&run->report);
    free(run->names);
    free(run->trace);
}

const struct ms_course *ms_fit_course(const struct ms_fit_run *run, const struct ms_fit_way *way)
{
    if (!way->of_tensors)
        return &run->blocks;
    return way->is_torch ? &run->tensors : &run->whole;
}

uint64_t ms_fit_beside(const struct ms_fit_run *run, const struct ms_fit_way *way)
{
    return run->others + (way->is_torch ? run->beside_blocks : 0);
}
