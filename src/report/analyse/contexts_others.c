/* contexts_others.c - see contexts_others.h.
 *
 * Floor 4, command line only. */
#include "report/analyse/contexts_others.h"

#include <stdint.h>
#include <string.h>

static const json_t *contexts_others_device_of(const struct ms_report *report, const json_t *row)
{
    size_t i = ms_report_device_of(report, row);

    return i == SIZE_MAX ? NULL : json_array_get(ms_report_array(report->root, "devices"), i);
}

static bool is_context(const json_t *row)
{
    return json_is_object(row) && !strcmp(ms_report_text(row, "kind"), "context") &&
           ms_report_int(row, "total_bytes") > 0;
}

static void note_least(json_t *least, const char *model, json_int_t bytes)
{
    json_int_t known = ms_report_int(least, model);

    if (*model && bytes > 0 && (!known || bytes < known))
        json_object_set_new(least, model, json_integer(bytes));
}

void ms_contexts_least(json_t *least, const struct ms_report *report)
{
    json_t *of_job = json_object_get(json_object_get(report->root, "job"), "contexts_least"), *row;
    const char *model;
    size_t i;

    json_array_foreach (ms_report_array(report->root, "contexts"), i, row) {
        if (is_context(row))
            note_least(least, ms_report_text(contexts_others_device_of(report, row), "name"),
                       ms_report_int(row, "total_bytes"));
    }
    json_object_foreach (of_job, model, row)
        note_least(least, model, json_integer_value(row));
}

/* The bytes of a row of balances[] that are another process's go from one term to the other. */
static void contexts_others_move(json_t *balance, json_int_t bytes)
{
    json_int_t contexts = ms_report_int(balance, "contexts"),
               inferred = ms_report_int(balance, "contexts_inferred");

    bytes = bytes < contexts ? bytes : contexts;
    json_object_set_new(balance, "contexts", json_integer(contexts - bytes));
    json_object_set_new(balance, "untracked",
                        json_integer(ms_report_sum(ms_report_int(balance, "untracked"), bytes)));
    if (json_object_get(balance, "contexts_inferred"))
        json_object_set_new(balance, "contexts_inferred",
                            json_integer(inferred > bytes ? inferred - bytes : 0));
}

static bool was_there(const json_t *context, json_int_t t_ns)
{
    return ms_report_int(context, "t_ns") <= t_ns &&
           (!json_object_get(context, "ended_ns") || ms_report_int(context, "ended_ns") > t_ns);
}

/* Of the report's end what the context has now counts, else what it took. */
static void move_all(const struct ms_report *report, const json_t *context, json_int_t beyond_now,
                     json_int_t beyond)
{
    size_t device = ms_report_device_of(report, context), i;
    json_t *balance;

    json_array_foreach (ms_report_array(report->root, "balances"), i, balance) {
        bool at_end = !strcmp(ms_report_text(balance, "moment"), "end");

        if (json_is_object(balance) && ms_report_device_of(report, balance) == device &&
            (at_end || was_there(context, ms_report_int(balance, "t_ns"))))
            contexts_others_move(balance, at_end ? beyond_now : beyond);
    }
}

void ms_contexts_annotate(const struct ms_report *report, const json_t *least)
{
    json_t *row;
    size_t i;

    json_array_foreach (ms_report_array(report->root, "contexts"), i, row) {
        json_int_t most =
                       ms_report_int(least, ms_report_text(contexts_others_device_of(report, row), "name")),
                   now = ms_report_int(row, "bytes"), all = ms_report_int(row, "total_bytes");

        if (!is_context(row) || strcmp(ms_report_text(row, "confidence"), "inferred") != 0 || most <= 0 ||
            all <= most)
            continue;
        json_object_set_new(row, "total_bytes", json_integer(most));
        json_object_set_new(row, "bytes", json_integer(now < most ? now : most));
        json_object_set_new(row, "others_bytes",
                            json_integer(ms_report_sum(ms_report_int(row, "others_bytes"), all - most)));
        move_all(report, row, now > most ? now - most : 0, all - most);
    }
}
