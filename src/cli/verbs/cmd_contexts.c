/* cmd_contexts.c - memshim contexts: what the driver took of devices for contexts and modules, and where the
 * program first touched the device. Devices of several processes are one if they have the same UUID.
 *
 * Floor 5. */
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/load.h"
#include "cli/screens/multi_report.h"
#include "report/text/text.h"

enum { STACK_SHOWN = 8, KEY_BYTES = 96 };

struct contexts_options {
    struct ms_cli_printing printing;
    long top;
};

/* A device of the machine, and all that was taken of it. */
struct taken {
    char key[KEY_BYTES];            /* its UUID, or, without one, its number in its process */
    const char *name;               /* borrowed from a report */
    json_int_t bytes, others_bytes; /* of contexts and modules; what else went meanwhile */
    size_t processes;
    json_t *rows; /* as in the reports, with `pid`, `rank` and `report`, the place of the report */
};

struct devices {
    struct taken *rows;
    size_t count;
};

static int contexts_take(void *arg, int id, const char *value)
{
    struct contexts_options *options = arg;

    if (ms_cli_take_printing(&options->printing, id, value))
        return 0;
    return ms_cli_number("--top", value, 0, 1000000, &options->top);
}

static const json_t *contexts_device_row(const struct ms_report *report, const json_t *row)
{
    size_t i = ms_report_device_of(report, row);

    return i == SIZE_MAX ? NULL : json_array_get(ms_report_array(report->root, "devices"), i);
}

/* The device's row among those of all reports; a new one if it is the first. NULL without memory. */
static struct taken *contexts_device_of(struct devices *devices, const struct ms_report *report,
                                        const json_t *row)
{
    const json_t *device = contexts_device_row(report, row);
    const char *uuid = ms_report_text(device, "uuid");
    char key[KEY_BYTES];
    struct taken *more;

    if (*uuid)
        snprintf(key, sizeof(key), "%s", uuid);
    else
        snprintf(key, sizeof(key), "%s %" JSON_INTEGER_FORMAT " of process %" JSON_INTEGER_FORMAT,
                 ms_report_device_api(row), ms_report_int(row, "device"),
                 ms_report_int(json_object_get(report->root, "run"), "pid"));
    for (size_t i = 0; i < devices->count; i++)
        if (!strcmp(devices->rows[i].key, key))
            return &devices->rows[i];
    more = realloc(devices->rows, (devices->count + 1) * sizeof(*more));
    if (!more)
        return NULL;
    devices->rows = more;
    more = &devices->rows[devices->count++];
    *more = (struct taken){.name = ms_report_text(device, "name"), .rows = json_array()};
    memcpy(more->key, key, sizeof(key));
    return more;
}

static void contexts_add(struct taken *device, const struct ms_report *report, size_t number,
                         const json_t *row)
{
    const json_t *run = json_object_get(report->root, "run");
    json_t *copy = json_copy((json_t *)row);
    const json_t *last = json_array_get(device->rows, json_array_size(device->rows) - 1);

    device->processes += !last || ms_report_int(last, "report") != (json_int_t)number;
    device->bytes = ms_report_sum(device->bytes, ms_report_int(row, "bytes"));
    if (!json_object_get(row, "ended_ns"))
        device->others_bytes = ms_report_sum(device->others_bytes, ms_report_int(row, "others_bytes"));
    json_object_set_new(copy, "report", json_integer((json_int_t)number));
    json_object_set_new(copy, "pid", json_integer(ms_report_int(run, "pid")));
    if (json_object_get(run, "rank"))
        json_object_set(copy, "rank", json_object_get(run, "rank"));
    json_array_append_new(device->rows, copy);
}

static bool contexts_gather(struct devices *devices, const struct ms_report *reports, size_t count)
{
    json_t *row;
    size_t i;

    for (size_t k = 0; k < count; k++)
        json_array_foreach (ms_report_array(reports[k].root, "contexts"), i, row) {
            struct taken *device = json_is_object(row) ? contexts_device_of(devices, &reports[k], row) : NULL;

            if (device)
                contexts_add(device, &reports[k], k, row);
            else if (json_is_object(row))
                return false;
        }
    return true;
}

static void print_json(FILE *out, char **paths, const struct ms_report *reports,
                       const struct devices *devices)
{
    json_t *all = json_array(), *row;
    size_t k;

    for (size_t i = 0; i < devices->count; i++) {
        const struct taken *device = &devices->rows[i];

        json_array_foreach (device->rows, k, row) {
            size_t number = (size_t)ms_report_int(row, "report");

            json_object_set_new(row, "file", json_string(paths[number]));
            ms_cli_set_stack(row, &reports[number], ms_report_int(row, "stack"));
            json_object_del(row, "report");
        }
        json_array_append_new(all, json_pack("{s:s, s:s, s:I, s:I, s:I, s:O}", "device", device->key, "name",
                                             device->name, "bytes", device->bytes, "others_bytes",
                                             device->others_bytes, "processes", (json_int_t)device->processes,
                                             "contexts", device->rows));
    }
    ms_cli_print_json(out, json_pack("{s:o}", "devices", all));
}

static void contexts_print_row(FILE *out, const struct ms_report *report, const json_t *row)
{
    json_int_t count = ms_report_int(row, "count"), bytes = ms_report_int(row, "bytes");
    bool ended = json_object_get(row, "ended_ns") != NULL, inferred;

    inferred = !strcmp(ms_report_text(row, "confidence"), "inferred");
    fprintf(out, "\n  %s%s, ", inferred ? "about " : "",
            ms_text_size(ended ? ms_report_int(row, "total_bytes") : bytes).text);
    if (!strcmp(ms_report_text(row, "kind"), "context"))
        fputs("a context", out);
    if (ms_report_int(row, "others_bytes"))
        fprintf(out, " (%s more went meanwhile: others' contexts, as far as is known)",
                ms_text_size(ms_report_int(row, "others_bytes")).text);
    if (strcmp(ms_report_text(row, "kind"), "context") != 0)
        fprintf(out, "%" JSON_INTEGER_FORMAT " module%s", ended ? ms_report_int(row, "total_count") : count,
                (ended ? ms_report_int(row, "total_count") : count) == 1 ? "" : "s");
    fprintf(out, "%s, process %" JSON_INTEGER_FORMAT, ended ? " (gone)" : "", ms_report_int(row, "pid"));
    if (json_object_get(row, "rank"))
        fprintf(out, ", rank %" JSON_INTEGER_FORMAT, ms_report_int(row, "rank"));
    fprintf(out, ", device %" JSON_INTEGER_FORMAT ", after %s, by ", ms_report_int(row, "device"),
            ms_text_duration(ms_report_int(row, "t_ns")).text);
    ms_text_put(out, ms_report_text(row, "api"));
    ms_text_put_own(out, report, ms_report_int(row, "stack"));
    fputc('\n', out);
    ms_text_callers(out, report, ms_report_int(row, "stack"), "      ", STACK_SHOWN);
}

static void contexts_print_text(FILE *out, const struct ms_report *reports, const struct devices *devices,
                                size_t top)
{
    json_t *row;
    size_t k;

    if (!devices->count)
        fputs("no context was seen to begin\n", out);
    for (size_t i = 0; i < devices->count; i++) {
        const struct taken *device = &devices->rows[i];
        size_t rows = json_array_size(device->rows);

        fputs(i ? "\n" : "", out);
        ms_text_put(out, device->key);
        fputs("  ", out);
        ms_text_put(out, device->name);
        fprintf(out, ": %s taken for contexts and modules of %zu process%s\n",
                ms_text_size(device->bytes).text, device->processes, device->processes == 1 ? "" : "es");
        json_array_foreach (device->rows, k, row) {
            if (k < top)
                contexts_print_row(out, &reports[ms_report_int(row, "report")], row);
        }
        if (rows > top)
            fprintf(out, "\n  ... and %zu more\n", rows - top);
    }
}

static void release(struct devices *devices)
{
    for (size_t i = 0; i < devices->count; i++)
        json_decref(devices->rows[i].rows);
    free(devices->rows);
}

int ms_cmd_contexts(int argc, char **argv)
{
    struct contexts_options options = {.top = 20};
    struct devices devices = {.count = 0};
    int first = ms_cli_parse(argc, argv, false, contexts_take, &options), status = MS_EXIT_USAGE;
    struct ms_report *reports;
    FILE *out = NULL;

    if (first < 0)
        return ms_cli_parse_status(first);
    if (first == argc) {
        ms_cli_error("no report given; usage: memshim contexts [OPTION...] FILE...");
        return MS_EXIT_USAGE;
    }
    reports = ms_many_load(argv + first, (size_t)(argc - first));
    if (reports && !contexts_gather(&devices, reports, (size_t)(argc - first)))
        ms_cli_error("out of memory");
    else if (reports)
        out = ms_cli_open_output(options.printing.output, options.printing.force);
    if (out && options.printing.json)
        print_json(out, argv + first, reports, &devices);
    else if (out)
        contexts_print_text(out, reports, &devices, (size_t)options.top);
    if (out)
        status = ms_cli_close_output(out);
    release(&devices);
    ms_many_close(reports, (size_t)(argc - first));
    return status;
}
