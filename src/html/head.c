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
#include "report/findings/findings.h"
#include "report/analyse/leak_class.h"
#include "report/read/layer.h"
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

/* Rows of which the sites are of the other layer have their stacks, or the lines of those, as text. */
static void tell_finding(json_t *row, const struct ms_report *report)
{
    bool is_inner = ms_report_is_inner(report), of_inner = json_object_get(row, "inner_site") != NULL;
    const json_t *site;

    if (!of_inner && !json_object_get(row, "site"))
        return;
    site = ms_report_layer_site(report, of_inner, ms_report_int(row, of_inner ? "inner_site" : "site"));
    if (is_inner == of_inner)
        json_object_set_new(row, "site", json_integer(ms_report_int(site, "id")));
    else
        json_object_del(row, "site");
    if (site && is_inner != of_inner && !json_object_get(row, "stack"))
        json_object_set_new(row, "stack_text", stack_text(report, ms_report_int(site, "stack")));
}

static void tell_oom(json_t *oom, const struct ms_report *report)
{
    json_t *held;
    size_t i;

    if (ms_report_oom_is_inner(oom) == ms_report_is_inner(report))
        return;
    json_object_del(oom, "sites");
    json_array_foreach (ms_report_array(oom, "top_sites"), i, held) {
        const json_t *site = ms_report_oom_site(report, oom, held);
        char *line = site ? ms_finding_line(report, site, "?") : NULL;

        json_object_set_new(held, "line", json_string(line ? line : "?"));
        free(line);
    }
}

/* Findings, and times without memory, are told of both layers in either of them. */
static void tell_layers(json_t *head, const struct ms_report *report)
{
    json_t *ooms = ms_report_ooms(report), *row;
    size_t i;

    if (json_object_get(report->root, "inner_oom"))
        json_object_set_new(head, "oom", exact(ooms));
    json_decref(ooms);
    json_array_foreach (ms_report_array(head, "oom"), i, row)
        tell_oom(row, report);
    json_array_foreach (ms_report_array(head, "findings"), i, row)
        tell_finding(row, report);
}

/* A file's name may be no UTF-8. */
static json_t *path_json(const char *path)
{
    json_t *name = json_string(path);

    return name ? name : json_string("?");
}

/* Which layer it is, and whose. */
static void put_layer(json_t *head, const struct ms_report *report)
{
    char *names = NULL;
    size_t bytes;
    FILE *out = open_memstream(&names, &bytes);

    tell_layers(head, report);
    json_object_set_new(head, "layer", json_string(ms_report_is_inner(report) ? "tensors" : "blocks"));
    if (out)
        ms_report_put_heaps(out, report);
    if (out && fclose(out) == 0)
        json_object_set_new(head, "heaps", json_string(names));
    free(names);
}

json_t *ms_html_head(const char *path, const struct ms_report *report)
{
    static const char *const keys[] = {"schema_version", "tool",     "run",      "config",   "devices",
                                       "memory",         "pools",    "apis",     "modules",  "owners",
                                       "phases",         "oom",      "findings", "coverage", "overhead",
                                       "diagnostics",    "balances", "contexts", "what_if"};
    json_t *head = json_object(), *job = ms_html_job(report);

    for (size_t i = 0; i < MS_ARRAY_LEN(keys); i++)
        if (json_object_get(report->root, keys[i]))
            json_object_set_new(head, keys[i], exact(json_object_get(report->root, keys[i])));
    if (job)
        json_object_set_new(head, "job", exact(job));
    json_decref(job);
    if (ms_report_has_inner(report))
        put_layer(head, report);
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
    if (json_object_get(head, "layer"))
        json_object_set(line, "layer", json_object_get(head, "layer"));
    add_most(line, report, "peak_live_bytes", peak_live);
    add_most(line, report, "peak_held_bytes", ms_report_reserved);
    json_object_set_new(line, "leaked_bytes", exact(leaked));
    json_decref(leaked);
    return line;
}
