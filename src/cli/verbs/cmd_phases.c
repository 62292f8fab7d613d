/* cmd_phases.c - memshim phases: what memory did in each phase that the program named.
 *
 * Floor 5. */
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/load.h"
#include "cli/screens/multi_report.h"
#include "report/text/text.h"
#include "report/analyse/view.h"

struct phases_options {
    struct ms_cli_printing printing;
    long top;
};

/* The largest peaks first; marks, which have none, last. */
struct phases {
    json_t **rows;
    size_t count;
    json_int_t instances, peak;
};

static json_int_t phases_peak_of(const json_t *phase)
{
    json_t *device;
    json_int_t peak = -1;
    size_t i;

    json_array_foreach (json_object_get(phase, "devices"), i, device) {
        json_int_t own = ms_report_int(json_object_get(device, "peak_bytes"), "max");

        peak = own > peak ? own : peak;
    }
    return peak;
}

static int phases_compare(const void *a, const void *b)
{
    const json_t *x = *(json_t *const *)a, *y = *(json_t *const *)b;
    json_int_t left = phases_peak_of(x), right = phases_peak_of(y);

    if (left == right) {
        left = ms_report_int(y, "first_ns");
        right = ms_report_int(x, "first_ns");
    }
    return left > right ? -1 : left < right;
}

static int phases_take(void *arg, int id, const char *value)
{
    struct phases_options *options = arg;

    if (ms_cli_take_printing(&options->printing, id, value))
        return 0;
    return ms_cli_number("--top", value, 0, 1000000, &options->top);
}

static int open_phases(const struct ms_report *report, const void *options, void *view_p)
{
    json_t *all = ms_report_array(report->root, "phases"), *phase;
    struct phases *phases = view_p;
    size_t i;

    (void)options;
    *phases = (struct phases){.rows = calloc(json_array_size(all) + 1, sizeof(json_t *))};
    if (!phases->rows)
        return -1;
    json_array_foreach (all, i, phase) {
        json_int_t peak = phases_peak_of(phase);

        phases->rows[phases->count++] = phase;
        phases->instances = ms_report_sum(phases->instances, ms_report_int(phase, "count"));
        phases->peak = peak > phases->peak ? peak : phases->peak;
    }
    qsort(phases->rows, phases->count, sizeof(json_t *), phases_compare);
    return 0;
}

static void close_phases(void *view)
{
    free(((struct phases *)view)->rows);
}

static void phases_sum_up(const void *view, json_int_t figures[MS_MANY_FIGURES])
{
    const struct phases *phases = view;

    figures[0] = phases->peak;
    figures[1] = (json_int_t)phases->count;
    figures[2] = phases->instances;
}

/* The phase as the report has it, and of its sites where they are. */
static json_t *phases_phase_json(const struct ms_report *report, const json_t *phase)
{
    json_t *object = json_deep_copy(phase), *device, *held;
    size_t i, k;

    json_array_foreach (json_object_get(object, "devices"), i, device)
        json_array_foreach (json_object_get(device, "sites"), k, held) {
            json_t *site = ms_report_site(report, ms_report_int(held, "site"));

            json_object_set_new(held, "api", json_string(ms_cli_site_api(site)));
            ms_cli_set_stack(held, report, ms_report_int(site, "stack"));
        }
    return object;
}

static json_t *phases_report_json(const char *path, const struct ms_report *report, const void *view,
                                  const void *arg)
{
    const struct phases_options *options = arg;
    const struct phases *phases = view;
    json_t *rows = json_array(), *object;

    for (size_t i = 0; i < phases->count && (!options->top || i < (size_t)options->top); i++)
        json_array_append_new(rows, phases_phase_json(report, phases->rows[i]));
    object = json_pack("{s:s, s:o}", "report", path, "phases", rows);
    ms_cli_set_view(object, report);
    return object;
}

static void print_spread(FILE *out, const char *what, const json_t *spread, json_int_t count)
{
    json_int_t most = ms_report_int(spread, "max");

    fprintf(out, "%s %s", what, ms_text_size(count == 1 ? most : ms_report_int(spread, "median")).text);
    if (count > 1)
        fprintf(out, " (%s to %s)", ms_text_size(ms_report_int(spread, "min")).text, ms_text_size(most).text);
}

static void phases_print_device(FILE *out, const struct ms_report *report, const json_t *device)
{
    json_int_t count = ms_report_int(device, "count"), trend = ms_report_int(device, "trend_bytes");
    json_t *held;
    size_t i;

    fprintf(out, "    %sdevice %" JSON_INTEGER_FORMAT ": ", ms_report_device_prefix(device),
            ms_report_int(device, "device"));
    print_spread(out, "peak", json_object_get(device, "peak_bytes"), count);
    print_spread(out, ", growth", json_object_get(device, "growth_bytes"), count);
    fprintf(out, ", allocated %s", ms_text_size(ms_report_int(device, "allocated_bytes")).text);
    fprintf(out, ", freed %s", ms_text_size(ms_report_int(device, "freed_bytes")).text);
    if (count > 2 && trend)
        fprintf(out, ", peak %s by %s from one to the next", trend > 0 ? "rises" : "falls",
                ms_text_size(trend > 0 ? trend : -trend).text);
    fputc('\n', out);
    json_array_foreach (json_object_get(device, "sites"), i, held) {
        json_t *site = ms_report_site(report, ms_report_int(held, "site"));

        fprintf(out, "        %10s ", ms_text_size(ms_report_int(held, "bytes")).text);
        ms_text_put(out, ms_cli_site_api(site));
        ms_text_put_own(out, report, ms_report_int(site, "stack"));
        fputc('\n', out);
    }
}

static void print_phase(FILE *out, const struct ms_report *report, const json_t *phase)
{
    json_int_t count = ms_report_int(phase, "count"), open = ms_report_int(phase, "open");
    json_int_t marks = ms_report_int(phase, "marks");
    const char *name = ms_report_text(phase, "name");
    json_t *device;
    size_t i;

    fputc('\n', out);
    if (*ms_report_text(phase, "domain")) {
        ms_text_put(out, ms_report_text(phase, "domain"));
        fputs(": ", out);
    }
    ms_text_put(out, *name ? name : "(no name)");
    if (count)
        fprintf(out, ", %" JSON_INTEGER_FORMAT " time%s, %s", count, count == 1 ? "" : "s",
                ms_text_duration(ms_report_int(phase, "total_ns")).text);
    if (open)
        fprintf(out, ", %" JSON_INTEGER_FORMAT " of them open at the end", open);
    if (marks)
        fprintf(out, ", %" JSON_INTEGER_FORMAT " mark%s", marks, marks == 1 ? "" : "s");
    fputc('\n', out);
    json_array_foreach (json_object_get(phase, "devices"), i, device)
        phases_print_device(out, report, device);
}

static void phases_print_text(FILE *out, const struct ms_report *report, const void *view, const void *arg)
{
    const struct phases_options *options = arg;
    const struct phases *phases = view;
    size_t top = options->top ? (size_t)options->top : phases->count;

    ms_view_print(out, report, "");
    if (!phases->count)
        fputs("the program named no phases (docs/user/phases.md says how)\n", out);
    else
        fprintf(out, "%zu phase%s by name, the largest peak first\n", phases->count,
                phases->count == 1 ? "" : "s");
    for (size_t i = 0; i < phases->count && i < top; i++)
        print_phase(out, report, phases->rows[i]);
    if (phases->count > top)
        fprintf(out, "\n... and %zu more\n", phases->count - top);
}

int ms_cmd_phases(int argc, char **argv)
{
    static const struct ms_many_verb verb = {
        .view_bytes = sizeof(struct phases),
        .open = open_phases,
        .close = close_phases,
        .figures = phases_sum_up,
        .json = phases_report_json,
        .columns = {{"peak", MS_FIGURE_PEAK}, {"phases", MS_FIGURE_COUNT}, {"times", MS_FIGURE_COUNT}},
        .after_path = ": ",
        .text = phases_print_text};
    struct phases_options options = {0};

    return ms_many_run(argc, argv, phases_take, &options.printing, &verb, &options);
}
