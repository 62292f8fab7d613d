/* read.c - a report read back from its file; see read.h.
 *
 * Floor 4, command line only. */
#include "report/read.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define SCHEMA_MAJOR 1

json_int_t ms_report_int(const json_t *object, const char *key)
{
    return json_integer_value(json_object_get(object, key));
}

const char *ms_report_text(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));

    return text ? text : "";
}

bool ms_report_bool(const json_t *object, const char *key)
{
    return json_is_true(json_object_get(object, key));
}

json_t *ms_report_array(const json_t *object, const char *key)
{
    json_t *array = json_object_get(object, key);

    return json_is_array(array) ? array : NULL;
}

json_int_t ms_report_sum(json_int_t a, json_int_t b)
{
    json_int_t sum;

    if (__builtin_add_overflow(a, b, &sum))
        return a < 0 ? LLONG_MIN : LLONG_MAX;
    return sum;
}

/* Ids are positions in every report that memshim writes; a file put together by hand may order its rows
 * otherwise. */
static json_t *row_by_id(json_t *rows, json_int_t id)
{
    json_t *row = id < 0 ? NULL : json_array_get(rows, (size_t)id);
    size_t i;

    if (row && ms_report_int(row, "id") == id)
        return row;
    json_array_foreach (rows, i, row) {
        json_t *own = json_object_get(row, "id");

        if (json_is_integer(own) && json_integer_value(own) == id)
            return row;
    }
    return NULL;
}

json_t *ms_report_site(const struct ms_report *report, json_int_t id)
{
    return row_by_id(report->sites, id);
}

json_t *ms_report_module(const struct ms_report *report, json_int_t id)
{
    return row_by_id(report->modules, id);
}

size_t ms_report_stack(const struct ms_report *report, json_int_t stack, json_t **frames, size_t max)
{
    size_t count = 0;

    while (stack > 0 && count < max) {
        json_t *node = json_array_get(report->stacks, (size_t)stack);
        json_t *frame = json_array_get(node, 1);
        json_t *row = json_is_integer(frame) && json_integer_value(frame) >= 0
                          ? json_array_get(report->frames, (size_t)json_integer_value(frame))
                          : NULL;

        if (!row)
            break;
        frames[count++] = row;
        stack = json_integer_value(json_array_get(node, 0));
    }
    return count;
}

const char *ms_report_device_api(const json_t *row)
{
    const char *api = ms_report_text(row, "device_api");

    return *api ? api : "cuda";
}

const char *ms_report_device_prefix(const json_t *row)
{
    const char *api = ms_report_device_api(row);

    if (!strcmp(api, "hip"))
        return "hip ";
    return !strcmp(api, "acl") ? "acl " : "";
}

bool ms_report_is_on(const json_t *row, const json_t *device)
{
    const char *api = ms_report_text(device, "api");

    return ms_report_int(row, "device") == ms_report_int(device, "index") &&
           !strcmp(ms_report_device_api(row), *api ? api : "cuda");
}

json_int_t ms_report_leaked(const struct ms_report *report, const json_t *device)
{
    json_t *leaks = ms_report_array(report->root, "leaks");
    json_int_t bytes = 0;
    json_t *leak;
    size_t i;

    json_array_foreach (leaks, i, leak) {
        json_t *site = ms_report_site(report, ms_report_int(leak, "site"));

        if (strcmp(ms_report_text(leak, "class"), "suppressed") &&
            (!device || ms_report_is_on(site, device)))
            bytes = ms_report_sum(bytes, ms_report_int(leak, "bytes"));
    }
    return bytes;
}

static int check_version(const json_t *root, const char *path, char *error, size_t error_bytes)
{
    const char *version = ms_report_text(root, "schema_version");
    char *end;
    long major = strtol(version, &end, 10);

    if (!json_is_object(root) || end == version || *end != '.') {
        snprintf(error, error_bytes, "%s: no memshim report: it has no schema_version", path);
        return -1;
    }
    if (major != SCHEMA_MAJOR) {
        snprintf(error, error_bytes, "%s: report of schema version %.16s; this memshim reads version %d",
                 path, version, SCHEMA_MAJOR);
        return -1;
    }
    return 0;
}

/* jansson's words end in "near '...'" with text from the file; control characters in it must not reach a
 * terminal. */
static void make_printable(char *text)
{
    for (; *text; text++)
        if ((unsigned char)*text < ' ' || *text == 0x7f)
            *text = '?';
}

static FILE *open_input(const char *path, char *error, size_t error_bytes)
{
    struct stat st;
    FILE *file;

    if (!strcmp(path, "-"))
        return stdin;
    file = fopen(path, "re");
    if (file && fstat(fileno(file), &st) == 0 && S_ISDIR(st.st_mode)) {
        fclose(file);
        file = NULL;
        errno = EISDIR;
    }
    if (!file)
        snprintf(error, error_bytes, "cannot read %s: %s", path, strerror(errno));
    return file;
}

int ms_report_read(const char *path, struct ms_report *report_p, char *error, size_t error_bytes)
{
    FILE *file = open_input(path, error, error_bytes);
    json_error_t fault;
    json_t *root;

    if (!file)
        return -1;
    root = json_loadf(file, JSON_REJECT_DUPLICATES, &fault);
    if (file != stdin)
        fclose(file);
    if (!root) {
        snprintf(error, error_bytes, "%s: no JSON: line %d, column %d: %s", path, fault.line, fault.column,
                 fault.text);
        make_printable(error);
        return -1;
    }
    if (check_version(root, path, error, error_bytes) < 0) {
        make_printable(error);
        json_decref(root);
        return -1;
    }
    *report_p = (struct ms_report){
        .root = root,
        .sites = ms_report_array(root, "sites"),
        .stacks = ms_report_array(root, "stacks"),
        .frames = ms_report_array(root, "frames"),
        .modules = ms_report_array(root, "modules"),
    };
    return 0;
}

void ms_report_close(struct ms_report *report)
{
    json_decref(report->root);
    memset(report, 0, sizeof(*report));
}
