/* summary_job.c - the processes of a job on one screen; see summary.h.
 *
 * Floor 5. Peaks are never added up: those of processes, and of devices, were at times of their own. So a
 * process counts by its fullest device, and a job by the fullest process. */
#include <stdlib.h>
#include <string.h>

#include "cli/job/job.h"
#include "cli/screens/summary.h"
#include "report/analyse/leak_class.h"
#include "report/text/text.h"

enum { OUTLIERS_SHOWN = 1, JOB_MOST = 4096 };
enum { LINES = 5 }; /* of many processes the fullest, and the emptiest */

struct process {
    size_t at; /* in the caller's order */
    const json_t *fullest;
    json_int_t peak, reserved, leaked;
};

static struct process measure(const struct ms_report *report, size_t at)
{
    struct process process = {.at = at, .leaked = ms_report_leaked(report, NULL)};
    json_t *device;
    size_t i;

    json_array_foreach (ms_report_array(report->root, "devices"), i, device) {
        if (process.fullest && ms_report_int(device, "peak_live_bytes") <= process.peak)
            continue;
        process.fullest = device;
        process.peak = ms_report_int(device, "peak_live_bytes");
        process.reserved = ms_report_reserved(device);
    }
    return process;
}

static int summary_job_by_peak(const void *a, const void *b)
{
    const struct process *x = a, *y = b;

    if (x->peak != y->peak)
        return x->peak > y->peak ? -1 : 1;
    return x->at < y->at ? -1 : x->at > y->at;
}

/* "rank 3", or "process 4711". */
static void put_name(FILE *out, const struct ms_report *report, int columns)
{
    const json_t *run = json_object_get(report->root, "run");
    bool ranked = json_object_get(run, "rank") != NULL;
    char text[64];

    snprintf(text, sizeof(text), "%s %" JSON_INTEGER_FORMAT, ranked ? "rank" : "process",
             ms_report_int(run, ranked ? "rank" : "pid"));
    fprintf(out, "%-*s", columns, text);
}

static void summary_job_print_row(FILE *out, char **paths, const struct ms_report *reports,
                                  const struct process *process)
{
    put_name(out, &reports[process->at], 16);
    fprintf(out, " %11s %11s %11s  ", ms_text_size(process->peak).text, ms_text_size(process->reserved).text,
            ms_text_size(process->leaked).text);
    if (process->fullest) {
        ms_text_put(out, ms_report_text(process->fullest, "api"));
        fprintf(out, " %-3" JSON_INTEGER_FORMAT, ms_report_int(process->fullest, "index"));
    } else {
        fputs("none    ", out);
    }
    fputc(' ', out);
    ms_text_put_path(out, paths[process->at]);
    fputc('\n', out);
}

/* "least 118.0 MiB (rank 2), median 120.0 MiB, most 240.0 MiB (rank 0); 12.0 MiB leaked by 2 of 4" */
static void print_spread(FILE *out, const struct ms_report *reports, const struct process *processes,
                         size_t count)
{
    json_int_t leaked = 0;
    size_t leakers = 0;

    for (size_t i = 0; i < count; i++) {
        leaked = ms_report_sum(leaked, processes[i].leaked);
        leakers += processes[i].leaked > 0;
    }
    fprintf(out, "%zu processes: peak %s (", count, ms_text_size(processes[count - 1].peak).text);
    put_name(out, &reports[processes[count - 1].at], 0);
    fprintf(out, ") to %s (", ms_text_size(processes[0].peak).text);
    put_name(out, &reports[processes[0].at], 0);
    fprintf(out, "), median %s",
            ms_text_size(ms_job_between(processes[(count - 1) / 2].peak, processes[count / 2].peak)).text);
    if (leakers)
        fprintf(out, "; %zu leaked, %s together", leakers, ms_text_size(leaked).text);
    fputs("\nThe fullest:\n", out);
}

/* The text of memshim merge for the job; the report itself is that of one process. */
static void put_merged(FILE *out, const struct ms_report *report)
{
    struct ms_job job = {.shown = NULL};

    if (json_object_get(report->root, "job") && ms_job_take_merged(&job, report->root) == 0 &&
        ms_job_finish(&job) == 0) {
        ms_job_put_text(out, &job);
        fputs("\nThe fullest:\n", out);
    }
    ms_job_close(&job);
}

/* True if the reports are a job's: not if two of them are of one process, one of them is of a job, or there
 * are too many. */
static bool are_a_job(const struct ms_report *reports, size_t count)
{
    static const char *const keys[] = {"pid", "start_unix_ns"};

    for (size_t i = 0; i < count; i++) {
        const json_t *run = json_object_get(reports[i].root, "run");

        if (json_object_get(reports[i].root, "job"))
            return false;
        for (size_t k = 0; k < i; k++) {
            const json_t *other = json_object_get(reports[k].root, "run");

            if (ms_report_int(run, keys[0]) == ms_report_int(other, keys[0]) &&
                ms_report_int(run, keys[1]) == ms_report_int(other, keys[1]) &&
                !strcmp(ms_report_text(run, "host"), ms_report_text(other, "host")))
                return false;
        }
    }
    return count <= JOB_MOST;
}

/* Who stands out comes first, with the line that makes it so. */
static void put_outliers(FILE *out, const struct ms_report *reports, size_t count)
{
    struct ms_job job = {.shown = NULL};
    size_t taken = 0;

    if (!are_a_job(reports, count))
        return;
    while (taken < count && ms_job_take(&job, (struct ms_report *)&reports[taken]) == 0)
        taken++;
    if (taken == count && ms_job_finish(&job) == 0 && job.outliers_all) {
        ms_job_put_outliers(out, &job, OUTLIERS_SHOWN);
        fputc('\n', out);
    }
    ms_job_close(&job);
}

void ms_summary_job(FILE *out, char **paths, const struct ms_report *reports, size_t count)
{
    struct process *processes = count > 1 ? calloc(count, sizeof(*processes)) : NULL;
    struct ms_next_report *all = calloc(count + 1, sizeof(*all));

    for (size_t i = 0; all && i < count; i++)
        all[i] = (struct ms_next_report){&reports[i], paths[i]};
    if (!processes || !all) {
        for (size_t i = 0; all && i < count; i++) {
            put_merged(out, &reports[i]);
            ms_summary_screen(out, paths[i], &reports[i], &all[i], 1);
        }
        free(processes);
        free(all);
        return;
    }
    for (size_t i = 0; i < count; i++)
        processes[i] = measure(&reports[i], i);
    qsort(processes, count, sizeof(*processes), summary_job_by_peak);
    put_outliers(out, reports, count);
    fprintf(out, "%-16s %11s %11s %11s  %-8s report\n", "process", "peak", "reserved", "leaked", "device");
    for (size_t i = 0; i < count; i++) {
        if (i < LINES - 1 || i == count - 1)
            summary_job_print_row(out, paths, reports, &processes[i]);
        else if (i == LINES - 1)
            fprintf(out, "... %zu more\n", count - LINES);
    }
    print_spread(out, reports, processes, count);
    ms_summary_screen(out, paths[processes[0].at], &reports[processes[0].at], all, count);
    free(processes);
    free(all);
}
