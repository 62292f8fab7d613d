/* cmd_summary.c - memshim summary: what a report says, on one page.
 *
 * Floor 5. The page itself is written by summary_text.c. */
#include "cli/summary.h"

#include <stdlib.h>

#include "cli/cli.h"
#include "cli/load.h"

struct summary_options {
    struct ms_cli_printing printing;
    long top;
};

static int take(void *arg, int id, const char *value)
{
    struct summary_options *options = arg;

    if (ms_cli_take_printing(&options->printing, id, value))
        return 0;
    return ms_cli_number("--top", value, 0, 1000000, &options->top);
}

static json_t *top_sites_json(const struct ms_report *report, size_t top)
{
    static const char *const keys[] = {"id",          "api",           "device",       "device_api",
                                       "total_bytes", "total_count",   "live_bytes",
                                       "live_count",  "at_peak_bytes", "max_bytes"};
    size_t i, k, count;
    json_t **sites = ms_cli_sites_by(report, "at_peak_bytes", &count);
    json_t *array = json_array();

    for (i = 0; i < count && i < top; i++) {
        json_t *object = json_object();

        for (k = 0; k < MS_ARRAY_LEN(keys); k++)
            if (json_object_get(sites[i], keys[k]))
                json_object_set(object, keys[k], json_object_get(sites[i], keys[k]));
        json_object_set_new(object, "stack", ms_cli_stack_json(report, ms_report_int(sites[i], "stack")));
        json_array_append_new(array, object);
    }
    free(sites);
    return array;
}

static json_t *devices_json(const struct ms_report *report)
{
    static const char *const keys[] = {"index",           "api",           "name",
                                       "total_bytes",     "live_bytes",    "live_count",
                                       "peak_live_bytes", "followed_bytes", "reserved_bytes",
                                       "peak_reserved_bytes", "reserved_parts", "peak_parts", "vendor_calls",
                                       "vendor_calls_saved"};
    json_t *array = json_array(), *device;
    size_t i, k;

    json_array_foreach (ms_report_array(report->root, "devices"), i, device) {
        json_t *object = json_object();

        for (k = 0; k < MS_ARRAY_LEN(keys); k++)
            if (json_object_get(device, keys[k]))
                json_object_set(object, keys[k], json_object_get(device, keys[k]));
        json_object_set_new(object, "leaked_bytes",
                            json_integer(ms_report_leaked(report, device)));
        json_array_append_new(array, object);
    }
    return array;
}

static json_t *summary_json(const char *path, const struct ms_report *report, size_t top)
{
    static const char *const copied[] = {"run",      "apis",     "coverage",   "oom",
                                         "findings", "overhead", "diagnostics", "pools"};
    json_t *object = json_object();
    size_t i;

    json_object_set_new(object, "file", json_string(path));
    json_object_set_new(object, "leaked_bytes", json_integer(ms_report_leaked(report, NULL)));
    json_object_set_new(object, "devices", devices_json(report));
    json_object_set_new(object, "top_sites", top_sites_json(report, top));
    for (i = 0; i < MS_ARRAY_LEN(copied); i++)
        if (json_object_get(report->root, copied[i]))
            json_object_set(object, copied[i], json_object_get(report->root, copied[i]));
    return object;
}

/* Every file is read before anything is printed, so that one bad file leaves no half output. */
static int print(char **paths, int count, const struct summary_options *options)
{
    struct ms_report *reports = calloc((size_t)count, sizeof(*reports));
    json_t *rows = options->printing.json ? json_array() : NULL;
    int i, loaded = 0, status = MS_EXIT_USAGE;
    FILE *out = NULL;

    while (reports && loaded < count && ms_cli_load(paths[loaded], &reports[loaded]) == 0)
        loaded++;
    if (reports && loaded == count)
        out = ms_cli_open_output(options->printing.output, options->printing.force);
    for (i = 0; out && i < count; i++) {
        if (rows)
            json_array_append_new(rows, summary_json(paths[i], &reports[i], (size_t)options->top));
        else
            ms_summary_print(out, paths[i], &reports[i], (size_t)options->top, i == 0);
    }
    if (out) {
        if (rows)
            ms_cli_print_json(out, json_incref(count == 1 ? json_array_get(rows, 0) : rows));
        status = ms_cli_close_output(out);
    }
    json_decref(rows);
    for (i = 0; i < loaded; i++)
        ms_report_close(&reports[i]);
    free(reports);
    return status;
}

int ms_cmd_summary(int argc, char **argv)
{
    struct summary_options options = {.top = 10};
    int first = ms_cli_parse(argc, argv, false, take, &options);

    if (first < 0)
        return ms_cli_parse_status(first);
    if (first == argc) {
        ms_cli_error("no report given; usage: memshim summary [OPTION...] FILE...");
        return MS_EXIT_USAGE;
    }
    return print(argv + first, argc - first, &options);
}
