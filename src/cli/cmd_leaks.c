/* cmd_leaks.c - memshim leaks: what was allocated and never freed, by call site.
 *
 * Floor 5. Order: most bytes first, equal ones by site id, so that two runs of one program can be compared.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/load.h"
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

static int compare_leaks(const void *a, const void *b)
{
    const json_t *x = *(json_t *const *)a, *y = *(json_t *const *)b;
    json_int_t left = ms_report_int(x, "bytes"), right = ms_report_int(y, "bytes");

    if (left != right)
        return left > right ? -1 : 1;
    left = ms_report_int(x, "site"), right = ms_report_int(y, "site");
    return left < right ? -1 : left > right;
}

/* The leaks of at least min_bytes, sorted; the caller frees the array. */
static json_t **select_leaks(const struct ms_report *report, const struct leaks_options *options,
                             size_t *count_p)
{
    json_t *leaks = ms_report_array(report->root, "leaks");
    json_t **selected = calloc(json_array_size(leaks) + 1, sizeof(*selected));
    json_t *leak;
    size_t i, count = 0;

    json_array_foreach (leaks, i, leak) {
        json_int_t bytes = ms_report_int(leak, "bytes");

        if (selected && bytes >= 0 && (uint64_t)bytes >= options->min_bytes)
            selected[count++] = leak;
    }
    if (selected)
        qsort(selected, count, sizeof(*selected), compare_leaks);
    *count_p = count;
    return selected;
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

/* The report was written before them, and does not say which blocks they were. */
static json_int_t late_frees(const struct ms_report *report)
{
    return ms_report_int(json_object_get(report->root, "coverage"), "late_frees");
}

static void print_json(FILE *out, const char *path, const struct ms_report *report, json_t **leaks,
                       size_t count)
{
    json_t *rows = json_array();
    json_int_t bytes = 0;
    size_t i;

    for (i = 0; i < count; i++) {
        if (strcmp(ms_report_text(leaks[i], "class"), "suppressed"))
            bytes = ms_report_sum(bytes, ms_report_int(leaks[i], "bytes"));
        json_array_append_new(rows, leak_json(report, leaks[i]));
    }
    ms_cli_print_json(out, json_pack("{s:s, s:I, s:I, s:o}", "file", path, "leaked_bytes", bytes,
                                     "late_frees", late_frees(report), "leaks", rows));
}

static void print_leak(FILE *out, const struct ms_report *report, const json_t *leak)
{
    json_t *site = ms_report_site(report, ms_report_int(leak, "site"));
    json_int_t count = ms_report_int(leak, "count"), device = ms_report_int(site, "device");
    const char *class = ms_report_text(leak, "class");
    const char *owner = ms_text_stack_module(report, ms_report_int(site, "stack"));

    fprintf(out, "\n%s in %" JSON_INTEGER_FORMAT " block%s, ",
            ms_text_size(ms_report_int(leak, "bytes")).text, count, count == 1 ? "" : "s");
    ms_text_put(out, *class ? class : "at_exit");
    fputs(", ", out);
    ms_text_put(out, ms_cli_site_api(site));
    if (device >= 0)
        fprintf(out, ", %sdevice %" JSON_INTEGER_FORMAT, ms_report_device_prefix(site), device);
    if (*owner) {
        fputs(", by ", out);
        ms_text_put_path(out, owner);
    }
    fputc('\n', out);
    ms_text_stack(out, report, ms_report_int(site, "stack"), "    ", MS_REPORT_DEPTH_MAX);
}

static void print_text(FILE *out, const struct ms_report *report, json_t **leaks, size_t count)
{
    json_int_t bytes = 0, blocks = 0, suppressed = 0;
    size_t sites = 0, i;

    for (i = 0; i < count; i++) {
        if (!strcmp(ms_report_text(leaks[i], "class"), "suppressed")) {
            suppressed = ms_report_sum(suppressed, ms_report_int(leaks[i], "bytes"));
            continue;
        }
        bytes = ms_report_sum(bytes, ms_report_int(leaks[i], "bytes"));
        blocks = ms_report_sum(blocks, ms_report_int(leaks[i], "count"));
        sites++;
    }
    if (!count) {
        fputs("no leaks\n", out);
        return;
    }
    fprintf(out, "%s leaked in %" JSON_INTEGER_FORMAT " block%s at %zu site%s", ms_text_size(bytes).text,
            blocks, blocks == 1 ? "" : "s", sites, sites == 1 ? "" : "s");
    if (suppressed)
        fprintf(out, "; %s more suppressed", ms_text_size(suppressed).text);
    fputc('\n', out);
    if (late_frees(report))
        fprintf(out,
                "%" JSON_INTEGER_FORMAT
                " block%s freed after the report was written, and counted here all the same\n",
                late_frees(report), late_frees(report) == 1 ? " was" : "s were");
    for (i = 0; i < count; i++)
        print_leak(out, report, leaks[i]);
}

static int print(const char *path, const struct leaks_options *options)
{
    struct ms_report report;
    json_t **leaks;
    size_t count;
    FILE *out;

    if (ms_cli_load(path, &report) < 0)
        return MS_EXIT_USAGE;
    out = ms_cli_open_output(options->printing.output, options->printing.force);
    if (!out) {
        ms_report_close(&report);
        return MS_EXIT_USAGE;
    }
    leaks = select_leaks(&report, options, &count);
    if (options->printing.json)
        print_json(out, path, &report, leaks, count);
    else
        print_text(out, &report, leaks, count);
    free(leaks);
    ms_report_close(&report);
    return ms_cli_close_output(out);
}

int ms_cmd_leaks(int argc, char **argv)
{
    struct leaks_options options = {0};
    int first = ms_cli_parse(argc, argv, false, take, &options);

    if (first < 0)
        return ms_cli_parse_status(first);
    if (argc - first != 1) {
        ms_cli_error("takes one report, got %d; usage: memshim leaks [OPTION...] FILE", argc - first);
        return MS_EXIT_USAGE;
    }
    return print(argv[first], &options);
}
