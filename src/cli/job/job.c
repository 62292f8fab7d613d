/* job.c - the rows of a job: its processes, and what they have in common; see job.h.
 *
 * Floor 5. A call site is known by its hash, which is the same in every process of one program. */
#include "cli/job/job.h"

#include <stdlib.h>
#include <string.h>

#include "cli/array.h"

const char *const ms_job_figures[MS_JOB_FIGURES] = {"peak_bytes",     "live_bytes", "leaked_bytes",
                                                    "reserved_bytes", "calls",      "growth_bytes"};
/* There is no end of names for phases: "step 1", "step 2". Which are kept must not hang on how files are
 * grouped, so it goes by the name: what one file keeps of a name that the whole job keeps is all of it. */
enum { NAMES_MAX = 1024 };

const struct ms_job_list_info ms_job_lists[MS_JOB_LISTS] = {
    [MS_JOB_SITES] = {"sites",
                      {"hash", "kind", "api", "at", "owner", "file"},
                      2,
                      "line",
                      false,
                      SIZE_MAX,
                      {"at_peak_bytes", "live_bytes", "leaked_bytes", "calls"}},
    [MS_JOB_OWNERS] = {"owners",
                       {"owner"},
                       1,
                       "device_bytes",
                       true,
                       NAMES_MAX,
                       {"at_peak_bytes", "live_bytes", "leaked_bytes", "growth_bytes"}},
    [MS_JOB_PHASES] = {"phases",
                       {"name"},
                       1,
                       "device_bytes",
                       true,
                       NAMES_MAX,
                       {"peak_bytes", "growth_bytes", "count", "total_ns"}},
    [MS_JOB_DEVICES] = {"devices", {"device"}, 1, "device_bytes", true, SIZE_MAX, {NULL}},
};

/* Buckets are as wide as a 64th of what is in them, so that a median is as exact. */
enum { STEPS = 64, STEP_BITS = 6 };

unsigned ms_job_bucket(json_int_t value)
{
    unsigned exponent;

    if (value < STEPS)
        return value < 0 ? 0 : (unsigned)value;
    exponent = 63 - (unsigned)__builtin_clzll((unsigned long long)value);
    return STEPS + (exponent - STEP_BITS) * STEPS +
           (unsigned)((value >> (exponent - STEP_BITS)) & (STEPS - 1));
}

static json_int_t begin_of(unsigned bucket)
{
    unsigned exponent = bucket / STEPS - 1 + STEP_BITS;

    if (bucket < STEPS)
        return bucket;
    return (json_int_t)(STEPS + bucket % STEPS) << (exponent - STEP_BITS);
}

int ms_job_count_in(struct ms_job_spread *spread, unsigned bucket, uint32_t count)
{
    struct ms_job_count *grown;
    unsigned i = 0;

    while (i < spread->buckets && spread->counts[i].bucket < bucket)
        i++;
    if (i < spread->buckets && spread->counts[i].bucket == bucket) {
        spread->counts[i].count += count;
        return 0;
    }
    grown = realloc(spread->counts, (spread->buckets + 1u) * sizeof(*grown));
    if (!grown || spread->buckets == UINT16_MAX) {
        spread->counts = grown ? grown : spread->counts;
        return -1;
    }
    spread->counts = grown;
    memmove(grown + i + 1, grown + i, (spread->buckets - i) * sizeof(*grown));
    grown[i] = (struct ms_job_count){(uint16_t)bucket, count};
    spread->buckets++;
    return 0;
}

/* Of the figures in their order, the one of that number. */
static json_int_t figure_at(const struct ms_job_spread *spread, uint32_t number)
{
    uint64_t before = 0;
    json_int_t value = spread->max;

    for (unsigned i = 0; i < spread->buckets; i++) {
        before += spread->counts[i].count;
        if (before > number) {
            value = begin_of(spread->counts[i].bucket);
            break;
        }
    }
    return value < spread->min ? spread->min : value > spread->max ? spread->max : value;
}

json_int_t ms_job_median(const struct ms_job_spread *spread, uint32_t ranks)
{
    return ms_job_between(figure_at(spread, ranks ? (ranks - 1) / 2 : 0), figure_at(spread, ranks / 2));
}

int ms_job_compare(const struct ms_job_rank *a, const struct ms_job_rank *b)
{
    int host;

    if (a->rank != b->rank)
        return a->rank < 0 ? 1 : b->rank < 0 ? -1 : a->rank < b->rank ? -1 : 1;
    host = strcmp(a->host, b->host);
    if (host)
        return host;
    if (a->pid != b->pid)
        return a->pid < b->pid ? -1 : 1;
    return a->start_unix_ns < b->start_unix_ns ? -1 : a->start_unix_ns > b->start_unix_ns;
}

static bool is_lower(const struct ms_job *job, uint32_t a, uint32_t b)
{
    return ms_job_compare(&job->ranks[a], &job->ranks[b]) < 0;
}

void ms_job_widen(const struct ms_job *job, struct ms_job_spread *spread, bool first,
                  const struct ms_job_spread *other)
{
    if (first || other->min < spread->min ||
        (other->min == spread->min && is_lower(job, other->min_rank, spread->min_rank))) {
        spread->min = other->min;
        spread->min_rank = other->min_rank;
    }
    if (first || other->max > spread->max ||
        (other->max == spread->max && is_lower(job, other->max_rank, spread->max_rank))) {
        spread->max = other->max;
        spread->max_rank = other->max_rank;
        spread->blamed = other->blamed;
    }
}

const char *ms_job_text(struct ms_job *job, const char *text)
{
    uint32_t number = ms_names_number(&job->texts, text);

    return number == UINT32_MAX ? NULL : job->texts.texts[number];
}

struct ms_job_rank *ms_job_add_rank(struct ms_job *job)
{
    struct ms_job_rank *ranks = NULL;

    if (job->rank_count < UINT32_MAX / 2) /* their numbers have 32 bits */
        ranks = ms_array_grow(job->ranks, sizeof(*ranks), job->rank_count, &job->rank_room, 64);
    if (!ranks)
        return NULL;
    job->ranks = ranks;
    job->ranks[job->rank_count] = (struct ms_job_rank){.rank = -1, .host = ""};
    return &job->ranks[job->rank_count++];
}

/* The key that says which row it is, to be freed. */
static char *job_key_of(const struct ms_job_list_info *info, const struct ms_job_words *words)
{
    char *key = NULL;
    size_t bytes;
    FILE *out = open_memstream(&key, &bytes);

    for (unsigned i = 0; out && i < info->keys; i++)
        fprintf(out, "%s%s", i ? " " : "", words->texts[i]);
    if (out && info->is_key)
        fprintf(out, " %" JSON_INTEGER_FORMAT, words->number);
    if (out && fclose(out) == 0)
        return key;
    free(key);
    return NULL;
}

static int job_new_row(struct ms_job *job, enum ms_job_list_id id, const struct ms_job_words *words)
{
    const struct ms_job_list_info *info = &ms_job_lists[id];
    struct ms_job_list *list = &job->lists[id];
    struct ms_job_row *rows = ms_array_grow(list->rows, sizeof(*rows), list->count, &list->room, 64);
    struct ms_job_row row = {.key = list->keys.texts[list->count],
                             .number = info->is_key ? words->number : 0,
                             .told_by = UINT32_MAX};

    if (!rows)
        return -1;
    list->rows = rows;
    for (unsigned i = 0; info->words[i]; i++)
        if (!(row.words[i] = ms_job_text(job, i < info->keys ? words->texts[i] : "")))
            return -1;
    list->rows[list->count++] = row;
    return 0;
}

uint32_t ms_job_row(struct ms_job *job, enum ms_job_list_id list, const struct ms_job_words *words)
{
    char *key = job_key_of(&ms_job_lists[list], words);
    uint32_t number = key ? ms_names_number(&job->lists[list].keys, key) : UINT32_MAX;

    free(key);
    if (number == UINT32_MAX || number < job->lists[list].count)
        return number;
    return job_new_row(job, list, words) < 0 ? UINT32_MAX : number;
}

bool ms_job_tells(const struct ms_job *job, const struct ms_job_row *row, uint32_t rank)
{
    return row->told_by == UINT32_MAX || ms_job_compare(&job->ranks[rank], &job->ranks[row->told_by]) < 0;
}

int ms_job_tell(struct ms_job *job, enum ms_job_list_id list, uint32_t row, uint32_t rank,
                const struct ms_job_words *words)
{
    const struct ms_job_list_info *info = &ms_job_lists[list];
    struct ms_job_row *told = &job->lists[list].rows[row];

    for (unsigned i = info->keys; info->words[i]; i++)
        if (!(told->words[i] = ms_job_text(job, words->texts[i])))
            return -1;
    if (info->number)
        told->number = words->number;
    told->told_by = rank;
    return 0;
}

void ms_job_close(struct ms_job *job)
{
    for (unsigned id = 0; id < MS_JOB_LISTS; id++) {
        struct ms_job_list *list = &job->lists[id];

        for (size_t i = 0; i < list->count; i++)
            for (unsigned weight = 0; weight < MS_JOB_WEIGHTS; weight++)
                free(list->rows[i].weights[weight].counts);
        free(list->rows);
        ms_names_close(&list->keys);
    }
    for (size_t i = 0; i < job->rank_count; i++)
        free(job->ranks[i].devices);
    free(job->ranks);
    free(job->groups);
    free(job->outliers);
    json_decref(job->shown);
    json_decref(job->least);
    ms_names_close(&job->texts);
    memset(job, 0, sizeof(*job));
}
