/* pyframes.c - functions and lines for the Python frames of a report; see pyframes.h.
 *
 * Floor 4, command line only. Frames are resolved code object by code object, so that each table is read
 * once. */
#include "report/symbols/pyframes.h"

#include <stdlib.h>
#include <string.h>

#include "base/base64.h"
#include "report/symbols/pylines.h"

/* "3.12" as 0x30c; 0 for anything else. */
static unsigned version_of(const char *text)
{
    char *end;
    unsigned long minor;

    if (strncmp(text, "3.", 2) || text[2] < '0' || text[2] > '9')
        return 0;
    minor = strtoul(text + 2, &end, 10);
    return *end || minor > 255 ? 0 : 0x300 | (unsigned)minor;
}

struct order {
    json_int_t code, offset;
    size_t frame;
};

static int compare_order(const void *a, const void *b)
{
    const struct order *x = a, *y = b;

    if (x->code != y->code)
        return x->code < y->code ? -1 : 1;
    if (x->offset != y->offset)
        return x->offset < y->offset ? -1 : 1;
    return x->frame < y->frame ? -1 : x->frame > y->frame;
}

static bool lacks_name(const json_t *frame)
{
    return !strcmp(ms_report_text(frame, "kind"), "python") && !*ms_report_text(frame, "function") &&
           json_object_get(frame, "code");
}

static bool is_row(const json_t *code, const json_t *codes)
{
    return json_is_integer(code) && json_integer_value(code) >= 0 &&
           (uint64_t)json_integer_value(code) < json_array_size(codes);
}

/* -1 if it has not begun with its byte code: then it is at its first line. */
static json_int_t offset_of(const json_t *frame)
{
    json_t *offset = json_object_get(frame, "offset");

    return json_is_integer(offset) && json_integer_value(offset) >= 0 ? json_integer_value(offset) : -1;
}

/* The text that a frame takes over from its code under one name. True if there is one. */
static bool copy_text(json_t *frame, const json_t *code, const char *key)
{
    json_t *text = json_object_get(code, key);

    return json_is_string(text) && *json_string_value(text) && json_object_set(frame, key, text) == 0;
}

/* All frames of one code object, in the order of their offsets. Returns how many got a line. */
static size_t resolve_code(const struct ms_report *report, const json_t *code, const struct order *orders,
                           size_t count, size_t *resolved_p)
{
    struct ms_pylines lines;
    const char *text = ms_report_text(code, "lines");
    size_t bytes, i, found = 0;
    unsigned char *table = malloc(strlen(text) / 4 * 3 + 3);

    if (!table)
        return 0;
    bytes = ms_base64_decode(table, text);
    ms_pylines_begin(&lines, version_of(ms_report_text(code, "version")), table, bytes,
                     ms_report_int(code, "first_line"));
    for (i = 0; i < count; i++) {
        json_t *frame = json_array_get(report->frames, orders[i].frame);
        json_int_t line = orders[i].offset < 0 ? ms_report_int(code, "first_line")
                                               : ms_pylines_at(&lines, (uint64_t)orders[i].offset);

        *resolved_p += copy_text(frame, code, "function");
        if (copy_text(frame, code, "file") && line > 0 &&
            json_object_set_new(frame, "line", json_integer(line)) == 0)
            found++;
    }
    free(table);
    return found;
}

size_t ms_pyframes_resolve(struct ms_report *report, size_t *resolved_p, size_t *lines_p,
                           struct ms_pyframes_dangling *astray_p)
{
    json_t *codes = ms_report_array(report->root, "codes"), *frame;
    struct order *orders = calloc(json_array_size(report->frames) + 1, sizeof(*orders));
    size_t i, next, count = 0;

    *resolved_p = *lines_p = 0;
    *astray_p = (struct ms_pyframes_dangling){0, 0};
    json_array_foreach (report->frames, i, frame) {
        if (!lacks_name(frame))
            continue;
        if (!is_row(json_object_get(frame, "code"), codes) && !astray_p->count++)
            astray_p->first = i;
        else if (orders && is_row(json_object_get(frame, "code"), codes))
            orders[count++] = (struct order){ms_report_int(frame, "code"), offset_of(frame), i};
    }
    if (count)
        qsort(orders, count, sizeof(*orders), compare_order);
    for (i = 0; i < count; i = next) {
        json_int_t code = orders[i].code;

        for (next = i + 1; next < count && orders[next].code == code;)
            next++;
        *lines_p +=
            resolve_code(report, json_array_get(codes, (size_t)code), orders + i, next - i, resolved_p);
    }
    free(orders);
    return count + astray_p->count;
}
