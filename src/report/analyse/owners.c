/* owners.c - whose each byte is; see owners.h.
 *
 * Floor 4, command line only. The innermost frame of a stack that is neither a runtime's nor mere machinery
 * tells: by the rows of fold.def, which know frameworks and libraries by their names, and else by where its
 * file lies. */
#include "report/analyse/owners.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/files.h"
#include "base/compiler.h"
#include "report/analyse/categories.h"
#include "report/analyse/fold.h"
#include "report/analyse/owners_nccl.h"
#include "report/read/layer.h"
#include "report/read/sites.h"

/* Whose modules pass requests on, and ask for nothing themselves. */
static bool is_runtime(const char *owner)
{
    static const char *const runtimes[] = {"memshim", "cuda_runtime", "cuda_driver", "libc", "kernel"};

    for (size_t i = 0; i < MS_ARRAY_LEN(runtimes); i++) {
        if (!strcmp(owner, runtimes[i]))
            return true;
    }
    return false;
}

bool ms_owners_is_library(const char *owner)
{
    static const char *const libraries[] = {"cuBLAS",   "cuDNN",   "cuFFT",  "cuRAND", "cuSOLVER",
                                            "cuSPARSE", "rocBLAS", "MIOpen", "NCCL"};

    for (size_t i = 0; i < MS_ARRAY_LEN(libraries); i++) {
        if (!strcmp(libraries[i], owner))
            return true;
    }
    return false;
}

/* No file has a longer name; nobody reads one. */
#define NAME_BYTES_MAX 255

static char *owners_name_of(const char *start, size_t length)
{
    return length && length <= NAME_BYTES_MAX ? strndup(start, length) : NULL;
}

/* The name of a file before the first dot: "libmpi" of libmpi.so.40, "_fast" of _fast.cpython-311.so. */
static char *stem(const char *name)
{
    return owners_name_of(name, strcspn(name, "."));
}

/* The package of which a file in site-packages/ is a part; NULL if it lies in none. */
static char *package(const char *path)
{
    const char *part = strstr(path, "-packages/");
    size_t length;

    if (!part)
        return NULL;
    part += strlen("-packages/");
    length = strcspn(part, "/");
    return part[length] ? owners_name_of(part, length) : stem(part);
}

static char *owner_by_module(const struct ms_report *report, const json_t *frame)
{
    const json_t *id = json_object_get(frame, "module");
    const json_t *module = json_is_integer(id) ? ms_report_module(report, json_integer_value(id)) : NULL;
    const char *path = ms_report_text(module, "path"), *owner = ms_report_text(module, "owner");
    char *name;

    if (!module || is_runtime(owner) || strstr(path, "/lib-dynload/"))
        return NULL;
    if (!strcmp(owner, "nccl"))
        return strdup("NCCL");
    name = package(path);
    if (name)
        return name;
    if (!strcmp(owner, "python_extension"))
        return stem(ms_file_name(path));
    return !strcmp(owner, "program") || ms_fold_is_own(report, frame) ? strdup("program")
                                                                      : stem(ms_file_name(path));
}

static char *owner_by_frame(const struct ms_report *report, const json_t *frame)
{
    const char *kind = ms_report_text(frame, "kind"), *known;

    if (!strcmp(kind, "mark"))
        return NULL;
    known = ms_fold_whose(report, frame, true);
    if (known)
        return *known ? strdup(known) : NULL;
    if (strcmp(kind, "python"))
        return owner_by_module(report, frame);
    return ms_fold_is_own(report, frame) ? strdup("program") : package(ms_report_text(frame, "file"));
}

/* The owner that each row of frames[] tells: NULL before it was looked at, "" for a frame that tells
 * nothing. */
struct pass {
    struct ms_report *report;
    char **known;
};

static const char *owner_of_stack(const struct pass *pass, json_int_t stack)
{
    json_t *frame;
    size_t row;

    for (size_t depth = 0;
         depth < MS_REPORT_DEPTH_MAX && (frame = ms_report_stack_next(pass->report, &stack, &row)); depth++) {
        if (!pass->known[row])
            pass->known[row] = owner_by_frame(pass->report, frame);
        if (!pass->known[row])
            pass->known[row] = strdup("");
        if (pass->known[row] && *pass->known[row])
            return pass->known[row];
    }
    return "unknown";
}

/* A row of owners[]: the memory of one owner that is alike and on one device. */
struct owner_row {
    const char *owner, *memory;
    const struct ms_site_row *site; /* the first of them */
    json_int_t at_peak_bytes, live_bytes, live_count, total_bytes, total_count, sites;
    json_t *parts; /* of NCCL's, by entry point and communicator; NULL of the others */
};

struct owner_rows {
    struct owner_row *list;
    size_t count, room;
    json_t *index; /* places in the list, by what makes a row */
    size_t latest;
};

static const char *memory_of(const struct ms_site_row *site)
{
    return site->counts ? "device" : site->kind;
}

static const char *owners_api_of(const struct ms_site_row *site)
{
    return *site->device_api ? site->device_api : "cuda";
}

static bool is_of(const struct owner_row *row, const struct ms_site_row *site, const char *owner)
{
    return row->site->device == site->device && !strcmp(row->owner, owner) &&
           !strcmp(row->memory, memory_of(site)) && !strcmp(owners_api_of(row->site), owners_api_of(site));
}

static struct owner_row *owners_new_row(struct owner_rows *rows, const struct ms_site_row *site,
                                        const char *owner)
{
    if (rows->count == rows->room) {
        size_t room = rows->room ? 2 * rows->room : 64;
        struct owner_row *list = realloc(rows->list, room * sizeof(*list));

        if (!list)
            return NULL;
        rows->list = list;
        rows->room = room;
    }
    rows->list[rows->count] = (struct owner_row){.owner = owner, .memory = memory_of(site), .site = site};
    return &rows->list[rows->count++];
}

/* The row of an owner, for the memory that a site has; new if there is none. NULL without memory. */
static struct owner_row *owners_row_of(struct owner_rows *rows, const struct ms_site_row *site,
                                       const char *owner)
{
    char key[2 * NAME_BYTES_MAX];
    struct owner_row *row;
    const json_t *place;

    if (rows->count && is_of(&rows->list[rows->latest], site, owner))
        return &rows->list[rows->latest];
    snprintf(key, sizeof(key), "%s %s %" JSON_INTEGER_FORMAT " %s", memory_of(site), owners_api_of(site),
             site->device, owner);
    place = json_object_get(rows->index, key);
    row = place ? &rows->list[json_integer_value(place)] : owners_new_row(rows, site, owner);
    if (!row)
        return NULL;
    rows->latest = (size_t)(row - rows->list);
    if (!place)
        json_object_set_new(rows->index, key, json_integer((json_int_t)rows->latest));
    return row;
}

static int compare_rows(const void *a, const void *b)
{
    static const char *const keys[] = {"at_peak_bytes", "live_bytes", "total_bytes"};
    const json_t *x = *(json_t *const *)a, *y = *(json_t *const *)b;
    int order = strcmp(ms_report_text(x, "memory"), ms_report_text(y, "memory"));

    for (size_t i = 0; i < MS_ARRAY_LEN(keys) && !order; i++) {
        json_int_t left = ms_report_int(x, keys[i]), right = ms_report_int(y, keys[i]);

        order = left == right ? 0 : left > right ? -1 : 1;
    }
    return order ? order : strcmp(ms_report_text(x, "owner"), ms_report_text(y, "owner"));
}

/* The rows in the order of `compare`. */
static json_t *sorted(json_t *rows, int (*compare)(const void *a, const void *b))
{
    size_t count = json_array_size(rows), i;
    json_t **all = calloc(count + 1, sizeof(*all)), *row, *result = json_array();

    json_array_foreach (rows, i, row) {
        if (all)
            all[i] = row;
    }
    if (all)
        qsort(all, count, sizeof(*all), compare);
    for (i = 0; i < count && all; i++)
        json_array_append(result, all[i]);
    free(all);
    json_decref(rows);
    return result;
}

static void owners_add_site(const struct ms_report *report, struct owner_row *row,
                            const struct ms_site_row *site)
{
    row->at_peak_bytes = ms_report_sum(row->at_peak_bytes, site->at_peak_bytes);
    row->live_bytes = ms_report_sum(row->live_bytes, site->live_bytes);
    row->live_count = ms_report_sum(row->live_count, site->live_count);
    row->total_bytes = ms_report_sum(row->total_bytes, site->total_bytes);
    row->total_count = ms_report_sum(row->total_count, site->total_count);
    row->sites++;
    if (strcmp(row->owner, "NCCL") != 0)
        return;
    if (!row->parts)
        row->parts = json_object();
    ms_nccl_add(report, site, row->parts);
}

static int compare_parts(const void *a, const void *b)
{
    const json_t *x = *(json_t *const *)a, *y = *(json_t *const *)b;
    int order = compare_rows(a, b);

    order = order ? order : strcmp(ms_report_text(x, "entry"), ms_report_text(y, "entry"));
    return order ? order : strcmp(ms_report_text(x, "communicator"), ms_report_text(y, "communicator"));
}

/* In the order of their bytes at the peak, as the owners. The object is taken over. */
static json_t *sorted_parts(json_t *parts)
{
    json_t *rows = json_array(), *part;
    const char *key;

    json_object_foreach (parts, key, part)
        json_array_append(rows, part);
    json_decref(parts);
    return sorted(rows, compare_parts);
}

static json_t *owners_row_json(const struct owner_row *row)
{
    json_t *json = json_pack("{s:s, s:s}", "owner", row->owner, "memory", row->memory);

    if (row->site->has_device)
        json_object_set_new(json, "device", json_integer(row->site->device));
    if (json_is_string(json_object_get(row->site->json, "device_api")))
        json_object_set(json, "device_api", json_object_get(row->site->json, "device_api"));
    json_object_set_new(json, "at_peak_bytes", json_integer(row->at_peak_bytes));
    json_object_set_new(json, "live_bytes", json_integer(row->live_bytes));
    json_object_set_new(json, "live_count", json_integer(row->live_count));
    json_object_set_new(json, "total_bytes", json_integer(row->total_bytes));
    json_object_set_new(json, "total_count", json_integer(row->total_count));
    json_object_set_new(json, "sites", json_integer(row->sites));
    if (row->parts)
        json_object_set_new(json, "parts", sorted_parts(row->parts));
    return json;
}

/* The value of a name: most sites are of few owners. */
static json_t *owner_text(json_t *texts, const char *owner)
{
    json_t *text = json_object_get(texts, owner);

    if (!text && json_object_set_new(texts, owner, json_string(owner)) == 0)
        text = json_object_get(texts, owner);
    return json_incref(text);
}

static void tell_sites(const struct pass *pass, json_t *told)
{
    struct owner_rows rows = {.index = json_object()};
    const struct ms_site_row *sites = ms_report_sites(pass->report);
    size_t count = sites ? json_array_size(pass->report->sites) : 0;
    json_t *texts = json_object();
    unsigned char *categories =
        ms_report_is_inner(pass->report) ? ms_categories_open(pass->report) : NULL; /* of tensors alone */

    for (size_t i = 0; i < count; i++) {
        const char *category = ms_category_of(pass->report, categories, sites[i].stack);
        const char *owner = !json_is_object(sites[i].json) ? NULL
                            : category                     ? category
                            : ms_nccl_takes(&sites[i])     ? "NCCL"
                                                           : owner_of_stack(pass, sites[i].stack);
        struct owner_row *row;
        json_t *text = owner ? owner_text(texts, owner) : NULL;

        if (!text)
            continue;
        row = owners_row_of(&rows, &sites[i], owner);
        if (row)
            owners_add_site(pass->report, row, &sites[i]);
        ms_report_site_owned(pass->report, i, text);
    }
    for (size_t i = 0; i < rows.count; i++)
        json_array_append_new(told, owners_row_json(&rows.list[i]));
    free(categories);
    json_decref(rows.index);
    json_decref(texts);
    free(rows.list);
}

/* Adds to a figure in a row of JSON. */
static void owners_add(json_t *row, const char *key, json_int_t more)
{
    json_object_set_new(row, key, json_integer(ms_report_sum(ms_report_int(row, key), more)));
}

static int compare_bytes(const void *a, const void *b)
{
    const json_t *x = *(json_t *const *)a, *y = *(json_t *const *)b;
    json_int_t left = ms_report_int(x, "bytes"), right = ms_report_int(y, "bytes");

    return left == right ? strcmp(ms_report_text(x, "owner"), ms_report_text(y, "owner"))
                         : (left > right ? -1 : 1);
}

/* The bytes that the sites held when there was no memory, added up by owner likewise. */
static json_t *owners_then(const struct ms_report *report, const json_t *oom)
{
    json_t *index = json_object(), *held, *row, *rows = json_array();
    size_t i;

    json_array_foreach (ms_report_array(oom, "sites"), i, held) {
        const char *owner = ms_report_text(ms_report_site(report, ms_report_int(held, "site")), "owner");

        row = json_object_get(index, *owner ? owner : "unknown");
        if (!row) {
            row = json_pack("{s:s, s:i}", "owner", *owner ? owner : "unknown", "bytes", 0);
            json_object_set(index, *owner ? owner : "unknown", row);
            json_array_append_new(rows, row);
        }
        owners_add(row, "bytes", ms_report_int(held, "bytes"));
    }
    json_decref(index);
    return sorted(rows, compare_bytes);
}

/* Of the layer that is shown: the sites of the other have no owner here. */
static void tell_ooms(const struct ms_report *report)
{
    json_t *oom;
    size_t i;

    json_array_foreach (ms_report_array(report->root, "oom"), i, oom)
        if (json_is_object(oom) && json_object_get(oom, "sites") &&
            ms_report_oom_is_inner(oom) == ms_report_is_inner(report))
            json_object_set_new(oom, "owners", owners_then(report, oom));
}

/* A row for each allocator that keeps memory which nobody holds. */
static void tell_cached(const struct ms_report *report, json_t *told)
{
    json_t *heap;
    size_t i;

    json_array_foreach (ms_report_array(report->root, "heaps"), i, heap) {
        json_int_t bytes = ms_report_int(heap, "cached_bytes");
        json_t *row;

        if (!bytes || ms_report_int(heap, "device") < 0)
            continue;
        row = json_pack("{s:o, s:s, s:O, s:i, s:I, s:i, s:I, s:i, s:i}", "owner",
                        json_sprintf("cached by %s", ms_report_text(heap, "name")), "memory", "device",
                        "device", json_object_get(heap, "device"), "at_peak_bytes", 0, "live_bytes", bytes,
                        "live_count", 0, "total_bytes", bytes, "total_count", 0, "sites", 0);
        if (json_object_get(heap, "device_api"))
            json_object_set(row, "device_api", json_object_get(heap, "device_api"));
        json_array_append_new(told, row);
    }
}

void ms_owners_annotate(struct ms_report *report)
{
    size_t count = json_array_size(report->frames);
    struct pass pass = {report, calloc(count + 1, sizeof(char *))};
    json_t *rows = json_array();

    if (pass.known)
        tell_sites(&pass, rows);
    if (ms_report_is_inner(report))
        tell_cached(report, rows);
    json_object_set_new(report->root, "owners", sorted(rows, compare_rows));
    tell_ooms(report);
    for (size_t i = 0; i < count && pass.known; i++)
        free(pass.known[i]);
    free(pass.known);
}
