/* job.c - see job.h.
 *
 * Floor 4. Of 100,000 processes, and of a thousand owners and phases, the page has what is shown of them:
 * processes by name, and of each list the rows of which some process had most. */
#include "html/job.h"

#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"

enum { SHOWN = 20 };

/* "rank 37 on node0004" */
static json_t *process_name(const struct ms_report *report, json_int_t row)
{
    const json_t *rank = row < 0 ? NULL : json_array_get(ms_report_array(report->root, "ranks"), (size_t)row);
    bool ranked = json_object_get(rank, "rank") != NULL;

    return rank ? json_sprintf("%s %" JSON_INTEGER_FORMAT " on %s", ranked ? "rank" : "process",
                               ms_report_int(rank, ranked ? "rank" : "pid"), ms_report_text(rank, "host"))
                : json_string("");
}

/* A line of a table: the least, the median and the most of something, and who had that. */
static json_t *spread_row(const struct ms_report *report, const char *name, const json_t *spread)
{
    static const char *const keys[] = {"min", "median", "max"};
    json_t *row = json_object();

    json_object_set_new(row, "name", json_string(name));
    for (size_t i = 0; i < MS_ARRAY_LEN(keys); i++)
        json_object_set_new(row, keys[i], json_integer(ms_report_int(spread, keys[i])));
    json_object_set_new(row, "who", process_name(report, ms_report_int(spread, "max_process")));
    return row;
}

static const struct {
    const char *key, *name;
} figures[] = {{"peak_bytes", "peak"},
               {"live_bytes", "allocated at the end"},
               {"leaked_bytes", "leaked"},
               {"reserved_bytes", "reserved at most"},
               {"growth_bytes", "grew by"}};

static const char *figure_name(const char *key)
{
    for (size_t i = 0; i < MS_ARRAY_LEN(figures); i++)
        if (!strcmp(figures[i].key, key))
            return figures[i].name;
    return key;
}

static json_t *figure_rows(const struct ms_report *report, const json_t *job)
{
    const json_t *told = json_object_get(job, "figures");
    json_t *rows = json_array();

    for (size_t i = 0; i < MS_ARRAY_LEN(figures); i++)
        if (json_object_get(told, figures[i].key))
            json_array_append_new(rows,
                                  spread_row(report, figures[i].name, json_object_get(told, figures[i].key)));
    return rows;
}

struct ranked {
    json_int_t most;
    size_t at;
};

static int by_most(const void *a, const void *b)
{
    const struct ranked *x = a, *y = b;

    if (x->most != y->most)
        return x->most > y->most ? -1 : 1;
    return x->at < y->at ? -1 : x->at > y->at;
}

/* Of owners, or phases, those with most in any process. */
static json_t *named_rows(const struct ms_report *report, const json_t *list, const char *name,
                          const char *weight)
{
    size_t count = json_array_size(list), i;
    struct ranked *order = calloc(count + 1, sizeof(*order));
    json_t *rows = json_array(), *row;

    json_array_foreach (order ? list : NULL, i, row)
        order[i] = (struct ranked){ms_report_int(json_object_get(row, weight), "max"), i};
    if (order && count)
        qsort(order, count, sizeof(*order), by_most);
    for (i = 0; order && i < count && i < SHOWN; i++) {
        row = json_array_get(list, order[i].at);
        json_array_append_new(rows,
                              spread_row(report, ms_report_text(row, name), json_object_get(row, weight)));
    }
    free(order);
    return rows;
}

static json_t *outlier_rows(const struct ms_report *report, const json_t *job)
{
    json_t *rows = json_array(), *outlier;
    size_t i;

    json_array_foreach (ms_report_array(job, "outliers"), i, outlier) {
        const json_t *site =
            json_object_get(outlier, "site")
                ? json_array_get(ms_report_array(job, "sites"), (size_t)ms_report_int(outlier, "site"))
                : NULL;
        json_t *row = json_object();

        if (i == SHOWN) {
            json_decref(row);
            break;
        }
        json_object_set_new(row, "who", process_name(report, ms_report_int(outlier, "process")));
        json_object_set_new(row, "figure", json_string(figure_name(ms_report_text(outlier, "figure"))));
        json_object_set_new(row, "value", json_integer(ms_report_int(outlier, "value")));
        json_object_set_new(row, "median", json_integer(ms_report_int(outlier, "median")));
        json_object_set_new(row, "site", json_string(ms_report_text(site, "at")));
        json_array_append_new(rows, row);
    }
    return rows;
}

json_t *ms_html_job(const struct ms_report *report)
{
    const json_t *job = json_object_get(report->root, "job");
    const json_t *owners = ms_report_array(job, "owners"), *phases = ms_report_array(job, "phases");
    json_t *told = json_is_object(job) ? json_object() : NULL;

    if (!told)
        return NULL;
    json_object_set_new(told, "processes", json_integer(ms_report_int(job, "processes")));
    json_object_set_new(told, "shown", process_name(report, ms_report_int(job, "shown")));
    json_object_set_new(told, "figures", figure_rows(report, job));
    json_object_set_new(told, "owners", named_rows(report, owners, "owner", "at_peak_bytes"));
    json_object_set_new(told, "owners_found", json_integer((json_int_t)json_array_size(owners)));
    json_object_set_new(told, "phases", named_rows(report, phases, "name", "peak_bytes"));
    json_object_set_new(told, "phases_found", json_integer((json_int_t)json_array_size(phases)));
    json_object_set_new(told, "outliers", outlier_rows(report, job));
    json_object_set_new(told, "outliers_found", json_integer(ms_report_int(job, "outliers_found")));
    return told;
}
