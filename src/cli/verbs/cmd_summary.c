/* cmd_summary.c - memshim summary: what a report says, on one screen, or all of it.
 *
 * Floor 5. The screen is written by summary_screen.c, all of it by summary_text.c. */
#include "cli/screens/summary.h"

#include <stdlib.h>

#include "cli/cli.h"
#include "cli/load.h"
#include "cli/screens/multi_report.h"
#include "report/analyse/leak_class.h"

struct summary_options {
    struct ms_cli_printing printing;
    long top;
    bool all;
};

static int summary_take(void *arg, int id, const char *value)
{
    struct summary_options *options = arg;

    if (ms_cli_take_printing(&options->printing, id, value))
        return 0;
    if (id == 'A') {
        options->all = true;
        return 0;
    }
    return ms_cli_number("--top", value, 0, 1000000, &options->top);
}

static json_t *top_sites_json(const struct ms_report *report, size_t top)
{
    static const char *const keys[] = {
        "id",          "api",        "device",     "device_api",    "total_bytes",
        "total_count", "live_bytes", "live_count", "at_peak_bytes", "max_bytes"};
    size_t i, k, count;
    json_t **sites = ms_cli_sites_by(report, "at_peak_bytes", &count);
    json_t *array = json_array();

    for (i = 0; i < count && i < top; i++) {
        json_t *object = json_object();

        for (k = 0; k < MS_ARRAY_LEN(keys); k++)
            if (json_object_get(sites[i], keys[k]))
                json_object_set(object, keys[k], json_object_get(sites[i], keys[k]));
        ms_cli_set_stack(object, report, ms_report_int(sites[i], "stack"));
        json_array_append_new(array, object);
    }
    free(sites);
    return array;
}

static json_t *devices_json(const struct ms_report *report)
{
    static const char *const keys[] = {"index",
                                       "api",
                                       "name",
                                       "total_bytes",
                                       "live_bytes",
                                       "live_count",
                                       "peak_live_bytes",
                                       "followed_bytes",
                                       "reserved_bytes",
                                       "peak_reserved_bytes",
                                       "reserved_parts",
                                       "peak_parts",
                                       "vendor_calls",
                                       "vendor_calls_saved",
                                       "program_calls",
                                       "vendor_ns_saved"};
    json_t *devices = ms_report_array(report->root, "devices"), *array = json_array(), *device;
    json_int_t *leaked = calloc(json_array_size(devices) + 1, sizeof(*leaked));
    size_t i, k;

    if (!leaked)
        return array;
    ms_report_leaked(report, leaked);
    json_array_foreach (devices, i, device) {
        json_t *object = json_object();

        for (k = 0; k < MS_ARRAY_LEN(keys); k++)
            if (json_object_get(device, keys[k]))
                json_object_set(object, keys[k], json_object_get(device, keys[k]));
        json_object_set_new(object, "leaked_bytes",
                            json_integer(leaked[ms_report_device_first(report, device)]));
        json_array_append_new(array, object);
    }
    free(leaked);
    return array;
}

static json_t *summary_json(const char *path, const struct ms_report *report, size_t top)
{
    static const char *const copied[] = {"run",      "apis",        "coverage", "oom",      "findings",
                                         "overhead", "diagnostics", "pools",    "balances", "inner_oom"};
    json_t *object = json_object();
    size_t i;

    json_object_set_new(object, "file", json_string(path));
    json_object_set_new(object, "leaked_bytes", json_integer(ms_report_leaked(report, NULL)));
    json_object_set_new(object, "cached_bytes", json_integer(ms_report_cached(report)));
    json_object_set_new(object, "devices", devices_json(report));
    json_object_set_new(object, "top_sites", top_sites_json(report, top));
    for (i = 0; i < MS_ARRAY_LEN(copied); i++)
        if (json_object_get(report->root, copied[i]))
            json_object_set(object, copied[i], json_object_get(report->root, copied[i]));
    return object;
}

static void print_all(FILE *out, char **paths, const struct ms_report *reports, size_t count,
                      const struct summary_options *options)
{
    json_t *rows = json_array();
    size_t i;

    if (!options->printing.json && !options->all)
        ms_summary_job(out, paths, reports, count);
    for (i = 0; i < count; i++) {
        if (options->printing.json)
            json_array_append_new(rows, summary_json(paths[i], &reports[i], (size_t)options->top));
        else if (options->all)
            ms_summary_print(out, paths[i], &reports[i], (size_t)options->top, i == 0);
    }
    if (options->printing.json)
        ms_cli_print_json(out, json_incref(count == 1 ? json_array_get(rows, 0) : rows));
    json_decref(rows);
}

static int summary_print(char **paths, size_t count, const struct summary_options *options)
{
    struct ms_report *reports = ms_many_load(paths, count);
    int status = MS_EXIT_USAGE;
    FILE *out = NULL;

    if (reports)
        out = ms_cli_open_output(options->printing.output, options->printing.force);
    if (out) {
        print_all(out, paths, reports, count, options);
        status = ms_cli_close_output(out);
    }
    ms_many_close(reports, count);
    return status;
}

int ms_cmd_summary(int argc, char **argv)
{
    struct summary_options options = {.top = 10};
    int first = ms_cli_parse(argc, argv, false, summary_take, &options);

    if (first < 0)
        return ms_cli_parse_status(first);
    if (first == argc) {
        ms_cli_error("no report given; usage: memshim summary [OPTION...] FILE...");
        return MS_EXIT_USAGE;
    }
    return summary_print(argv + first, (size_t)(argc - first), &options);
}
