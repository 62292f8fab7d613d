/* findings_rules.c - the rules that take names: leak, growth, temporary_vendor_calls, late_library_memory;
 * see findings.h.
 *
 * Floor 4, command line only. docs/user/findings.md says when each speaks, findings.def has the numbers. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "report/findings/findings.h"
#include "report/analyse/leak_class.h"
#include "report/analyse/owners.h"
#include "report/read/layer.h"
#include "report/read/sites.h"
#include "report/text/text.h"

enum {
#define MS_FINDING(rule, by, severity, confidence)
#define MS_FINDING_NUMBER(name, value, text, rule) name = (value),
#include "report/findings/findings.def"
#undef MS_FINDING
#undef MS_FINDING_NUMBER
};

static const char *findings_rules_api_of(const json_t *site)
{
    const char *api = ms_report_text(site, "api");

    return *api ? api : "an unknown function";
}

/* --- leak, growth --------------------------------------------------------------------------------------- */

static void tell_leak(struct ms_finder *finder, const struct ms_finding_rows *found)
{
    const json_t *site = found->of;
    json_int_t count = ms_report_int(found->row, "count");
    char *line = ms_finding_line(finder->report, site, "this call");

    if (line && found->rule == MS_MANY_GROWTH)
        ms_finding_add(
            finder, "growth", found->bytes, site,
            ms_finding_text(
                "%s of %s in %" JSON_INTEGER_FORMAT " block%s, more and more over the run, and never freed",
                ms_text_size(found->bytes).text, findings_rules_api_of(site), count, count == 1 ? "" : "s"),
            ms_finding_text("free what %s allocates before it allocates again, or reuse it", line));
    else if (line)
        ms_finding_add(finder, "leak", found->bytes, site,
                       ms_finding_text("%s of %s in %" JSON_INTEGER_FORMAT
                                       " block%s lost: allocated again and again, and never freed",
                                       ms_text_size(found->bytes).text, findings_rules_api_of(site), count,
                                       count == 1 ? " was" : "s were"),
                       ms_finding_text("free what %s allocates", line));
    free(line);
}

static void look_at_leak(struct ms_finder *finder, const json_t *leak)
{
    enum ms_leak_class class = ms_leak_class_of(leak);
    struct ms_finding_rows found = {
        .rule = class == MS_LEAK_GROWING ? MS_MANY_GROWTH : MS_MANY_LEAK, .tell = tell_leak, .row = leak};

    found.bytes = ms_leak_bytes(leak);
    if (class > MS_LEAK_LOST || found.bytes <= 0) /* what is held to the end is meant, most often */
        return;
    found.of = ms_report_site(finder->report, ms_report_int(leak, "site"));
    ms_finding_note(finder, found);
}

/* Freed in the end, as a program does that ends in good order: while it ran it grew all the same. */
static void tell_grown(struct ms_finder *finder, const struct ms_finding_rows *found)
{
    const json_t *site = found->row;
    char *line = ms_finding_line(finder->report, site, "this call");

    if (line)
        ms_finding_add(finder, "growth", found->bytes, site,
                       ms_finding_text("%s of %s in %" JSON_INTEGER_FORMAT
                                       " blocks, more and more over the run, and freed only in the end",
                                       ms_text_size(found->bytes).text, findings_rules_api_of(site),
                                       ms_report_int(site, "total_count")),
                       ms_finding_text("free what %s allocates when it has been used", line));
    free(line);
}

static void look_at_grown(struct ms_finder *finder, const struct ms_site_row *site)
{
    if (site->grew_bytes > 0)
        ms_finding_note(finder, (struct ms_finding_rows){.rule = MS_MANY_GROWTH,
                                                         .bytes = site->grew_bytes,
                                                         .tell = tell_grown,
                                                         .row = site->json});
}

/* Which rows of devices[] have a site that grows: told there, and not once more by phase. */
static bool *growing_devices(const struct ms_report *report)
{
    bool *grows = calloc(json_array_size(ms_report_array(report->root, "devices")) + 1, sizeof(*grows));
    json_t *leak;
    size_t i;

    json_array_foreach (ms_report_array(report->root, "leaks"), i, leak) {
        size_t at = ms_leak_class_of(leak) == MS_LEAK_GROWING ? ms_report_device_of(report, leak) : SIZE_MAX;

        if (grows && at != SIZE_MAX)
            grows[at] = true;
    }
    return grows;
}

static void tell_phase(struct ms_finder *finder, const struct ms_finding_rows *found)
{
    const json_t *device = found->row, *held = json_array_get(json_object_get(device, "sites"), 0);
    const json_t *site = ms_report_site(finder->report, ms_report_int(held, "site"));
    const json_t *growth = json_object_get(device, "growth_bytes");
    bool warms_up = ms_report_int(growth, "max") / 2 > ms_report_int(growth, "median");
    char *line = ms_finding_line(finder->report, site, "the phase");

    if (line)
        ms_finding_add(finder, "growth", found->bytes, site,
                       ms_finding_text("each of %" JSON_INTEGER_FORMAT
                                       " phases \"%.64s\" left more allocated than it found: %s in all%s",
                                       ms_report_int(device, "count"), ms_report_text(found->of, "name"),
                                       ms_text_size(found->bytes).text, warms_up ? ", warm-up apart" : ""),
                       ms_finding_text("look at what such a phase keeps; most was held by %s", line));
    free(line);
}

/* The growth of all phases of a name, if the one that grew most, which warms up, had grown as most do. */
static json_int_t steady_growth(const json_t *growth)
{
    return ms_report_int(growth, "total") - ms_report_int(growth, "max") + ms_report_int(growth, "median");
}

/* A phase that is repeated, each of which leaves more than it found. */
static void look_at_phase(struct ms_finder *finder, const json_t *phase, const json_t *device,
                          const bool *grows)
{
    const json_t *growth = json_object_get(device, "growth_bytes");
    size_t at = ms_report_device_of(finder->report, device);

    if (ms_report_int(device, "count") < GROWTH_TIMES || ms_report_int(growth, "min") <= 0 ||
        at == SIZE_MAX || grows[at] ||
        (ms_report_is_inner(finder->report) && steady_growth(growth) < PILE_LEAST))
        return;
    ms_finding_note(finder, (struct ms_finding_rows){.rule = MS_MANY_GROWTH,
                                                     .bytes = steady_growth(growth),
                                                     .tell = tell_phase,
                                                     .row = device,
                                                     .of = phase});
}

/* `grows`: rows of devices[] of which no phase is told; freed. */
static void look_at_phases(struct ms_finder *finder, bool *grows)
{
    json_t *phase, *device;
    size_t i, k;

    json_array_foreach (ms_report_array(finder->report->root, "phases"), i, phase) {
        json_array_foreach (json_object_get(phase, "devices"), k, device) {
            if (grows)
                look_at_phase(finder, phase, device, grows);
        }
    }
    free(grows);
}

static void look_at_growth(struct ms_finder *finder)
{
    json_t *leak;
    size_t i;

    json_array_foreach (ms_report_array(finder->report->root, "leaks"), i, leak)
        look_at_leak(finder, leak);
    look_at_phases(finder, growing_devices(finder->report));
}

/* --- temporary_vendor_calls ----------------------------------------------------------------------------- */

/* The functions of which memshim's pool answered no call, as keys. */
static json_t *vendors(const struct ms_report *report)
{
    json_t *names = json_object(), *row;
    size_t i;

    json_array_foreach (ms_report_array(report->root, "apis"), i, row) {
        if (ms_report_int(row, "served") == 0)
            json_object_set_new(names, ms_report_text(row, "name"), json_true());
    }
    return names;
}

static bool is_tracked_only(const struct ms_report *report)
{
    json_t *row;
    size_t i;

    json_array_foreach (ms_report_array(report->root, "config"), i, row) {
        if (!strcmp(ms_report_text(row, "name"), "MEMSHIM_MODE"))
            return !strcmp(ms_report_text(row, "value"), "track");
    }
    return false;
}

static void tell_temporary(struct ms_finder *finder, const struct ms_finding_rows *found)
{
    const json_t *site = found->row;
    const char *kind = ms_report_text(site, "kind");
    bool pooled = !strcmp(kind, "device") || !strcmp(kind, "async");
    char *line = ms_finding_line(finder->report, site, "this call");

    if (line)
        ms_finding_add(
            finder, "temporary_vendor_calls", found->bytes, site,
            ms_finding_text("%s was called %" JSON_INTEGER_FORMAT
                            " times for %s at once at most, and the driver was asked each time",
                            findings_rules_api_of(site), ms_report_int(site, "total_count"),
                            ms_text_size(found->bytes).text),
            ms_finding_text(
                "%sallocate once, before the loop, what %s allocates each time",
                pooled && is_tracked_only(finder->report) ? "MEMSHIM_MODE=pool spares it; or " : "", line));
    free(line);
}

static void look_at_temporary(struct ms_finder *finder, const struct ms_site_row *site, const json_t *vendors)
{
    double mean;

    if (site->freed_count < TEMPORARY_TIMES || !json_object_get(vendors, site->api))
        return;
    mean = site->total_count > 0 ? (double)site->total_bytes / (double)site->total_count : 0;
    if (strcmp(site->kind, "imported") != 0 && strcmp(site->kind, "graph") != 0 &&
        (double)site->max_bytes <= TEMPORARY_AT_ONCE * mean)
        ms_finding_note(finder, (struct ms_finding_rows){.rule = MS_MANY_TEMPORARY,
                                                         .bytes = site->max_bytes,
                                                         .tell = tell_temporary,
                                                         .row = site->json});
}

/* --- stream_hoard
 * ---------------------------------------------------------------------------------------- */

/* The site that allocated most memory in the order of streams, by rows of devices[]. */
static const json_t **most_in_order(const struct ms_report *report)
{
    const json_t **most =
        calloc(json_array_size(ms_report_array(report->root, "devices")) + 1, sizeof(*most));
    const struct ms_site_row *sites = ms_report_sites(report);
    size_t count = sites ? json_array_size(report->sites) : 0;

    for (size_t i = 0; i < count; i++) {
        size_t at = strcmp(sites[i].kind, "async") ? SIZE_MAX : sites[i].device_row;

        if (most && at != SIZE_MAX &&
            (!most[at] || sites[i].max_bytes > ms_report_int(most[at], "max_bytes")))
            most[at] = sites[i].json;
    }
    return most;
}

static void look_at_stream(struct ms_finder *finder, const json_t *stream, const json_t *device,
                           const json_t *site)
{
    json_int_t bytes = ms_report_int(stream, "hoarded_bytes");
    char *line;

    if (bytes < HOARD_LEAST || bytes < ms_report_int(device, "peak_reserved_bytes") / HOARD_SHARE)
        return;
    line = ms_finding_line(finder->report, site, "the program");
    if (line)
        ms_finding_add(finder, "stream_hoard", bytes, site,
                       ms_finding_text("stream %" JSON_INTEGER_FORMAT
                                       " kept %s that it had freed, while other streams were given as much "
                                       "anew",
                                       ms_report_int(stream, "stream"), ms_text_size(bytes).text),
                       ms_finding_text("wait for that stream before others allocate, or free where the next "
                                       "one allocates; most is allocated by %s",
                                       line));
    free(line);
}

static void look_at_streams(struct ms_finder *finder)
{
    json_t *devices = ms_report_array(finder->report->root, "devices"), *pool, *stream;
    const json_t **most = most_in_order(finder->report);
    size_t i, k;

    json_array_foreach (ms_report_array(finder->report->root, "pools"), i, pool) {
        size_t at = ms_report_device_of(finder->report, pool);

        json_array_foreach (json_object_get(pool, "streams"), k, stream) {
            if (most && at != SIZE_MAX)
                look_at_stream(finder, stream, json_array_get(devices, at), most[at]);
        }
    }
    free(most);
}

/* --- late_library_memory -------------------------------------------------------------------------------- */

/* The bytes that others than libraries hold at the peak of each row of devices[]. */
static json_int_t *others_at_peak(const struct ms_report *report)
{
    json_int_t *bytes = calloc(json_array_size(ms_report_array(report->root, "devices")) + 1, sizeof(*bytes));
    const struct ms_site_row *sites = ms_report_sites(report);
    size_t count = bytes && sites ? json_array_size(report->sites) : 0;

    for (size_t i = 0; i < count; i++) {
        size_t at = sites[i].counts && !ms_owners_is_library(sites[i].owner) ? sites[i].device_row : SIZE_MAX;

        if (at != SIZE_MAX)
            bytes[at] = ms_report_sum(bytes[at], sites[i].at_peak_bytes);
    }
    return bytes;
}

/* A site that holds memory at the peak and is no library's; with those before it on the same device, what
 * they hold together and the one that holds most. */
struct beginning {
    size_t device, row;
    json_int_t first_ns, bytes, sum;
    const json_t *site, *most;
};

struct beginnings {
    size_t count;
    struct beginning list[];
};

static int compare_beginnings(const void *a, const void *b)
{
    const struct beginning *x = a, *y = b;

    if (x->device != y->device)
        return x->device < y->device ? -1 : 1;
    if (x->first_ns != y->first_ns)
        return x->first_ns < y->first_ns ? -1 : 1;
    return x->row < y->row ? -1 : x->row > y->row;
}

/* Of sites that hold the same the first in the report is the one that holds most. */
static const struct beginning *larger(const struct beginning *most, const struct beginning *next)
{
    if (most && (most->bytes > next->bytes || (most->bytes == next->bytes && most->row < next->row)))
        return most;
    return next;
}

static void add_up(struct beginnings *all)
{
    const struct beginning *most = NULL;
    json_int_t sum = 0;

    for (size_t i = 0; i < all->count; i++) {
        struct beginning *one = &all->list[i];

        if (i && one->device != one[-1].device) {
            most = NULL;
            sum = 0;
        }
        sum = ms_report_sum(sum, one->bytes);
        most = larger(most, one);
        one->sum = sum;
        one->most = most->site;
    }
}

/* By device and then in the order in which they began; to be freed. */
static struct beginnings *begin_others(const struct ms_report *report)
{
    const struct ms_site_row *sites = ms_report_sites(report);
    size_t count = sites ? json_array_size(report->sites) : 0;
    struct beginnings *all = malloc(sizeof(*all) + count * sizeof(struct beginning));

    if (!all)
        return NULL;
    all->count = 0;
    for (size_t i = 0; i < count; i++) {
        const struct ms_site_row *site = &sites[i];

        if (site->at_peak_bytes > 0 && site->counts && site->device_row != SIZE_MAX &&
            !ms_owners_is_library(site->owner))
            all->list[all->count++] = (struct beginning){
                site->device_row, i, site->first_ns, site->at_peak_bytes, 0, site->json, NULL};
    }
    if (all->count)
        qsort(all->list, all->count, sizeof(struct beginning), compare_beginnings);
    add_up(all);
    return all;
}

/* The last on a device that had begun before `late` did; NULL if there is none. */
static const struct beginning *last_before(const struct beginnings *all, const json_t *late, size_t device)
{
    struct beginning wanted = {.device = device, .first_ns = ms_report_int(late, "first_ns")};
    size_t low = 0, high = all->count;

    while (low < high) { /* the first that had not begun; row 0 of the wanted is before all of its time */
        size_t middle = low + (high - low) / 2;

        if (compare_beginnings(&all->list[middle], &wanted) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low && all->list[low - 1].device == device ? &all->list[low - 1] : NULL;
}

static void look_at_library(struct ms_finder *finder, const json_t *site, const json_int_t *others,
                            const struct beginnings *beginnings)
{
    const char *owner = ms_report_text(site, "owner");
    json_int_t bytes = ms_report_int(site, "at_peak_bytes");
    size_t device = ms_report_device_of(finder->report, site);
    const struct beginning *last;
    char *line;

    if (bytes < LATE_LEAST || !ms_owners_is_library(owner) || !ms_report_is_device_memory(site) ||
        device == SIZE_MAX || others[device] / LATE_TIMES < bytes)
        return;
    last = last_before(beginnings, site, device);
    if (!last || last->sum < others[device] / LATE_BEFORE * (LATE_BEFORE - 1))
        return;
    line = ms_finding_line(finder->report, last->most, "the program");
    if (line)
        ms_finding_add(finder, "late_library_memory", bytes, site,
                       ms_finding_text("%.40s took %s for itself when %s were allocated already", owner,
                                       ms_text_size(bytes).text, ms_text_size(last->sum).text),
                       ms_finding_text("call %.40s once before %s fills the device", owner, line));
    free(line);
}

/* Libraries call from few places; reports with more are not of a process. */
enum { LIBRARY_SITES_MAX = 256 };

static void look_at_all(struct ms_finder *finder)
{
    json_int_t *others = others_at_peak(finder->report);
    struct beginnings *beginnings = begin_others(finder->report);
    const struct ms_site_row *sites = ms_report_sites(finder->report);
    size_t count = sites ? json_array_size(finder->report->sites) : 0, looked = 0;
    json_t *names = vendors(finder->report);
    /* A framework's segments are of one call site, which says nothing of when they came. */
    bool has_inner = ms_report_has_inner(finder->report);

    ms_findings_look_at_ooms(finder);
    look_at_growth(finder);
    look_at_streams(finder);
    ms_findings_look_at_contexts(finder);
    ms_findings_look_at_uses(finder);
    ms_findings_look_at_left(finder);
    ms_findings_look_at_host(finder);
    for (size_t i = 0; i < count; i++) {
        look_at_grown(finder, &sites[i]);
        look_at_temporary(finder, &sites[i], names);
        if (others && beginnings && !has_inner && ms_owners_is_library(sites[i].owner) &&
            looked++ < LIBRARY_SITES_MAX)
            look_at_library(finder, sites[i].json, others, beginnings);
    }
    free(others);
    free(beginnings);
    json_decref(names);
}

void ms_findings_look(struct ms_finder *finder)
{
    if (ms_report_is_inner(finder->report))
        look_at_phases(finder, ms_findings_look_at_tensors(finder));
    else
        look_at_all(finder);
    ms_finding_tell_noted(finder);
}
