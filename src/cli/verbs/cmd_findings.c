/* cmd_findings.c - memshim findings: what is wrong, by how much, and what to do about it.
 *
 * Floor 5. The findings themselves are the report's (report/findings/findings.h). */
#include <string.h>

#include "cli/cli.h"
#include "cli/load.h"
#include "cli/screens/multi_report.h"
#include "cli/torch/what_if.h"
#include "report/findings/findings.h"
#include "report/text/text.h"
#include "report/analyse/view.h"
#include "report/read/layer.h"

enum { STACK_SHOWN = 6, SEVERITIES = 3 };

static const char *const severities[SEVERITIES] = {"error", "warning", "info"};

struct findings_options {
    struct ms_cli_printing printing;
    long top;
};

struct findings {
    json_t *rows; /* borrowed from the report */
    json_int_t counts[SEVERITIES];
};

static int findings_take(void *arg, int id, const char *value)
{
    struct findings_options *options = arg;

    if (ms_cli_take_printing(&options->printing, id, value))
        return 0;
    return ms_cli_number("--top", value, 0, 1000000, &options->top);
}

static int open_findings(const struct ms_report *report, const void *options, void *view_p)
{
    struct findings *findings = view_p;
    json_t *row;
    size_t i;

    (void)options;
    *findings = (struct findings){.rows = ms_report_array(report->root, "findings")};
    json_array_foreach (findings->rows, i, row) {
        for (size_t k = 0; k < SEVERITIES; k++)
            findings->counts[k] += !strcmp(ms_report_text(row, "severity"), severities[k]);
    }
    return 0;
}

static void close_findings(void *view)
{
    (void)view;
}

static void findings_sum_up(const void *view, json_int_t figures[MS_MANY_FIGURES])
{
    for (size_t k = 0; k < SEVERITIES; k++)
        figures[k] = ((const struct findings *)view)->counts[k];
}

/* Whose line it is: a row of sites[] or of contexts[]. NULL if it is none. */
static const json_t *findings_place_of(const struct ms_report *report, const json_t *row)
{
    if (json_object_get(row, "site"))
        return ms_report_site(report, ms_report_int(row, "site"));
    if (json_object_get(row, "context"))
        return json_array_get(ms_report_array(report->root, "contexts"),
                              (size_t)ms_report_int(row, "context"));
    return NULL;
}

static json_t *findings_row_json(const struct ms_report *report, const json_t *row)
{
    const json_t *place = findings_place_of(report, row);
    json_t *object = json_copy((json_t *)row), *at = json_object();

    if (place) {
        ms_cli_set_stack(at, report, ms_report_int(place, "stack"));
        json_object_set_new(at, "api", json_string(ms_cli_site_api(place)));
        json_object_set(object, "at", at);
    }
    json_decref(at);
    if (json_object_get(row, "stack"))
        ms_cli_set_stack(object, report, ms_report_int(row, "stack"));
    if (json_object_get(row, "freed_stack")) {
        json_t *freed = json_object();

        ms_cli_set_stack(freed, report, ms_report_int(row, "freed_stack"));
        json_object_set_new(object, "freed", freed);
    }
    return object;
}

static json_t *findings_report_json(const char *path, const struct ms_report *report, const void *view,
                                    const void *options)
{
    static const char *const copied[] = {"pid", "rank"};
    const struct findings *findings = view;
    json_t *run = json_object_get(report->root, "run"), *rows = json_array(), *row, *object,
           *what_if = ms_torch_what_if_run(report);
    size_t i;

    json_array_foreach (findings->rows, i, row) {
        if (i < (size_t)((const struct findings_options *)options)->top)
            json_array_append_new(rows, findings_row_json(report, row));
    }
    object =
        json_pack("{s:s, s:I, s:o}", "file", path, "left_out",
                  (json_int_t)(json_array_size(findings->rows) - json_array_size(rows)), "findings", rows);
    ms_cli_set_view(object, report);
    if (what_if)
        json_object_set_new(object, "what_if", what_if);
    for (i = 0; i < MS_ARRAY_LEN(copied); i++)
        if (json_object_get(run, copied[i]))
            json_object_set(object, copied[i], json_object_get(run, copied[i]));
    return object;
}

static bool begins_with_size(const json_t *row)
{
    struct ms_text_number size = ms_text_size(ms_report_int(row, "bytes"));

    return !strncmp(ms_report_text(row, "message"), size.text, strlen(size.text));
}

/* "warning, leak on device 0 (exact): 3.0 MiB of cudaMalloc ..." */
static void print_head(FILE *out, const json_t *row)
{
    ms_text_put(out, ms_report_text(row, "severity"));
    fputs(", ", out);
    ms_text_put(out, ms_report_text(row, "rule"));
    if (!begins_with_size(row)) /* else it would be said twice */
        fprintf(out, ", %s", ms_text_size(ms_report_int(row, "bytes")).text);
    if (json_object_get(row, "device") && ms_report_int(row, "device") < 0)
        fputs(" of the host", out);
    else if (json_object_get(row, "device"))
        fprintf(out, " on %sdevice %" JSON_INTEGER_FORMAT, ms_report_device_prefix(row),
                ms_report_int(row, "device"));
    fputs(" (", out);
    ms_text_put(out, ms_report_text(row, "confidence"));
    fputs("): ", out);
    ms_text_put(out, ms_report_text(row, "message"));
    fputc('\n', out);
}

static void print_place(FILE *out, const struct ms_report *report, const char *what, const char *api,
                        json_int_t stack)
{
    fprintf(out, "    %s", what);
    if (*api)
        fputs(" by ", out);
    ms_text_put(out, api);
    ms_text_put_own(out, report, stack);
    fputc('\n', out);
    ms_text_callers(out, report, stack, "        ", STACK_SHOWN);
}

static void print_finding(FILE *out, const struct ms_report *report, const json_t *row)
{
    const json_t *place = findings_place_of(report, row);

    fputc('\n', out);
    print_head(out, row);
    fputs("    to do: ", out);
    ms_text_put(out, ms_report_text(row, "advice"));
    fputc('\n', out);
    if (*ms_report_text(row, "api"))
        print_place(out, report, ms_finding_deed(row), ms_report_text(row, "api"),
                    ms_report_int(row, "stack"));
    if (json_object_get(row, "freed_stack"))
        print_place(out, report, "freed", "", ms_report_int(row, "freed_stack"));
    if (place)
        print_place(out, report, json_object_get(row, "site") ? "allocated" : "made",
                    ms_report_text(place, "api"), ms_report_int(place, "stack"));
}

static void findings_print_text(FILE *out, const struct ms_report *report, const void *view,
                                const void *options)
{
    const struct findings *findings = view;
    size_t top = (size_t)((const struct findings_options *)options)->top,
           count = json_array_size(findings->rows);
    json_t *row, *what_if;
    size_t i;

    if (!ms_report_has_inner(report)) /* else it tells of both layers */
        ms_view_print(out, report, "");
    if (!count)
        fputs("nothing was found\n", out);
    else
        fprintf(out, "%zu finding%s, errors first, then most bytes (docs/user/findings.md)\n", count,
                count == 1 ? "" : "s");
    json_array_foreach (findings->rows, i, row) {
        if (i >= top)
            break;
        print_finding(out, report, row);
    }
    if (count > top)
        fprintf(out, "\n... and %zu more\n", count - top);
    what_if = ms_torch_what_if_run(report);
    ms_torch_print_what_if(out, what_if);
    json_decref(what_if);
}

int ms_cmd_findings(int argc, char **argv)
{
    static const struct ms_many_verb verb = {
        .view_bytes = sizeof(struct findings),
        .open = open_findings,
        .close = close_findings,
        .figures = findings_sum_up,
        .json = findings_report_json,
        .columns = {{"errors", MS_FIGURE_COUNT}, {"warnings", MS_FIGURE_COUNT}, {"to know", MS_FIGURE_COUNT}},
        .after_path = ": ",
        .text = findings_print_text};
    struct findings_options options = {.top = 20};

    return ms_many_run(argc, argv, findings_take, &options.printing, &verb, &options);
}
