/* inquiry.c - see inquiry.h.
 *
 * Floor 4, command line only. */
#include "report/analyse/inquiry.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void ms_inquiry_complain(struct ms_inquiry *inquiry, const char *path, const char *format, ...)
{
    char text[512];
    va_list args;

    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    inquiry->complaints++;
    inquiry->complain(inquiry->arg, path, text);
}

const char *ms_inquiry_at(const struct ms_inquiry *inquiry, const char *name, size_t index, const char *key)
{
    static char path[128];

    if (inquiry->inner && !strcmp(name, "phases"))
        snprintf(path, sizeof(path), "$.phases[%zu].inner_devices.%s", index, key);
    else
        snprintf(path, sizeof(path), "$.%s%s[%zu].%s", inquiry->inner ? "inner_" : "", name, index, key);
    return path;
}

void ms_expect_equal(struct ms_inquiry *inquiry, const char *path, json_int_t value, const char *what,
                     json_int_t other)
{
    if (value != other)
        ms_inquiry_complain(inquiry, path, "is %" JSON_INTEGER_FORMAT ", but %s is %" JSON_INTEGER_FORMAT,
                            value, what, other);
}

void ms_expect_at_most(struct ms_inquiry *inquiry, const char *path, json_int_t value, const char *what,
                       json_int_t bound)
{
    if (value > bound)
        ms_inquiry_complain(inquiry, path, "is %" JSON_INTEGER_FORMAT ", more than %s, %" JSON_INTEGER_FORMAT,
                            value, what, bound);
}

/* True if a row has an integer under `key`, or nothing: a report from before the key was told lacks it. */
static bool is_figure(struct ms_inquiry *inquiry, const char *list, size_t i, const json_t *row,
                      const char *key)
{
    const json_t *value = json_object_get(row, key);

    if (!value || json_is_integer(value))
        return true;
    ms_inquiry_complain(inquiry, ms_inquiry_at(inquiry, list, i, key), "is no integer");
    return false;
}

void ms_figure_equal(struct ms_inquiry *inquiry, const char *list, size_t i, const json_t *row,
                     const char *key, const char *what, json_int_t other)
{
    if (is_figure(inquiry, list, i, row, key))
        ms_expect_equal(inquiry, ms_inquiry_at(inquiry, list, i, key), ms_report_int(row, key), what, other);
}

void ms_figure_at_most(struct ms_inquiry *inquiry, const char *list, size_t i, const json_t *row,
                       const char *key, const char *what, json_int_t bound)
{
    if (is_figure(inquiry, list, i, row, key))
        ms_expect_at_most(inquiry, ms_inquiry_at(inquiry, list, i, key), ms_report_int(row, key), what,
                          bound);
}

bool ms_inquiry_adds_up(const struct ms_report *report)
{
    return !ms_report_int(json_object_get(report->root, "overhead"), "dropped_events") &&
           ms_report_bool(json_object_get(report->root, "run"), "complete");
}
