/* owners.c - whose each byte is; see owners.h.
 *
 * Floor 4, command line only. The innermost frame of a stack that is neither a runtime's nor mere machinery
 * tells: by the rows of fold.def, which know frameworks and libraries by their names, and else by where its
 * file lies. */
#include "report/owners.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "report/fold.h"

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

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');

    return slash ? slash + 1 : path;
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

static char *name_of(const char *start, size_t length)
{
    return length && length <= NAME_BYTES_MAX ? strndup(start, length) : NULL;
}

/* What a file is called before the first dot: "libmpi" of libmpi.so.40, "_fast" of _fast.cpython-311.so. */
static char *stem(const char *name)
{
    return name_of(name, strcspn(name, "."));
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
    return part[length] ? name_of(part, length) : stem(part);
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
        return stem(base_name(path));
    return !strcmp(owner, "program") || ms_fold_is_own(report, frame) ? strdup("program")
                                                                      : stem(base_name(path));
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

/* What is known of each row of frames[]: NULL before it was looked at, "" for a frame that tells nothing. */
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

/* The row of an owner, for the memory that a site has; new if there is none. */
static json_t *row_of(json_t *rows, json_t *index, const json_t *site, const char *owner)
{
    const char *memory = ms_report_is_device_memory(site) ? "device" : ms_report_text(site, "kind");
    json_t *device = json_object_get(site, "device"), *api = json_object_get(site, "device_api");
    char key[2 * NAME_BYTES_MAX];
    json_t *row;

    snprintf(key, sizeof(key), "%s %s %" JSON_INTEGER_FORMAT " %s", memory, ms_report_device_api(site),
             json_integer_value(device), owner);
    row = json_object_get(index, key);
    if (row)
        return row;
    row = json_pack("{s:s, s:s}", "owner", owner, "memory", memory);
    if (json_is_integer(device))
        json_object_set(row, "device", device);
    if (json_is_string(api))
        json_object_set(row, "device_api", api);
    json_object_set(index, key, row);
    json_array_append_new(rows, row);
    return row;
}

static void add(json_t *row, const char *key, json_int_t more)
{
    json_object_set_new(row, key, json_integer(ms_report_sum(ms_report_int(row, key), more)));
}

static void add_site(json_t *row, const json_t *site)
{
    static const char *const keys[] = {"at_peak_bytes", "live_bytes", "live_count", "total_bytes",
                                       "total_count"};

    for (size_t i = 0; i < MS_ARRAY_LEN(keys); i++)
        add(row, keys[i], ms_report_int(site, keys[i]));
    add(row, "sites", 1);
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

/* The same rows, in order. */
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

static void tell_sites(const struct pass *pass, json_t *rows)
{
    json_t *index = json_object(), *site;
    size_t i;

    json_array_foreach (pass->report->sites, i, site) {
        const char *owner = json_is_object(site) ? owner_of_stack(pass, ms_report_int(site, "stack")) : NULL;
        json_t *text = owner ? json_string(owner) : NULL;

        if (!text)
            continue;
        add_site(row_of(rows, index, site, owner), site);
        json_object_set_new(site, "owner", text);
    }
    json_decref(index);
}

static int compare_bytes(const void *a, const void *b)
{
    const json_t *x = *(json_t *const *)a, *y = *(json_t *const *)b;
    json_int_t left = ms_report_int(x, "bytes"), right = ms_report_int(y, "bytes");

    return left == right ? strcmp(ms_report_text(x, "owner"), ms_report_text(y, "owner"))
                         : (left > right ? -1 : 1);
}

/* What the sites held when there was no memory, added up likewise. */
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
        add(row, "bytes", ms_report_int(held, "bytes"));
    }
    json_decref(index);
    return sorted(rows, compare_bytes);
}

static void tell_ooms(const struct ms_report *report)
{
    json_t *oom;
    size_t i;

    json_array_foreach (ms_report_array(report->root, "oom"), i, oom)
        if (json_is_object(oom) && json_object_get(oom, "sites"))
            json_object_set_new(oom, "owners", owners_then(report, oom));
}

void ms_owners_tell(struct ms_report *report)
{
    size_t count = json_array_size(report->frames);
    struct pass pass = {report, calloc(count + 1, sizeof(char *))};
    json_t *rows = json_array();

    if (pass.known)
        tell_sites(&pass, rows);
    json_object_set_new(report->root, "owners", sorted(rows, compare_rows));
    tell_ooms(report);
    for (size_t i = 0; i < count && pass.known; i++)
        free(pass.known[i]);
    free(pass.known);
}
