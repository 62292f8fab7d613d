/* job_take.c - a report taken into a job; see job.h.
 *
 * Floor 5. */
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/job.h"
#include "cli/load.h"
#include "report/findings.h"

/* What is kept of most, in order; equal ones by key. */
static void keep(const struct ms_job *job, struct ms_job_part *parts, uint8_t *count_p, uint32_t site,
                 json_int_t bytes)
{
    const struct ms_job_row *rows = job->lists[MS_JOB_SITES].rows;
    unsigned i = *count_p;

    if (bytes <= 0)
        return;
    while (i > 0 && (parts[i - 1].bytes < bytes || (parts[i - 1].bytes == bytes &&
                                                    strcmp(rows[parts[i - 1].site].key, rows[site].key) > 0)))
        i--;
    if (i == MS_JOB_PARTS)
        return;
    if (*count_p < MS_JOB_PARTS)
        ++*count_p;
    memmove(parts + i + 1, parts + i, (*count_p - i - 1u) * sizeof(*parts));
    parts[i] = (struct ms_job_part){site, bytes};
}

struct taking {
    struct ms_job *job;
    const struct ms_report *report;
    uint32_t rank;     /* row of ranks[] */
    size_t fullest;    /* row of devices[] */
    uint32_t *touched; /* sites that this report has */
    size_t touched_count;
    json_int_t *leaked; /* by site id */
};

static void take_devices(struct taking *taking)
{
    struct ms_job_rank *rank = &taking->job->ranks[taking->rank];
    json_t *device;
    size_t i;

    taking->fullest = SIZE_MAX;
    json_array_foreach (ms_report_array(taking->report->root, "devices"), i, device) {
        json_int_t peak = ms_report_int(device, "peak_live_bytes");
        json_int_t reserved = ms_report_int(device, "peak_reserved_bytes");

        if (ms_report_device_first(taking->report, device) != i)
            continue;
        if (taking->fullest == SIZE_MAX || peak > rank->figures[MS_JOB_PEAK]) {
            taking->fullest = i;
            rank->figures[MS_JOB_PEAK] = peak;
        }
        if (reserved > rank->figures[MS_JOB_RESERVED])
            rank->figures[MS_JOB_RESERVED] = reserved;
        rank->figures[MS_JOB_LIVE] =
            ms_report_sum(rank->figures[MS_JOB_LIVE], ms_report_int(device, "live_bytes"));
        rank->figures[MS_JOB_CALLS] =
            ms_report_sum(rank->figures[MS_JOB_CALLS], ms_report_int(device, "allocated_count"));
    }
    rank->figures[MS_JOB_LEAKED] = ms_report_leaked(taking->report, NULL);
    for (unsigned figure = 0; figure < MS_JOB_FIGURES; figure++)
        rank->figures[figure] = ms_job_figure_of(rank->figures[figure]);
}

static int take_leaks(struct taking *taking)
{
    size_t count = json_array_size(taking->report->sites), i;
    json_t *leak;

    taking->leaked = calloc(count + 1, sizeof(*taking->leaked));
    if (!taking->leaked)
        return -1;
    json_array_foreach (ms_report_array(taking->report->root, "leaks"), i, leak) {
        json_int_t id = ms_report_int(leak, "site");

        if (ms_report_is_leak(leak) && id >= 0 && (size_t)id < count)
            taking->leaked[id] = ms_report_sum(taking->leaked[id], ms_report_int(leak, "bytes"));
    }
    return 0;
}

static int tell_site(const struct taking *taking, uint32_t number, const json_t *json)
{
    struct ms_job *job = taking->job;
    const struct ms_job_row *row = &job->lists[MS_JOB_SITES].rows[number];
    char *line;
    int status;

    if (!ms_job_tells(job, row, taking->rank))
        return 0;
    line = ms_finding_line(taking->report, json, "(no stack)");
    status =
        line ? ms_job_tell(job, MS_JOB_SITES, number, taking->rank,
                           (const char *const[]){row->words[MS_JOB_HASH], row->words[MS_JOB_KIND],
                                                 ms_cli_site_api(json), line, ms_report_text(json, "owner")})
             : -1;
    free(line);
    return status;
}

/* One place on several devices is one site: what it held at the peaks is the most of them. */
static int take_site(struct taking *taking, const json_t *json)
{
    struct ms_job *job = taking->job;
    uint32_t number = ms_job_row(
        job, MS_JOB_SITES, (const char *const[]){ms_report_text(json, "hash"), ms_report_text(json, "kind")});
    json_int_t peak = ms_report_int(json, "at_peak_bytes"), id = ms_report_int(json, "id");
    struct ms_job_row *site;

    if (number == UINT32_MAX)
        return -1;
    site = &job->lists[MS_JOB_SITES].rows[number];
    if (site->stamp != job->stamp) {
        site->stamp = job->stamp;
        memset(site->now, 0, sizeof(site->now));
        site->now_held = 0;
        taking->touched[taking->touched_count++] = number;
        if (tell_site(taking, number, json) < 0)
            return -1;
    }
    if (peak > site->now[MS_JOB_AT_PEAK])
        site->now[MS_JOB_AT_PEAK] = peak;
    if (ms_report_is_device_memory(json) && ms_report_device_of(taking->report, json) == taking->fullest)
        site->now_held = ms_report_sum(site->now_held, peak);
    site->now[MS_JOB_SITE_LIVE] =
        ms_report_sum(site->now[MS_JOB_SITE_LIVE], ms_report_int(json, "live_bytes"));
    if (id >= 0 && (size_t)id < json_array_size(taking->report->sites))
        site->now[MS_JOB_SITE_LEAKED] = ms_report_sum(site->now[MS_JOB_SITE_LEAKED], taking->leaked[id]);
    site->now[MS_JOB_SITE_CALLS] =
        ms_report_sum(site->now[MS_JOB_SITE_CALLS], ms_report_int(json, "total_count"));
    return 0;
}

static int add_up(struct taking *taking)
{
    struct ms_job *job = taking->job;
    struct ms_job_rank *rank = &job->ranks[taking->rank];

    for (size_t i = 0; i < taking->touched_count; i++) {
        struct ms_job_row *site = &job->lists[MS_JOB_SITES].rows[taking->touched[i]];

        for (unsigned weight = 0; weight < MS_JOB_WEIGHTS; weight++) {
            json_int_t value = ms_job_figure_of(site->now[weight]);

            ms_job_widen(job, &site->weights[weight], site->ranks == 0, value, taking->rank, value,
                         taking->rank);
            if (ms_job_count_in(&site->weights[weight], ms_job_bucket(value), 1) < 0)
                return -1;
        }
        site->ranks++;
        keep(job, rank->held, &rank->held_count, taking->touched[i], site->now_held);
        keep(job, rank->leaked, &rank->leaked_count, taking->touched[i], site->now[MS_JOB_SITE_LEAKED]);
    }
    return 0;
}

/* The whole report of the process that was fullest stands for the job. */
static void show(struct ms_job *job, json_t *root, uint32_t rank)
{
    const struct ms_job_rank *candidate = &job->ranks[rank], *shown = &job->ranks[job->shown_rank];

    if (job->shown) {
        json_int_t a = candidate->figures[MS_JOB_PEAK], b = shown->figures[MS_JOB_PEAK];

        if (a < b || (a == b && ms_job_compare(candidate, shown) > 0))
            return;
    }
    json_decref(job->shown);
    job->shown = json_incref(root);
    job->shown_rank = rank;
}

int ms_job_take(struct ms_job *job, struct ms_report *report)
{
    const json_t *run = json_object_get(report->root, "run");
    struct taking taking = {.job = job, .report = report, .rank = (uint32_t)job->rank_count};
    struct ms_job_rank *rank = ms_job_add_rank(job);
    size_t i;
    json_t *site;
    int status;

    if (!rank)
        return -1;
    rank->rank = json_object_get(run, "rank") ? ms_report_int(run, "rank") : -1;
    rank->pid = ms_report_int(run, "pid");
    rank->start_unix_ns = ms_report_int(run, "start_unix_ns");
    rank->ooms = (json_int_t)json_array_size(ms_report_array(report->root, "oom"));
    rank->host = ms_job_text(job, ms_report_text(run, "host"));
    job->stamp++;
    take_devices(&taking);
    taking.touched = calloc(json_array_size(report->sites) + 1, sizeof(*taking.touched));
    status = rank->host && taking.touched ? take_leaks(&taking) : -1;
    json_array_foreach (report->sites, i, site)
        status = status ? status : take_site(&taking, site);
    if (status == 0)
        status = add_up(&taking);
    if (status == 0)
        show(job, report->root, taking.rank);
    free(taking.touched);
    free(taking.leaked);
    return status;
}

/* Names are there already where memshim run wrote the report; else they are looked up. */
static int load(const char *path, struct ms_report *report_p)
{
    char error[4608];

    if (ms_report_read(path, report_p, error, sizeof(error)) < 0) {
        ms_cli_error("%s", error);
        return -1;
    }
    if (json_object_get(report_p->root, "job") ||
        ms_report_bool(json_object_get(report_p->root, "run"), "symbolized"))
        return 0;
    ms_report_close(report_p);
    return ms_cli_load(path, report_p);
}

int ms_job_take_file(struct ms_job *job, const char *path)
{
    struct ms_report report;
    bool merged;
    int status;

    if (load(path, &report) < 0)
        return -1;
    merged = json_object_get(report.root, "job") != NULL;
    status = merged ? ms_job_take_merged(job, report.root) : ms_job_take(job, &report);
    if (status < 0)
        ms_cli_error(merged ? "%s: ranks[] and job of this job report do not agree, or there is no memory"
                            : "no memory for %s",
                     path);
    ms_report_close(&report);
    return status;
}
