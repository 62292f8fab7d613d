/* summary_oom.c - memory that could not be had: who asked for it, and who held the rest; see summary.h.
 *
 * Floor 5. */
#include <string.h>

#include "base/compiler.h"
#include "cli/load.h"
#include "cli/screens/summary.h"
#include "report/read/layer.h"
#include "report/text/text.h"

enum { ASKED_SHOWN = 12, HOLDER_SHOWN = 4 }; /* frames of the stack that asked, and of one that held memory */

static void summary_oom_print_holders(FILE *out, const struct ms_report *report, const json_t *row)
{
    json_t *holders = ms_report_array(row, "top_sites"), *holder;
    size_t i;

    if (json_array_size(holders))
        fputs("    held most then:\n", out);
    json_array_foreach (holders, i, holder) {
        json_t *site = ms_report_oom_site(report, row, holder);

        fprintf(out, "      %s by ", ms_text_size(ms_report_int(holder, "bytes")).text);
        ms_text_put(out, ms_cli_site_api(site));
        ms_text_put_own(out, report, ms_report_int(site, "stack"));
        fputc('\n', out);
        ms_text_callers(out, report, ms_report_int(site, "stack"), "          ", HOLDER_SHOWN);
    }
}

/* The part of a request that the function's name and a size do not tell. */
static const char *told_of_kind(const json_t *row)
{
    static const char *const kinds[][2] = {
#define MS_ASKED_ROW(kind, word, group, told) {word, told},
#include "record/live/oom.def"
    };
    const char *kind = ms_report_text(row, "kind");

    for (size_t i = 0; i < MS_ARRAY_LEN(kinds); i++)
        if (!strcmp(kind, kinds[i][0]))
            return kinds[i][1];
    return "";
}

void ms_summary_print_asked(FILE *out, const json_t *row)
{
    json_int_t requested = ms_report_int(row, "requested"), device = ms_report_int(row, "device");
    const char *kind = told_of_kind(row);

    ms_text_put(out, ms_report_text(row, "api"));
    if (requested || !*kind)
        fprintf(out, " of %s", ms_text_size(requested).text);
    if (*kind)
        fprintf(out, " (%s)", kind);
    if (device >= 0)
        fprintf(out, " on %sdevice %" JSON_INTEGER_FORMAT, ms_report_device_prefix(row), device);
}

void ms_summary_print_then(FILE *out, const json_t *row)
{
    const char *live = ms_text_size(ms_report_int(row, "live")).text;
    json_int_t reserved = ms_report_int(row, "reserved");

    fprintf(out, "%s were allocated", live);
    if (ms_report_oom_is_inner(row)) {
        fprintf(out, " by tensors, %s reserved by ", ms_text_size(reserved).text);
        ms_text_put(out, ms_report_text(row, "api"));
        if (json_object_get(row, "device_total"))
            fprintf(out, ", %s free on the device", ms_text_size(ms_report_int(row, "device_free")).text);
        return;
    }
    if (reserved)
        fprintf(out, ", %s reserved for the pool", ms_text_size(reserved).text);
    fprintf(out, ", the largest free piece %s", ms_text_size(ms_report_int(row, "largest_free")).text);
}

void ms_summary_print_refused(FILE *out, const json_t *row)
{
    fprintf(out, "after %s: ", ms_text_duration(ms_report_int(row, "t_ns")).text);
    ms_summary_print_asked(out, row);
}

static void print_one(FILE *out, const struct ms_report *report, const json_t *row)
{
    const char *cause = ms_report_text(row, "cause");

    fputs("  ", out);
    ms_summary_print_refused(out, row);
    if (*cause) {
        fputs(" (", out);
        ms_text_put(out, cause);
        fputc(')', out);
    }
    fputs("; ", out);
    ms_summary_print_then(out, row);
    fputc('\n', out);
    ms_text_stack(out, report, ms_report_int(row, "stack"), "      ", ASKED_SHOWN);
    summary_oom_print_holders(out, report, row);
}

void ms_summary_print_oom(FILE *out, const struct ms_report *report)
{
    json_t *rows = ms_report_ooms(report), *row;
    size_t i;

    if (json_array_size(rows))
        ms_text_heading(out, "Out of memory");
    json_array_foreach (rows, i, row)
        print_one(out, report, row);
    json_decref(rows);
}

/* "5.0 GiB by cudaMalloc, in grow at cache.c:12; ..." */
static void summary_oom_print_held(FILE *out, const struct ms_report *report, const json_t *row,
                                   const char *before)
{
    enum { HOLDERS = 2 };
    json_t *holder;
    size_t i;

    json_array_foreach (ms_report_array(row, "top_sites"), i, holder) {
        const json_t *site = ms_report_oom_site(report, row, holder);

        if (i == HOLDERS)
            break;
        if (i)
            fputs("; ", out);
        else
            fprintf(out, "%s      held most then: ", before);
        fprintf(out, "%s by ", ms_text_size(ms_report_int(holder, "bytes")).text);
        ms_text_put(out, ms_cli_site_api(site));
        ms_text_put_own(out, report, ms_report_int(site, "stack"));
    }
    if (i)
        fputc('\n', out);
}

bool ms_summary_print_failed(FILE *out, const struct ms_report *report, const char *before)
{
    json_t *rows = ms_report_ooms(report);
    const json_t *row = json_array_get(rows, json_array_size(rows) - 1);

    if (!row) {
        json_decref(rows);
        return false;
    }
    fprintf(out, "%sOut of memory: ", before);
    ms_summary_print_asked(out, row);
    ms_text_put_own(out, report, ms_report_int(row, "stack"));
    if (*ms_report_text(row, "cause")) {
        fputs(", cause: ", out);
        ms_text_put(out, ms_report_text(row, "cause"));
    }
    fputs("; ", out);
    ms_summary_print_then(out, row);
    fputc('\n', out);
    summary_oom_print_held(out, report, row, before);
    json_decref(rows);
    return true;
}
