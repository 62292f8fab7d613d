/* consistent.c - whether the figures of a report agree with each other; see consistent.h.
 *
 * Floor 4, command line only. Every equation is one function, and goes on after the lists have their form.
 * Sums over sites are compared only where nothing was dropped: what did not fit into a table is counted in
 * `overhead` and is in no sum. */
#include "report/analyse/consistent.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "report/analyse/inquiry.h"
#include "report/read/layer.h"

/* A list is an array of objects, but for stacks[], which has pairs. */
static void check_form(struct ms_inquiry *inquiry, const char *name)
{
    json_t *rows = json_object_get(inquiry->report->root, name), *row;
    bool has_pairs = !strcmp(name, "stacks");
    char path[128];
    size_t i;

    snprintf(path, sizeof(path), "$.%s", name);
    if (rows && !json_is_array(rows))
        ms_inquiry_complain(inquiry, path, "is no list");
    json_array_foreach (rows, i, row) {
        snprintf(path, sizeof(path), "$.%s[%zu]", name, i);
        if (!has_pairs && !json_is_object(row))
            ms_inquiry_complain(inquiry, path, "is no object");
        else if (has_pairs && (json_array_size(row) != 2 || !json_is_integer(json_array_get(row, 0)) ||
                               !json_is_integer(json_array_get(row, 1))))
            ms_inquiry_complain(inquiry, path, "is no pair of a parent and a frame");
    }
}

static void check_forms(struct ms_inquiry *inquiry)
{
    static const char *const lists[] = {
        "devices",  "sites",         "leaks",       "stacks",      "frames",        "modules", "codes",
        "findings", "contexts",      "oom",         "balances",    "phases",        "apis",    "segments",
        "heaps",    "inner_devices", "inner_sites", "inner_leaks", "inner_segments"};
    size_t i;

    for (i = 0; i < MS_ARRAY_LEN(lists); i++)
        check_form(inquiry, lists[i]);
    if (!json_is_object(json_object_get(inquiry->report->root, "run")))
        ms_inquiry_complain(inquiry, "$", "has no run");
}

static void check_ids(struct ms_inquiry *inquiry, const char *name)
{
    json_t *rows = ms_report_array(inquiry->report->root, name), *row;
    size_t i;

    json_array_foreach (rows, i, row)
        ms_figure_equal(inquiry, name, i, row, "id", "its place in the list", (json_int_t)i);
}

static void expect_index(struct ms_inquiry *inquiry, const char *path, const json_t *index,
                         const json_t *rows)
{
    if (json_is_integer(index) &&
        (json_integer_value(index) < 0 || (size_t)json_integer_value(index) >= json_array_size(rows)))
        ms_inquiry_complain(inquiry, path, "is %" JSON_INTEGER_FORMAT ", which names none of %zu rows",
                            json_integer_value(index), json_array_size(rows));
}

/* Of the lists that each layer has. */
static void check_layer_references(struct ms_inquiry *inquiry)
{
    const struct ms_report *report = inquiry->report;
    json_t *row;
    size_t i;

    check_ids(inquiry, "sites");
    json_array_foreach (report->sites, i, row)
        expect_index(inquiry, ms_inquiry_at(inquiry, "sites", i, "stack"), json_object_get(row, "stack"),
                     report->stacks);
    json_array_foreach (ms_report_array(report->root, "leaks"), i, row)
        expect_index(inquiry, ms_inquiry_at(inquiry, "leaks", i, "site"), json_object_get(row, "site"),
                     report->sites);
}

static void check_references(struct ms_inquiry *inquiry)
{
    const struct ms_report *report = inquiry->report;
    json_t *codes = ms_report_array(report->root, "codes"), *row, *place;
    size_t i, k;

    json_array_foreach (report->frames, i, row) {
        expect_index(inquiry, ms_inquiry_at(inquiry, "frames", i, "module"), json_object_get(row, "module"),
                     report->modules);
        expect_index(inquiry, ms_inquiry_at(inquiry, "frames", i, "code"), json_object_get(row, "code"),
                     codes);
    }
    json_array_foreach (report->stacks, i, row) {
        expect_index(inquiry, ms_inquiry_at(inquiry, "stacks", i, "parent"), json_array_get(row, 0),
                     report->stacks);
        if (i) /* row 0 is "no stack" and has no frame */
            expect_index(inquiry, ms_inquiry_at(inquiry, "stacks", i, "frame"), json_array_get(row, 1),
                         report->frames);
    }
    json_array_foreach (ms_report_array(report->root, "findings"), i, row) {
        expect_index(inquiry, ms_inquiry_at(inquiry, "findings", i, "site"), json_object_get(row, "site"),
                     report->sites);
        expect_index(inquiry, ms_inquiry_at(inquiry, "findings", i, "inner_site"),
                     json_object_get(row, "inner_site"), ms_report_array(report->root, "inner_sites"));
        expect_index(inquiry, ms_inquiry_at(inquiry, "findings", i, "stack"), json_object_get(row, "stack"),
                     report->stacks);
        expect_index(inquiry, ms_inquiry_at(inquiry, "findings", i, "context"),
                     json_object_get(row, "context"), ms_report_array(report->root, "contexts"));
    }
    json_array_foreach (ms_report_array(report->root, "contexts"), i, row)
        expect_index(inquiry, ms_inquiry_at(inquiry, "contexts", i, "stack"), json_object_get(row, "stack"),
                     report->stacks);
    json_array_foreach (ms_report_array(report->root, "oom"), i, row)
        expect_index(inquiry, ms_inquiry_at(inquiry, "oom", i, "stack"), json_object_get(row, "stack"),
                     report->stacks);
    json_array_foreach (ms_report_array(report->root, "inner_oom"), i, row) {
        expect_index(inquiry, ms_inquiry_at(inquiry, "inner_oom", i, "stack"), json_object_get(row, "stack"),
                     report->stacks);
        json_array_foreach (ms_report_array(row, "refused"), k, place)
            expect_index(inquiry, ms_inquiry_at(inquiry, "inner_oom", i, "refused"), place,
                         ms_report_array(report->root, "oom"));
    }
}

static void check_contexts(struct ms_inquiry *inquiry)
{
    json_t *row;
    size_t i;

    json_array_foreach (ms_report_array(inquiry->report->root, "contexts"), i, row) {
        ms_figure_at_most(inquiry, "contexts", i, row, "bytes", "total_bytes",
                          ms_report_int(row, "total_bytes"));
        ms_figure_at_most(inquiry, "contexts", i, row, "count", "total_count",
                          ms_report_int(row, "total_count"));
    }
}

static void add_to(json_int_t *sum, const json_t *row, const char *key)
{
    *sum = ms_report_sum(*sum, ms_report_int(row, key));
}

static json_int_t sum_of_keys(const json_t *row, const char *const *keys, size_t count)
{
    json_int_t sum = 0;
    size_t i;

    for (i = 0; i < count; i++)
        sum = ms_report_sum(sum, ms_report_int(row, keys[i]));
    return sum;
}

static const char *const pool_terms[] = {"requested", "rounding", "limbo", "cached", "stranded", "pinned"},
                         *const other_terms[] = {"followed", "contexts", "untracked"};

/* The driver's own part of a pool's term: absent in reports from before it was told. */
static json_int_t of_driver(const json_t *row, const char *term)
{
    return !strcmp(term, "rounding") ? ms_report_int(row, "driver_rounding")
           : !strcmp(term, "cached") ? ms_report_int(row, "driver_cached")
                                     : 0;
}

/* At the end all but what others hold is in other lists too: nothing of it is counted twice. What is
 * requested of the pool is not held against the record's live blocks: a thread that goes on while the report
 * is written may have a block from the one that the other has not heard of yet. */
static void check_end(struct ms_inquiry *inquiry, const json_t *row, size_t i, const json_t *device,
                      json_int_t contexts)
{
    const json_t *parts = json_object_get(device, "reserved_parts");
    const json_t *managed = json_object_get(json_object_get(device, "kinds"), "managed");
    size_t k;

    for (k = 0; k < MS_ARRAY_LEN(pool_terms); k++)
        ms_figure_equal(inquiry, "balances", i, row, pool_terms[k],
                        "what reserved_parts has, and the driver's own",
                        ms_report_sum(ms_report_int(parts, pool_terms[k]), of_driver(row, pool_terms[k])));
    ms_figure_equal(inquiry, "balances", i, row, "contexts", "the sum of contexts[] on the device", contexts);
    ms_expect_equal(inquiry, ms_inquiry_at(inquiry, "balances", i, "followed"),
                    ms_report_sum(ms_report_int(row, "followed"), ms_report_int(managed, "live_bytes")),
                    "the device's followed_bytes", ms_report_int(device, "followed_bytes"));
}

static void check_balance(struct ms_inquiry *inquiry, const json_t *row, size_t i, const json_int_t *contexts)
{
    const struct ms_report *report = inquiry->report;
    size_t device = ms_report_device_of(report, row);
    json_t *devices = ms_report_array(report->root, "devices");
    const char *moment = ms_report_text(row, "moment");

    ms_figure_equal(inquiry, "balances", i, row, "in_use_bytes", "the sum of its terms",
                    ms_report_sum(sum_of_keys(row, pool_terms, MS_ARRAY_LEN(pool_terms)),
                                  sum_of_keys(row, other_terms, MS_ARRAY_LEN(other_terms))));
    ms_figure_at_most(inquiry, "balances", i, row, "driver_rounding", "rounding",
                      ms_report_int(row, "rounding"));
    ms_figure_at_most(inquiry, "balances", i, row, "driver_cached", "cached", ms_report_int(row, "cached"));
    ms_figure_at_most(inquiry, "balances", i, row, "asked_ns", "t_ns", ms_report_int(row, "t_ns"));
    if (!strcmp(moment, "end") && device != SIZE_MAX && contexts && ms_inquiry_adds_up(report))
        check_end(inquiry, row, i, json_array_get(devices, device), contexts[device]);
    if (!strcmp(moment, "oom"))
        expect_index(inquiry, ms_inquiry_at(inquiry, "balances", i, "oom"), json_object_get(row, "oom"),
                     ms_report_array(report->root, "oom"));
}

static void check_balances(struct ms_inquiry *inquiry)
{
    const struct ms_report *report = inquiry->report;
    json_int_t *contexts =
        calloc(json_array_size(ms_report_array(report->root, "devices")) + 1, sizeof(*contexts));
    json_t *row;
    size_t i, device;

    json_array_foreach (ms_report_array(report->root, "contexts"), i, row)
        if (contexts && (device = ms_report_device_of(report, row)) != SIZE_MAX)
            add_to(&contexts[device], row, "bytes");
    json_array_foreach (ms_report_array(report->root, "balances"), i, row)
        check_balance(inquiry, row, i, contexts);
    free(contexts);
}

static void check_phases(struct ms_inquiry *inquiry)
{
    const struct ms_report *report = inquiry->report;
    json_t *phase, *device, *held;
    size_t i, k, n;

    json_array_foreach (ms_report_array(report->root, "phases"), i, phase)
        json_array_foreach (ms_report_array(phase, "devices"), k, device) {
            const json_t *peak = json_object_get(device, "peak_bytes");

            ms_expect_at_most(inquiry, ms_inquiry_at(inquiry, "phases", i, "peak_bytes.min"),
                              ms_report_int(peak, "min"), "the median", ms_report_int(peak, "median"));
            ms_expect_at_most(inquiry, ms_inquiry_at(inquiry, "phases", i, "peak_bytes.median"),
                              ms_report_int(peak, "median"), "max", ms_report_int(peak, "max"));
            json_array_foreach (ms_report_array(device, "sites"), n, held)
                expect_index(inquiry, ms_inquiry_at(inquiry, "phases", i, "sites"),
                             json_object_get(held, "site"), report->sites);
        }
}

/* So no stack is its own caller, and one pass over the table is enough for a reader. */
static void check_parents(struct ms_inquiry *inquiry)
{
    json_t *node;
    size_t i;

    json_array_foreach (inquiry->report->stacks, i, node)
        if (i)
            ms_expect_at_most(inquiry, ms_inquiry_at(inquiry, "stacks", i, "parent"),
                              json_integer_value(json_array_get(node, 0)), "the node before it",
                              (json_int_t)i - 1);
}

static bool is_graphs(const json_t *site)
{
    const char *kind = json_string_value(json_object_get(site, "kind"));
    return kind && strcmp(kind, "graph") == 0;
}

/* The sums of the rows of other lists on each row of devices[]; one row stands for all that are alike. */
struct sums {
    json_int_t live_bytes, live_count, at_peak_bytes, segments;
};

static json_int_t sum_of_members(const json_t *object)
{
    json_int_t sum = 0;
    const char *name;
    json_t *member;

    json_object_foreach ((json_t *)object, name, member)
        sum = ms_report_sum(sum, json_integer_value(member));
    return sum;
}

static void check_sums(struct ms_inquiry *inquiry, const json_t *device, size_t i, const struct sums *sums)
{
    ms_figure_equal(inquiry, "devices", i, device, "live_bytes", "the sum of its sites' live_bytes",
                    sums->live_bytes);
    ms_figure_equal(inquiry, "devices", i, device, "live_count", "the sum of its sites' live_count",
                    sums->live_count);
    ms_figure_equal(inquiry, "devices", i, device, "peak_live_bytes", "the sum of its sites' at_peak_bytes",
                    sums->at_peak_bytes);
    ms_figure_equal(inquiry, "devices", i, device, "reserved_bytes", "the sum of its segments",
                    sums->segments);
}

static void check_device(struct ms_inquiry *inquiry, const json_t *device, size_t i)
{
    ms_figure_at_most(inquiry, "devices", i, device, "live_bytes", "peak_live_bytes",
                      ms_report_int(device, "peak_live_bytes"));
    ms_figure_equal(inquiry, "devices", i, device, "reserved_bytes", "the sum of reserved_parts",
                    sum_of_members(json_object_get(device, "reserved_parts")));
    ms_figure_equal(inquiry, "devices", i, device, "peak_reserved_bytes", "the sum of peak_parts",
                    sum_of_members(json_object_get(device, "peak_parts")));
    ms_figure_at_most(inquiry, "devices", i, device, "reserved_bytes", "peak_reserved_bytes",
                      ms_report_int(device, "peak_reserved_bytes"));
    if (json_object_get(device, "peak_held_bytes")) {
        ms_figure_at_most(inquiry, "devices", i, device, "peak_live_bytes", "peak_held_bytes",
                          ms_report_int(device, "peak_held_bytes"));
        ms_figure_at_most(inquiry, "devices", i, device, "peak_reserved_bytes", "peak_held_bytes",
                          ms_report_int(device, "peak_held_bytes"));
    }
    ms_figure_at_most(inquiry, "devices", i, device, "followed_bytes", "live_bytes",
                      ms_report_int(device, "live_bytes"));
}

/* The figures of a site at the moments of the timeline, which rise. */
static void check_held(struct ms_inquiry *inquiry, const json_t *site, size_t i)
{
    const json_t *moments = json_object_get(json_object_get(inquiry->report->root, "timeline"), "moments");
    json_int_t before = -1;
    json_t *held;
    size_t k;

    json_array_foreach (ms_report_array(site, "held"), k, held) {
        json_int_t moment = json_integer_value(json_array_get(held, 0));

        expect_index(inquiry, ms_inquiry_at(inquiry, "sites", i, "held"), json_array_get(held, 0), moments);
        if (moment <= before)
            ms_inquiry_complain(inquiry, ms_inquiry_at(inquiry, "sites", i, "held"),
                                "has moment %" JSON_INTEGER_FORMAT " behind moment %" JSON_INTEGER_FORMAT,
                                moment, before);
        ms_expect_at_most(inquiry, ms_inquiry_at(inquiry, "sites", i, "held"),
                          json_integer_value(json_array_get(held, 1)), "max_bytes",
                          ms_report_int(site, "max_bytes"));
        before = moment;
    }
}

static void check_site(struct ms_inquiry *inquiry, const json_t *site, size_t i)
{
    check_held(inquiry, site, i);
    ms_figure_at_most(inquiry, "sites", i, site, "live_bytes", "max_bytes", ms_report_int(site, "max_bytes"));
    ms_figure_at_most(inquiry, "sites", i, site, "at_peak_bytes", "max_bytes",
                      ms_report_int(site, "max_bytes"));
    ms_figure_at_most(inquiry, "sites", i, site, "max_bytes", "total_bytes",
                      ms_report_int(site, "total_bytes"));
    ms_figure_at_most(inquiry, "sites", i, site, "live_count", "total_count",
                      ms_report_int(site, "total_count"));
    ms_figure_equal(inquiry, "sites", i, site, "total_count", "the sum of size_hist",
                    sum_of_members(json_object_get(site, "size_hist")));
}

/* A leak is what its site still holds and what died with its context. Memory registered or imported was
 * allocated elsewhere; of what is there for graphs the driver keeps a part. */
static void check_leak(struct ms_inquiry *inquiry, const json_t *leak, size_t i)
{
    const json_t *site = ms_report_site(inquiry->report, ms_report_int(leak, "site"));

    (is_graphs(site) ? ms_figure_at_most : ms_figure_equal)(
        inquiry, "leaks", i, leak, "bytes", "what its site holds and lost with contexts",
        ms_report_sum(ms_report_int(site, "live_bytes"), ms_report_int(leak, "died_with_context_bytes")));
    ms_figure_at_most(inquiry, "leaks", i, leak, "count", "the blocks of its site that were not freed",
                      ms_report_int(site, "total_count") - ms_report_int(site, "freed_count"));
}

static void check_leaks(struct ms_inquiry *inquiry)
{
    const struct ms_report *report = inquiry->report;
    json_t *leaks = ms_report_array(report->root, "leaks"), *row;
    bool *leaked = calloc(json_array_size(report->sites) + 1, sizeof(*leaked));
    size_t i;

    json_array_foreach (leaks, i, row) {
        check_leak(inquiry, row, i);
        if (leaked)
            leaked[ms_report_int(row, "site")] = true;
    }
    json_array_foreach (report->sites, i, row)
        if (leaked && !leaked[i] && ms_report_int(row, "live_count") && ms_report_is_device_memory(row) &&
            !is_graphs(row))
            ms_inquiry_complain(inquiry, ms_inquiry_at(inquiry, "sites", i, "live_count"),
                                "is not 0, but leaks lists no leak of the site");
    free(leaked);
}

static void check_apis(struct ms_inquiry *inquiry)
{
    json_t *apis = ms_report_array(inquiry->report->root, "apis"), *api;
    size_t i;

    json_array_foreach (apis, i, api) {
        json_int_t calls = ms_report_int(api, "calls");

        ms_figure_at_most(inquiry, "apis", i, api, "failures", "calls", calls);
        ms_figure_equal(inquiry, "apis", i, api, "calls", "served and followed together",
                        ms_report_sum(ms_report_int(api, "served"), ms_report_int(api, "followed")));
    }
}

static bool is_of_pool(const json_t *segment)
{
    return strcmp(ms_report_text(segment, "tier"), "followed") != 0;
}

/* A segment's pieces lie in it, in order and beside each other; none is missing unless that is said. */
static void check_segment(struct ms_inquiry *inquiry, const json_t *segment, size_t i)
{
    json_int_t end = 0;
    json_t *piece;
    size_t k;

    json_array_foreach (ms_report_array(segment, "blocks"), k, piece) {
        json_int_t offset = ms_report_int(piece, "offset"), size = ms_report_int(piece, "bytes");

        ms_expect_at_most(inquiry, ms_inquiry_at(inquiry, "segments", i, "blocks.requested"),
                          ms_report_int(piece, "requested"), "its bytes", size);
        if (!is_of_pool(segment))
            continue;
        ms_expect_equal(inquiry, ms_inquiry_at(inquiry, "segments", i, "blocks.offset"), offset,
                        "the end of the piece before it", end);
        end = ms_report_sum(offset, size);
    }
    if (is_of_pool(segment) && !ms_report_int(segment, "blocks_left_out") &&
        ms_inquiry_adds_up(inquiry->report))
        ms_figure_equal(inquiry, "segments", i, segment, "bytes", "the end of its last piece", end);
}

static void consistent_add_sites(const struct ms_report *report, struct sums *sums)
{
    json_t *site;
    size_t i;

    json_array_foreach (report->sites, i, site) {
        size_t device = ms_report_is_device_memory(site) ? ms_report_device_of(report, site) : SIZE_MAX;

        if (device == SIZE_MAX)
            continue;
        add_to(&sums[device].live_bytes, site, "live_bytes");
        add_to(&sums[device].live_count, site, "live_count");
        add_to(&sums[device].at_peak_bytes, site, "at_peak_bytes");
    }
}

/* The segments of a device add up to what is reserved there. */
static void add_segments(const struct ms_report *report, struct sums *sums)
{
    json_t *segments = ms_report_array(report->root, "segments"), *segment;
    size_t i;

    json_array_foreach (segments, i, segment) {
        size_t device = is_of_pool(segment) ? ms_report_device_of(report, segment) : SIZE_MAX;

        if (device != SIZE_MAX)
            add_to(&sums[device].segments, segment, "bytes");
    }
}

static void check_devices(struct ms_inquiry *inquiry)
{
    const struct ms_report *report = inquiry->report;
    json_t *devices = ms_report_array(report->root, "devices"), *device;
    struct sums *sums = calloc(json_array_size(devices) + 1, sizeof(*sums));
    bool whole = sums && ms_inquiry_adds_up(report);
    size_t i;

    if (whole) {
        consistent_add_sites(report, sums);
        add_segments(report, sums);
    }
    json_array_foreach (devices, i, device) {
        size_t first = ms_report_device_first(report, device);

        if (whole && first != SIZE_MAX)
            check_sums(inquiry, device, i, &sums[first]);
        check_device(inquiry, device, i);
    }
    free(sums);
}

static void check_timeline(struct ms_inquiry *inquiry)
{
    static const char *const series[] = {"live", "reserved", "limbo"};
    json_t *timeline = json_object_get(inquiry->report->root, "timeline");
    json_int_t moments = (json_int_t)json_array_size(json_object_get(timeline, "t"));
    json_t *devices = ms_report_array(timeline, "devices"), *device;
    size_t i, k;

    json_array_foreach (devices, i, device)
        for (k = 0; k < MS_ARRAY_LEN(series); k++)
            if (json_object_get(device, series[k]))
                ms_expect_equal(inquiry, ms_inquiry_at(inquiry, "timeline.devices", i, series[k]),
                                (json_int_t)json_array_size(json_object_get(device, series[k])),
                                "the length of t", moments);
}

/* The equations that hold in each layer; true if nothing names a row that is not there. */
static bool check_layer(struct ms_inquiry *inquiry)
{
    json_t *row;
    size_t i;

    check_layer_references(inquiry);
    if (inquiry->complaints) /* the rest goes from row to row */
        return false;
    json_array_foreach (ms_report_array(inquiry->report->root, "segments"), i, row)
        check_segment(inquiry, row, i);
    json_array_foreach (inquiry->report->sites, i, row)
        check_site(inquiry, row, i);
    if (ms_inquiry_adds_up(inquiry->report))
        check_leaks(inquiry);
    check_phases(inquiry);
    check_timeline(inquiry);
    return true;
}

static void check_inner(struct ms_inquiry *outer)
{
    static const char *const lists[] = {"heaps",       "inner_devices",  "inner_sites",
                                        "inner_leaks", "inner_segments", "inner_timeline"};
    struct ms_inquiry inquiry = {.complain = outer->complain, .arg = outer->arg, .inner = true};
    const json_t *root = outer->report->root;
    struct ms_report inner;
    size_t i, there = 0;

    for (i = 0; i < MS_ARRAY_LEN(lists); i++)
        there += json_object_get(root, lists[i]) != NULL;
    for (i = 0; there && i < MS_ARRAY_LEN(lists); i++)
        if (!json_object_get(root, lists[i]))
            ms_inquiry_complain(outer, "$", "has other lists of tensors, but no %s", lists[i]);
    if (there != MS_ARRAY_LEN(lists) || !ms_report_open_inner(outer->report, &inner))
        return;
    inquiry.report = &inner;
    if (check_layer(&inquiry))
        ms_consistent_inner(&inquiry, outer->report);
    outer->complaints += inquiry.complaints;
    ms_report_close(&inner);
}

size_t ms_report_consistent(const struct ms_report *report, ms_complaint_func_t listener, void *arg)
{
    struct ms_inquiry inquiry = {.report = report, .complain = listener, .arg = arg};

    check_forms(&inquiry);
    if (inquiry.complaints)
        return inquiry.complaints;
    check_ids(&inquiry, "modules");
    check_ids(&inquiry, "codes");
    check_references(&inquiry);
    if (inquiry.complaints) /* the rest goes from row to row */
        return inquiry.complaints;
    check_parents(&inquiry);
    if (check_layer(&inquiry)) {
        check_devices(&inquiry);
        check_contexts(&inquiry);
        check_balances(&inquiry);
        check_apis(&inquiry);
        check_inner(&inquiry);
    }
    return inquiry.complaints;
}
