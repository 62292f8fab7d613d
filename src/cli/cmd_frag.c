/* cmd_frag.c - memshim frag: what the memory that the pool holds is used for, and what stands in the way of the rest.
 *
 * Floor 5. */
#include <stdlib.h>

#include "base/compiler.h"
#include "cli/cli.h"
#include "cli/frag.h"
#include "cli/load.h"
#include "cli/many.h"
#include "report/text.h"

struct frag_options {
    struct ms_cli_printing printing;
    long top;
};

static int take(void *arg, int id, const char *value)
{
    struct frag_options *options = arg;

    if (ms_cli_take_printing(&options->printing, id, value))
        return 0;
    return ms_cli_number("--top", value, 0, 1000000, &options->top);
}

static json_t *segment_json(const struct ms_frag_segment *segment)
{
    static const char *const names[MS_FRAG_USES] = {
        [MS_FRAG_LIVE] = "live_bytes",     [MS_FRAG_ROUNDING] = "rounding_bytes", [MS_FRAG_LIMBO] = "limbo_bytes",
        [MS_FRAG_PINNED] = "pinned_bytes", [MS_FRAG_FREE] = "free_bytes",         [MS_FRAG_UNKNOWN] = "unknown_bytes",
    };
    json_t *object = json_pack("{s:O, s:O, s:I, s:I, s:I, s:I}", "address", json_object_get(segment->json, "address"), "tier",
                               json_object_get(segment->json, "tier"), "bytes", segment->bytes, "live_count",
                               segment->blocks, "stranded_bytes", ms_frag_stranded(segment), "largest_gap_bytes",
                               segment->largest_gap);

    for (unsigned use = 0; object && use < MS_FRAG_USES; use++)
        json_object_set_new(object, names[use], json_integer(segment->uses[use]));
    return object;
}

static json_t *holder_json(const struct ms_report *report, const struct ms_frag_holder *holder)
{
    json_t *site = ms_report_site(report, holder->site);

    return json_pack("{s:I, s:s, s:I, s:I, s:I, s:o}", "site", holder->site, "api", ms_cli_site_api(site), "stranded_bytes",
                     holder->stranded, "live_bytes", holder->live, "segments", (json_int_t)holder->segments, "stack",
                     ms_cli_stack_json(report, ms_report_int(site, "stack")));
}

static json_t *device_json(const struct ms_report *report, const struct ms_frag_device *device, size_t top)
{
    static const char *const copied[] = {"index",       "api",          "name",           "total_bytes",
                                         "live_bytes",  "reserved_bytes", "peak_reserved_bytes", "followed_bytes",
                                         "reserved_parts", "peak_parts", "vendor_calls",   "vendor_calls_saved"};
    json_t *object = json_object(), *segments = json_array(), *holders = json_array();

    for (size_t i = 0; i < MS_ARRAY_LEN(copied); i++)
        if (json_object_get(device->json, copied[i]))
            json_object_set(object, copied[i], json_object_get(device->json, copied[i]));
    json_object_set_new(object, "free_bytes", json_integer(device->free_bytes));
    json_object_set_new(object, "largest_free_bytes", json_integer(device->largest_free));
    json_object_set_new(object, "fragmentation_permille", json_integer(ms_frag_index(device)));
    json_object_set_new(object, "segment_count", json_integer((json_int_t)device->segment_count));
    for (size_t i = 0; i < device->segment_count && i < top; i++)
        json_array_append_new(segments, segment_json(&device->segments[i]));
    for (size_t i = 0; i < device->holder_count && i < top; i++)
        json_array_append_new(holders, holder_json(report, &device->holders[i]));
    json_object_set_new(object, "segments", segments);
    json_object_set_new(object, "holders", holders);
    return object;
}

static json_t *report_json(const char *path, const struct ms_report *report, const struct ms_frag *frag, size_t top)
{
    json_t *devices = json_array();

    for (size_t i = 0; i < frag->device_count; i++)
        json_array_append_new(devices, device_json(report, &frag->devices[i], top));
    json_t *object = json_pack("{s:s, s:o}", "file", path, "devices", devices);
    if (ms_report_array(report->root, "pools"))
        json_object_set(object, "pools", ms_report_array(report->root, "pools"));
    return object;
}

static void print_json(FILE *out, char **paths, const struct ms_report *reports, const struct ms_frag *frags, size_t count,
                       size_t top)
{
    json_t *rows = json_array();

    for (size_t i = 0; i < count; i++)
        json_array_append_new(rows, report_json(paths[i], &reports[i], &frags[i], top));
    ms_cli_print_json(out, json_incref(count == 1 ? json_array_get(rows, 0) : rows));
    json_decref(rows);
}

static void print_table(FILE *out, char **paths, const struct ms_report *reports, const struct ms_frag *frags, size_t count)
{
    struct ms_many many = {.columns = {{"reserved", false}, {"at most", false}, {"live", false}, {"free", false}}};

    ms_many_begin(out, &many);
    for (size_t i = 0; i < count; i++) {
        json_int_t figures[MS_MANY_FIGURES] = {0};

        for (size_t k = 0; k < frags[i].device_count; k++) {
            const struct ms_frag_device *device = &frags[i].devices[k];

            figures[0] = ms_report_sum(figures[0], ms_report_int(device->json, "reserved_bytes"));
            figures[1] = ms_report_sum(figures[1], ms_report_int(device->json, "peak_reserved_bytes"));
            figures[2] = ms_report_sum(figures[2], ms_report_int(device->json, "live_bytes"));
            figures[3] = ms_report_sum(figures[3], device->free_bytes);
        }
        ms_many_row(out, &many, paths[i], &reports[i], figures);
    }
    ms_many_end(out, &many);
}

static void print_text(FILE *out, char **paths, const struct ms_report *reports, const struct ms_frag *frags, size_t count,
                       size_t top)
{
    if (count > 1)
        print_table(out, paths, reports, frags, count);
    for (size_t i = 0; i < count; i++) {
        if (count > 1) {
            fputs(i ? "\n" : "", out);
            ms_text_put(out, paths[i]);
            fputc('\n', out);
        }
        ms_frag_print(out, &reports[i], &frags[i], top);
    }
}

static int print(char **paths, size_t count, const struct frag_options *options)
{
    struct ms_report *reports = ms_many_load(paths, count);
    struct ms_frag *frags = calloc(count, sizeof(*frags));
    int status = MS_EXIT_USAGE;
    size_t opened = 0, i;
    FILE *out = NULL;

    while (reports && frags && opened < count && ms_frag_open(&reports[opened], &frags[opened]) == 0)
        opened++;
    if (reports && opened < count)
        ms_cli_error("no memory for %s", paths[opened]);
    if (reports && opened == count)
        out = ms_cli_open_output(options->printing.output, options->printing.force);
    if (out && options->printing.json)
        print_json(out, paths, reports, frags, count, (size_t)options->top);
    else if (out)
        print_text(out, paths, reports, frags, count, (size_t)options->top);
    if (out)
        status = ms_cli_close_output(out);
    for (i = 0; i < opened; i++)
        ms_frag_close(&frags[i]);
    free(frags);
    ms_many_close(reports, count);
    return status;
}

int ms_cmd_frag(int argc, char **argv)
{
    struct frag_options options = {.top = 20};
    int first = ms_cli_parse(argc, argv, false, take, &options);

    if (first < 0)
        return ms_cli_parse_status(first);
    if (first == argc) {
        ms_cli_error("no report given; usage: memshim frag [OPTION...] FILE...");
        return MS_EXIT_USAGE;
    }
    return print(argv + first, (size_t)(argc - first), &options);
}
