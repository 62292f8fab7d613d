/* trial.c - see trial.h.
 *
 * Floor 5. */
#include "cli/tune/trial.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/progress.h"

enum {
    SHORT_EVENTS = 60000,    /* a trace up to this is tried whole */
    PART_EVENTS = 20000,     /* of a longer one this much from its beginning, and about its peak */
    LEAST_STEPS = 12,        /* of a bisection, about */
    LEAST_EVENTS = 100000000 /* replayed at most to find least devices of all rows */
};
#define GRANULE     (UINT64_C(2) << 20)
#define FINER_SHARE 2048 /* where traces are long, least devices are found to this share */

static void add_part(struct ms_trial *trial, size_t trace, enum ms_part part)
{
    trial->parts[trial->count++] = (struct ms_trial_part){trace, part};
}

static bool is_short(const struct ms_search_trace *trace)
{
    return trace->course.count <= SHORT_EVENTS &&
           (!trace->uncached || trace->uncached->course.count <= SHORT_EVENTS);
}

/* The events of a part: [*first_p, *last_p). */
static void bounds_of(enum ms_part part, const struct ms_course *course, size_t *first_p, size_t *last_p)
{
    size_t peak = course->live_peak_event, last = course->count;

    *first_p = part == MS_PART_PEAK && peak > PART_EVENTS ? peak - PART_EVENTS : 0;
    if (part == MS_PART_BEGINNING)
        last = PART_EVENTS;
    else if (part == MS_PART_PEAK)
        last = *first_p + PART_EVENTS + PART_EVENTS / 2;
    *last_p = last < course->count ? last : course->count;
}

static int open_one(struct ms_trial *trial, struct ms_search *search, bool whole)
{
    *trial = (struct ms_trial){.search = search, .whole = true};
    trial->parts = calloc(2 * search->trace_count, sizeof(*trial->parts));
    if (!trial->parts)
        return -1;
    for (size_t i = 0; i < search->trace_count; i++) {
        trial->steady |= search->traces[i].steps.count != 0;
        if (whole || is_short(&search->traces[i])) {
            add_part(trial, i, MS_PART_WHOLE);
            continue;
        }
        trial->whole = false;
        add_part(trial, i, MS_PART_BEGINNING);
        add_part(trial, i, MS_PART_PEAK);
    }
    return 0;
}

int ms_trial_open(struct ms_trial *parts, struct ms_trial *whole, struct ms_search *search)
{
    static struct ms_kept kept;
    uint64_t key = MS_KEPT_BASIS;

    if (open_one(parts, search, false) < 0 || open_one(whole, search, true) < 0) {
        ms_cli_error("out of memory");
        return -1;
    }
    for (size_t i = 0; i < search->trace_count; i++)
        key = ms_kept_hash(key, &search->traces[i].content, sizeof(search->traces[i].content));
    ms_kept_open(&kept, key);
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
    free(whole->parts);
}

/* --- replays that are not kept yet --- */

struct batch {
    struct ms_trial *trial;
    struct ms_replay_order *orders; /* those that are run */
    struct ms_replay_result *results;
    uint64_t *contents;
    size_t *places; /* in the caller's arrays */
    size_t count;
    struct ms_progress progress;
};

static void one_done(void *arg, size_t index)
{
    struct batch *batch = arg;

    ms_kept_add(batch->trial->kept, &batch->orders[index], batch->contents[index], &batch->results[index]);
    ms_progress_step(&batch->progress);
}

/* Runs those of them that no earlier start has run. contents[i] says of what order i is. */
static int replay(struct ms_trial *trial, const struct ms_replay_order *orders, const uint64_t *contents,
                  struct ms_replay_result *results, size_t count)
{
    struct batch batch = {.trial = trial, .progress.what = "replays"};
    int status = -1;

    batch.orders = calloc(count, sizeof(*batch.orders));
    batch.results = calloc(count, sizeof(*batch.results));
    batch.contents = calloc(count, sizeof(*batch.contents));
    batch.places = calloc(count, sizeof(*batch.places));
    if (batch.orders && batch.results && batch.contents && batch.places) {
        for (size_t i = 0; i < count; i++)
            if (!ms_kept_find(trial->kept, &orders[i], contents[i], &results[i])) {
                batch.orders[batch.count] = orders[i];
                batch.contents[batch.count] = contents[i];
                batch.places[batch.count++] = i;
            }
        batch.progress.count = batch.count;
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
    uint64_t peak;

    row->completed &= result->completed;
    add_sums(&row->sums, &result->sums);
    add_sums(&row->steady, trace->steps.count ? &result->steady : &result->sums);
    if (part->part == MS_PART_BEGINNING)
        return;
    peak = result->peak + ms_policy_pending(&row->policy, trace->course.live_peak);
    row->peaks += peak;
    if (peak > row->peak)
        row->peak = peak;
}

/* The replay of a row on a part; `settings` has room for what it sets. */
static struct ms_replay_order order_of(const struct ms_trial *trial, const struct ms_search_row *row,
                                       const struct ms_trial_part *part, char settings[512])
{
    const struct ms_search_trace *way = ms_search_way(&trial->search->traces[part->trace], &row->policy);
    struct ms_replay_order order = {.replay = &way->replay,
                                    .settings = settings,
                                    .device_bytes = trial->search->replay_device,
                                    .warm = way->steps.count ? way->steps.first : SIZE_MAX};

    ms_policy_write(&row->policy, &trial->search->facts, settings, 512);
    bounds_of(part->part, &way->course, &order.first, &order.last);
    return order;
}

int ms_trial_run(struct ms_trial *trial, struct ms_search_row *rows, size_t count)
{
    size_t total = count * trial->count;
    struct ms_replay_order *orders = calloc(total + 1, sizeof(*orders));
    struct ms_replay_result *results = calloc(total + 1, sizeof(*results));
    uint64_t *contents = calloc(total + 1, sizeof(*contents));
    char(*settings)[512] = calloc(count + 1, sizeof(*settings));
    int status = -1;

    for (size_t i = 0; orders && results && settings && contents && i < total; i++) {
        const struct ms_trial_part *part = &trial->parts[i % trial->count];
        const struct ms_search_row *row = &rows[i / trial->count];

        orders[i] = order_of(trial, row, part, settings[i / trial->count]);
        contents[i] = ms_search_way(&trial->search->traces[part->trace], &row->policy)->content;
    }
    if (orders && results && settings && contents)
        status = replay(trial, orders, contents, results, total);
    for (size_t i = 0; i < count && status == 0; i++) {
        rows[i] = (struct ms_search_row){.policy = rows[i].policy, .completed = true};
        for (size_t j = 0; j < trial->count; j++)
            take_result(&rows[i], &trial->parts[j],
                        ms_search_way(&trial->search->traces[trial->parts[j].trace], &rows[i].policy),
                        &results[i * trial->count + j]);
    }
    free(orders);
    free(results);
    free(settings);
    free(contents);
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
    size_t *items = calloc(total, sizeof(*items));
    uint64_t *contents = calloc(total, sizeof(*contents));
    char(*settings)[512] = calloc(count, sizeof(*settings));
    ssize_t status = -1;

    for (size_t i = 0; orders && results && items && contents && settings && i < total; i++) {
        uint64_t device = next_device(&bounds[i], grain);
        const struct ms_trial_part whole = {i % traces, MS_PART_WHOLE};

        if (!rows[i / traces].completed || !device)
            continue;
        orders[open] = order_of(trial, &rows[i / traces], &whole, settings[i / traces]);
        orders[open].device_bytes = device;
        orders[open].warm = SIZE_MAX;
        contents[open] = ms_search_way(&trial->search->traces[i % traces], &rows[i / traces].policy)->content;
        items[open++] = i;
    }
    if (orders && results && items && contents && settings)
        status = open == 0 || replay(trial, orders, contents, results, open) == 0 ? (ssize_t)open : -1;
    for (size_t i = 0; status > 0 && i < open; i++)
        take_device(&bounds[items[i]], orders[i].device_bytes, results[i].completed);
    free(orders);
    free(results);
    free(items);
    free(contents);
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
        events += search->traces[i].uncached ? search->traces[i].uncached->course.count
                                             : search->traces[i].course.count;
    most = LEAST_EVENTS / LEAST_STEPS / (events + 1);
    if (count > 2 && most < count)
        count = most < 2 ? 2 : most;
    if (most < 2 && search->facts.live_peak / FINER_SHARE > grain)
        grain = whole_granules(search->facts.live_peak / FINER_SHARE);
    bounds = calloc(count * traces, sizeof(*bounds));
    if (!bounds)
        return -1;
    for (size_t i = 0; i < count * traces; i++) {
        const struct ms_course *course =
            &ms_search_way(&search->traces[i % traces], &rows[i / traces].policy)->course;

        bounds[i].low = course->device_count > 1 ? 0 : course->live_peak / GRANULE * GRANULE;
        bounds[i].low -= bounds[i].low ? GRANULE : 0;
        bounds[i].high = whole_granules(rows[i / traces].peak);
    }
    while ((tried = step_all(trial, rows, count, bounds, grain)) > 0)
        ;
    for (size_t i = 0; tried == 0 && i < count * traces; i++)
        if (rows[i / traces].completed && bounds[i].high > rows[i / traces].least)
            rows[i / traces].least =
                bounds[i].high + ms_policy_pending(&rows[i / traces].policy, search->facts.uncached_peak);
    free(bounds);
    return tried < 0 ? -1 : 0;
}
