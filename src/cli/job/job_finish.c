/* job_finish.c - a job's processes and call sites in their order, so that any grouping ends in the same; see
 * job.h.
 *
 * Floor 5. */
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/job/job.h"
#include "report/analyse/contexts_others.h"

static int by_rank(const void *a, const void *b, void *arg)
{
    const struct ms_job *job = arg;

    return ms_job_compare(&job->ranks[*(const uint32_t *)a], &job->ranks[*(const uint32_t *)b]);
}

static int by_key(const void *a, const void *b, void *arg)
{
    const struct ms_job_list *list = arg;

    return strcmp(list->rows[*(const uint32_t *)a].key, list->rows[*(const uint32_t *)b].key);
}

/* The place to which each row goes: place_p[old] = new, and order_p[new] = old. */
static int job_finish_sort(size_t count, int (*compare)(const void *, const void *, void *), void *arg,
                           uint32_t **order_p, uint32_t **place_p)
{
    *order_p = calloc(count + 1, sizeof(**order_p));
    *place_p = calloc(count + 1, sizeof(**place_p));
    if (!*order_p || !*place_p)
        return -1;
    for (size_t i = 0; i < count; i++)
        (*order_p)[i] = (uint32_t)i;
    if (count)
        qsort_r(*order_p, count, sizeof(**order_p), compare, arg);
    for (size_t i = 0; i < count; i++)
        (*place_p)[(*order_p)[i]] = (uint32_t)i;
    return 0;
}

static int by_row(const void *a, const void *b)
{
    const struct ms_job_device *x = a, *y = b;

    return x->row < y->row ? -1 : x->row > y->row;
}

static void renumber_devices(struct ms_job_rank *rank, const uint32_t *device_place)
{
    for (size_t i = 0; i < rank->device_count; i++)
        rank->devices[i].row = device_place[rank->devices[i].row];
    if (rank->device_count)
        qsort(rank->devices, rank->device_count, sizeof(*rank->devices), by_row);
}

static void renumber_parts(struct ms_job_part *parts, unsigned count, const uint32_t *site_place)
{
    for (unsigned i = 0; i < count; i++)
        parts[i].site = site_place[parts[i].site];
}

static int move_ranks(struct ms_job *job, const uint32_t *order, uint32_t *const places[MS_JOB_LISTS])
{
    struct ms_job_rank *ranks = calloc(job->rank_count + 1, sizeof(*ranks));

    if (!ranks)
        return -1;
    for (size_t i = 0; i < job->rank_count; i++) {
        ranks[i] = job->ranks[order[i]];
        renumber_parts(ranks[i].held, ranks[i].held_count, places[MS_JOB_SITES]);
        renumber_parts(ranks[i].live, ranks[i].live_count, places[MS_JOB_SITES]);
        renumber_parts(ranks[i].leaked, ranks[i].leaked_count, places[MS_JOB_SITES]);
        renumber_devices(&ranks[i], places[MS_JOB_DEVICES]);
    }
    free(job->ranks);
    job->ranks = ranks;
    job->rank_room = job->rank_count + 1;
    return 0;
}

/* Drops the rows beyond the most that are kept: they are the last ones, and nothing points to them. */
static void leave_out(struct ms_job_list *list, size_t most)
{
    while (list->count > most) {
        struct ms_job_row *row = &list->rows[--list->count];

        list->left_out = ms_report_sum(list->left_out, row->ranks);
        for (unsigned weight = 0; weight < MS_JOB_WEIGHTS; weight++)
            free(row->weights[weight].counts);
    }
}

static int move_rows(struct ms_job_list *list, const uint32_t *order, const uint32_t *rank_place,
                     const uint32_t *site_place)
{
    struct ms_job_row *rows = calloc(list->count + 1, sizeof(*rows));

    if (!rows)
        return -1;
    for (size_t i = 0; i < list->count; i++) {
        rows[i] = list->rows[order[i]];
        if (rows[i].told_by != UINT32_MAX)
            rows[i].told_by = rank_place[rows[i].told_by];
        for (unsigned weight = 0; weight < MS_JOB_WEIGHTS; weight++) {
            struct ms_job_spread *spread = &rows[i].weights[weight];

            spread->min_rank = rank_place[spread->min_rank];
            spread->max_rank = rank_place[spread->max_rank];
            if (spread->blamed.site != UINT32_MAX)
                spread->blamed.site = site_place[spread->blamed.site];
        }
    }
    free(list->rows);
    list->rows = rows;
    list->room = list->count + 1;
    return 0;
}

static int refuse_twice(const struct ms_job *job)
{
    for (size_t i = 1; i < job->rank_count; i++) {
        const struct ms_job_rank *rank = &job->ranks[i];

        if (ms_job_compare(rank - 1, rank) == 0) {
            ms_cli_error("process %" JSON_INTEGER_FORMAT " of %s is in two of the reports", rank->pid,
                         rank->host);
            return -1;
        }
    }
    return 0;
}

/* The places to which the rows of each list go: orders[] and places[] as job_finish_sort() has them. */
static int sort_lists(struct ms_job *job, uint32_t *orders[MS_JOB_LISTS], uint32_t *places[MS_JOB_LISTS])
{
    int status = 0;

    for (unsigned list = 0; list < MS_JOB_LISTS; list++)
        status =
            job_finish_sort(job->lists[list].count, by_key, &job->lists[list], &orders[list], &places[list]) |
            status;
    return status;
}

static void tell_contexts(const struct ms_job *job)
{
    struct ms_report shown = {.root = json_incref(job->shown)};

    ms_contexts_annotate(&shown, job->least);
    ms_report_close(&shown);
}

int ms_job_finish(struct ms_job *job)
{
    uint32_t *rank_order, *rank_place, *orders[MS_JOB_LISTS], *places[MS_JOB_LISTS];
    int status;

    status = job_finish_sort(job->rank_count, by_rank, job, &rank_order, &rank_place);
    status = sort_lists(job, orders, places) | status;
    if (status == 0)
        status = move_ranks(job, rank_order, places);
    for (unsigned list = 0; list < MS_JOB_LISTS; list++) {
        if (status == 0)
            status = move_rows(&job->lists[list], orders[list], rank_place, places[MS_JOB_SITES]);
        if (status == 0)
            leave_out(&job->lists[list], ms_job_lists[list].most);
    }
    for (unsigned list = 0; list < MS_JOB_LISTS; list++) {
        free(orders[list]);
        free(places[list]);
    }
    if (status == 0)
        job->shown_rank = rank_place[job->shown_rank];
    free(rank_order);
    free(rank_place);
    if (status == 0 && refuse_twice(job) < 0)
        return -1;
    tell_contexts(job);
    if (status == 0)
        status = ms_job_group(job);
    if (status < 0)
        ms_cli_error("no memory for %zu processes", job->rank_count);
    return status;
}
