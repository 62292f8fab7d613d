/* cmd_peak.c - memshim peak: who held the memory of each device when most of it was live.
 *
 * Floor 5. */
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/load.h"
#include "cli/screens/multi_report.h"
#include "report/read/layer.h"
#include "report/text/text.h"
#include "report/analyse/view.h"

enum { STACK_SHOWN = 12 };

struct peak_options {
    struct ms_cli_printing printing;
    long top;
};

/* Sites of devices' memory, most at the peak first, as one list for each row of devices[]. Places count from
 * 1, 0 ends a list. */
struct peak {
    json_t **sites;
    size_t count;
    size_t *first, *next;
};

static int peak_take(void *arg, int id, const char *value)
{
    struct peak_options *options = arg;

    if (ms_cli_take_printing(&options->printing, id, value))
        return 0;
    return ms_cli_number("--top", value, 0, 1000000, &options->top);
}

static void close_peak(void *view)
{
    struct peak *peak = view;

    free(peak->sites);
    free(peak->first);
    free(peak->next);
}

static int open_peak(const struct ms_report *report, const void *options, void *view_p)
{
    size_t devices = json_array_size(ms_report_array(report->root, "devices")), count;
    json_t **sites = ms_cli_sites_by(report, "at_peak_bytes", &count);
    struct peak *peak = view_p;

    (void)options;
    *peak = (struct peak){.sites = sites,
                          .first = calloc(devices + 1, sizeof(size_t)),
                          .next = calloc(count + 1, sizeof(size_t))};
    if (!peak->first || !peak->next || (json_array_size(report->sites) && !sites)) {
        close_peak(peak);
        return -1;
    }
    for (size_t i = count; i > 0; i--) {
        size_t device =
            ms_report_is_device_memory(sites[i - 1]) ? ms_report_device_of(report, sites[i - 1]) : SIZE_MAX;

        if (device == SIZE_MAX || ms_report_int(sites[i - 1], "at_peak_bytes") <= 0)
            continue;
        peak->next[i] = peak->first[device];
        peak->first[device] = i;
        peak->count++;
    }
    return 0;
}

static void peak_sum_up(const void *view, json_int_t figures[MS_MANY_FIGURES])
{
    figures[0] = (json_int_t)((const struct peak *)view)->count;
}

/* The list of a row of devices[]: of equal rows the first has it. */
static size_t first_of(const struct ms_report *report, const struct peak *peak, const json_t *device,
                       size_t row)
{
    return ms_report_device_first(report, device) == row ? peak->first[row] : 0;
}

static json_t *peak_site_json(const struct ms_report *report, const json_t *site)
{
    static const char *const keys[] = {
        "id",         "api",        "kind",      "owner",       "at_peak_bytes",
        "live_bytes", "live_count", "max_bytes", "total_bytes", "total_count"};
    json_t *object = json_object();

    for (size_t i = 0; i < MS_ARRAY_LEN(keys); i++)
        if (json_object_get(site, keys[i]))
            json_object_set(object, keys[i], json_object_get(site, keys[i]));
    ms_cli_set_stack(object, report, ms_report_int(site, "stack"));
    return object;
}

static json_t *peak_report_json(const char *path, const struct ms_report *report, const void *view,
                                const void *options)
{
    static const char *const keys[] = {"index", "api", "name", "peak_live_bytes", "peak_ns", "total_bytes"};
    size_t top = (size_t)((const struct peak_options *)options)->top, i;
    json_t *rows = json_array(), *device, *object;
    const struct peak *peak = view;

    json_array_foreach (ms_report_array(report->root, "devices"), i, device) {
        json_t *row = json_object(), *sites = json_array();
        size_t at = first_of(report, peak, device, i);

        for (size_t k = 0; k < MS_ARRAY_LEN(keys); k++)
            if (json_object_get(device, keys[k]))
                json_object_set(row, keys[k], json_object_get(device, keys[k]));
        for (size_t told = 0; at && told < top; at = peak->next[at], told++)
            json_array_append_new(sites, peak_site_json(report, peak->sites[at - 1]));
        json_object_set_new(row, "sites", sites);
        json_array_append_new(rows, row);
    }
    object = json_pack("{s:s, s:o}", "file", path, "devices", rows);
    ms_cli_set_view(object, report);
    return object;
}

/* Of a tensor it is what it is for. */
static void print_owner(FILE *out, const struct ms_report *report, const char *owner, const char *api)
{
    if (!strcmp(owner, "program")) {
        fputs(", by the program", out);
    } else if (*owner && strcmp(owner, "unknown") && strcmp(owner, api)) {
        fputs(ms_report_is_inner(report) ? ", " : ", by ", out);
        ms_text_put(out, owner);
    }
}

static void print_site(FILE *out, const struct ms_report *report, const json_t *site, json_int_t whole)
{
    json_int_t bytes = ms_report_int(site, "at_peak_bytes");

    fprintf(out, "\n  %s, %.1f%%, ", ms_text_size(bytes).text,
            whole > 0 ? 100.0 * (double)bytes / (double)whole : 0.0);
    ms_text_put(out, ms_cli_site_api(site));
    print_owner(out, report, ms_report_text(site, "owner"), ms_cli_site_api(site));
    ms_text_put_own(out, report, ms_report_int(site, "stack"));
    fputc('\n', out);
    ms_text_callers(out, report, ms_report_int(site, "stack"), "      ", STACK_SHOWN);
}

/* One device; what is left out is said with its bytes. */
static void peak_print_device(FILE *out, const struct ms_report *report, const struct peak *peak,
                              const json_t *device, size_t at, size_t top)
{
    json_int_t whole = ms_report_int(device, "peak_live_bytes"), rest = 0;
    size_t left = 0;

    ms_text_put(out, ms_report_text(device, "api"));
    fprintf(out, " %" JSON_INTEGER_FORMAT "  ", ms_report_int(device, "index"));
    ms_text_put(out, ms_report_text(device, "name"));
    fprintf(out, ": %s were allocated at its peak, after %s\n", ms_text_size(whole).text,
            ms_text_duration(ms_report_int(device, "peak_ns")).text);
    for (size_t told = 0; at; at = peak->next[at], told++) {
        if (told < top) {
            print_site(out, report, peak->sites[at - 1], whole);
            continue;
        }
        rest = ms_report_sum(rest, ms_report_int(peak->sites[at - 1], "at_peak_bytes"));
        left++;
    }
    if (left)
        fprintf(out, "\n  ... and %s at %zu more site%s\n", ms_text_size(rest).text, left,
                left == 1 ? "" : "s");
}

static void peak_print_text(FILE *out, const struct ms_report *report, const void *view, const void *options)
{
    json_t *devices = ms_report_array(report->root, "devices"), *device;
    size_t i, told = 0;

    ms_view_print(out, report, "");
    json_array_foreach (devices, i, device) {
        size_t at = first_of(report, view, device, i);

        if (!at)
            continue;
        fputs(told++ ? "\n" : "", out);
        peak_print_device(out, report, view, device, at, (size_t)((const struct peak_options *)options)->top);
    }
    if (!told)
        fputs("no device memory was used\n", out);
}

int ms_cmd_peak(int argc, char **argv)
{
    static const struct ms_many_verb verb = {.view_bytes = sizeof(struct peak),
                                             .open = open_peak,
                                             .close = close_peak,
                                             .figures = peak_sum_up,
                                             .json = peak_report_json,
                                             .columns = {{"sites", MS_FIGURE_COUNT}},
                                             .after_path = ":\n",
                                             .text = peak_print_text};
    struct peak_options options = {.top = 10};

    return ms_many_run(argc, argv, peak_take, &options.printing, &verb, &options);
}
