/* run_summary.c - what `memshim run` says when the program has ended; see run_summary.h.
 *
 * Floor 5. All of it goes to standard error: standard output is the program's. */
#include "cli/run/run_summary.h"

#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "cli/cli.h"
#include "cli/doctor/closure.h"
#include "cli/screens/leaks.h"
#include "cli/screens/next.h"
#include "cli/screens/summary.h"
#include "cli/screens/suppress.h"
#include "report/analyse/leak_class.h"
#include "report/read/layer.h"
#include "report/text/text.h"
#include "report/analyse/view.h"

/* The bytes and blocks that all processes of the run leaked together. */
static void print_totals(const struct ms_reports *outcome)
{
    json_int_t bytes = 0, blocks = 0;
    size_t i;

    for (i = 0; i < outcome->count; i++) {
        struct ms_leak_sums sums;

        ms_leak_sums_of(&outcome->found[i].report, &sums);
        bytes = ms_report_sum(bytes, ms_leak_sums_leaked(&sums).bytes);
        blocks = ms_report_sum(blocks, ms_leak_sums_leaked(&sums).blocks);
    }
    ms_cli_note("%zu processes: leaked %s in %" JSON_INTEGER_FORMAT " block%s together", outcome->count,
                ms_text_size(bytes).text, blocks, blocks == 1 ? "" : "s");
}

/* The command that shows what to look at next. */
static void print_next(const struct ms_reports *outcome)
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
static void print_failed(const struct ms_reports *outcome)
{
    size_t i;

    for (i = 0; i < outcome->count; i++)
        if (ms_summary_print_failed(stderr, &outcome->found[i].report, "memshim: "))
            return;
}

/* "leaked 3.0 MiB in 2 blocks: lost; caches of frameworks kept 1.0 MiB" */
static void print_leaked(const struct ms_report *report)
{
    struct ms_leak_sums sums;
    struct ms_leak_sum leaked;

    ms_leak_sums_of(report, &sums);
    leaked = ms_leak_sums_leaked(&sums);
    fprintf(stderr, "leaked %s in %" JSON_INTEGER_FORMAT " block%s", ms_text_size(leaked.bytes).text,
            leaked.blocks, leaked.blocks == 1 ? "" : "s");
    ms_leaks_put_classes(stderr, &sums);
    ms_leaks_put_others(stderr, &sums);
    if (sums.of[MS_LEAK_CACHE].bytes)
        fprintf(stderr, "; caches of frameworks kept %s", ms_text_size(sums.of[MS_LEAK_CACHE].bytes).text);
}

static void print_peak(const struct ms_report *report)
{
    json_t *devices = ms_report_array(report->root, "devices"), *device;
    json_int_t peak = 0, reserved = 0;
    size_t count = json_array_size(devices), i;

    json_array_foreach (devices, i, device) { /* each had its peak at a time of its own */
        if (i && ms_report_int(device, "peak_live_bytes") <= peak)
            continue;
        peak = ms_report_int(device, "peak_live_bytes");
        reserved = ms_report_int(device, "peak_reserved_bytes") ? ms_report_reserved(device) : 0;
    }
    fprintf(stderr, "peak %s", ms_text_size(peak).text);
    if (reserved) /* nothing is, where all memory is the vendor's */
        fprintf(stderr, " allocated and %s reserved", ms_text_size(reserved).text);
    fprintf(stderr, " on %s%zu device%s", count > 1 ? "the fullest of " : "", count, count == 1 ? "" : "s");
}

/* "memshim: tensors: peak 21.40 GiB allocated, 23.10 GiB reserved by PyTorch", of the fullest device. */
static void print_tensors(const struct ms_report *report)
{
    const json_t *fullest = ms_report_inner_fullest(report);

    if (!fullest)
        return;
    fprintf(stderr, "memshim: tensors: peak %s allocated",
            ms_text_size(ms_report_int(fullest, "peak_live_bytes")).text);
    if (ms_report_heaps_say_reserved(report))
        fprintf(stderr, ", %s reserved", ms_text_size(ms_report_int(fullest, "peak_held_bytes")).text);
    fputs(" by ", stderr);
    ms_report_put_heaps(stderr, report);
    fputc('\n', stderr);
}

static void print_found(const struct ms_reports *outcome)
{
    const struct ms_report *report = &outcome->found[0].report;
    const char *path = ms_next_path(outcome->found[0].path);

    print_failed(outcome);
    print_tensors(report);
    fprintf(stderr, "memshim: process %" JSON_INTEGER_FORMAT ": ",
            ms_report_int(json_object_get(report->root, "run"), "pid"));
    print_peak(report);
    fputs(", ", stderr);
    print_leaked(report);
    fputc('\n', stderr);
    if (!ms_report_has_inner(report)) /* else it tells of both layers */
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

/* No library that drives a device is here, so that nothing could be allocated. */
static bool is_driverless(void)
{
    static const char *const names[] = {"libcuda.so.1", "libamdhip64.so.7", "libamdhip64.so.6",
                                        "libamdhip64.so.5", "libascendcl.so"};

    for (size_t i = 0; i < MS_ARRAY_LEN(names); i++) {
        char *path = ms_closure_find(names[i]);

        free(path);
        if (path)
            return false;
    }
    return true;
}

static bool used_none(const struct ms_reports *outcome)
{
    for (size_t i = 0; i < outcome->count; i++)
        if (json_array_size(ms_report_array(outcome->found[i].report.root, "devices")))
            return false;
    return true;
}

#define NO_DRIVER "no driver of a GPU is here: memshim run --sim puts the simulated GPU under the program"

static void print_none(const struct ms_child *child, const char *program, bool driverless)
{
    if (child->signal)
        ms_cli_note("no report: %s was ended by signal %d (%s) before it could write one", program,
                    child->signal, strsignal(child->signal));
    else
        ms_cli_note("no report: %s used no GPU memory, or left without the normal end of a process%s",
                    program, driverless ? "; " NO_DRIVER : "");
}

void ms_closing_print(const struct ms_reports *outcome, const struct ms_ledgers_left *left,
                      const struct ms_child *child, const char *program, bool sim)
{
    bool driverless = !sim && used_none(outcome) && is_driverless();

    ms_suppress_note_used();
    if (outcome->count)
        print_found(outcome);
    else
        print_none(child, program, driverless);
    if (outcome->count && driverless)
        ms_cli_note(NO_DRIVER);
    if (left->running)
        ms_cli_note("%zu process%s of this run still run%s and %s not counted", left->running,
                    left->running == 1 ? "" : "es", left->running == 1 ? "s" : "",
                    left->running == 1 ? "is" : "are");
}

void ms_closing_leaks(const struct ms_reports *outcome)
{
    enum { SITES = 10, FRAMES = 12 };
    struct ms_leaks leaks;
    size_t i;

    for (i = 0; i < outcome->count; i++) {
        const struct ms_run_report *found = &outcome->found[i];

        if (ms_leaks_open(&found->report, 0, &leaks) < 0)
            return;
        if (ms_leak_sums_leaked(&leaks.sums).sites) {
            fputc('\n', stderr);
            ms_text_put(stderr, ms_next_path(ms_reports_title(found)));
            fputs(": ", stderr);
            ms_leaks_print_sums(stderr, &found->report, &leaks, 0);
            ms_leaks_print(stderr, &found->report, &leaks, SITES, FRAMES);
        }
        ms_leaks_close(&leaks);
    }
}
