/* job_take.c - a report taken into a job; see job.h.
 *
 * Floor 5. */
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/job/job.h"
#include "cli/load.h"
#include "cli/array.h"
#include "report/analyse/contexts_others.h"
#include "report/read/layer.h"
#include "report/findings/findings.h"
#include "report/analyse/fold.h"
#include "report/analyse/leak_class.h"

/* The largest parts are kept, in order; equal ones by key. */
static void job_take_keep(const struct ms_job *job, struct ms_job_part *parts, uint8_t *count_p,
                          uint32_t site, json_int_t bytes)
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

struct ms_job_row *ms_job_touch(struct ms_job_footprint_event *taking, enum ms_job_list_id list,
                                uint32_t number)
{
    struct ms_job *job = taking->job;
    struct ms_job_touched *touched;
    struct ms_job_row *row;

    if (number == UINT32_MAX)
        return NULL;
    row = &job->lists[list].rows[number];
    if (row->state_word == job->state_word)
        return row;
    touched =
        ms_array_grow(taking->touched, sizeof(*touched), taking->touched_count, &taking->touched_room, 64);
    if (!touched)
        return NULL;
    taking->touched = touched;
    touched[taking->touched_count++] = (struct ms_job_touched){list, number};
    row->state_word = job->state_word;
    memset(row->now, 0, sizeof(row->now));
    for (unsigned weight = 0; weight < MS_JOB_WEIGHTS; weight++)
        row->now_blamed[weight] = (struct ms_job_part){UINT32_MAX, 0};
    row->now_held = row->now_live = 0;
    return row;
}

static void take_devices(struct ms_job_footprint_event *taking)
{
    struct ms_job_rank *rank = &taking->job->ranks[taking->rank];
    json_t *device;
    size_t i;

    taking->fullest = SIZE_MAX;
    json_array_foreach (ms_report_array(taking->report->root, "devices"), i, device) {
        json_int_t peak = ms_report_int(device, "peak_live_bytes");
        json_int_t reserved = ms_report_reserved(device);

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

static int take_leaks(struct ms_job_footprint_event *taking)
{
    size_t count = json_array_size(taking->report->sites), i;
    json_t *leak;

    taking->leaked = calloc(count + 1, sizeof(*taking->leaked));
    taking->site_rows = calloc(count + 1, sizeof(*taking->site_rows));
    if (!taking->leaked || !taking->site_rows)
        return -1;
    for (i = 0; i < count; i++)
        taking->site_rows[i] = UINT32_MAX;
    json_array_foreach (ms_report_array(taking->report->root, "leaks"), i, leak) {
        json_int_t id = ms_report_int(leak, "site");

        if (ms_report_is_leak(leak) && id >= 0 && (size_t)id < count)
            taking->leaked[id] = ms_report_sum(taking->leaked[id], ms_leak_bytes(leak));
    }
    return 0;
}

static int tell_site(const struct ms_job_footprint_event *taking, uint32_t number, const json_t *json)
{
    struct ms_job *job = taking->job;
    bool inferred;
    const json_t *own;
    char *line;
    int status = -1;

    if (!ms_job_tells(job, &job->lists[MS_JOB_SITES].rows[number], taking->rank))
        return 0;
    own = ms_fold_own(taking->report, ms_report_int(json, "stack"), &inferred);
    line = ms_finding_line(taking->report, json, "(no stack)");
    if (line)
        status = ms_job_tell(job, MS_JOB_SITES, number, taking->rank,
                             &(struct ms_job_words){{[MS_JOB_API] = ms_cli_site_api(json),
                                                     [MS_JOB_AT] = line,
                                                     [MS_JOB_OWNER] = ms_report_text(json, "owner"),
                                                     [MS_JOB_FILE] = ms_report_text(own, "file")},
                                                    ms_job_figure_of(ms_report_int(own, "line"))});
    free(line);
    return status;
}

/* One place on several devices is one site: what it held at the peaks is the most of them. */
static int take_site(struct ms_job_footprint_event *taking, const json_t *json)
{
    uint32_t number =
        ms_job_row(taking->job, MS_JOB_SITES,
                   &(struct ms_job_words){{ms_report_text(json, "hash"), ms_report_text(json, "kind")}, 0});
    json_int_t peak = ms_report_int(json, "at_peak_bytes"), id = ms_report_int(json, "id");
    struct ms_job_row *site = ms_job_touch(taking, MS_JOB_SITES, number);

    if (!site || tell_site(taking, number, json) < 0)
        return -1;
    if (peak > site->now[MS_JOB_AT_PEAK])
        site->now[MS_JOB_AT_PEAK] = peak;
    if (ms_report_is_device_memory(json) && ms_report_device_of(taking->report, json) == taking->fullest)
        site->now_held = ms_report_sum(site->now_held, peak);
    if (ms_report_is_device_memory(json))
        site->now_live = ms_report_sum(site->now_live, ms_report_int(json, "live_bytes"));
    site->now[MS_JOB_SITE_LIVE] =
        ms_report_sum(site->now[MS_JOB_SITE_LIVE], ms_report_int(json, "live_bytes"));
    if (id >= 0 && (size_t)id < json_array_size(taking->report->sites)) {
        site->now[MS_JOB_SITE_LEAKED] = ms_report_sum(site->now[MS_JOB_SITE_LEAKED], taking->leaked[id]);
        taking->site_rows[id] = number;
    }
    site->now[MS_JOB_SITE_CALLS] =
        ms_report_sum(site->now[MS_JOB_SITE_CALLS], ms_report_int(json, "total_count"));
    return 0;
}

static int add_up(struct ms_job_footprint_event *taking)
{
    struct ms_job *job = taking->job;
    struct ms_job_rank *rank = &job->ranks[taking->rank];

    for (size_t i = 0; i < taking->touched_count; i++) {
        const struct ms_job_touched *touched = &taking->touched[i];
        struct ms_job_row *row = &job->lists[touched->list].rows[touched->row];

        for (unsigned weight = 0; ms_job_lists[touched->list].weights[weight]; weight++) {
            json_int_t value = ms_job_figure_of(row->now[weight]);
            const struct ms_job_spread own = {.min = value,
                                              .max = value,
                                              .min_rank = taking->rank,
                                              .max_rank = taking->rank,
                                              .blamed = row->now_blamed[weight]};

            ms_job_widen(job, &row->weights[weight], row->ranks == 0, &own);
            if (ms_job_count_in(&row->weights[weight], ms_job_bucket(value), 1) < 0)
                return -1;
        }
        row->ranks++;
        if (touched->list != MS_JOB_SITES)
            continue;
        job_take_keep(job, rank->held, &rank->held_count, touched->row, row->now_held);
        job_take_keep(job, rank->leaked, &rank->leaked_count, touched->row, row->now[MS_JOB_SITE_LEAKED]);
        if (rank->at_unix_ns)
            job_take_keep(job, rank->live, &rank->live_count, touched->row, row->now_live);
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

void ms_job_take_least(struct ms_job *job, const struct ms_report *report)
{
    job->least = job->least ? job->least : json_object();
    ms_contexts_least(job->least, report);
}

int ms_job_take(struct ms_job *job, struct ms_report *report)
{
    const json_t *run = json_object_get(report->root, "run");
    struct ms_job_footprint_event taking = {.job = job, .report = report, .rank = (uint32_t)job->rank_count};
    struct ms_job_rank *rank = ms_job_add_rank(job);
    size_t i;
    json_t *site;
    int status;

    if (!rank)
        return -1;
    rank->rank = json_object_get(run, "rank") ? ms_report_int(run, "rank") : -1;
    rank->pid = ms_report_int(run, "pid");
    rank->start_unix_ns = ms_report_int(run, "start_unix_ns");
    rank->ooms = ms_report_oom_count(report);
    if (!strcmp(ms_report_text(run, "end_reason"), "running"))
        rank->at_unix_ns = ms_job_figure_of(ms_report_int(run, "end_unix_ns"));
    rank->host = ms_job_text(job, ms_report_text(run, "host"));
    job->state_word++;
    take_devices(&taking);
    ms_job_take_least(job, report);
    status = rank->host ? take_leaks(&taking) : -1;
    json_array_foreach (report->sites, i, site)
        status = status ? status : take_site(&taking, site);
    if (status == 0)
        status = ms_job_take_measured(&taking);
    if (status == 0)
        status = add_up(&taking);
    if (status == 0)
        show(job, report->root, taking.rank);
    free(taking.touched);
    free(taking.leaked);
    free(taking.site_rows);
    return status;
}

/* Names are there already where memshim run wrote the report; else they are looked up. */
static int job_take_load(const char *path, struct ms_report *report_p)
{
    if (ms_cli_read(path, report_p) < 0)
        return -1;
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

    if (job_take_load(path, &report) < 0)
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
