/* cmd_timeline.c - memshim timeline: memory over time as a line of small bars for each device, with phases
 * and the times when there was no memory below.
 *
 * Floor 5. */
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "cli/cli.h"
#include "cli/screens/multi_report.h"
#include "report/text/text.h"

enum { LABEL = 12, FIGURE = 12, COLUMNS_MAX = 1000 };

struct timeline_options {
    struct ms_cli_printing printing;
    long top;
};

/* The scale in which a report's time is drawn. */
struct scale {
    json_int_t end_ns;
    size_t columns;
};

static int timeline_take(void *arg, int id, const char *value)
{
    struct timeline_options *options = arg;

    if (ms_cli_take_printing(&options->printing, id, value))
        return 0;
    return ms_cli_number("--top", value, 0, 1000000, &options->top);
}

static int timeline_open_view(const struct ms_report *report, const void *options, void *view_p)
{
    const struct ms_report **view = view_p;

    (void)options;
    *view = report;
    return 0;
}

static void timeline_close_view(void *view)
{
    (void)view;
}

static void timeline_sum_up(const void *arg, json_int_t figures[MS_MANY_FIGURES])
{
    const struct ms_report *report = *(const struct ms_report *const *)arg;
    const json_t *device;
    size_t i;

    json_array_foreach (ms_report_array(report->root, "devices"), i, device) {
        figures[0] = ms_report_sum(figures[0], ms_report_int(device, "peak_live_bytes"));
        figures[1] = ms_report_sum(figures[1], ms_report_int(device, "live_bytes"));
    }
    figures[2] = (json_int_t)json_array_size(ms_report_array(report->root, "oom"));
}

static size_t column_of(const struct scale *scale, json_int_t ns)
{
    size_t column = ns > 0 ? (size_t)((double)ns / (double)scale->end_ns * (double)scale->columns) : 0;

    return column < scale->columns ? column : scale->columns - 1;
}

/* The end of the record, or of what the timeline knows. */
static json_int_t end_of(const struct ms_report *report)
{
    const json_t *run = json_object_get(report->root, "run"),
                 *timeline = json_object_get(report->root, "timeline");
    const json_t *times = ms_report_array(timeline, "t");
    json_int_t begin = ms_report_int(run, "start_unix_ns"), end = ms_report_int(run, "end_unix_ns");
    json_int_t last = json_integer_value(json_array_get(times, json_array_size(times) - 1));

    end = begin > 0 && end > begin ? end - begin : 0;
    last = ms_report_sum(last > 0 ? last : 0, ms_report_int(timeline, "bucket_ns"));
    return end > 0 ? end : last > 0 ? last : 1;
}

/* Eighths of a line; without UTF-8 ten letters that grow. */
static void put_bar(FILE *out, json_int_t value, json_int_t most)
{
    static const char *const eighths[] = {" ",      "\u2581", "\u2582", "\u2583", "\u2584",
                                          "\u2585", "\u2586", "\u2587", "\u2588"};
    static const char letters[] = " .:-=+*#%@";
    bool utf8 = ms_text_is_utf8();
    size_t steps = utf8 ? MS_ARRAY_LEN(eighths) - 1 : sizeof(letters) - 2;
    size_t step = most > 0 && value > 0 ? (size_t)((double)value / (double)most * (double)steps + 0.5) : 0;

    step = step > steps ? steps : step == 0 && value > 0 ? 1 : step;
    if (utf8)
        fputs(eighths[step], out);
    else
        fputc(letters[step], out);
}

/* The most of each column. A stretch of the timeline that is longer than a column fills those that it
 * covers. */
static json_int_t timeline_fill(const struct scale *scale, const json_t *times, const json_t *values,
                                json_int_t *columns)
{
    json_int_t most = 0;
    const json_t *time;
    size_t i;

    memset(columns, 0, scale->columns * sizeof(*columns));
    json_array_foreach (times, i, time) {
        json_int_t value = json_integer_value(json_array_get(values, i));
        json_t *next = json_array_get(times, i + 1);
        size_t from = column_of(scale, json_integer_value(time)),
               to = next ? column_of(scale, json_integer_value(next)) : scale->columns;

        for (size_t c = from; c < to || c == from; c++)
            columns[c] = value > columns[c] ? value : columns[c];
        most = value > most ? value : most;
    }
    return most;
}

static void timeline_put_label(FILE *out, const char *label)
{
    fputs("  ", out);
    fprintf(out, "%*s", (int)(LABEL - 2 - ms_text_cut(out, label, LABEL - 3)), "");
}

static void print_series(FILE *out, const struct scale *scale, const json_t *times, const json_t *series,
                         const char *key, const char *colour)
{
    json_int_t columns[COLUMNS_MAX],
        most = timeline_fill(scale, times, ms_report_array(series, key), columns);
    bool bold = ms_text_bold(out);

    timeline_put_label(out, ms_text_word(key));
    fputs(bold ? colour : "", out);
    for (size_t c = 0; c < scale->columns; c++)
        put_bar(out, columns[c], most);
    fprintf(out, "%s  %s\n", bold ? "\033[0m" : "", ms_text_size(most).text);
}

static void timeline_print_device(FILE *out, const struct ms_report *report, const struct scale *scale,
                                  const json_t *series)
{
    size_t row = ms_report_device_of(report, series);
    const json_t *device =
        row == SIZE_MAX ? NULL : json_array_get(ms_report_array(report->root, "devices"), row);
    const json_t *times = ms_report_array(json_object_get(report->root, "timeline"), "t");

    ms_text_put(out, ms_report_device_api(series));
    fprintf(out, " %" JSON_INTEGER_FORMAT "  ", ms_report_int(series, "device"));
    ms_text_put(out, ms_report_text(device, "name"));
    fprintf(out, ": %s at most, after %s\n", ms_text_size(ms_report_int(device, "peak_live_bytes")).text,
            ms_text_duration(ms_report_int(device, "peak_ns")).text);
    print_series(out, scale, times, series, "live", "\033[32m");
    if (ms_report_int(device, "peak_reserved_bytes") > 0) {
        print_series(out, scale, times, series, "reserved", "\033[34m");
        print_series(out, scale, times, series, "limbo", "\033[33m");
    }
}

static void print_axis(FILE *out, const struct scale *scale)
{
    struct ms_text_number end = ms_text_duration(scale->end_ns), middle = ms_text_duration(scale->end_ns / 2);
    size_t half = scale->columns / 2, lengths = strlen(middle.text) + strlen(end.text);

    timeline_put_label(out, "");
    fprintf(out, "%-*s%s%*s%s\n", (int)half, "0", middle.text,
            (int)(scale->columns - half > lengths ? scale->columns - half - lengths : 1), "", end.text);
}

static void print_oom(FILE *out, const struct ms_report *report, const struct scale *scale)
{
    char marks[COLUMNS_MAX + 1];
    const json_t *ooms = ms_report_array(report->root, "oom"), *oom;
    bool bold = ms_text_bold(out);
    size_t i;

    if (!json_array_size(ooms))
        return;
    memset(marks, ' ', scale->columns);
    marks[scale->columns] = '\0';
    json_array_foreach (ooms, i, oom)
        marks[column_of(scale, ms_report_int(oom, "t_ns"))] = '!';
    timeline_put_label(out, "no memory");
    fprintf(out, "%s%s%s  %zu time%s\n", bold ? "\033[31m" : "", marks, bold ? "\033[0m" : "",
            json_array_size(ooms), json_array_size(ooms) == 1 ? "" : "s");
}

static json_int_t timeline_peak_of(const json_t *phase)
{
    const json_t *device;
    json_int_t most = 0;
    size_t i;

    json_array_foreach (ms_report_array(phase, "devices"), i, device) {
        json_int_t peak = ms_report_int(json_object_get(device, "peak_bytes"), "max");

        most = peak > most ? peak : most;
    }
    return most;
}

static int timeline_by_peak(const void *a, const void *b)
{
    const json_t *x = *(json_t *const *)a, *y = *(json_t *const *)b;
    json_int_t left = timeline_peak_of(x), right = timeline_peak_of(y);

    return left > right   ? -1
           : left < right ? 1
                          : strcmp(ms_report_text(x, "name"), ms_report_text(y, "name"));
}

/* A phase reaches from its first beginning to its latest event. */
static void print_phase(FILE *out, const json_t *phase, const struct scale *scale)
{
    size_t from = column_of(scale, ms_report_int(phase, "first_ns")),
           to = column_of(scale, ms_report_int(phase, "last_ns"));

    timeline_put_label(out, ms_report_text(phase, "name"));
    for (size_t c = 0; c < scale->columns; c++)
        fputc(c < from || c > to ? ' ' : '=', out);
    fprintf(out, "  %s\n", ms_text_size(timeline_peak_of(phase)).text);
}

static void print_phases(FILE *out, const struct ms_report *report, const struct scale *scale, size_t top)
{
    const json_t *phases = ms_report_array(report->root, "phases");
    size_t count = json_array_size(phases), i;
    json_t **order = calloc(count + 1, sizeof(*order)), *phase;

    if (!order || !count || !top) {
        free(order);
        return;
    }
    json_array_foreach (phases, i, phase)
        order[i] = phase;
    qsort(order, count, sizeof(*order), timeline_by_peak);
    fputs("phases, each from its first beginning to its latest event, and its largest peak\n", out);
    for (i = 0; i < count && i < top; i++)
        print_phase(out, order[i], scale);
    if (count > top)
        fprintf(out, "  ... %zu more\n", count - top);
    free(order);
}

static void timeline_print_text(FILE *out, const struct ms_report *report, const void *view, const void *more)
{
    const struct timeline_options *options = more;
    size_t width = ms_text_width(out);
    struct scale scale = {.end_ns = end_of(report), .columns = width - LABEL - FIGURE}, *at = &scale;
    const json_t *series;
    size_t i, told = 0;

    (void)view;
    json_array_foreach (ms_report_array(json_object_get(report->root, "timeline"), "devices"), i, series) {
        timeline_print_device(out, report, at, series);
        told++;
    }
    if (!told) {
        fputs("nothing was recorded over time\n", out);
        return;
    }
    print_axis(out, at);
    print_oom(out, report, at);
    print_phases(out, report, at, (size_t)options->top);
}

int ms_cmd_timeline(int argc, char **argv)
{
    static const struct ms_many_verb verb = {
        .view_bytes = sizeof(const struct ms_report *),
        .open = timeline_open_view,
        .close = timeline_close_view,
        .figures = timeline_sum_up,
        .columns = {{"peak", MS_FIGURE_PEAK}, {"allocated", MS_FIGURE_BYTES}, {"no memory", MS_FIGURE_COUNT}},
        .after_path = ":\n",
        .text = timeline_print_text};
    struct timeline_options options = {.top = 10};

    return ms_many_run(argc, argv, timeline_take, &options.printing, &verb, &options);
}
