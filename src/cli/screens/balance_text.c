/* balance_text.c - balances[] on a screen: what was in use on a device, and whose each byte of it was.
 *
 * Floor 5. */
#include "cli/screens/balance_text.h"

#include <string.h>

#include "base/compiler.h"
#include "report/text/text.h"

static const struct {
    const char *key, *words;
} terms[] = {
    {"requested", "allocated"},
    {"rounding", "rounding"},
    {"limbo", "pending (freed, still in use by the device)"},
    {"cached", "inactive, in whole segments"},
    {"stranded", "inactive, between blocks (fragmentation)"},
    {"pinned", "shared (freed here, open elsewhere)"},
    {"followed", "allocated, from the driver"},
    {"contexts", "contexts and modules"},
    {"untracked", "untracked"},
};

static const char *moment_of(const json_t *row)
{
    const char *moment = ms_report_text(row, "moment");

    return !strcmp(moment, "peak")  ? "when most was"
           : !strcmp(moment, "end") ? "at the end"
           : !strcmp(moment, "oom") ? "when there was no memory"
                                    : "when its driver was asked last";
}

/* Not where it says what the row before it says. */
static bool is_shown(const json_t *rows, size_t i)
{
    const json_t *row = json_array_get(rows, i), *before = i ? json_array_get(rows, i - 1) : NULL;

    return !before || strcmp(ms_report_text(row, "moment"), "latest") != 0 ||
           ms_report_int(row, "asked_ns") != ms_report_int(before, "asked_ns");
}

static void balance_text_print_row(FILE *out, const json_t *row)
{
    fprintf(out, "  %sdevice %" JSON_INTEGER_FORMAT ", %s: %s in use (%s)\n", ms_report_device_prefix(row),
            ms_report_int(row, "device"), moment_of(row),
            ms_text_size(ms_report_int(row, "in_use_bytes")).text, ms_report_text(row, "confidence"));
    for (size_t k = 0; k < MS_ARRAY_LEN(terms); k++)
        if (ms_report_int(row, terms[k].key))
            fprintf(out, "    %11s  %s\n", ms_text_size(ms_report_int(row, terms[k].key)).text,
                    terms[k].words);
    if (ms_report_int(row, "contexts_inferred"))
        fprintf(out, "                 (of contexts %s at most: others' that began meanwhile may be in it)\n",
                ms_text_size(ms_report_int(row, "contexts_inferred")).text);
    if (ms_report_int(row, "driver_cached"))
        fprintf(out, "                 (of what is inactive %s in the driver's own pools)\n",
                ms_text_size(ms_report_int(row, "driver_cached")).text);
    if (ms_report_int(row, "driver_rounding"))
        fprintf(out, "                 (of rounding %s by the driver, in granules)\n",
                ms_text_size(ms_report_int(row, "driver_rounding")).text);
    if (ms_report_int(row, "untracked") && ms_report_int(row, "managed_bytes"))
        fprintf(out, "                 (pages of %s of managed memory may be among what is untracked)\n",
                ms_text_size(ms_report_int(row, "managed_bytes")).text);
}

/* Of which devices there is no row, and why: to say nothing would look as if nothing were in use. */
static void print_missing(FILE *out, const struct ms_report *report, bool any)
{
    static const struct {
        const char *state, *words;
    } states[] = {{"never_still", "some thread's call to the driver was always under way when it was asked"},
                  {"more_held", "its driver says that less is in use than is held"}};
    json_t *device;
    size_t i;

    json_array_foreach (ms_report_array(report->root, "devices"), i, device) {
        for (size_t k = 0; k < MS_ARRAY_LEN(states); k++) {
            if (strcmp(ms_report_text(device, "balance"), states[k].state) != 0)
                continue;
            if (!any)
                fputs("\nin use on the device, and what for:\n", out);
            any = true;
            fprintf(out, "  %s %" JSON_INTEGER_FORMAT ": not known: %s\n", ms_report_text(device, "api"),
                    ms_report_int(device, "index"), states[k].words);
        }
    }
}

void ms_cli_print_balances(FILE *out, const struct ms_report *report, size_t most)
{
    const json_t *rows = ms_report_array(report->root, "balances");
    size_t shown = 0, left_out = 0;

    for (size_t i = 0; i < json_array_size(rows); i++) {
        if (!is_shown(rows, i))
            continue;
        if (shown == most) {
            left_out++;
            continue;
        }
        if (!shown++)
            fputs("\nin use on the device, and what for:\n", out);
        balance_text_print_row(out, json_array_get(rows, i));
    }
    if (left_out)
        fprintf(out, "  ... and %zu more\n", left_out);
    print_missing(out, report, shown != 0);
}
