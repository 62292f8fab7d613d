/* trial.c - see trial.h.
 *
 * Floor 5. */
#include "cli/tune/trial.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"

enum {
    SHORT_EVENTS = 60000,    /* a trace up to this is tried whole */
    PART_EVENTS = 20000,     /* of a longer one this much from its beginning, and about its peak */
    LEAST_STEPS = 12,        /* of a bisection, about */
    LEAST_EVENTS = 100000000 /* replayed at most to find least devices of all rows */
};
#define GRANULE     (UINT64_C(2) << 20)
#define BASIS       UINT64_C(0xcbf29ce484222325)
#define FINER_SHARE 2048 /* where traces are long, least devices are found to this share */

static void add_part(struct ms_trial *trial, size_t trace, size_t first, size_t last, bool peak)
{
    trial->parts[trial->count++] = (struct ms_trial_part){trace, first, last, peak};
}

static void cut_trace(struct ms_trial *trial, size_t trace)
{
    const struct ms_course *course = &trial->search->traces[trace].course;
    size_t peak = course->live_peak_event, first = peak > PART_EVENTS ? peak - PART_EVENTS : 0,
           last = first + PART_EVENTS + PART_EVENTS / 2;

    if (course->count <= SHORT_EVENTS) {
        add_part(trial, trace, 0, course->count, true);
        return;
    }
    trial->whole = false;
    add_part(trial, trace, 0, PART_EVENTS, false);
    add_part(trial, trace, first, last < course->count ? last : course->count, true);
}

static int open_one(struct ms_trial *trial, struct ms_search *search, bool whole)
{
    *trial = (struct ms_trial){.search = search, .whole = true};
    trial->parts = calloc(2 * search->trace_count, sizeof(*trial->parts));
    trial->contents = calloc(search->trace_count, sizeof(*trial->contents));
    if (!trial->parts || !trial->contents)
        return -1;
    for (size_t i = 0; i < search->trace_count; i++) {
        const struct ms_course *course = &search->traces[i].course;

        trial->contents[i] = ms_kept_hash(BASIS, course->events, course->count * sizeof(*course->events));
        trial->steady |= search->traces[i].steps.count != 0;
        if (whole)
            add_part(trial, i, 0, course->count, true);
        else
            cut_trace(trial, i);
    }
    return 0;
}

int ms_trial_open(struct ms_trial *parts, struct ms_trial *whole, struct ms_search *search)
{
    static struct ms_kept kept;

    if (open_one(parts, search, false) < 0 || open_one(whole, search, true) < 0) {
        ms_cli_error("out of memory");
        return -1;
    }
    ms_kept_open(&kept, ms_kept_hash(BASIS, whole->contents, search->trace_count * sizeof(*whole->contents)));
    parts->kept = whole->kept = &kept;
    if (kept.count)
        ms_cli_note("%zu replays of an earlier start were kept in %s: it goes on from there", kept.count,
                    kept.path);
    return 0;
}

void ms_trial_close(struct ms_trial *parts, struct ms_trial *whole, bool over)
{
    ms_kept_close(whole->kept, over);
    free(parts->parts);
    free(parts->contents);
    free(whole->parts);
    free(whole->contents);
}

/* --- replays that are not kept yet --- */

struct batch {
    struct ms_trial *trial;
    struct ms_replay_order *orders; /* those that are run */
    struct ms_replay_result *results;
    uint64_t *contents;
    size_t *places; /* in the caller's arrays */
    size_t count, done;
    bool terminal;
};

static void show(const struct batch *batch)
{
    enum { WIDTH = 40 };
    char bar[WIDTH + 1];
    size_t full = WIDTH * batch->done / batch->count;

    if (!batch->terminal)
        return;
    memset(bar, '.', WIDTH);
    memset(bar, '#', full);
    bar[WIDTH] = '\0';
    if (batch->done < batch->count)
        fprintf(stderr, "\r[%s] %zu of %zu replays", bar, batch->done, batch->count);
    else
        fprintf(stderr, "\r%*s\r", WIDTH + 40, "");
}

static void one_done(void *arg, size_t index)
{
    struct batch *batch = arg;

    ms_kept_add(batch->trial->kept, &batch->orders[index], batch->contents[index], &batch->results[index]);
    batch->done++;
    show(batch);
}

/* Runs those of them that no earlier start has run. traces[i] says whose order i is. */
static int replay(struct ms_trial *trial, const struct ms_replay_order *orders, const size_t *traces,
                  struct ms_replay_result *results, size_t count)
{
    struct batch batch = {.trial = trial, .terminal = isatty(STDERR_FILENO) == 1};
    int status = -1;

    batch.orders = calloc(count, sizeof(*batch.orders));
    batch.results = calloc(count, sizeof(*batch.results));
    batch.contents = calloc(count, sizeof(*batch.contents));
    batch.places = calloc(count, sizeof(*batch.places));
    if (batch.orders && batch.results && batch.contents && batch.places) {
        for (size_t i = 0; i < count; i++)
            if (!ms_kept_find(trial->kept, &orders[i], trial->contents[traces[i]], &results[i])) {
                batch.orders[batch.count] = orders[i];
                batch.contents[batch.count] = trial->contents[traces[i]];
                batch.places[batch.count++] = i;
            }
        status = batch.count ? ms_replay_all(batch.orders, batch.results, batch.count, one_done, &batch) : 0;
        for (size_t i = 0; i < batch.count && status == 0; i++)
            results[batch.places[i]] = batch.results[i];
    }
    free(batch.orders);
    free(batch.results);
    free(batch.contents);
    free(batch.places);
    return status;
}

/* --- figures --- */

static void add_sums(struct ms_replay_sums *to, const struct ms_replay_sums *more)
{
    to->calls += more->calls;
    to->waits += more->waits;
    to->ns += more->ns;
}

static void take_result(struct ms_search_row *row, const struct ms_trial_part *part,
                        const struct ms_search_trace *trace, const struct ms_replay_result *result)
{
    row->completed &= result->completed;
    add_sums(&row->sums, &result->sums);
    add_sums(&row->steady, trace->steps.count ? &result->steady : &result->sums);
    if (!part->peak)
        return;
    row->peaks += result->peak;
    if (result->peak > row->peak)
        row->peak = result->peak;
}

int ms_trial_run(struct ms_trial *trial, struct ms_search_row *rows, size_t count)
{
    size_t total = count * trial->count, *traces = calloc(total + 1, sizeof(*traces));
    struct ms_replay_order *orders = calloc(total + 1, sizeof(*orders));
    struct ms_replay_result *results = calloc(total + 1, sizeof(*results));
    char(*settings)[512] = calloc(count + 1, sizeof(*settings));
    int status = -1;

    for (size_t i = 0; orders && results && settings && traces && i < total; i++) {
        const struct ms_trial_part *part = &trial->parts[i % trial->count];
        const struct ms_search_trace *trace = &trial->search->traces[part->trace];

        ms_policy_write(&rows[i / trial->count].policy, &trial->search->facts, settings[i / trial->count],
                        512);
        orders[i] = (struct ms_replay_order){&trace->replay,
                                             settings[i / trial->count],
                                             trial->search->replay_device,
                                             part->first,
                                             part->last,
                                             trace->steps.count ? trace->steps.first : SIZE_MAX};
        traces[i] = part->trace;
    }
    if (orders && results && settings && traces)
        status = replay(trial, orders, traces, results, total);
    for (size_t i = 0; i < count && status == 0; i++) {
        rows[i] = (struct ms_search_row){.policy = rows[i].policy, .completed = true};
        for (size_t j = 0; j < trial->count; j++)
            take_result(&rows[i], &trial->parts[j], &trial->search->traces[trial->parts[j].trace],
                        &results[i * trial->count + j]);
    }
    free(orders);
    free(results);
    free(settings);
    free(traces);
    return status;
}

/* --- the least device, by bisection --- */

struct bounds {
    uint64_t low, high; /* it does not complete on the first, and does on the second */
    bool sure;          /* the second was tried */
};

static uint64_t whole_granules(uint64_t bytes)
{
    return (bytes + GRANULE - 1) / GRANULE * GRANULE;
}

/* The next device to try; 0 where there is none. */
static uint64_t next_device(const struct bounds *bounds, uint64_t grain)
{
    if (!bounds->sure)
        return bounds->high;
    return bounds->high - bounds->low > grain ? whole_granules(bounds->low + (bounds->high - bounds->low) / 2)
                                              : 0;
}

static void take_device(struct bounds *bounds, uint64_t device, bool completed)
{
    if (completed) {
        bounds->high = device;
        bounds->sure = true;
    } else {
        bounds->low = device;
        if (!bounds->sure)
            bounds->high = whole_granules(device + device / 16 + GRANULE);
    }
}

/* One step for all that are not found yet. Returns how many were tried, or -1. */
static ssize_t step_all(struct ms_trial *trial, const struct ms_search_row *rows, size_t count,
                        struct bounds *bounds, uint64_t grain)
{
    size_t traces = trial->search->trace_count, total = count * traces, open = 0;
    struct ms_replay_order *orders = calloc(total, sizeof(*orders));
    struct ms_replay_result *results = calloc(total, sizeof(*results));
    size_t *items = calloc(total, sizeof(*items)), *of = calloc(total, sizeof(*of));
    char(*settings)[512] = calloc(count, sizeof(*settings));
    ssize_t status = -1;

    for (size_t i = 0; orders && results && items && of && settings && i < total; i++) {
        uint64_t device = next_device(&bounds[i], grain);
        const struct ms_search_trace *trace = &trial->search->traces[i % traces];

        if (!rows[i / traces].completed || !device)
            continue;
        ms_policy_write(&rows[i / traces].policy, &trial->search->facts, settings[i / traces], 512);
        orders[open] = (struct ms_replay_order){
            &trace->replay, settings[i / traces], device, 0, trace->course.count, SIZE_MAX};
        of[open] = i % traces;
        items[open++] = i;
    }
    if (orders && results && items && of && settings)
        status = open == 0 || replay(trial, orders, of, results, open) == 0 ? (ssize_t)open : -1;
    for (size_t i = 0; status > 0 && i < open; i++)
        take_device(&bounds[items[i]], orders[i].device_bytes, results[i].completed);
    free(orders);
    free(results);
    free(items);
    free(of);
    free(settings);
    return status;
}

int ms_trial_least(struct ms_trial *trial, struct ms_search_row *rows, size_t count)
{
    const struct ms_search *search = trial->search;
    size_t traces = search->trace_count, events = 0, most;
    uint64_t grain = GRANULE;
    struct bounds *bounds;
    ssize_t tried;

    for (size_t i = 0; i < traces; i++)
        events += search->traces[i].course.count;
    most = LEAST_EVENTS / LEAST_STEPS / (events + 1);
    if (count > 2 && most < count)
        count = most < 2 ? 2 : most;
    if (most < 2 && search->facts.live_peak / FINER_SHARE > grain)
        grain = whole_granules(search->facts.live_peak / FINER_SHARE);
    bounds = calloc(count * traces, sizeof(*bounds));
    if (!bounds)
        return -1;
    for (size_t i = 0; i < count * traces; i++) {
        const struct ms_course *course = &search->traces[i % traces].course;

        bounds[i].low = course->device_count > 1 ? 0 : course->live_peak / GRANULE * GRANULE;
        bounds[i].low -= bounds[i].low ? GRANULE : 0;
        bounds[i].high = whole_granules(rows[i / traces].peak);
    }
    while ((tried = step_all(trial, rows, count, bounds, grain)) > 0)
        ;
    for (size_t i = 0; tried == 0 && i < count * traces; i++)
        if (rows[i / traces].completed && bounds[i].high > rows[i / traces].least)
            rows[i / traces].least = bounds[i].high;
    free(bounds);
    return tried < 0 ? -1 : 0;
}
