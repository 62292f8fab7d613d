/* cmd_owners.c - memshim owners: whose the memory is, at the peak and now.
 *
 * Floor 5. */
#include <string.h>

#include "cli/screens/balance_text.h"
#include "cli/cli.h"
#include "cli/load.h"
#include "cli/screens/multi_report.h"
#include "report/text/text.h"
#include "report/analyse/view.h"

enum { PARTS_MAX = 10 }; /* --json has all */

struct owners_options {
    struct ms_cli_printing printing;
    long top;
};

/* The owners of a report, summed up. */
struct owners {
    json_t *rows; /* borrowed from the report */
    json_int_t live_bytes;
    size_t count; /* of rows of devices' memory */
};

static int owners_take(void *arg, int id, const char *value)
{
    struct owners_options *options = arg;

    if (ms_cli_take_printing(&options->printing, id, value))
        return 0;
    return ms_cli_number("--top", value, 0, 1000000, &options->top);
}

static bool is_device_memory(const json_t *row)
{
    return !strcmp(ms_report_text(row, "memory"), "device");
}

static int open_owners(const struct ms_report *report, const void *options, void *view_p)
{
    struct owners *owners = view_p;
    json_t *row;
    size_t i;

    (void)options;
    *owners = (struct owners){.rows = ms_report_array(report->root, "owners")};
    json_array_foreach (owners->rows, i, row) {
        if (!is_device_memory(row))
            continue;
        owners->live_bytes = ms_report_sum(owners->live_bytes, ms_report_int(row, "live_bytes"));
        owners->count++;
    }
    return 0;
}

static void close_owners(void *view)
{
    (void)view;
}

static void owners_sum_up(const void *view, json_int_t figures[MS_MANY_FIGURES])
{
    const struct owners *owners = view;

    figures[0] = owners->live_bytes;
    figures[1] = (json_int_t)owners->count;
}

static json_t *owners_report_json(const char *path, const struct ms_report *report, const void *view,
                                  const void *options)
{
    static const char *const copied[] = {"pid", "rank"};
    const struct owners *owners = view;
    json_t *run = json_object_get(report->root, "run"), *rows = json_array(), *row, *object;
    size_t i;

    json_array_foreach (owners->rows, i, row) {
        if (i < (size_t)((const struct owners_options *)options)->top)
            json_array_append(rows, row);
    }
    object = json_pack("{s:s, s:I, s:I, s:o}", "file", path, "live_bytes", owners->live_bytes, "left_out",
                       (json_int_t)(json_array_size(owners->rows) - json_array_size(rows)), "owners", rows);
    json_object_set(object, "balances", ms_report_array(report->root, "balances"));
    ms_cli_set_view(object, report);
    for (i = 0; i < MS_ARRAY_LEN(copied); i++)
        if (json_object_get(run, copied[i]))
            json_object_set(object, copied[i], json_object_get(run, copied[i]));
    return object;
}

/* "device 0", "hip device 1", or a kind of memory that is on no device, or another's. */
static void print_memory(FILE *out, const json_t *row)
{
    char text[64];

    if (is_device_memory(row) && ms_report_int(row, "device") < 0)
        snprintf(text, sizeof(text), "no device");
    else if (is_device_memory(row) && json_object_get(row, "device"))
        snprintf(text, sizeof(text), "%sdevice %" JSON_INTEGER_FORMAT, ms_report_device_prefix(row),
                 ms_report_int(row, "device"));
    else
        snprintf(text, sizeof(text), "%s", ms_report_text(row, "memory"));
    ms_text_column(out, text, 12);
}

/* Of NCCL's: in which of its functions, and for which communicator. */
static void owners_print_parts(FILE *out, const json_t *row)
{
    const json_t *parts = ms_report_array(row, "parts");
    const json_t *part;
    size_t i;

    if (json_array_size(parts) == 1 && !json_object_get(json_array_get(parts, 0), "entry"))
        return;
    json_array_foreach (parts, i, part) {
        const char *entry = ms_report_text(part, "entry"), *name = ms_report_text(part, "communicator");

        if (i == PARTS_MAX) {
            fprintf(out, "%11s %11s %9s %7s  %-12s   ... and %zu more\n", "", "", "", "", "",
                    json_array_size(parts) - i);
            break;
        }
        fprintf(out, "%11s %11s %9" JSON_INTEGER_FORMAT " %7s  %-12s   NCCL in ",
                ms_text_size(ms_report_int(part, "at_peak_bytes")).text,
                ms_text_size(ms_report_int(part, "live_bytes")).text, ms_report_int(part, "live_count"), "",
                "");
        ms_text_put(out, *entry ? entry : "a function that is not known");
        if (*name) {
            fputs(", communicator ", out);
            ms_text_put(out, name);
        }
        fputc('\n', out);
    }
}

static void owners_print_text(FILE *out, const struct ms_report *report, const void *view,
                              const void *options)
{
    const struct owners *owners = view;
    size_t top = (size_t)((const struct owners_options *)options)->top, count = json_array_size(owners->rows);
    json_t *row;
    size_t i;

    ms_view_print(out, report, "");
    if (!count) {
        fputs("nothing was allocated\n", out);
        return;
    }
    fprintf(out, "%11s %11s %9s %7s  %-12s owner\n", "at peak", "now", "blocks", "sites", "memory");
    json_array_foreach (owners->rows, i, row) {
        if (i >= top)
            break;
        fprintf(out, "%11s %11s %9" JSON_INTEGER_FORMAT " %7" JSON_INTEGER_FORMAT "  ",
                ms_text_size(ms_report_int(row, "at_peak_bytes")).text,
                ms_text_size(ms_report_int(row, "live_bytes")).text, ms_report_int(row, "live_count"),
                ms_report_int(row, "sites"));
        print_memory(out, row);
        fputc(' ', out);
        ms_text_put(out, ms_report_text(row, "owner"));
        fputc('\n', out);
        owners_print_parts(out, row);
    }
    if (count > top)
        fprintf(out, "... and %zu more\n", count - top);
    ms_cli_print_balances(out, report, top);
}

int ms_cmd_owners(int argc, char **argv)
{
    static const struct ms_many_verb verb = {
        .view_bytes = sizeof(struct owners),
        .open = open_owners,
        .close = close_owners,
        .figures = owners_sum_up,
        .json = owners_report_json,
        .columns = {{"allocated", MS_FIGURE_BYTES}, {"owners", MS_FIGURE_COUNT}},
        .after_path = ":\n",
        .text = owners_print_text};
    struct owners_options options = {.top = 20};

    return ms_many_run(argc, argv, owners_take, &options.printing, &verb, &options);
}
