/* job_text.c - a job for people: what its processes had, who does the same, and who stands out; see job.h.
 *
 * Floor 5. */
#include <stdlib.h>
#include <string.h>

#include "cli/job/job.h"
#include "report/text/text.h"

static const char *const titles[MS_JOB_FIGURES] = {"peak",     "allocated", "leaked",
                                                   "reserved", "calls",     "growth"};

/* "rank 17", or "process 4711". */
static struct ms_text_number job_text_name_of(const struct ms_job_rank *rank)
{
    struct ms_text_number name;

    snprintf(name.text, sizeof(name.text), "%s %" JSON_INTEGER_FORMAT, rank->rank >= 0 ? "rank" : "process",
             rank->rank >= 0 ? rank->rank : rank->pid);
    return name;
}

static struct ms_text_number figure_of(enum ms_job_figure figure, json_int_t value)
{
    struct ms_text_number number = ms_text_size(value);

    if (figure == MS_JOB_CALLS)
        snprintf(number.text, sizeof(number.text), "%" JSON_INTEGER_FORMAT, value);
    return number;
}

static void job_text_put_figures(FILE *out, const struct ms_job *job)
{
    uint32_t *order = calloc(job->rank_count + 1, sizeof(*order)), rows[3];

    fprintf(out, "%-9s %10s%23s%23s\n", "", "least", "median", "most");
    for (unsigned figure = 0; order && figure < MS_JOB_FIGURES; figure++) {
        json_int_t median = ms_job_spread_of(job, (enum ms_job_figure)figure, order, rows);

        fprintf(out, "%-9s ", titles[figure]);
        for (unsigned i = 0; i < 3; i++) {
            const struct ms_job_rank *rank = &job->ranks[rows[i]];
            json_int_t value = i == 1 ? median : rank->figures[figure];

            fprintf(out, "%10s %-12s", figure_of((enum ms_job_figure)figure, value).text,
                    value == rank->figures[figure] ? job_text_name_of(rank).text : "");
        }
        fputc('\n', out);
    }
    free(order);
}

/* "   64.0 MiB    64.0 MiB    64.0 MiB rank 8          NCCL, 16 processes" */
static void put_named_row(FILE *out, const struct ms_job *job, const struct ms_job_row *row)
{
    const struct ms_job_spread *spread = &row->weights[0];

    fprintf(out, "%12s%12s%12s %-15s ", ms_text_size(spread->min).text,
            ms_text_size(ms_job_median(spread, row->ranks)).text, ms_text_size(spread->max).text,
            job_text_name_of(&job->ranks[spread->max_rank]).text);
    ms_text_put(out, row->words[0]);
    if (row->ranks < job->rank_count)
        fprintf(out, ", %u process%s", row->ranks, row->ranks == 1 ? "" : "es");
    fputc('\n', out);
}

/* True if row `a` is told before row `b`: first comes the one of which some process had more. */
static bool is_before(const struct ms_job_list *list, size_t a, size_t b)
{
    json_int_t x = list->rows[a].weights[0].max, y = list->rows[b].weights[0].max;

    return x != y ? x > y : a < b;
}

/* The row that is told after `last`, or first if that is SIZE_MAX; SIZE_MAX: none. */
static size_t next_named(const struct ms_job_list *list, size_t last)
{
    size_t next = SIZE_MAX;

    for (size_t i = 0; i < list->count; i++)
        if ((last == SIZE_MAX || is_before(list, last, i)) && (next == SIZE_MAX || is_before(list, i, next)))
            next = i;
    return next;
}

enum { NAMES_SHOWN = 5 };

/* Of owners, or of phases, those of which some process had most. */
static void put_named(FILE *out, const struct ms_job *job, enum ms_job_list_id id, const char *title)
{
    const struct ms_job_list *list = &job->lists[id];
    size_t shown = 0;

    if (!list->count)
        return;
    fprintf(out, "\n%s\n%12s%12s%12s\n", title, "least", "median", "most");
    for (size_t row = next_named(list, SIZE_MAX); row != SIZE_MAX && shown < NAMES_SHOWN; shown++) {
        put_named_row(out, job, &list->rows[row]);
        row = next_named(list, row);
    }
    if (list->left_out)
        fputs("  and many more\n", out);
    else if (list->count > shown)
        fprintf(out, "  and %zu more\n", list->count - shown);
}

static void put_groups(FILE *out, const struct ms_job *job)
{
    fprintf(out, "\n%zu group%s, by the call sites that held most:\n", job->group_count,
            job->group_count == 1 ? "" : "s");
    for (size_t i = 0; i < job->group_count; i++) {
        const struct ms_job_rank *first = &job->ranks[job->groups[i].first];

        fprintf(out, "  %u process%s, the first %s", job->groups[i].count,
                job->groups[i].count == 1 ? "" : "es", job_text_name_of(first).text);
        if (first->held_count) {
            fprintf(out, ": %s by ", ms_text_size(first->held[0].bytes).text);
            ms_text_put(out, ms_job_site_word(job, first->held[0].site, MS_JOB_AT));
        }
        fputc('\n', out);
    }
}

static void put_outlier(FILE *out, const struct ms_job *job, const struct ms_job_outlier *outlier)
{
    const struct ms_job_rank *rank = &job->ranks[outlier->rank];

    fprintf(out, "  %s on ", job_text_name_of(rank).text);
    ms_text_put(out, rank->host);
    fprintf(out, ": %s %s, its group's median %s", titles[outlier->figure], ms_text_size(outlier->value).text,
            ms_text_size(outlier->median).text);
    if (outlier->site != UINT32_MAX) {
        fprintf(out, "; %s, elsewhere %s, by ", ms_text_size(outlier->site_bytes).text,
                ms_text_size(outlier->site_median).text);
        ms_text_put(out, ms_job_site_word(job, outlier->site, MS_JOB_AT));
        fputs(" (", out);
        ms_text_put(out, ms_job_site_word(job, outlier->site, MS_JOB_API));
        fputc(')', out);
    }
    fputc('\n', out);
}

void ms_job_put_outliers(FILE *out, const struct ms_job *job, size_t most)
{
    size_t shown = job->outlier_count < most ? job->outlier_count : most;

    fprintf(out, "%zu figure%s out\n", job->outliers_all, job->outliers_all == 1 ? " stands" : "s stand");
    for (size_t i = 0; i < shown; i++)
        put_outlier(out, job, &job->outliers[i]);
    if (job->outliers_all > shown)
        fprintf(out, "  %zu more\n", job->outliers_all - shown);
}

enum { RANKS_SHOWN = 16 };

/* "  rank 3    35.2 GiB, no memory; 20.1 GiB by forward at model.py:12, 9.0 GiB by ..." */
static void put_moment(FILE *out, const struct ms_job *job, const struct ms_job_rank *rank)
{
    fprintf(out, "  %-14s %11s%s", job_text_name_of(rank).text, ms_text_size(rank->figures[MS_JOB_LIVE]).text,
            rank->ooms ? ", had no memory" : "");
    for (unsigned i = 0; i < rank->live_count && i < 2; i++) {
        fprintf(out, "%s %s by ", i ? "," : ";", ms_text_size(rank->live[i].bytes).text);
        ms_text_put(out, ms_job_site_word(job, rank->live[i].site, MS_JOB_AT));
    }
    fputc('\n', out);
}

/* Of processes that were looked at while they ran: those that had no memory first, then by rank. */
static void put_moments(FILE *out, const struct ms_job *job)
{
    size_t all = 0, shown = 0;

    for (size_t i = 0; i < job->rank_count; i++)
        all += job->ranks[i].at_unix_ns != 0;
    if (!all)
        return;
    fputs("\nallocated when they were looked at:\n", out);
    for (int failed = 1; failed >= 0; failed--) {
        for (size_t i = 0; i < job->rank_count && shown < RANKS_SHOWN; i++) {
            if (!job->ranks[i].at_unix_ns || (job->ranks[i].ooms != 0) != failed)
                continue;
            put_moment(out, job, &job->ranks[i]);
            shown++;
        }
    }
    if (all > shown)
        fprintf(out, "  ... and %zu more\n", all - shown);
}

void ms_job_put_text(FILE *out, const struct ms_job *job)
{
    fprintf(out, "%zu process%s; fullest %s; ", job->rank_count, job->rank_count == 1 ? "" : "es",
            job_text_name_of(&job->ranks[job->shown_rank]).text);
    ms_job_put_outliers(out, job, SIZE_MAX);
    put_moments(out, job);
    fputc('\n', out);
    job_text_put_figures(out, job);
    put_groups(out, job);
    put_named(out, job, MS_JOB_OWNERS, "by owner, at the peak of a device:");
    put_named(out, job, MS_JOB_PHASES, "by phase, its largest peak:");
}
