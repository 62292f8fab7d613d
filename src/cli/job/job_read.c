/* job_read.c - what a job report says, taken into a job; see job.h.
 *
 * Floor 5. A file is not trusted: numbers of rows are looked at before they are used. */
#include <stdlib.h>
#include <string.h>

#include "cli/job/job.h"

struct reading {
    struct ms_job *job;
    size_t first;                 /* its ranks[0], among ours */
    size_t count;                 /* of its ranks */
    uint32_t *rows[MS_JOB_LISTS]; /* its rows of each list, among ours */
    size_t counts[MS_JOB_LISTS];
};

/* A row of its ranks[], among ours. */
static int rank_of(const struct reading *reading, const json_t *object, const char *key, uint32_t *rank_p)
{
    json_int_t row = ms_report_int(object, key);

    if (row < 0 || (size_t)row >= reading->count)
        return -1;
    *rank_p = (uint32_t)(reading->first + (size_t)row);
    return 0;
}

/* The call site that a figure's most is blamed on; none where that is not told. */
static int read_blamed(const struct reading *reading, const json_t *json, struct ms_job_part *blamed)
{
    json_int_t site = ms_report_int(json, "site");

    *blamed = (struct ms_job_part){UINT32_MAX, 0};
    if (!json_object_get(json, "site"))
        return 0;
    if (site < 0 || (size_t)site >= reading->counts[MS_JOB_SITES])
        return -1;
    *blamed = (struct ms_job_part){reading->rows[MS_JOB_SITES][site],
                                   ms_job_figure_of(ms_report_int(json, "site_bytes"))};
    return 0;
}

static int read_spread(const struct reading *reading, const json_t *json, struct ms_job_spread *spread,
                       bool first)
{
    struct ms_job_spread other = {.min = ms_report_int(json, "min"), .max = ms_report_int(json, "max")};
    json_t *row;
    size_t i;

    if (rank_of(reading, json, "min_process", &other.min_rank) < 0 ||
        rank_of(reading, json, "max_process", &other.max_rank) < 0 ||
        read_blamed(reading, json, &other.blamed) < 0)
        return -1;
    ms_job_widen(reading->job, spread, first, &other);
    json_array_foreach (ms_report_array(json, "counts"), i, row) {
        json_int_t bucket = json_integer_value(json_array_get(row, 0));
        json_int_t count = json_integer_value(json_array_get(row, 1));

        if (bucket < 0 || bucket >= 4096 || count < 1 || count > UINT32_MAX ||
            ms_job_count_in(spread, (unsigned)bucket, (uint32_t)count) < 0)
            return -1;
    }
    return 0;
}

/* Who tells the words of a row, or that nobody does. */
static int read_teller(const struct reading *reading, enum ms_job_list_id list, const json_t *json,
                       uint32_t number, const struct ms_job_words *words)
{
    struct ms_job *job = reading->job;
    uint32_t told_by;

    if (!ms_job_is_told(list))
        return 0;
    if (rank_of(reading, json, "told_by", &told_by) < 0)
        return -1;
    if (!ms_job_tells(job, &job->lists[list].rows[number], told_by))
        return 0;
    return ms_job_tell(job, list, number, told_by, words);
}

static int read_row(const struct reading *reading, enum ms_job_list_id list, const json_t *json,
                    uint32_t *number_p)
{
    const struct ms_job_list_info *info = &ms_job_lists[list];
    struct ms_job_words words = {.number =
                                     info->number ? ms_job_figure_of(ms_report_int(json, info->number)) : 0};
    json_int_t ranks = ms_report_int(json, "processes");
    struct ms_job_row *row;

    for (unsigned i = 0; info->words[i]; i++)
        words.texts[i] = ms_report_text(json, info->words[i]);
    *number_p = ms_job_row(reading->job, list, &words);
    if (*number_p == UINT32_MAX || ranks < 1 || ranks > (json_int_t)reading->count ||
        read_teller(reading, list, json, *number_p, &words) < 0)
        return -1;
    row = &reading->job->lists[list].rows[*number_p];
    for (unsigned weight = 0; info->weights[weight]; weight++)
        if (read_spread(reading, json_object_get(json, info->weights[weight]), &row->weights[weight],
                        row->ranks == 0) < 0)
            return -1;
    row->ranks += (uint32_t)ranks;
    return 0;
}

static int read_list(struct reading *reading, enum ms_job_list_id list, const json_t *root)
{
    const json_t *job = json_object_get(root, "job");
    json_t *rows = ms_report_array(job, ms_job_lists[list].name), *row;
    json_int_t *left_out = &reading->job->lists[list].left_out;
    char key[32];
    size_t i;

    reading->counts[list] = json_array_size(rows);
    reading->rows[list] = calloc(reading->counts[list] + 1, sizeof(*reading->rows[list]));
    if (!reading->rows[list])
        return -1;
    json_array_foreach (rows, i, row)
        if (read_row(reading, list, row, &reading->rows[list][i]) < 0)
            return -1;
    snprintf(key, sizeof(key), "%s_left_out", ms_job_lists[list].name);
    *left_out = ms_report_sum(*left_out, ms_job_figure_of(ms_report_int(job, key)));
    return 0;
}

static int read_parts(const struct reading *reading, const json_t *rows, struct ms_job_part *parts,
                      uint8_t *count_p)
{
    json_t *row;
    size_t i;

    json_array_foreach (rows, i, row) {
        json_int_t site = json_integer_value(json_array_get(row, 0));

        if (i == MS_JOB_PARTS || site < 0 || (size_t)site >= reading->counts[MS_JOB_SITES])
            return -1;
        parts[i].site = reading->rows[MS_JOB_SITES][site];
        parts[i].bytes = ms_job_figure_of(json_integer_value(json_array_get(row, 1)));
        *count_p = (uint8_t)(i + 1);
    }
    return 0;
}

static int read_devices(const struct reading *reading, const json_t *rows, struct ms_job_rank *rank)
{
    size_t count = json_array_size(rows), i;
    json_t *json;

    rank->devices = count ? calloc(count, sizeof(*rank->devices)) : NULL;
    if (count && !rank->devices)
        return -1;
    json_array_foreach (rows, i, json) {
        json_int_t row = json_integer_value(json_array_get(json, 0));

        if (row < 0 || (size_t)row >= reading->counts[MS_JOB_DEVICES])
            return -1;
        rank->devices[i].row = reading->rows[MS_JOB_DEVICES][row];
        for (unsigned figure = 0; figure < MS_CHECK_DEVICE_FIGURES; figure++)
            rank->devices[i].bytes[figure] =
                ms_job_figure_of(json_integer_value(json_array_get(json, figure + 1)));
        rank->device_count = i + 1;
    }
    return 0;
}

static int read_rank(struct ms_job *job, const json_t *json)
{
    struct ms_job_rank *rank = ms_job_add_rank(job);

    if (!rank)
        return -1;
    rank->rank = json_object_get(json, "rank") ? ms_report_int(json, "rank") : -1;
    rank->pid = ms_report_int(json, "pid");
    rank->start_unix_ns = ms_report_int(json, "start_unix_ns");
    rank->ooms = ms_report_int(json, "ooms");
    rank->at_unix_ns = ms_job_figure_of(ms_report_int(json, "at_unix_ns"));
    rank->host = ms_job_text(job, ms_report_text(json, "host"));
    for (unsigned figure = 0; figure < MS_JOB_FIGURES; figure++)
        rank->figures[figure] = ms_job_figure_of(ms_report_int(json, ms_job_figures[figure]));
    return rank->host ? 0 : -1;
}

/* Its shown process, if that is fuller than ours. */
static int read_shown(const struct reading *reading, json_t *root)
{
    struct ms_job *job = reading->job;
    const struct ms_job_rank *candidate, *shown = &job->ranks[job->shown_rank];
    uint32_t rank;

    if (rank_of(reading, json_object_get(root, "job"), "shown", &rank) < 0)
        return -1;
    candidate = &job->ranks[rank];
    if (job->shown && (candidate->figures[MS_JOB_PEAK] < shown->figures[MS_JOB_PEAK] ||
                       (candidate->figures[MS_JOB_PEAK] == shown->figures[MS_JOB_PEAK] &&
                        ms_job_compare(candidate, shown) > 0)))
        return 0;
    json_decref(job->shown);
    job->shown = json_copy(root);
    job->shown_rank = rank;
    if (!job->shown)
        return -1;
    json_object_del(job->shown, "ranks");
    json_object_del(job->shown, "job");
    return 0;
}

/* The parts of each list that a process had. */
static int read_parts_of(const struct reading *reading, const json_t *json, struct ms_job_rank *rank)
{
    if (read_parts(reading, ms_report_array(json, "held"), rank->held, &rank->held_count) < 0 ||
        read_parts(reading, ms_report_array(json, "leaked"), rank->leaked, &rank->leaked_count) < 0 ||
        read_parts(reading, ms_report_array(json, "live"), rank->live, &rank->live_count) < 0)
        return -1;
    return read_devices(reading, ms_report_array(json, "devices"), rank);
}

int ms_job_take_merged(struct ms_job *job, json_t *root)
{
    json_t *ranks = ms_report_array(root, "ranks"), *row;
    struct reading reading = {.job = job, .first = job->rank_count, .count = json_array_size(ranks)};
    struct ms_report merged = {.root = json_incref(root)};
    size_t i;
    int status = 0;

    json_array_foreach (ranks, i, row)
        status = status ? status : read_rank(job, row);
    for (unsigned list = 0; list < MS_JOB_LISTS && status == 0; list++)
        status = read_list(&reading, (enum ms_job_list_id)list, root);
    json_array_foreach (ranks, i, row)
        status = status ? status : read_parts_of(&reading, row, &job->ranks[reading.first + i]);
    ms_job_take_least(job, &merged);
    ms_report_close(&merged);
    if (status == 0)
        status = read_shown(&reading, root);
    for (unsigned list = 0; list < MS_JOB_LISTS; list++)
        free(reading.rows[list]);
    return status;
}
