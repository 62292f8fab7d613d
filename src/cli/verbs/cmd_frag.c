/* cmd_frag.c - memshim frag: what the memory that the pool holds is used for, and what stands in the way of
 * the rest.
 *
 * Floor 5. */
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "cli/cli.h"
#include "cli/screens/frag.h"
#include "cli/load.h"
#include "cli/screens/multi_report.h"
#include "report/analyse/view.h"

struct frag_options {
    struct ms_cli_printing printing;
    long top;
    const char *trace;
    struct ms_frag_moment moment;
};

/* peak, oom, or seconds since the record began. */
static int take_moment(struct ms_frag_moment *moment, const char *value)
{
    char *end;
    double seconds = strtod(value, &end);

    if (!strcmp(value, "peak") || !strcmp(value, "oom")) {
        moment->kind = *value == 'p' ? MS_FRAG_AT_PEAK : MS_FRAG_AT_OOM;
        return 0;
    }
    if (end == value || *end || !(seconds >= 0 && seconds <= 1e9)) {
        ms_cli_error("--at '%s': peak, oom, or seconds since the record began", value);
        return -1;
    }
    *moment = (struct ms_frag_moment){MS_FRAG_AT_TIME, (json_int_t)(seconds * 1e9)};
    return 0;
}

static int frag_take(void *arg, int id, const char *value)
{
    struct frag_options *options = arg;

    if (ms_cli_take_printing(&options->printing, id, value))
        return 0;
    if (id == 'T')
        options->trace = value;
    else if (id == 'A')
        return take_moment(&options->moment, value);
    else
        return ms_cli_number("--top", value, 0, 1000000, &options->top);
    return 0;
}

static json_t *segment_json(const struct ms_frag_segment *segment)
{
    static const char *const names[MS_FRAG_USES] = {
        [MS_FRAG_LIVE] = "live_bytes",     [MS_FRAG_ROUNDING] = "rounding_bytes",
        [MS_FRAG_PENDING] = "limbo_bytes", [MS_FRAG_PINNED] = "pinned_bytes",
        [MS_FRAG_FREE] = "free_bytes",     [MS_FRAG_UNKNOWN] = "unknown_bytes",
    };
    json_t *object = json_pack(
        "{s:O, s:O, s:I, s:I, s:I, s:I}", "address", json_object_get(segment->json, "address"), "tier",
        json_object_get(segment->json, "tier"), "bytes", segment->bytes, "live_count", segment->blocks,
        "stranded_bytes", ms_frag_fragmented(segment), "largest_gap_bytes", segment->largest_gap);

    if (segment->hidden_bytes)
        json_object_set_new(object, "hidden_bytes", json_integer(segment->hidden_bytes));
    for (unsigned use = 0; object && use < MS_FRAG_USES; use++)
        json_object_set_new(object, names[use], json_integer(segment->uses[use]));
    return object;
}

static json_t *holder_json(const struct ms_report *report, const struct ms_frag_holder *holder)
{
    json_t *site = ms_report_site(report, holder->site);

    return json_pack("{s:I, s:s, s:I, s:I, s:I, s:o}", "site", holder->site, "api", ms_cli_site_api(site),
                     "stranded_bytes", holder->stranded, "live_bytes", holder->live, "segments",
                     (json_int_t)holder->segments, "stack",
                     ms_cli_stack_json(report, ms_report_int(site, "stack")));
}

static json_t *device_json(const struct ms_report *report, const struct ms_frag_device *device, size_t top)
{
    static const char *const copied[] = {"index",
                                         "api",
                                         "name",
                                         "total_bytes",
                                         "live_bytes",
                                         "reserved_bytes",
                                         "peak_reserved_bytes",
                                         "followed_bytes",
                                         "reserved_parts",
                                         "peak_parts",
                                         "vendor_calls",
                                         "vendor_calls_saved"};
    json_t *object = json_object(), *segments = json_array(), *holders = json_array();

    for (size_t i = 0; i < MS_ARRAY_LEN(copied); i++)
        if (json_object_get(device->json, copied[i]))
            json_object_set(object, copied[i], json_object_get(device->json, copied[i]));
    json_object_set_new(object, "free_bytes", json_integer(device->free_bytes));
    json_object_set_new(object, "largest_free_bytes", json_integer(device->largest_free));
    json_object_set_new(object, "fragmentation_permille", json_integer(ms_frag_index(device)));
    if (device->left_out)
        json_object_set_new(object, "blocks_left_out", json_integer(device->left_out));
    json_object_set_new(object, "segment_count", json_integer((json_int_t)device->segment_count));
    for (size_t i = 0; i < device->segment_count && i < top; i++)
        json_array_append_new(segments, segment_json(&device->segments[i]));
    for (size_t i = 0; i < device->holder_count && i < top; i++)
        json_array_append_new(holders, holder_json(report, &device->holders[i]));
    json_object_set_new(object, "segments", segments);
    json_object_set_new(object, "holders", holders);
    return object;
}

static void add_then(json_t *object, const struct ms_frag_then *then)
{
    if (then->known)
        json_object_set_new(object, "then",
                            json_pack("{s:I, s:I, s:I, s:I, s:I}", "t_ns", then->ns, "live_bytes", then->live,
                                      "live_count", (json_int_t)then->count, "placed_bytes", then->placed,
                                      "placed_count", (json_int_t)then->placed_count));
}

static size_t top_of(const void *options)
{
    return (size_t)((const struct frag_options *)options)->top;
}

static json_t *frag_report_json(const char *path, const struct ms_report *report, const void *view,
                                const void *options)
{
    const struct ms_frag *frag = view;
    json_t *devices = json_array();

    for (size_t i = 0; i < frag->device_count; i++)
        json_array_append_new(devices, device_json(report, &frag->devices[i], top_of(options)));
    for (size_t i = 0; frag->then && i < frag->device_count; i++)
        add_then(json_array_get(devices, i), &frag->then[i]);
    json_t *object = json_pack("{s:s, s:o}", "file", path, "devices", devices);
    ms_cli_set_view(object, report);
    if (ms_report_array(report->root, "oom"))
        json_object_set(object, "oom", ms_report_array(report->root, "oom"));
    if (ms_report_array(report->root, "pools"))
        json_object_set(object, "pools", ms_report_array(report->root, "pools"));
    return object;
}

/* Traces of the first versions do not say where a block lay. */
static bool has_places(const struct ms_events *events)
{
    for (size_t i = 0; i < events->count; i++)
        if (events->rows[i].address)
            return true;
    return !events->count;
}

static int open_frag(const struct ms_report *report, const void *arg, void *view_p)
{
    const struct frag_options *options = arg;
    struct ms_events events = {.count = 0};
    char error[4608];
    int status;

    if (options->trace && ms_events_read(options->trace, report, &events, error, sizeof(error)) < 0) {
        ms_cli_error("%s", error);
        return -2;
    }
    if (!has_places(&events)) {
        ms_cli_error("%s does not say where blocks lay: an earlier version of memshim wrote it",
                     options->trace);
        ms_events_close(&events);
        return -2;
    }
    status = ms_frag_open(report, &options->moment, &events, view_p);
    ms_events_close(&events);
    return status;
}

/* An earlier moment needs a trace, which is of one process; without a word it is the peak. */
static int frag_check(void *arg, size_t reports)
{
    struct frag_options *options = arg;

    if (options->trace && options->moment.kind == MS_FRAG_AT_END)
        options->moment.kind = MS_FRAG_AT_PEAK;
    if (!options->trace && options->moment.kind != MS_FRAG_AT_END)
        ms_cli_error("--at needs --trace FILE (memshim run --trace): a report has segments as of its end");
    else if (options->trace && reports > 1)
        ms_cli_error("--trace is of one process; %zu reports were given", reports);
    else
        return 0;
    return -1;
}

static void close_frag(void *view)
{
    ms_frag_close(view);
}

static void frag_sum_up(const void *view, json_int_t figures[MS_MANY_FIGURES])
{
    const struct ms_frag *frag = view;

    for (size_t i = 0; i < frag->device_count; i++) {
        const struct ms_frag_device *device = &frag->devices[i];

        figures[0] = ms_report_sum(figures[0], ms_report_int(device->json, "reserved_bytes"));
        figures[1] = ms_report_sum(figures[1], ms_report_int(device->json, "peak_reserved_bytes"));
        figures[2] = ms_report_sum(figures[2], ms_report_int(device->json, "live_bytes"));
        figures[3] = ms_report_sum(figures[3], device->free_bytes);
    }
}

static void frag_print_text(FILE *out, const struct ms_report *report, const void *view, const void *options)
{
    ms_view_print(out, report, "");
    ms_frag_print(out, report, view, top_of(options));
}

int ms_cmd_frag(int argc, char **argv)
{
    static const struct ms_many_verb verb = {.view_bytes = sizeof(struct ms_frag),
                                             .check = frag_check,
                                             .open = open_frag,
                                             .close = close_frag,
                                             .figures = frag_sum_up,
                                             .json = frag_report_json,
                                             .columns = {{"pool", MS_FIGURE_BYTES},
                                                         {"at most", MS_FIGURE_BYTES},
                                                         {"allocated", MS_FIGURE_BYTES},
                                                         {"free", MS_FIGURE_BYTES}},
                                             .after_path = "\n",
                                             .text = frag_print_text};
    struct frag_options options = {.top = 20};

    return ms_many_run(argc, argv, frag_take, &options.printing, &verb, &options);
}
