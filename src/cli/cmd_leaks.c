/* cmd_leaks.c - memshim leaks: what was allocated and never freed, by call site.
 *
 * Floor 5. */
#include <stdlib.h>

#include "cli/cli.h"
#include "cli/leaks.h"
#include "cli/load.h"
#include "cli/many.h"
#include "report/text.h"

struct leaks_options {
    struct ms_cli_printing printing;
    uint64_t min_bytes;
};

static int take(void *arg, int id, const char *value)
{
    struct leaks_options *options = arg;

    if (ms_cli_take_printing(&options->printing, id, value))
        return 0;
    return ms_cli_size("--min-bytes", value, &options->min_bytes);
}

static json_t *leak_json(const struct ms_report *report, json_t *leak)
{
    static const char *const keys[] = {"site", "class", "bytes", "count", "first_ns", "last_ns"};
    json_t *site = ms_report_site(report, ms_report_int(leak, "site"));
    json_int_t stack = ms_report_int(site, "stack");
    json_t *object = json_object();
    size_t i;

    for (i = 0; i < MS_ARRAY_LEN(keys); i++)
        if (json_object_get(leak, keys[i]))
            json_object_set(object, keys[i], json_object_get(leak, keys[i]));
    json_object_set_new(object, "api", json_string(ms_report_text(site, "api")));
    if (json_object_get(site, "device"))
        json_object_set(object, "device", json_object_get(site, "device"));
    if (json_object_get(site, "device_api"))
        json_object_set(object, "device_api", json_object_get(site, "device_api"));
    json_object_set_new(object, "owner", json_string(ms_text_stack_module(report, stack)));
    json_object_set_new(object, "stack", ms_cli_stack_json(report, stack));
    return object;
}

static json_t *report_json(const char *path, const struct ms_report *report, const struct ms_leaks *leaks)
{
    const struct ms_leak_sum *left_out = &leaks->left_out;
    json_t *rows = json_array(), *run = json_object_get(report->root, "run"), *object;

    for (size_t i = 0; i < leaks->count; i++)
        json_array_append_new(rows, leak_json(report, leaks->rows[i]));
    object = json_pack(
        "{s:s, s:I, s:I, s:{s:I, s:I, s:I}, s:o}", "file", path, "leaked_bytes", leaks->counted.bytes, "late_frees",
        ms_report_int(json_object_get(report->root, "coverage"), "late_frees"), "left_out", "bytes",
        left_out->bytes, "count", left_out->blocks, "sites", (json_int_t)left_out->sites, "leaks", rows);
    if (json_object_get(run, "pid"))
        json_object_set(object, "pid", json_object_get(run, "pid"));
    if (json_object_get(run, "rank"))
        json_object_set(object, "rank", json_object_get(run, "rank"));
    return object;
}

static void print_json(FILE *out, char **paths, const struct ms_report *reports, const struct ms_leaks *leaks,
                       size_t count)
{
    json_t *rows = json_array();

    for (size_t i = 0; i < count; i++)
        json_array_append_new(rows, report_json(paths[i], &reports[i], &leaks[i]));
    ms_cli_print_json(out, json_incref(count == 1 ? json_array_get(rows, 0) : rows));
    json_decref(rows);
}

static void print_table(FILE *out, char **paths, const struct ms_report *reports, const struct ms_leaks *leaks,
                        size_t count)
{
    struct ms_many many = {.columns = {{"leaked", false}, {"blocks", true}, {"sites", true}}};

    ms_many_begin(out, &many);
    for (size_t i = 0; i < count; i++) {
        const struct ms_leak_sum *sum = &leaks[i].counted;

        ms_many_row(out, &many, paths[i], &reports[i],
                    (const json_int_t[MS_MANY_FIGURES]){sum->bytes, sum->blocks, (json_int_t)sum->sites});
    }
    ms_many_end(out, &many);
}

static void print_text(FILE *out, char **paths, const struct ms_report *reports, const struct ms_leaks *leaks,
                       size_t count, uint64_t min_bytes)
{
    if (count > 1)
        print_table(out, paths, reports, leaks, count);
    for (size_t i = 0; i < count; i++) {
        if (count > 1) {
            fputs(i ? "\n" : "", out);
            ms_text_put(out, paths[i]);
            fputs(": ", out);
        }
        ms_leaks_print_sums(out, &reports[i], &leaks[i], min_bytes);
        ms_leaks_print(out, &reports[i], &leaks[i], SIZE_MAX, MS_REPORT_DEPTH_MAX);
    }
}

static int print(char **paths, size_t count, const struct leaks_options *options)
{
    struct ms_report *reports = ms_many_load(paths, count);
    struct ms_leaks *leaks = calloc(count, sizeof(*leaks));
    int status = MS_EXIT_USAGE;
    FILE *out = NULL;
    size_t i;

    for (i = 0; reports && leaks && i < count; i++)
        if (ms_leaks_open(&reports[i], options->min_bytes, &leaks[i]) < 0)
            break;
    if (reports && i == count)
        out = ms_cli_open_output(options->printing.output, options->printing.force);
    if (out && options->printing.json)
        print_json(out, paths, reports, leaks, count);
    else if (out)
        print_text(out, paths, reports, leaks, count, options->min_bytes);
    if (out)
        status = ms_cli_close_output(out);
    for (i = 0; leaks && i < count; i++)
        ms_leaks_close(&leaks[i]);
    free(leaks);
    ms_many_close(reports, count);
    return status;
}

int ms_cmd_leaks(int argc, char **argv)
{
    struct leaks_options options = {0};
    int first = ms_cli_parse(argc, argv, false, take, &options);

    if (first < 0)
        return ms_cli_parse_status(first);
    if (first == argc) {
        ms_cli_error("no report given; usage: memshim leaks [OPTION...] FILE...");
        return MS_EXIT_USAGE;
    }
    return print(argv + first, (size_t)(argc - first), &options);
}
