/* cmd_frag.c - memshim frag: what the memory that the pool holds is used for, and what stands in the way of the rest.
 *
 * Floor 5. */
#include "base/compiler.h"
#include "cli/cli.h"
#include "cli/frag.h"
#include "cli/load.h"

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

static void print_json(FILE *out, const char *path, const struct ms_report *report, const struct ms_frag *frag, size_t top)
{
    json_t *devices = json_array();

    for (size_t i = 0; i < frag->device_count; i++)
        json_array_append_new(devices, device_json(report, &frag->devices[i], top));
    json_t *object = json_pack("{s:s, s:o}", "file", path, "devices", devices);
    if (ms_report_array(report->root, "pools"))
        json_object_set(object, "pools", ms_report_array(report->root, "pools"));
    ms_cli_print_json(out, object);
}

static int print(const char *path, const struct frag_options *options)
{
    struct ms_report report;
    struct ms_frag frag;
    FILE *out;

    if (ms_cli_load(path, &report) < 0)
        return MS_EXIT_USAGE;
    if (ms_frag_open(&report, &frag) < 0) {
        ms_cli_error("no memory for %s", path);
        ms_report_close(&report);
        return MS_EXIT_USAGE;
    }
    out = ms_cli_open_output(options->printing.output, options->printing.force);
    if (out && options->printing.json)
        print_json(out, path, &report, &frag, (size_t)options->top);
    else if (out)
        ms_frag_print(out, &report, &frag, (size_t)options->top);
    ms_frag_close(&frag);
    ms_report_close(&report);
    return out ? ms_cli_close_output(out) : MS_EXIT_USAGE;
}

int ms_cmd_frag(int argc, char **argv)
{
    struct frag_options options = {.top = 20};
    int first = ms_cli_parse(argc, argv, false, take, &options);

    if (first < 0)
        return ms_cli_parse_status(first);
    if (argc - first != 1) {
        ms_cli_error("takes one report, got %d; usage: memshim frag [OPTION...] FILE", argc - first);
        return MS_EXIT_USAGE;
    }
    return print(argv[first], &options);
}
