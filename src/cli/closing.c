/* closing.c - what `memshim run` says when the program has ended; see closing.h.
 *
 * Floor 5. All of it goes to standard error: standard output is the program's. */
#include "cli/closing.h"

#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/leaks.h"
#include "cli/next.h"
#include "cli/summary.h"
#include "cli/suppress.h"
#include "report/text.h"
#include "report/view.h"

static json_int_t count_leaked_blocks(const struct ms_report *report)
{
    json_t *leaks = ms_report_array(report->root, "leaks"), *leak;
    json_int_t blocks = 0;
    size_t i;

    json_array_foreach (leaks, i, leak)
        if (ms_report_is_leak(leak))
            blocks = ms_report_sum(blocks, ms_report_int(leak, "count"));
    return blocks;
}

/* What all processes of the run leaked together. */
static void print_totals(const struct ms_outcome *outcome)
{
    json_int_t bytes = 0, blocks = 0;
    size_t i;

    for (i = 0; i < outcome->count; i++) {
        bytes = ms_report_sum(bytes, ms_report_leaked(&outcome->found[i].report, NULL));
        blocks = ms_report_sum(blocks, count_leaked_blocks(&outcome->found[i].report));
    }
    ms_cli_note("%zu processes: leaked %s in %" JSON_INTEGER_FORMAT " block%s together", outcome->count,
                ms_text_size(bytes).text, blocks, blocks == 1 ? "" : "s");
}

/* The command that shows what to look at next. */
static void print_next(const struct ms_outcome *outcome)
{
    struct ms_next_report *reports = calloc(outcome->count, sizeof(*reports));
    size_t i;

    for (i = 0; reports && i < outcome->count; i++)
        reports[i] = (struct ms_next_report){&outcome->found[i].report, outcome->found[i].path};
    if (reports)
        ms_next_print(stderr, "memshim: next: ", reports, outcome->count);
    free(reports);
}

/* Memory that could not be had, of whichever process. */
static void print_failed(const struct ms_outcome *outcome)
{
    size_t i;

    for (i = 0; i < outcome->count; i++)
        if (ms_summary_print_failed(stderr, &outcome->found[i].report, "memshim: "))
            return;
}

static void print_found(const struct ms_outcome *outcome)
{
    const struct ms_report *report = &outcome->found[0].report;
    json_t *devices = ms_report_array(report->root, "devices"), *device;
    json_int_t peak = 0, reserved = 0, blocks = count_leaked_blocks(report);
    size_t count = json_array_size(devices);
    char held[64] = "", cached[96] = "";
    const char *path = ms_next_path(outcome->found[0].path);
    size_t i;

    print_failed(outcome);
    json_array_foreach (devices, i, device) { /* each had its peak at a time of its own */
        if (i && ms_report_int(device, "peak_live_bytes") <= peak)
            continue;
        peak = ms_report_int(device, "peak_live_bytes");
        reserved = ms_report_int(device, "peak_reserved_bytes");
    }
    if (reserved) /* nothing is, where all memory is the vendor's */
        snprintf(held, sizeof(held), " live and %s reserved", ms_text_size(reserved).text);
    if (ms_report_cached(report))
        snprintf(cached, sizeof(cached), "; caches of frameworks kept %s",
                 ms_text_size(ms_report_cached(report)).text);
    ms_cli_note("process %" JSON_INTEGER_FORMAT
                ": peak %s%s on %s%zu device%s, leaked %s in %" JSON_INTEGER_FORMAT " block%s%s",
                ms_report_int(json_object_get(report->root, "run"), "pid"), ms_text_size(peak).text, held,
                count > 1 ? "the fullest of " : "", count, count == 1 ? "" : "s",
                ms_text_size(ms_report_leaked(report, NULL)).text, blocks, blocks == 1 ? "" : "s", cached);
    ms_view_print(stderr, report, "memshim: ");
    if (outcome->count == 1) {
        ms_cli_note("report: %s", path);
    } else {
        print_totals(outcome);
        ms_cli_note("report: %s, and %zu more, the next one %s", path, outcome->count - 1,
                    ms_next_path(outcome->found[1].path));
    }
    print_next(outcome);
}

static void print_none(const struct ms_child *child, const char *program)
{
    if (child->signal)
        ms_cli_note("no report: %s was ended by signal %d (%s) before it could write one", program,
                    child->signal, strsignal(child->signal));
    else
        ms_cli_note("no report: %s used no GPU memory, or left without the normal end of a process", program);
}

void ms_closing_print(const struct ms_outcome *outcome, const struct ms_ledgers_left *left,
                      const struct ms_child *child, const char *program)
{
    ms_suppress_note_used();
    if (outcome->count)
        print_found(outcome);
    else
        print_none(child, program);
    if (left->running)
        ms_cli_note("%zu process%s of this run still run%s and %s not counted", left->running,
                    left->running == 1 ? "" : "es", left->running == 1 ? "s" : "",
                    left->running == 1 ? "is" : "are");
}

void ms_closing_leaks(const struct ms_outcome *outcome)
{
    enum { SITES = 10, FRAMES = 12 };
    struct ms_leaks leaks;
    size_t i;

    for (i = 0; i < outcome->count; i++) {
        const struct ms_found *found = &outcome->found[i];

        if (ms_leaks_open(&found->report, 0, &leaks) < 0)
            return;
        if (leaks.counted.sites) {
            fputc('\n', stderr);
            ms_text_put(stderr, ms_next_path(ms_outcome_title(found)));
            fputs(": ", stderr);
            ms_leaks_print_sums(stderr, &found->report, &leaks, 0);
            ms_leaks_print(stderr, &found->report, &leaks, SITES, FRAMES);
        }
        ms_leaks_close(&leaks);
    }
}
