/* check_job.c - what a job report says of each of its processes, for limits; see check.h.
 *
 * Floor 5. Of processes and their devices by the figures that ranks[] keeps of every one; of owners and
 * phases the process with most, which job.owners and job.phases name with the call site that is blamed; else
 * that is one of those that ranks[] has of that process. */
#include <stdlib.h>
#include <string.h>

#include "cli/check/check.h"
#include "cli/cli.h"

struct reading {
    const struct ms_report *report;
    const json_t *job;
    json_t *ranks, *sites;
    json_int_t
        *known; /* of each row of job.sites: the site of the report that is shown plus 1, or -1: none */
    struct ms_check_measures *measures;
};

bool ms_check_is_job(const struct ms_report *report)
{
    return json_is_object(json_object_get(report->root, "job"));
}

/* A limit must not hold because of names that the job report has left out. */
static int refuse_left_out(const char *path, const struct ms_report *report,
                           const struct ms_check_rules *rules)
{
    const json_t *job = json_object_get(report->root, "job");

    for (size_t i = 0; i < rules->limit_count; i++) {
        enum ms_check_of of = rules->limits[i].of;

        if (rules->limits[i].tensors) {
            ms_cli_error("%s: %s: a job report has no figures of tensors; check the reports that were merged",
                         path, rules->limits[i].text);
            return -1;
        }
        if (of == MS_CHECK_CLASS) {
            ms_cli_error(
                "%s: %s: a job report adds up all classes of leaks; check the reports that were merged", path,
                rules->limits[i].text);
            return -1;
        }
        const char *key = of == MS_CHECK_OWNER   ? "owners_left_out"
                          : of == MS_CHECK_PHASE ? "phases_left_out"
                                                 : "";

        if (ms_report_int(job, key) > 0) {
            ms_cli_error(
                "%s: %s: job.%s is not 0, so not every name is there; check the reports that were merged",
                path, rules->limits[i].text, key);
            return -1;
        }
    }
    return 0;
}

int ms_check_job_usable(const char *path, const struct ms_report *report, const struct ms_check_rules *rules)
{
    json_t *rank;
    size_t i;

    if (!ms_check_is_job(report))
        return 0;
    if (refuse_left_out(path, report, rules) < 0)
        return -1;
    json_array_foreach (ms_report_array(report->root, "ranks"), i, rank)
        if (!ms_report_array(rank, "devices")) {
            ms_cli_error("%s: an earlier memshim merged it, without what each process had on its devices; "
                         "merge the reports again, or check these",
                         path);
            return -1;
        }
    return 0;
}

char *ms_check_process(const struct ms_report *report, const struct ms_check_measure *measure)
{
    const json_t *rank = measure->process < 0 ? NULL
                                              : json_array_get(ms_report_array(report->root, "ranks"),
                                                               (size_t)measure->process);
    bool ranked = json_object_get(rank, "rank") != NULL;
    char *text = NULL;

    if (!rank)
        return strdup("");
    return asprintf(&text, " of %s %" JSON_INTEGER_FORMAT " on %s", ranked ? "rank" : "process",
                    ms_report_int(rank, ranked ? "rank" : "pid"), ms_report_text(rank, "host")) < 0
               ? NULL
               : text;
}

/* The call site of the report that is shown which is the same place, so that its stack is known; -1: none. */
static json_int_t shown_site(const struct reading *reading, size_t row)
{
    const json_t *common = json_array_get(reading->sites, row);
    json_int_t *known_p = &reading->known[row];
    json_t *site;
    size_t i;

    if (!*known_p) {
        *known_p = -1;
        json_array_foreach (reading->report->sites, i, site)
            if (*known_p < 0 && !strcmp(ms_report_text(site, "hash"), ms_report_text(common, "hash")) &&
                !strcmp(ms_report_text(site, "kind"), ms_report_text(common, "kind")))
                *known_p = ms_report_int(site, "id") + 1;
    }
    return *known_p < 0 ? -1 : *known_p - 1;
}

static void blame_site(const struct reading *reading, struct ms_check_measure *row, json_int_t site,
                       json_int_t bytes)
{
    row->job_site = site;
    row->site = shown_site(reading, (size_t)site);
    row->site_bytes = bytes;
}

/* The first of what a process held or leaked, that of an owner if one is given. */
static void check_job_blame(const struct reading *reading, struct ms_check_measure *row, const char *key,
                            const char *owner)
{
    const json_t *rank = json_array_get(reading->ranks, (size_t)row->process);
    json_t *part;
    size_t i;

    json_array_foreach (ms_report_array(rank, key), i, part) {
        json_int_t site = json_integer_value(json_array_get(part, 0));

        if (site < 0 || (size_t)site >= json_array_size(reading->sites) ||
            (owner && strcmp(owner, ms_report_text(json_array_get(reading->sites, (size_t)site), "owner"))))
            continue;
        blame_site(reading, row, site, json_integer_value(json_array_get(part, 1)));
        return;
    }
}

static struct ms_check_measure *check_job_add(const struct reading *reading, enum ms_check_figure figure,
                                              enum ms_check_of of, const char *name, json_int_t bytes,
                                              json_int_t process)
{
    struct ms_check_measure *row = ms_check_measure_add(reading->measures, figure, of, name, bytes);

    if (row)
        row->process = process;
    return row;
}

static int measure_device(const struct reading *reading, const json_t *figures, size_t process)
{
    const json_t *rank = json_array_get(reading->ranks, process);
    const json_t *device = json_array_get(ms_report_array(reading->job, "devices"),
                                          (size_t)json_integer_value(json_array_get(figures, 0)));
    json_int_t bytes[MS_CHECK_DEVICE_FIGURES];
    struct ms_check_measure *row;

    for (unsigned figure = 0; figure < MS_CHECK_DEVICE_FIGURES; figure++)
        bytes[figure] = json_integer_value(json_array_get(figures, figure + 1));
    for (unsigned figure = 0; figure < MS_CHECK_DEVICE_FIGURES; figure++) {
        row = check_job_add(reading, (enum ms_check_figure)figure, MS_CHECK_DEVICE,
                            ms_report_text(device, "device"), bytes[figure], (json_int_t)process);
        if (!row)
            return -1;
        row->whole =
            figure == MS_CHECK_FRAG ? bytes[MS_CHECK_RESERVED] : ms_report_int(device, "device_bytes");
        if (figure == MS_CHECK_LEAK && bytes[figure] == ms_report_int(rank, "leaked_bytes"))
            check_job_blame(reading, row, "leaked", NULL);
        else if (figure != MS_CHECK_LEAK && figure != MS_CHECK_GROWTH &&
                 bytes[MS_CHECK_PEAK] == ms_report_int(rank, "peak_bytes"))
            check_job_blame(reading, row, "held", NULL);
    }
    return 0;
}

static int measure_process(const struct reading *reading, const json_t *rank, size_t process)
{
    struct ms_check_measure *row = check_job_add(reading, MS_CHECK_LEAK, MS_CHECK_PROCESS, "",
                                                 ms_report_int(rank, "leaked_bytes"), (json_int_t)process);
    json_t *device;
    size_t i;

    if (!row)
        return -1;
    check_job_blame(reading, row, "leaked", NULL);
    if (!check_job_add(reading, MS_CHECK_GROWTH, MS_CHECK_PROCESS, "", ms_report_int(rank, "growth_bytes"),
                       (json_int_t)process))
        return -1;
    if (!check_job_add(reading, MS_CHECK_OOM, MS_CHECK_PROCESS, "", ms_report_int(rank, "ooms"),
                       (json_int_t)process))
        return -1;
    json_array_foreach (ms_report_array(rank, "devices"), i, device)
        if (measure_device(reading, device, process) < 0)
            return -1;
    return 0;
}

/* A figure of an owner or of a phase: the process that had most of it, and the call site that had most
 * there. A job report of an earlier memshim does not tell that one. */
static struct ms_check_measure *measure_most(const struct reading *reading, enum ms_check_figure figure,
                                             enum ms_check_of of, const json_t *json, const char *key)
{
    const json_t *spread = json_object_get(json, key);
    const char *name = ms_report_text(json, of == MS_CHECK_OWNER ? "owner" : "name");
    struct ms_check_measure *row = check_job_add(reading, figure, of, name, ms_report_int(spread, "max"),
                                                 ms_report_int(spread, "max_process"));

    if (!row)
        return NULL;
    row->processes = ms_report_int(json, "processes");
    if (json_object_get(spread, "site") && ms_report_int(spread, "site") >= 0 &&
        (size_t)ms_report_int(spread, "site") < json_array_size(reading->sites))
        blame_site(reading, row, ms_report_int(spread, "site"), ms_report_int(spread, "site_bytes"));
    return row;
}

static int measure_owner(const struct reading *reading, const json_t *json)
{
    const char *owner = ms_report_text(json, "owner");
    struct ms_check_measure *row;

    row = measure_most(reading, MS_CHECK_LEAK, MS_CHECK_OWNER, json, "leaked_bytes");
    if (!row)
        return -1;
    if (row->job_site < 0)
        check_job_blame(reading, row, "leaked", owner);
    if (!measure_most(reading, MS_CHECK_GROWTH, MS_CHECK_OWNER, json, "growth_bytes"))
        return -1;
    if (!ms_report_int(json, "device_bytes"))
        return 0;
    row = measure_most(reading, MS_CHECK_PEAK, MS_CHECK_OWNER, json, "at_peak_bytes");
    if (!row)
        return -1;
    row->whole = ms_report_int(json, "device_bytes");
    if (row->job_site < 0)
        check_job_blame(reading, row, "held", owner);
    return 0;
}

static int measure_phase(const struct reading *reading, const json_t *json)
{
    const enum ms_check_figure figures[] = {MS_CHECK_PEAK, MS_CHECK_GROWTH};
    const char *const keys[] = {"peak_bytes", "growth_bytes"};

    for (size_t i = 0; ms_report_int(json, "device_bytes") && i < 2; i++) {
        struct ms_check_measure *row = measure_most(reading, figures[i], MS_CHECK_PHASE, json, keys[i]);

        if (!row)
            return -1;
        row->whole = ms_report_int(json, "device_bytes");
    }
    return 0;
}

static int by_thing(const void *a, const void *b)
{
    const struct ms_check_measure *x = a, *y = b;
    int names;

    if (x->of != y->of)
        return x->of < y->of ? -1 : 1;
    names = x->name == y->name ? 0 : strcmp(x->name, y->name);
    if (names)
        return names;
    if (x->figure != y->figure)
        return x->figure < y->figure ? -1 : 1;
    if (x->process != y->process)
        return x->process < y->process ? -1 : 1;
    return x->whole < y->whole ? -1 : x->whole > y->whole;
}

int ms_check_measure_job(const struct ms_report *report, struct ms_check_measures *measures)
{
    const json_t *job = json_object_get(report->root, "job");
    struct reading reading = {.report = report,
                              .job = job,
                              .ranks = ms_report_array(report->root, "ranks"),
                              .sites = ms_report_array(job, "sites"),
                              .measures = measures};
    json_t *row;
    size_t i;
    int status;

    reading.known = calloc(json_array_size(reading.sites) + 1, sizeof(*reading.known));
    status = reading.known ? 0 : -1;
    json_array_foreach (reading.ranks, i, row)
        status = status ? status : measure_process(&reading, row, i);
    json_array_foreach (ms_report_array(job, "owners"), i, row)
        status = status ? status : measure_owner(&reading, row);
    json_array_foreach (ms_report_array(job, "phases"), i, row)
        status = status ? status : measure_phase(&reading, row);
    if (status == 0 && measures->count)
        qsort(measures->rows, measures->count, sizeof(*measures->rows), by_thing);
    free(reading.known);
    return status;
}
