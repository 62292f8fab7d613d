/* search.c - see search.h.
 *
 * Floor 5. */
#include "cli/tune/search.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/array.h"
#include "cli/cli.h"
#include "cli/tune/kept.h"
#include "cli/tune/trial.h"

enum {
    TOGETHER = 9, /* settings that are tried in pairs */
    WIDE = 6,     /* pairs that get a third one */
    FINAL = 5,    /* policies that are replayed whole, besides the defaults and the best for each goal */
    ROWS_MAX = 256
};
#define AMPLE_BYTES (UINT64_C(64) << 30)
#define BETTER      0.999 /* what is no better than this share is no better */
#define A_SETTING   0.001 /* and so much a setting more has to bring */
#define TIME_SHARE  0.1   /* of the goal that is both */
#define SPAN_SHARE  0.001 /* of how long the program ran: less is nothing */
#define WORSE       1000.0
#define LITTLE_NS   1000.0 /* nobody cares for less */

static int lay_out(struct ms_search_trace *trace)
{
    ms_steps_find(&trace->course, &trace->steps);
    trace->content = ms_kept_hash(MS_KEPT_BASIS, trace->course.events,
                                  trace->course.count * sizeof(*trace->course.events));
    return ms_replay_open(&trace->course, &trace->replay);
}

/* Adds what a framework would ask for without its cache, if its pieces are known. */
static int open_uncached(struct ms_search *search, struct ms_search_trace *trace)
{
    struct ms_search_trace *way = calloc(1, sizeof(*way));
    char error[4608];
    int result;

    if (!way) {
        ms_cli_error("out of memory");
        return -1;
    }
    way->path = trace->path;
    way->replay.fd = -1;
    result = ms_course_read_uncached(trace->path, &way->course, error, sizeof(error));
    if (result) {
        free(way);
        search->facts.tensors = false;
        if (result < 0)
            ms_cli_error("%s", error);
        return result < 0 ? -1 : 0;
    }
    trace->uncached = way;
    if (way->course.live_peak > search->facts.uncached_peak)
        search->facts.uncached_peak = way->course.live_peak;
    return lay_out(way);
}

static int open_trace(struct ms_search *search, const char *path)
{
    struct ms_search_trace *trace = &search->traces[search->trace_count];
    char error[4608];

    trace->path = path;
    trace->replay.fd = -1;
    if (ms_course_read(path, false, &trace->course, error, sizeof(error)) < 0) {
        ms_cli_error("%s", error);
        return -1;
    }
    search->trace_count++;
    if (trace->course.count)
        search->span_ns += trace->course.events[trace->course.count - 1].ns;
    if (!trace->course.block_count) {
        ms_cli_error("%s: nothing was allocated in it", path);
        return -1;
    }
    ms_policy_look(&search->facts, &trace->course);
    return open_uncached(search, trace) < 0 ? -1 : lay_out(trace);
}

const struct ms_search_trace *ms_search_way(const struct ms_search_trace *trace,
                                            const struct ms_policy *policy)
{
    return ms_policy_uncached(policy) ? trace->uncached : trace;
}

int ms_search_open(struct ms_search *search, char *const *paths, size_t count)
{
    search->facts = (struct ms_policy_facts){.one_device = true, .held = true, .tensors = true};
    search->traces = calloc(count, sizeof(*search->traces));
    search->rows = calloc(ROWS_MAX, sizeof(*search->rows));
    if (!search->traces || !search->rows) {
        ms_cli_error("out of memory");
        return -1;
    }
    for (size_t i = 0; i < count; i++)
        if (open_trace(search, paths[i]) < 0)
            return -1;
    if (search->device_bytes)
        search->replay_device = search->device_bytes;
    else if (!search->replay_device)
        search->replay_device =
            search->facts.live_peak > AMPLE_BYTES / 8 ? 8 * search->facts.live_peak : AMPLE_BYTES;
    return 0;
}

/* --- judging --- */

/* Time that is lost in calls, of steps alone where they are known. */
static double lost_of(const struct ms_trial *trial, const struct ms_search_row *row)
{
    return (double)(trial->whole && trial->steady ? row->steady.ns : row->sums.ns) + LITTLE_NS;
}

/* Less is better; the defaults have about 1. Memory counts for more than time if both are the goal, as long
 * as neither is worse than with the defaults; time that is nothing beside how long the program ran is not.
 * Where nothing else differs, less to warm up and to set is better. */
static double score_of(const struct ms_trial *trial, enum ms_goal goal, const struct ms_search_row *row,
                       const struct ms_search_row *defaults)
{
    bool compares = defaults->completed && defaults->peaks;
    double memory = compares ? (double)row->peaks / (double)defaults->peaks : (double)row->peaks,
           ns = lost_of(trial, row), default_ns = compares ? lost_of(trial, defaults) : 1.0,
           little_ns = (double)trial->search->span_ns * SPAN_SHARE,
           few = A_SETTING * ms_policy_count(&row->policy) +
                 A_SETTING * (double)row->sums.ns / (double)(row->sums.ns + defaults->sums.ns + 1);
    bool matters = ns > little_ns || default_ns > little_ns;

    if (!row->completed)
        return INFINITY;
    if (goal == MS_GOAL_MEMORY)
        return memory + few;
    if (goal == MS_GOAL_TIME)
        return ns / default_ns + A_SETTING * memory + few;
    if (compares && (memory > 1 / BETTER || (matters && ns > default_ns / BETTER + little_ns)))
        return WORSE * (memory + ns / default_ns);
    return (1 - TIME_SHARE) * memory + TIME_SHARE * (matters ? ns / default_ns : 1) + few;
}

static int by_score(const void *a, const void *b)
{
    double x = ((const struct ms_search_row *)a)->score, y = ((const struct ms_search_row *)b)->score;

    return (x > y) - (x < y);
}

/* Judges all by the first, which is the defaults, and sorts those behind it. */
static void judge(const struct ms_trial *trial, enum ms_goal goal, struct ms_search_row *rows, size_t count)
{
    struct ms_search_row defaults = rows[0];

    for (size_t i = 0; i < count; i++)
        rows[i].score = score_of(trial, goal, &rows[i], &defaults);
    qsort(rows + 1, count - 1, sizeof(*rows), by_score);
}

/* --- rounds --- */

static bool is_there(const struct ms_search_row *rows, size_t count, const struct ms_policy *policy)
{
    for (size_t i = 0; i < count; i++)
        if (!memcmp(&rows[i].policy, policy, sizeof(*policy)))
            return true;
    return false;
}

/* Tries rows[from..count) and judges them all anew. */
static int round_of(struct ms_search *search, struct ms_trial *trial, struct ms_search_row *rows, size_t from,
                    size_t count)
{
    if (ms_trial_run(trial, rows + from, count - from) < 0)
        return -1;
    judge(trial, search->goal, rows, count);
    return 0;
}

/* Each of `left` joined with each of `right`, where they may be and are new. Returns how many there are. */
static size_t join_all(struct ms_search_row *rows, size_t count, const struct ms_policy *left, size_t lefts,
                       const struct ms_policy *right, size_t rights)
{
    for (size_t i = 0; i < lefts; i++)
        for (size_t j = 0; j < rights && count < ROWS_MAX; j++) {
            struct ms_policy both;

            if (ms_policy_join(&left[i], &right[j], &both) && !is_there(rows, count, &both))
                rows[count++] = (struct ms_search_row){.policy = both};
        }
    return count;
}

static size_t take_from(const struct ms_search_row *rows, size_t count, unsigned settings, bool completed,
                        struct ms_policy *best, size_t taken, size_t most)
{
    for (size_t i = 1; i < count && taken < most; i++) {
        bool known = ms_policy_count(&rows[i].policy) != settings || rows[i].completed != completed;

        for (size_t j = 0; j < taken && !known; j++)
            known = !memcmp(&best[j], &rows[i].policy, sizeof(*best));
        if (!known)
            best[taken++] = rows[i].policy;
    }
    return taken;
}

/* The best rows that have so many settings, in turns for memory, for time and for the goal: what is good for
 * one of them may be mended by something else. Where few fit, others fill up: they may fit with what does.
 * Leaves the rows judged by the goal. */
static size_t take_best(const struct ms_search *search, const struct ms_trial *trial,
                        struct ms_search_row *rows, size_t count, unsigned settings, struct ms_policy *best,
                        size_t most)
{
    const enum ms_goal goals[] = {MS_GOAL_MEMORY, MS_GOAL_TIME, search->goal};
    size_t taken = 0;

    for (size_t g = 0; g < MS_ARRAY_LEN(goals); g++) {
        judge(trial, goals[g], rows, count);
        taken = take_from(rows, count, settings, true, best, taken, most * (g + 1) / MS_ARRAY_LEN(goals));
    }
    return take_from(rows, count, settings, false, best, taken, most);
}

/* Alone, in pairs, and in threes where pairs were better. Returns how many rows there are, or -1. */
static ssize_t try_parts(struct ms_search *search, struct ms_trial *trial, struct ms_search_row *rows)
{
    struct ms_policy singles[TOGETHER], pairs[WIDE];
    size_t count = 1, found, before;
    double best;

    rows[0] = (struct ms_search_row){.score = 0};
    for (size_t i = 0; i < ms_policy_singles(&search->facts); i++)
        rows[count++] = (struct ms_search_row){.policy = ms_policy_single(&search->facts, i)};
    if (round_of(search, trial, rows, 0, count) < 0)
        return -1;
    found = take_best(search, trial, rows, count, 1, singles, TOGETHER);
    best = rows[1].score;
    before = count;
    count = join_all(rows, count, singles, found, singles, found);
    if (round_of(search, trial, rows, before, count) < 0)
        return -1;
    if (count == before || rows[1].score > best * BETTER)
        return (ssize_t)count;
    before = count;
    count =
        join_all(rows, count, pairs, take_best(search, trial, rows, count, 2, pairs, WIDE), singles, found);
    return round_of(search, trial, rows, before, count) < 0 ? -1 : (ssize_t)count;
}

/* A row that has the figures of another one shows nothing: the other has no more settings, as it came first.
 */
static bool is_told(const struct ms_search_row *rows, size_t count, const struct ms_search_row *row)
{
    for (size_t i = 0; i < count; i++)
        if (rows[i].peaks == row->peaks && rows[i].sums.calls == row->sums.calls &&
            rows[i].sums.waits == row->sums.waits)
            return true;
    return false;
}

/* The best for the goal, and the best for each of the others, so that who reads sees what there is. */
static size_t take_final(struct ms_search *search, const struct ms_trial *trial, struct ms_search_row *rows,
                         size_t count)
{
    static const enum ms_goal goals[] = {MS_GOAL_BOTH, MS_GOAL_MEMORY, MS_GOAL_TIME};
    size_t taken = 1;

    search->rows[0] = rows[0];
    for (size_t i = 1; i < count && taken <= FINAL && rows[i].completed; i++)
        if (!is_told(search->rows, taken, &rows[i]))
            search->rows[taken++] = rows[i];
    for (size_t g = 0; g < MS_ARRAY_LEN(goals); g++) {
        judge(trial, goals[g], rows, count);
        if (count > 1 && rows[1].completed && !is_told(search->rows, taken, &rows[1]))
            search->rows[taken++] = rows[1];
    }
    return taken;
}

int ms_search_run(struct ms_search *search)
{
    struct ms_search_row *rows = calloc(ROWS_MAX, sizeof(*rows));
    struct ms_trial parts, whole;
    ssize_t count = -1;
    int status = -1;

    if (!rows || ms_trial_open(&parts, &whole, search) < 0) {
        free(rows);
        return -1;
    }
    count = try_parts(search, &parts, rows);
    if (count > 0) {
        search->tried = (size_t)count;
        search->row_count = take_final(search, &parts, rows, (size_t)count);
        status = parts.whole ? 0 : ms_trial_run(&whole, search->rows, search->row_count);
    }
    if (status == 0) {
        judge(&whole, search->goal, search->rows, search->row_count);
        status = ms_trial_least(&whole, search->rows, search->row_count);
    }
    ms_trial_close(&parts, &whole, status == 0);
    free(rows);
    return status;
}

const struct ms_search_row *ms_search_best(const struct ms_search *search)
{
    const struct ms_search_row *defaults = &search->rows[0],
                               *best = search->row_count > 1 ? &search->rows[1] : defaults;

    if (!defaults->completed)
        return best->completed ? best : NULL;
    return best->completed && best->score < defaults->score * BETTER ? best : defaults;
}

static void close_trace(struct ms_search_trace *trace)
{
    ms_replay_close(&trace->replay);
    ms_course_close(&trace->course);
}

void ms_search_close(struct ms_search *search)
{
    for (size_t i = 0; i < search->trace_count; i++) {
        if (search->traces[i].uncached)
            close_trace(search->traces[i].uncached);
        free(search->traces[i].uncached);
        close_trace(&search->traces[i]);
    }
    free(search->traces);
    free(search->rows);
    search->traces = NULL;
    search->rows = NULL;
    search->trace_count = search->row_count = 0;
}
