/* head.c - see head.h.
 *
 * Floor 4. */
#include "html/head.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "html/job.h"
#include "report/analyse/leak_class.h"
#include "report/text/text.h"

#define EXACT_MAX 9007199254740991LL /* 2^53 - 1: larger integers are rounded by JavaScript */

enum { STACK_SHOWN = 64 };

/* A copy whose numbers a browser reads as they are. */
static json_t *exact(const json_t *value)
{
    const char *key;
    json_t *copy, *member;
    size_t i;
    char digits[32];

    if (json_is_object(value)) {
        copy = json_object();
        json_object_foreach ((json_t *)(uintptr_t)value, key, member)
            json_object_set_new(copy, key, exact(member));
        return copy;
    }
    if (json_is_array(value)) {
        copy = json_array();
        json_array_foreach (value, i, member)
            json_array_append_new(copy, exact(member));
        return copy;
    }
    if (!json_is_integer(value) ||
        (json_integer_value(value) <= EXACT_MAX && json_integer_value(value) >= -EXACT_MAX))
        return json_incref((json_t *)(uintptr_t)value);
    snprintf(digits, sizeof(digits), "%" JSON_INTEGER_FORMAT, json_integer_value(value));
    return json_string(digits);
}

/* The stack of an event as lines. */
static json_t *stack_text(const struct ms_report *report, json_int_t stack)
{
    char *text = NULL;
    size_t bytes;
    FILE *out = open_memstream(&text, &bytes);
    json_t *string = NULL;

    if (out)
        ms_text_stack(out, report, stack, "", STACK_SHOWN);
    if (out && fclose(out) == 0)
        string = json_string(text);
    free(text);
    return string;
}

static void add_stacks(json_t *rows, const struct ms_report *report)
{
    static const char *const keys[][2] = {{"stack", "stack_text"}, {"freed_stack", "freed_stack_text"}};
    json_t *row;
    size_t i;

    json_array_foreach (rows, i, row)
        for (size_t k = 0; k < MS_ARRAY_LEN(keys); k++)
            if (json_is_object(row) && json_is_integer(json_object_get(row, keys[k][0])))
                json_object_set_new(row, keys[k][1], stack_text(report, ms_report_int(row, keys[k][0])));
}

/* A file's name may be no UTF-8. */
static json_t *path_json(const char *path)
{
    json_t *name = json_string(path);

    return name ? name : json_string("?");
}

json_t *ms_html_head(const char *path, const struct ms_report *report)
{
    static const char *const keys[] = {"schema_version", "tool",     "run",      "config",   "devices",
                                       "memory",         "pools",    "apis",     "modules",  "owners",
                                       "phases",         "oom",      "findings", "coverage", "overhead",
                                       "diagnostics",    "balances", "contexts"};
    json_t *head = json_object(), *job = ms_html_job(report);

    for (size_t i = 0; i < MS_ARRAY_LEN(keys); i++)
        if (json_object_get(report->root, keys[i]))
            json_object_set_new(head, keys[i], exact(json_object_get(report->root, keys[i])));
    if (job)
        json_object_set_new(head, "job", exact(job));
    json_decref(job);
    add_stacks(json_object_get(head, "oom"), report);
    add_stacks(json_object_get(head, "contexts"), report);
    add_stacks(json_object_get(head, "findings"), report);
    json_object_set_new(head, "path", path_json(path));
    return head;
}

/* The most of any device: peaks of several were at different moments, and are not added up. */
static void add_most(json_t *line, const struct ms_report *report, const char *key,
                     json_int_t (*of)(const json_t *device))
{
    json_int_t most = 0;
    json_t *device, *number;
    size_t i;

    json_array_foreach (ms_report_array(report->root, "devices"), i, device)
        if (of(device) > most)
            most = of(device);
    number = json_integer(most);
    json_object_set_new(line, key, exact(number));
    json_decref(number);
}

static json_int_t peak_live(const json_t *device)
{
    return ms_report_int(device, "peak_live_bytes");
}

json_t *ms_html_headline(const json_t *head, const struct ms_report *report)
{
    json_t *line = json_object(), *leaked = json_integer(ms_report_leaked(report, NULL));
    json_t *rank = json_object_get(json_object_get(head, "run"), "rank");

    json_object_set(line, "path", json_object_get(head, "path"));
    if (rank)
        json_object_set(line, "rank", rank);
    add_most(line, report, "peak_live_bytes", peak_live);
    add_most(line, report, "peak_held_bytes", ms_report_reserved);
    json_object_set_new(line, "leaked_bytes", exact(leaked));
    json_decref(leaked);
    return line;
}
