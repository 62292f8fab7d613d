/* doctor_run.c - a program run under memshim, and what the reports of the run say about what was seen; see
 * doctor.h.
 *
 * Floor 5. Reports go to a directory of their own that is removed again. */
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/options/options.h"
#include "cli/run/child.h"
#include "cli/cli.h"
#include "cli/doctor/doctor.h"
#include "cli/run/run_reports.h"
#include "cli/run/preload.h"

static void remove_directory(const char *directory)
{
    DIR *entries = opendir(directory);
    struct dirent *entry;

    while (entries && (entry = readdir(entries)))
        if (entry->d_name[0] != '.')
            unlinkat(dirfd(entries), entry->d_name, 0);
    if (entries)
        closedir(entries);
    rmdir(directory);
}

static void add_numbers(json_t *sums, const json_t *numbers)
{
    const char *name;
    json_t *number;

    json_object_foreach ((json_t *)numbers, name, number) {
        if (json_is_integer(number))
            json_object_set_new(
                sums, name,
                json_integer(ms_report_sum(ms_report_int(sums, name), json_integer_value(number))));
    }
}

/* Each distinct line once, whichever process had it. */
static void add_lines(json_t *lines, const json_t *more)
{
    json_t *line, *known;
    size_t i, k;

    json_array_foreach (more, i, line) {
        json_array_foreach (lines, k, known) {
            if (json_equal(known, line))
                break;
        }
        if (k == json_array_size(lines))
            json_array_append(lines, line);
    }
}

static json_t *doctor_run_judge(const struct ms_reports *outcome, const struct ms_child *child)
{
    json_t *routes = json_object(), *spots = json_array(), *diagnostics = json_array(),
           *counts = json_object();
    json_int_t live = 0, calls = 0;
    size_t i, k;

    for (i = 0; i < outcome->count; i++) {
        const json_t *root = outcome->found[i].report.root;
        const json_t *coverage = json_object_get(root, "coverage");
        json_t *api, *device;

        add_numbers(routes, json_object_get(coverage, "routes"));
        add_numbers(counts, coverage);
        add_lines(spots, json_object_get(coverage, "blind_spots"));
        add_lines(diagnostics, json_object_get(root, "diagnostics"));
        json_array_foreach (json_object_get(root, "apis"), k, api)
            calls = ms_report_sum(calls, ms_report_int(api, "calls"));
        json_array_foreach (json_object_get(root, "devices"), k, device)
            live = ms_report_sum(live, ms_report_int(device, "peak_live_bytes"));
    }
    return json_pack("{s:i, s:I, s:I, s:I, s:o, s:o, s:o, s:o}", "status", child->status, "reports",
                     (json_int_t)outcome->count, "calls", calls, "peak_bytes", live, "routes", routes,
                     "counts", counts, "blind_spots", spots, "diagnostics", diagnostics);
}

static int set_report(const char *directory, char **pattern_p)
{
    char *value;

    if (asprintf(&value, "%s/%%p.json", directory) < 0)
        return -1;
    setenv("MEMSHIM_REPORT", value, 1);
    free(value);
    if (ms_preload_check_options())
        return -1;
    *pattern_p = ms_reports_pattern(MS_OPT_REPORT);
    return *pattern_p ? 0 : -1;
}

json_t *ms_doctor_run(const char *path, char **argv, bool sim)
{
    struct ms_reports outcome = {NULL, 0, false};
    struct ms_child child = {.stdout_to_stderr = true};
    struct ms_program_run run;
    const char *parent = getenv("TMPDIR");
    char *directory, *pattern = NULL;
    json_t *result = NULL;

    if (asprintf(&directory, "%s/memshim-doctor.XXXXXX", parent && *parent == '/' ? parent : "/tmp") < 0)
        return NULL;
    if (!mkdtemp(directory)) {
        ms_cli_error("cannot make a directory %s: %s", directory, strerror(errno));
    } else {
        if (set_report(directory, &pattern) == 0 && ms_preload_set(sim, path, false) == 0 &&
            ms_reports_begin(&run) == 0 && ms_child_run(path, argv, &child) == 0) {
            ms_reports_find(pattern, &run, child.pid, &outcome);
            result = doctor_run_judge(&outcome, &child);
            ms_reports_free(&outcome);
        }
        remove_directory(directory);
    }
    free(pattern);
    free(directory);
    return result;
}
