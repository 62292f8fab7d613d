/* job_write.c - a job report: the report of the process that was fullest, and ranks[] and job{}; see job.h.
 *
 * Floor 5. Written as it comes: there may be 100,000 processes. */
#include <inttypes.h>
#include <stdlib.h>

#include "cli/job/job.h"
#include "cli/run/run_reports.h"
#include "export/json_text.h"

static void put_int(FILE *out, const char *before, const char *key, json_int_t value)
{
    fprintf(out, "%s\"%s\":%" JSON_INTEGER_FORMAT, before, key, value);
}

static void put_parts(FILE *out, const char *key, const struct ms_job_part *parts, unsigned count)
{
    fprintf(out, ",\"%s\":[", key);
    for (unsigned i = 0; i < count; i++)
        fprintf(out, "%s[%" PRIu32 ",%" JSON_INTEGER_FORMAT "]", i ? "," : "", parts[i].site, parts[i].bytes);
    fputc(']', out);
}

static void put_devices(FILE *out, const struct ms_job_rank *rank)
{
    fputs(",\"devices\":[", out);
    for (size_t i = 0; i < rank->device_count; i++) {
        fprintf(out, "%s[%" PRIu32, i ? "," : "", rank->devices[i].row);
        for (unsigned figure = 0; figure < MS_CHECK_DEVICE_FIGURES; figure++)
            fprintf(out, ",%" JSON_INTEGER_FORMAT, rank->devices[i].bytes[figure]);
        fputc(']', out);
    }
    fputc(']', out);
}

static void put_rank(FILE *out, const struct ms_job_rank *rank)
{
    fputc('{', out);
    if (rank->rank >= 0)
        fprintf(out, "\"rank\":%" JSON_INTEGER_FORMAT ",", rank->rank);
    ms_json_put_member(out, "", "host", rank->host);
    put_int(out, ",", "pid", rank->pid);
    put_int(out, ",", "start_unix_ns", rank->start_unix_ns);
    put_int(out, ",", "group", rank->group);
    for (unsigned figure = 0; figure < MS_JOB_FIGURES; figure++)
        put_int(out, ",", ms_job_figures[figure], rank->figures[figure]);
    put_int(out, ",", "ooms", rank->ooms);
    put_parts(out, "held", rank->held, rank->held_count);
    put_parts(out, "leaked", rank->leaked, rank->leaked_count);
    if (rank->at_unix_ns) {
        put_int(out, ",", "at_unix_ns", rank->at_unix_ns);
        put_parts(out, "live", rank->live, rank->live_count);
    }
    put_devices(out, rank);
    fputc('}', out);
}

static void put_spread(FILE *out, const char *key, const struct ms_job_spread *spread, uint32_t ranks)
{
    fprintf(out, ",\"%s\":", key);
    put_int(out, "{", "min", spread->min);
    put_int(out, ",", "min_process", spread->min_rank);
    put_int(out, ",", "median", ms_job_median(spread, ranks));
    put_int(out, ",", "max", spread->max);
    put_int(out, ",", "max_process", spread->max_rank);
    if (spread->blamed.site != UINT32_MAX) {
        put_int(out, ",", "site", spread->blamed.site);
        put_int(out, ",", "site_bytes", spread->blamed.bytes);
    }
    fputs(",\"counts\":[", out);
    for (unsigned i = 0; i < spread->buckets; i++)
        fprintf(out, "%s[%u,%" PRIu32 "]", i ? "," : "", spread->counts[i].bucket, spread->counts[i].count);
    fputs("]}", out);
}

static void put_row(FILE *out, const struct ms_job_list_info *info, const struct ms_job_row *row)
{
    for (unsigned i = 0; info->words[i]; i++)
        ms_json_put_member(out, i ? "," : "{", info->words[i], row->words[i]);
    if (info->number)
        put_int(out, ",", info->number, row->number);
    if (row->told_by != UINT32_MAX)
        put_int(out, ",", "told_by", row->told_by);
    put_int(out, ",", "processes", row->ranks);
    for (unsigned weight = 0; info->weights[weight]; weight++)
        put_spread(out, info->weights[weight], &row->weights[weight], row->ranks);
    fputc('}', out);
}

static void put_list(FILE *out, const struct ms_job_list_info *info, const struct ms_job_list *list)
{
    fprintf(out, ",\n\"%s\":[", info->name);
    for (size_t i = 0; i < list->count; i++) {
        fputs(i ? ",\n" : "\n", out);
        put_row(out, info, &list->rows[i]);
    }
    fputs(list->count ? "\n]" : "]", out);
    if (info->most != SIZE_MAX)
        fprintf(out, ",\"%s_left_out\":%" JSON_INTEGER_FORMAT, info->name, list->left_out);
}

static void job_write_put_figures(FILE *out, const struct ms_job *job, uint32_t *order)
{
    static const char *const names[] = {"min", "median", "max"};
    uint32_t rows[3];

    fputs(",\n\"figures\":{", out);
    for (unsigned figure = 0; figure < MS_JOB_FIGURES; figure++) {
        json_int_t median = ms_job_spread_of(job, (enum ms_job_figure)figure, order, rows);

        fprintf(out, "%s\"%s\":{", figure ? ",\n" : "\n", ms_job_figures[figure]);
        for (unsigned i = 0; i < 3; i++) {
            put_int(out, i ? "," : "", names[i], i == 1 ? median : job->ranks[rows[i]].figures[figure]);
            fprintf(out, ",\"%s_process\":%" PRIu32, names[i], rows[i]);
        }
        fputc('}', out);
    }
    fputs("\n}", out);
}

static void put_outlier(FILE *out, const struct ms_job *job, const struct ms_job_outlier *outlier)
{
    const struct ms_job_rank *rank = &job->ranks[outlier->rank];

    put_int(out, "{", "process", outlier->rank);
    if (rank->rank >= 0)
        put_int(out, ",", "rank", rank->rank);
    put_int(out, ",", "group", rank->group);
    fprintf(out, ",\"figure\":\"%s\"", ms_job_figures[outlier->figure]);
    put_int(out, ",", "value", outlier->value);
    put_int(out, ",", "median", outlier->median);
    if (outlier->site != UINT32_MAX) {
        put_int(out, ",", "site", outlier->site);
        put_int(out, ",", "site_bytes", outlier->site_bytes);
        put_int(out, ",", "site_median", outlier->site_median);
    }
    fputc('}', out);
}

/* By model, in an order of its own, so that any grouping ends in the same. */
static void put_contexts(FILE *out, const struct ms_job *job)
{
    char *text = json_dumps(job->least, JSON_SORT_KEYS | JSON_COMPACT);

    fprintf(out, ",\n\"contexts_least\":%s", text ? text : "{}");
    free(text);
}

static void put_job(FILE *out, const struct ms_job *job, uint32_t *order)
{
    put_int(out, ",\n\"job\": {", "processes", (json_int_t)job->rank_count);
    put_int(out, ",", "shown", job->shown_rank);
    job_write_put_figures(out, job, order);
    fputs(",\n\"groups\":[", out);
    for (size_t i = 0; i < job->group_count; i++) {
        put_int(out, i ? ",\n{" : "\n{", "first", job->groups[i].first);
        put_int(out, ",", "processes", job->groups[i].count);
        fputc('}', out);
    }
    fputs("\n],\n\"outliers\":[", out);
    for (size_t i = 0; i < job->outlier_count; i++) {
        fputs(i ? ",\n" : "\n", out);
        put_outlier(out, job, &job->outliers[i]);
    }
    fprintf(out, "%s],\n\"outliers_found\":%zu", job->outlier_count ? "\n" : "", job->outliers_all);
    put_contexts(out, job);
    for (unsigned list = 0; list < MS_JOB_LISTS; list++)
        put_list(out, &ms_job_lists[list], &job->lists[list]);
    fputc('}', out);
}

int ms_job_write(FILE *out, const struct ms_job *job)
{
    struct ms_report shown = {.root = job->shown};
    uint32_t *order = calloc(job->rank_count + 1, sizeof(*order));
    int status = order ? ms_reports_dump_members(out, &shown) : -1;

    if (status == 0) {
        fputs(",\n\"ranks\": [", out);
        for (size_t i = 0; i < job->rank_count; i++) {
            fputs(i ? ",\n" : "\n", out);
            put_rank(out, &job->ranks[i]);
        }
        fputs("\n]", out);
        put_job(out, job, order);
        fputs("\n}\n", out);
        status = ferror(out) ? -1 : 0;
    }
    free(order);
    return status;
}

struct by_figure {
    const struct ms_job *job;
    enum ms_job_figure figure;
};

static int by_figure(const void *a, const void *b, void *arg)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    const struct by_figure *by = arg;
    json_int_t left = by->job->ranks[x].figures[by->figure], right = by->job->ranks[y].figures[by->figure];

    if (left != right)
        return left < right ? -1 : 1;
    return x < y ? -1 : x > y;
}

json_int_t ms_job_spread_of(const struct ms_job *job, enum ms_job_figure figure, uint32_t *order,
                            uint32_t rows[3])
{
    size_t last = job->rank_count - 1;
    struct by_figure by = {job, figure};
    json_int_t median;

    for (size_t i = 0; i < job->rank_count; i++)
        order[i] = (uint32_t)i;
    qsort_r(order, job->rank_count, sizeof(*order), by_figure, &by);
    rows[0] = order[0];
    rows[1] = order[last / 2];
    median = ms_job_between(job->ranks[rows[1]].figures[figure],
                            job->ranks[order[job->rank_count / 2]].figures[figure]);
    while (last > 0 && job->ranks[order[last - 1]].figures[figure] ==
                           job->ranks[order[job->rank_count - 1]].figures[figure])
        last--;
    rows[2] = order[last];
    return median;
}
