/* job_groups.c - which processes of a job do the same, and which of these stand out; see job.h.
 *
 * Floor 5. What a process does is told by the call sites that held most of its memory: the stages of a
 * pipeline, or a server beside its workers, have different ones. A kind of process is one that a 128th of the
 * job is of; others join the kind that they are most like, if half of the sites are shared. So a process is
 * held against those that do what it does, and one with a leak of its own does not become a group. */
#include <stdlib.h>
#include <string.h>

#include "cli/job/job.h"

enum {
    KIND_SHARE = 128,     /* of the processes are a kind by themselves; two at least */
    KINDS_MAX = 256,      /* what is like none of these joins the last */
    GROUP_MIN = 3,        /* among fewer nobody stands out */
    BEYOND_SHARE = 8,     /* an outlier is so much of the median beyond it: an eighth, */
    BEYOND_MIN = 1 << 20, /* and so many bytes, */
    ALONE_SHARE = 32,     /* with no more than a 32nd of its group, or itself, as far out */
    OUTLIERS_MAX = 64     /* are listed */
};

/* Processes with the same sites. */
struct kind {
    uint32_t first, count; /* in the order of kinds */
    uint32_t group;
};

struct grouping {
    struct ms_job *job;
    uint32_t *order; /* rows of ranks[] by their sites */
    struct kind *kinds;
    size_t kind_count;
    uint32_t leaders[KINDS_MAX]; /* kinds that are a group */
    size_t leader_count;
};

static int by_number(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

    return x < y ? -1 : x > y;
}

static unsigned sites_of(const struct ms_job_rank *rank, uint32_t sites[MS_JOB_PARTS])
{
    for (unsigned i = 0; i < rank->held_count; i++)
        sites[i] = rank->held[i].site;
    qsort(sites, rank->held_count, sizeof(*sites), by_number);
    return rank->held_count;
}

static int compare_sites(const struct ms_job_rank *a, const struct ms_job_rank *b)
{
    uint32_t left[MS_JOB_PARTS], right[MS_JOB_PARTS];
    unsigned n = sites_of(a, left), m = sites_of(b, right);

    if (n != m)
        return n < m ? -1 : 1;
    for (unsigned i = 0; i < n; i++)
        if (left[i] != right[i])
            return left[i] < right[i] ? -1 : 1;
    return 0;
}

static int by_sites(const void *a, const void *b, void *arg)
{
    const struct ms_job *job = arg;
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    int order = compare_sites(&job->ranks[x], &job->ranks[y]);

    return order ? order : by_number(a, b);
}

/* Largest first, then the one with the lowest rank. */
static int by_size(const void *a, const void *b, void *arg)
{
    const struct kind *x = a, *y = b;
    const struct grouping *grouping = arg;

    if (x->count != y->count)
        return x->count > y->count ? -1 : 1;
    return by_number(&grouping->order[x->first], &grouping->order[y->first]);
}

static int find_kinds(struct grouping *grouping)
{
    struct ms_job *job = grouping->job;

    grouping->order = calloc(job->rank_count + 1, sizeof(*grouping->order));
    grouping->kinds = calloc(job->rank_count + 1, sizeof(*grouping->kinds));
    if (!grouping->order || !grouping->kinds)
        return -1;
    for (size_t i = 0; i < job->rank_count; i++)
        grouping->order[i] = (uint32_t)i;
    qsort_r(grouping->order, job->rank_count, sizeof(*grouping->order), by_sites, job);
    for (size_t i = 0; i < job->rank_count; i++) {
        if (!i || compare_sites(&job->ranks[grouping->order[i - 1]], &job->ranks[grouping->order[i]]) != 0)
            grouping->kinds[grouping->kind_count++] = (struct kind){(uint32_t)i, 0, 0};
        grouping->kinds[grouping->kind_count - 1].count++;
    }
    qsort_r(grouping->kinds, grouping->kind_count, sizeof(*grouping->kinds), by_size, grouping);
    return 0;
}

static const struct ms_job_rank *example(const struct grouping *grouping, const struct kind *kind)
{
    return &grouping->job->ranks[grouping->order[kind->first]];
}

/* How many sites two kinds share, and how many they have together. */
static void overlap(const struct ms_job_rank *a, const struct ms_job_rank *b, unsigned *shared_p,
                    unsigned *all_p)
{
    unsigned shared = 0;

    for (unsigned i = 0; i < a->held_count; i++)
        for (unsigned k = 0; k < b->held_count; k++)
            shared += a->held[i].site == b->held[k].site;
    *shared_p = shared;
    *all_p = a->held_count + b->held_count - shared;
}

/* The group of the leader that a kind is most like, the earlier of two; leader_count if it is like none. */
static size_t most_like(const struct grouping *grouping, const struct kind *kind)
{
    size_t best = grouping->leader_count;
    unsigned best_shared = 0, best_all = 1, shared, all;

    for (size_t i = 0; i < grouping->leader_count; i++) {
        overlap(example(grouping, kind), example(grouping, &grouping->kinds[grouping->leaders[i]]), &shared,
                &all);
        if (2 * shared >= all && (best == grouping->leader_count || shared * best_all > best_shared * all)) {
            best = i;
            best_shared = shared;
            best_all = all;
        }
    }
    return best;
}

static void join_kinds(struct grouping *grouping)
{
    size_t enough = grouping->job->rank_count / KIND_SHARE;

    enough = enough < 2 ? 2 : enough;
    for (size_t i = 0; i < grouping->kind_count; i++) {
        struct kind *kind = &grouping->kinds[i];
        size_t group = kind->count >= enough ? grouping->leader_count : most_like(grouping, kind);

        if (group == grouping->leader_count && group == KINDS_MAX)
            group = KINDS_MAX - 1;
        else if (group == grouping->leader_count)
            grouping->leaders[grouping->leader_count++] = (uint32_t)i;
        kind->group = (uint32_t)group;
        for (uint32_t k = 0; k < kind->count; k++)
            grouping->job->ranks[grouping->order[kind->first + k]].group = (uint32_t)group;
    }
}

/* Groups are numbered by their lowest ranks. */
static int number_groups(struct grouping *grouping)
{
    struct ms_job *job = grouping->job;
    uint32_t numbers[KINDS_MAX];

    memset(numbers, 0xff, sizeof(numbers));
    job->groups = calloc(grouping->leader_count + 1, sizeof(*job->groups));
    if (!job->groups)
        return -1;
    for (size_t i = 0; i < job->rank_count; i++) {
        uint32_t *number = &numbers[job->ranks[i].group];

        if (*number == UINT32_MAX) {
            *number = (uint32_t)job->group_count++;
            job->groups[*number].first = (uint32_t)i;
        }
        job->ranks[i].group = *number;
        job->groups[*number].count++;
    }
    return 0;
}

/* --- who stands out --------------------------------------------------------------------------------------
 */

static int by_value(const void *a, const void *b)
{
    json_int_t x = *(const json_int_t *)a, y = *(const json_int_t *)b;

    return x < y ? -1 : x > y;
}

/* How many of sorted values are below. */
static size_t below(const json_int_t *values, size_t count, json_int_t bound)
{
    size_t low = 0;

    while (low < count) {
        size_t middle = low + (count - low) / 2;

        if (values[middle] < bound)
            low = middle + 1;
        else
            count = middle;
    }
    return low;
}

static int by_excess(const void *a, const void *b)
{
    const struct ms_job_outlier *x = a, *y = b;
    json_int_t left = x->value - x->median, right = y->value - y->median;

    if (left != right)
        return left > right ? -1 : 1;
    if (x->rank != y->rank)
        return x->rank < y->rank ? -1 : 1;
    return x->figure < y->figure ? -1 : x->figure > y->figure;
}

/* The list has room for twice what is shown: the rest of it goes each time it is full. */
static void add_outlier(struct ms_job *job, const struct ms_job_outlier *outlier)
{
    job->outliers_all++;
    job->outliers[job->outlier_count++] = *outlier;
    if (job->outlier_count < 2 * OUTLIERS_MAX)
        return;
    qsort(job->outliers, job->outlier_count, sizeof(*job->outliers), by_excess);
    job->outlier_count = OUTLIERS_MAX;
}

static void find_outliers(struct ms_job *job, uint32_t group, enum ms_job_figure figure, json_int_t *values)
{
    size_t count = 0;
    json_int_t median;

    for (size_t i = 0; i < job->rank_count; i++)
        if (job->ranks[i].group == group)
            values[count++] = job->ranks[i].figures[figure];
    qsort(values, count, sizeof(*values), by_value);
    median = ms_job_between(values[(count - 1) / 2], values[count / 2]);
    if (values[count - 1] - median < BEYOND_MIN)
        return;
    for (size_t i = 0; i < job->rank_count; i++) {
        json_int_t value = job->ranks[i].figures[figure], beyond = value - median;
        size_t with;

        if (job->ranks[i].group != group || beyond < BEYOND_MIN || beyond < median / BEYOND_SHARE)
            continue;
        if (figure == MS_JOB_RESERVED && value == job->ranks[i].figures[MS_JOB_PEAK])
            continue; /* its peak alone, which is told as such */
        with = count - below(values, count, median + (beyond + 1) / 2);
        if (with <= 1 || with <= count / ALONE_SHARE)
            add_outlier(job, &(struct ms_job_outlier){(uint32_t)i, figure, value, median, UINT32_MAX, 0, 0});
    }
}

static json_int_t part_of(const struct ms_job_rank *rank, bool leaked, uint32_t site)
{
    const struct ms_job_part *parts = leaked ? rank->leaked : rank->held;
    unsigned count = leaked ? rank->leaked_count : rank->held_count;

    for (unsigned i = 0; i < count; i++)
        if (parts[i].site == site)
            return parts[i].bytes;
    return 0;
}

/* The site that has most beyond what it has in the others of the group. */
static void job_groups_blame(struct ms_job *job, struct ms_job_outlier *outlier, json_int_t *values)
{
    const struct ms_job_rank *rank = &job->ranks[outlier->rank];
    bool leaked = (outlier->figure == MS_JOB_LEAKED || outlier->figure == MS_JOB_LIVE) && rank->leaked_count;
    const struct ms_job_part *parts = leaked ? rank->leaked : rank->held;
    unsigned parts_count = leaked ? rank->leaked_count : rank->held_count;

    for (unsigned k = 0; k < parts_count; k++) {
        size_t count = 0;
        json_int_t median;

        for (size_t i = 0; i < job->rank_count; i++)
            if (job->ranks[i].group == rank->group)
                values[count++] = part_of(&job->ranks[i], leaked, parts[k].site);
        qsort(values, count, sizeof(*values), by_value);
        median = ms_job_between(values[(count - 1) / 2], values[count / 2]);
        if (outlier->site != UINT32_MAX &&
            parts[k].bytes - median <= outlier->site_bytes - outlier->site_median)
            continue;
        outlier->site = parts[k].site;
        outlier->site_bytes = parts[k].bytes;
        outlier->site_median = median;
    }
}

static int look_for_outliers(struct ms_job *job)
{
    json_int_t *values = calloc(job->rank_count + 1, sizeof(*values));

    job->outliers = calloc(2 * OUTLIERS_MAX, sizeof(*job->outliers));
    if (!values || !job->outliers) {
        free(values);
        return -1;
    }
    for (uint32_t group = 0; group < job->group_count; group++)
        for (unsigned figure = 0; figure < MS_JOB_CALLS && job->groups[group].count >= GROUP_MIN; figure++)
            find_outliers(job, group, (enum ms_job_figure)figure, values);
    if (job->outlier_count)
        qsort(job->outliers, job->outlier_count, sizeof(*job->outliers), by_excess);
    if (job->outlier_count > OUTLIERS_MAX)
        job->outlier_count = OUTLIERS_MAX;
    for (size_t i = 0; i < job->outlier_count; i++)
        job_groups_blame(job, &job->outliers[i], values);
    free(values);
    return 0;
}

int ms_job_group(struct ms_job *job)
{
    struct grouping grouping = {.job = job};
    int status = find_kinds(&grouping);

    if (status == 0) {
        join_kinds(&grouping);
        status = number_groups(&grouping);
    }
    if (status == 0)
        status = look_for_outliers(job);
    free(grouping.order);
    free(grouping.kinds);
    return status;
}
