/* summary_text.c - the long page about one report (summary --all); see summary.h.
 *
 * Floor 5. A section that has nothing to say is left out, except what memshim could not see: that none is
 * known is news. */
#include "cli/screens/summary.h"

#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "cli/load.h"
#include "report/findings/findings.h"
#include "report/analyse/leak_class.h"
#include "report/text/text.h"
#include "report/analyse/view.h"
#include "report/read/layer.h"

#define STACK_SHOWN  12 /* frames of a top site; `leaks` prints whole stacks */
#define OWNERS_SHOWN 4  /* `owners` prints all */

static void print_argv(FILE *out, const json_t *run)
{
    json_t *word;
    size_t i;

    json_array_foreach (json_object_get(run, "argv"), i, word) {
        if (i)
            fputc(' ', out);
        if (i == 12) {
            fputs("...", out);
            break;
        }
        ms_text_put(out, json_string_value(word) ? json_string_value(word) : "?");
    }
    if (!json_array_size(json_object_get(run, "argv")))
        ms_text_put_path(out, ms_report_text(run, "exe"));
}

/* " 11 (Segmentation fault)", behind "signal". */
static void print_signal(FILE *out, json_int_t number)
{
    const char *name = number > 0 && number < SIGSYS + 1 ? strsignal((int)number) : NULL;

    fprintf(out, " %" JSON_INTEGER_FORMAT, number);
    if (name)
        fprintf(out, " (%s)", name);
}

/* ", ended by exit (0)", ", ended by signal 6 (Aborted)", ", killed by signal 9 (Killed)", or of a snapshot
 * ", still running". */
static void print_end(FILE *out, const json_t *run)
{
    const char *reason = ms_report_text(run, "end_reason");
    bool killed = !strcmp(reason, "killed"), signalled = json_object_get(run, "signal") != NULL;

    if (!strcmp(reason, "running")) {
        fputs(", still running", out);
    } else if (killed) {
        fputs(signalled ? ", killed by signal" : ", killed", out);
    } else {
        fputs(", ended by ", out);
        ms_text_put(out, reason);
    }
    if (json_object_get(run, "exit_code"))
        fprintf(out, " (%" JSON_INTEGER_FORMAT ")", ms_report_int(run, "exit_code"));
    if (signalled)
        print_signal(out, ms_report_int(run, "signal"));
}

void ms_summary_print_run(FILE *out, const char *path, const struct ms_report *report)
{
    json_t *run = json_object_get(report->root, "run");
    json_int_t started = ms_report_int(run, "start_unix_ns"), ended = ms_report_int(run, "end_unix_ns");
    bool bold = ms_text_bold(out);

    fputs(bold ? "\033[1m" : "", out);
    print_argv(out, run);
    fprintf(out, "%s\n  process %" JSON_INTEGER_FORMAT " on ", bold ? "\033[0m" : "",
            ms_report_int(run, "pid"));
    ms_text_put(out, ms_report_text(run, "host"));
    if (json_object_get(run, "rank"))
        fprintf(out, ", rank %" JSON_INTEGER_FORMAT, ms_report_int(run, "rank"));
    if (started >= 0 && ended > started)
        fprintf(out, ", %s", ms_text_duration(ended - started).text);
    print_end(out, run);
    if (!strcmp(ms_report_text(run, "end_reason"), "running"))
        fputs(": figures so far", out);
    else if (!ms_report_bool(run, "complete"))
        fputs(", incomplete: the program may have used more than this says", out);
    fputs("\n  ", out);
    ms_text_put_path(out, path);
    fputc('\n', out);
    if (!ms_report_has_inner(report)) /* else it tells of both layers */
        ms_view_print(out, report, "  ");
}

/* Owners by device, in one pass: reports with many devices exist. Places count from 1, 0 ends a list. */
struct held {
    const json_t *owners;
    size_t *first, *next; /* of a row of devices[]; of a row of owners[] */
};

static void held_close(struct held *held)
{
    free(held->first);
    free(held->next);
}

/* The owners of each device that held memory at its peak; without memory for the lists no owner is told. */
static struct held held_open(const struct ms_report *report)
{
    json_t *owners = ms_report_array(report->root, "owners");
    size_t count = json_array_size(owners),
           devices = json_array_size(ms_report_array(report->root, "devices"));
    struct held held = {owners, calloc(devices + 1, sizeof(size_t)), calloc(count + 1, sizeof(size_t))};

    for (size_t i = count; i > 0 && held.first && held.next; i--) {
        const json_t *row = json_array_get(owners, i - 1);
        size_t device =
            !strcmp(ms_report_text(row, "memory"), "device") ? ms_report_device_of(report, row) : SIZE_MAX;

        if (device == SIZE_MAX || ms_report_int(row, "at_peak_bytes") <= 0)
            continue;
        held.next[i] = held.first[device];
        held.first[device] = i;
    }
    return held;
}

/* Who held most at a device's peak, unless it was all the program's: "PyTorch 1.2 GiB, program 3.0 MiB". */
static bool summary_text_print_held(FILE *out, const struct held *held, size_t device)
{
    size_t at = device != SIZE_MAX && held->first && held->next ? held->first[device] : 0, told = 0, left = 0;
    json_int_t bytes = 0;

    if (!at || (!held->next[at] &&
                !strcmp(ms_report_text(json_array_get(held->owners, at - 1), "owner"), "program")))
        return false;
    for (; at; at = held->next[at]) {
        const json_t *row = json_array_get(held->owners, at - 1);

        if (told == OWNERS_SHOWN) {
            bytes = ms_report_sum(bytes, ms_report_int(row, "at_peak_bytes"));
            left++;
            continue;
        }
        fputs(told++ ? ", " : "    at its peak: ", out);
        ms_text_put(out, ms_report_text(row, "owner"));
        fprintf(out, " %s", ms_text_size(ms_report_int(row, "at_peak_bytes")).text);
    }
    if (left)
        fprintf(out, ", %zu other%s %s", left, left == 1 ? "" : "s", ms_text_size(bytes).text);
    fputc('\n', out);
    return true;
}

bool ms_summary_print_held(FILE *out, const struct ms_report *report, const json_t *device)
{
    struct held held = held_open(report);
    bool told = summary_text_print_held(out, &held, ms_report_device_first(report, device));

    held_close(&held);
    return told;
}

static void print_devices(FILE *out, const struct ms_report *report)
{
    json_t *devices = ms_report_array(report->root, "devices");
    json_int_t *leaked = calloc(json_array_size(devices) + 1, sizeof(*leaked));
    struct held held;
    json_t *device;
    size_t i;

    if (!leaked || !json_array_size(devices)) {
        free(leaked);
        fputs("\nno device memory was used\n", out);
        return;
    }
    ms_text_heading(out, "Devices");
    fprintf(out, "  %-8s %10s %13s %10s %8s %10s %10s  %s\n", "device", "peak", "peak reserved", "allocated",
            "blocks", "leaked", "memory", "name");
    ms_report_leaked(report, leaked);
    held = held_open(report);
    json_array_foreach (devices, i, device) {
        fputs("  ", out);
        ms_text_column(out, ms_report_text(device, "api"), 4);
        fprintf(out, " %-3" JSON_INTEGER_FORMAT " %10s %13s %10s %8" JSON_INTEGER_FORMAT " %10s %10s  ",
                ms_report_int(device, "index"), ms_text_size(ms_report_int(device, "peak_live_bytes")).text,
                ms_text_size(ms_report_reserved(device)).text,
                ms_text_size(ms_report_int(device, "live_bytes")).text, ms_report_int(device, "live_count"),
                ms_text_size(leaked[ms_report_device_first(report, device)]).text,
                ms_text_size(ms_report_int(device, "total_bytes")).text);
        ms_text_put(out, ms_report_text(device, "name"));
        fputc('\n', out);
        summary_text_print_held(out, &held, ms_report_device_first(report, device));
    }
    held_close(&held);
    free(leaked);
}

static void summary_text_print_parts(FILE *out, const char *when, const json_t *parts)
{
    static const char *const names[] = {"requested", "rounding", "limbo", "cached", "stranded", "pinned"};

    fprintf(out, "    %-10s", when);
    for (size_t i = 0; i < MS_ARRAY_LEN(names); i++)
        fprintf(out, "%s%s %s", i ? ", " : "  ", ms_text_word(names[i]),
                ms_text_size(ms_report_int(parts, names[i])).text);
    fputc('\n', out);
}

/* The program's own pools, from which something was served in the order of streams. */
static void print_streams(FILE *out, const struct ms_report *report)
{
    bool headed = false;
    size_t i;
    const json_t *pool;

    json_array_foreach (ms_report_array(report->root, "pools"), i, pool) {
        const json_t *hits = json_object_get(pool, "tier_hits"), *streams = json_object_get(pool, "streams");
        if (!streams)
            continue;
        if (!headed) {
            ms_text_heading(out, "In the order of streams");
            fprintf(out, "  %-9s %7s %10s %10s %12s %8s %12s %9s %8s %11s\n", "pool", "streams", "reserved",
                    "pending", "used again", "new", "freed across", "borrowed", "behind", "waits");
        }
        headed = true;
        fputs("  ", out);
        ms_text_column(out, ms_report_text(pool, "kind"), 9);
        fprintf(out,
                " %7zu %10s %10s %12" JSON_INTEGER_FORMAT " %8" JSON_INTEGER_FORMAT " %12" JSON_INTEGER_FORMAT
                " %9" JSON_INTEGER_FORMAT " %8" JSON_INTEGER_FORMAT " %11" JSON_INTEGER_FORMAT "\n",
                json_array_size(streams), ms_text_size(ms_report_int(pool, "reserved_bytes")).text,
                ms_text_size(ms_report_int(pool, "limbo_bytes")).text,
                ms_report_int(hits, "slab") + ms_report_int(hits, "run") + ms_report_int(hits, "single"),
                ms_report_int(pool, "misses"), ms_report_int(pool, "crossed_frees"),
                ms_report_int(pool, "borrowed"), ms_report_int(pool, "waited"),
                ms_report_int(pool, "limbo_waits"));
    }
}

/* The calls that the pool spared the program, and what that costs in memory. */
static void print_pool(FILE *out, const struct ms_report *report)
{
    json_t *devices = ms_report_array(report->root, "devices"), *device;
    bool headed = false;
    size_t i;

    json_array_foreach (devices, i, device) {
        json_int_t made = ms_report_int(device, "vendor_calls"),
                   saved = ms_report_int(device, "vendor_calls_saved");

        if (!ms_report_int(device, "peak_reserved_bytes"))
            continue;
        if (!headed) {
            ms_text_heading(out, "Served from the pool");
            fprintf(out, "  %-8s %10s %10s %10s %12s %12s\n", "device", "pool now", "at most", "followed",
                    "vendor calls", "calls saved");
        }
        headed = true;
        fputs("  ", out);
        ms_text_column(out, ms_report_text(device, "api"), 4);
        fprintf(out,
                " %-3" JSON_INTEGER_FORMAT " %10s %10s %10s %12" JSON_INTEGER_FORMAT
                " %12" JSON_INTEGER_FORMAT "\n",
                ms_report_int(device, "index"), ms_text_size(ms_report_int(device, "reserved_bytes")).text,
                ms_text_size(ms_report_int(device, "peak_reserved_bytes")).text,
                ms_text_size(ms_report_int(device, "followed_bytes")).text, made, saved);
        summary_text_print_parts(out, "as it grew", json_object_get(device, "peak_parts"));
        summary_text_print_parts(out, "now", json_object_get(device, "reserved_parts"));
    }
}

/* Host memory, and what belongs to others: it counts towards no device. */
static void print_other_memory(FILE *out, const struct ms_report *report)
{
    json_t *rows = ms_report_array(report->root, "memory"), *row;
    size_t i;

    if (!json_array_size(rows))
        return;
    ms_text_heading(out, "Memory of no device");
    fprintf(out, "  %10s %10s %8s  %s\n", "peak", "allocated", "blocks", "kind");
    json_array_foreach (rows, i, row) {
        fprintf(out, "  %10s %10s %8" JSON_INTEGER_FORMAT "  ",
                ms_text_size(ms_report_int(row, "peak_live_bytes")).text,
                ms_text_size(ms_report_int(row, "live_bytes")).text, ms_report_int(row, "live_count"));
        ms_text_put(out, ms_report_text(row, "kind"));
        fputc('\n', out);
    }
}

static void print_site(FILE *out, const struct ms_report *report, const json_t *site)
{
    json_int_t device = ms_report_int(site, "device"), count = ms_report_int(site, "total_count");

    fprintf(out, "  %s at peak, %s at the end, %s in %" JSON_INTEGER_FORMAT " call%s of ",
            ms_text_size(ms_report_int(site, "at_peak_bytes")).text,
            ms_text_size(ms_report_int(site, "live_bytes")).text,
            ms_text_size(ms_report_int(site, "total_bytes")).text, count, count == 1 ? "" : "s");
    ms_text_put(out, ms_cli_site_api(site));
    if (device >= 0)
        fprintf(out, ", %sdevice %" JSON_INTEGER_FORMAT, ms_report_device_prefix(site), device);
    ms_text_put_own(out, report, ms_report_int(site, "stack"));
    fputc('\n', out);
    ms_text_callers(out, report, ms_report_int(site, "stack"), "      ", STACK_SHOWN);
}

static void print_sites(FILE *out, const struct ms_report *report, size_t top)
{
    size_t i, count;
    json_t **sites = ms_cli_sites_by(report, "at_peak_bytes", &count);
    char heading[96];

    if (count && top) {
        snprintf(heading, sizeof(heading), "Call sites by their share of the peak, %zu of %zu",
                 count < top ? count : top, count);
        ms_text_heading(out, heading);
    }
    for (i = 0; i < count && i < top; i++)
        print_site(out, report, sites[i]);
    free(sites);
}

static int by_calls(const void *a, const void *b)
{
    json_int_t left = ms_report_int(*(json_t *const *)a, "calls"),
               right = ms_report_int(*(json_t *const *)b, "calls");

    return left == right ? strcmp(ms_report_text(*(json_t *const *)a, "name"),
                                  ms_report_text(*(json_t *const *)b, "name"))
                         : (left < right) - (left > right);
}

/* The functions that were called most. */
static void print_apis(FILE *out, const struct ms_report *report, size_t top)
{
    json_t *apis = ms_report_array(report->root, "apis"), *api;
    size_t count = json_array_size(apis), i;
    json_t **rows = count && top ? malloc(count * sizeof(*rows)) : NULL;

    if (!rows)
        return;
    json_array_foreach (apis, i, api)
        rows[i] = api;
    qsort(rows, count, sizeof(*rows), by_calls);
    ms_text_heading(out, "Interfaces");
    fprintf(out, "  %10s %10s %9s  %s\n", "calls", "bytes", "failures", "name");
    for (i = 0; i < count && i < top; i++) {
        fprintf(out, "  %10" JSON_INTEGER_FORMAT " %10s %9" JSON_INTEGER_FORMAT "  ",
                ms_report_int(rows[i], "calls"), ms_text_size(ms_report_int(rows[i], "bytes")).text,
                ms_report_int(rows[i], "failures"));
        ms_text_put(out, ms_report_text(rows[i], "name"));
        fputc('\n', out);
    }
    if (count > top)
        fprintf(out, "  ... %zu more\n", count - top);
    free(rows);
}

static void print_coverage(FILE *out, const struct ms_report *report)
{
    json_t *coverage = json_object_get(report->root, "coverage");
    json_t *routes = json_object_get(coverage, "routes");
    json_t *spots = ms_report_array(coverage, "blind_spots"), *spot;
    size_t i;

    ms_text_heading(out, "Coverage");
    fprintf(out,
            "  reached by exported name %" JSON_INTEGER_FORMAT ", dlsym %" JSON_INTEGER_FORMAT
            ", cuGetProcAddress %" JSON_INTEGER_FORMAT "\n",
            ms_report_int(routes, "exported"), ms_report_int(routes, "dlsym"),
            ms_report_int(routes, "get_proc_address"));
    if (ms_report_int(coverage, "divergent") || ms_report_int(coverage, "unseen_frees") ||
        ms_report_int(coverage, "late_frees"))
        fprintf(out,
                "  divergent lookups %" JSON_INTEGER_FORMAT
                ", frees of memory never seen %" JSON_INTEGER_FORMAT
                ", frees after the report %" JSON_INTEGER_FORMAT "\n",
                ms_report_int(coverage, "divergent"), ms_report_int(coverage, "unseen_frees"),
                ms_report_int(coverage, "late_frees"));
    if (!json_array_size(spots))
        fputs("  nothing is known to have been missed\n", out);
    json_array_foreach (spots, i, spot) {
        fputs("  not seen: ", out);
        ms_text_put(out, json_is_string(spot) ? json_string_value(spot) : ms_report_text(spot, "message"));
        fputc('\n', out);
    }
}

/* Of a finding that two places are about: where it happened, and where the block came from. */
static void print_places(FILE *out, const struct ms_report *report, const json_t *finding)
{
    json_t *site = ms_report_site(report, ms_report_int(finding, "site"));

    if (!*ms_report_text(finding, "api"))
        return;
    fprintf(out, "      %s by ", ms_finding_deed(finding));
    ms_text_put(out, ms_report_text(finding, "api"));
    fputs(":\n", out);
    ms_text_stack(out, report, ms_report_int(finding, "stack"), "          ", STACK_SHOWN);
    if (!json_object_get(finding, "site"))
        return;
    fputs("      allocated by ", out);
    ms_text_put(out, ms_cli_site_api(site));
    fputs(":\n", out);
    ms_text_stack(out, report, ms_report_int(site, "stack"), "          ", STACK_SHOWN);
}

static void print_findings(FILE *out, const struct ms_report *report)
{
    json_t *findings = ms_report_array(report->root, "findings"), *finding;
    size_t i;

    if (!json_array_size(findings))
        return;
    ms_text_heading(out, "Findings");
    json_array_foreach (findings, i, finding) {
        fputs("  ", out);
        ms_text_put(out, ms_report_text(finding, "severity"));
        fputs(": ", out);
        ms_text_put(out, ms_report_text(finding, "message"));
        if (*ms_report_text(finding, "advice")) {
            fputs("\n      ", out);
            ms_text_put(out, ms_report_text(finding, "advice"));
        }
        fputc('\n', out);
        print_places(out, report, finding);
    }
}

static void print_diagnostics(FILE *out, const struct ms_report *report)
{
    json_t *lines = ms_report_array(report->root, "diagnostics"), *line;
    json_t *overhead = json_object_get(report->root, "overhead");
    json_int_t events = ms_report_int(overhead, "dropped_events"),
               stacks = ms_report_int(overhead, "dropped_stacks");
    size_t i;

    if (!json_array_size(lines) && !events && !stacks)
        return;
    ms_text_heading(out, "Diagnostics");
    if (events || stacks)
        fprintf(out,
                "  dropped for want of room: %" JSON_INTEGER_FORMAT " events, %" JSON_INTEGER_FORMAT
                " stacks\n",
                events, stacks);
    json_array_foreach (lines, i, line) {
        fputs("  ", out);
        ms_text_put(out, json_is_string(line) ? json_string_value(line) : ms_report_text(line, "message"));
        fputc('\n', out);
    }
}

void ms_summary_print(FILE *out, const char *path, const struct ms_report *report, size_t top, bool first)
{
    if (!first)
        fputc('\n', out);
    ms_summary_print_run(out, path, report);
    print_devices(out, report);
    print_pool(out, report);
    print_streams(out, report);
    print_other_memory(out, report);
    print_sites(out, report, top);
    print_apis(out, report, top);
    ms_summary_print_oom(out, report);
    print_findings(out, report);
    print_coverage(out, report);
    print_diagnostics(out, report);
}
