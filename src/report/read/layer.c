/* layer.c - see layer.h.
 *
 * Floor 4, command line only. */
#include "report/read/layer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "report/text/text.h"

static const struct {
    const char *name, *inner;
} lists[] = {
    {"devices", "inner_devices"},   {"sites", "inner_sites"},       {"leaks", "inner_leaks"},
    {"segments", "inner_segments"}, {"timeline", "inner_timeline"},
};

bool ms_report_has_inner(const struct ms_report *report)
{
    return json_array_size(ms_report_array(report->root, "inner_sites")) != 0;
}

bool ms_report_is_inner(const struct ms_report *report)
{
    return ms_report_has_inner(report) &&
           json_object_get(report->root, "sites") == json_object_get(report->root, "inner_sites");
}

/* The figures of each phase, likewise. */
static void layer_choose_phases(json_t *root)
{
    json_t *phases = json_object_get(root, "phases"), *chosen = json_array(), *phase;
    size_t i;

    json_array_foreach (phases, i, phase) {
        json_t *row = json_copy(phase), *devices = json_object_get(phase, "inner_devices");

        json_object_set_new(row, "devices", devices ? json_incref(devices) : json_array());
        json_array_append_new(chosen, row);
    }
    json_object_set_new(root, "phases", chosen);
}

static int layer_compare_ooms(const void *a, const void *b)
{
    json_int_t left = ms_report_int(*(json_t *const *)a, "t_ns"),
               right = ms_report_int(*(json_t *const *)b, "t_ns");

    return left < right ? -1 : left > right;
}

/* The rows of `list` come to `rows`, but for those that `left_out` has the places of, and those that were no
 * failure of the program's. */
static void layer_add_ooms(json_t *rows, const json_t *list, const char *layer, const json_t *left_out)
{
    json_t *row;
    size_t i;

    json_array_foreach (list, i, row) {
        char place[24];
        json_t *copy;

        snprintf(place, sizeof(place), "%zu", i);
        if (!json_is_object(row) || json_object_get(left_out, place) || json_object_get(row, "answered"))
            continue;
        copy = json_copy(row);
        json_object_set_new(copy, "layer", json_string(layer));
        json_array_append_new(rows, copy);
    }
}

static json_t *layer_ooms_of(const json_t *root)
{
    json_t *inner = json_object_get(root, "inner_oom"), *taken = json_object(), *rows = json_array(), *row,
           *place, *sorted, **list;
    size_t i, k, count;

    json_array_foreach (inner, i, row)
        json_array_foreach (json_object_get(row, "refused"), k, place) {
            char name[24];

            snprintf(name, sizeof(name), "%" JSON_INTEGER_FORMAT, json_integer_value(place));
            json_object_set_new(taken, name, json_true());
        }
    layer_add_ooms(rows, json_object_get(root, "oom"), "blocks", taken);
    layer_add_ooms(rows, inner, "tensors", NULL);
    json_decref(taken);
    count = json_array_size(rows);
    list = calloc(count + 1, sizeof(*list));
    if (!list)
        return rows;
    for (i = 0; i < count; i++)
        list[i] = json_array_get(rows, i);
    qsort(list, count, sizeof(*list), layer_compare_ooms);
    sorted = json_array();
    for (i = 0; i < count; i++)
        json_array_append(sorted, list[i]);
    free(list);
    json_decref(rows);
    return sorted;
}

json_t *ms_report_ooms(const struct ms_report *report)
{
    json_t *rows = json_object_get(report->root, "oom");

    if (json_object_get(report->root, "inner_oom") && !ms_report_is_inner(report))
        return layer_ooms_of(report->root);
    return rows ? json_incref(rows) : json_array();
}

json_int_t ms_report_oom_count(const struct ms_report *report)
{
    const json_t *overhead = json_object_get(report->root, "overhead");
    json_t *rows = ms_report_ooms(report);
    json_int_t count = (json_int_t)json_array_size(rows), ever = ms_report_int(overhead, "oom_events");

    json_decref(rows);
    if (json_object_get(overhead, "oom_events"))
        return ever > count ? ever : count;
    return ms_report_sum(count, ms_report_int(overhead, "ooms_left_out"));
}

bool ms_report_oom_is_inner(const json_t *oom)
{
    return !strcmp(ms_report_text(oom, "layer"), "tensors");
}

json_t *ms_report_layer_site(const struct ms_report *report, bool inner, json_int_t id)
{
    const json_t *sites;
    json_t *site;
    size_t i;

    if (inner == ms_report_is_inner(report))
        return ms_report_site(report, id);
    sites = json_object_get(report->root, inner ? "inner_sites" : "outer_sites");
    json_array_foreach (sites, i, site) {
        if (ms_report_int(site, "id") == id)
            return site;
    }
    return NULL;
}

json_t *ms_report_oom_site(const struct ms_report *report, const json_t *oom, const json_t *held)
{
    return ms_report_layer_site(report, ms_report_oom_is_inner(oom), ms_report_int(held, "site"));
}

static void layer_choose_lists(json_t *root)
{
    json_t *sites = json_object_get(root, "sites"), *devices = json_object_get(root, "devices");

    if (devices)
        json_object_set(root, "outer_devices", devices);
    layer_choose_phases(root);
    if (json_object_get(root, "inner_oom"))
        json_object_set_new(root, "oom", layer_ooms_of(root));
    if (sites)
        json_object_set(root, "outer_sites", sites);
    if (json_object_get(root, "timeline"))
        json_object_set(root, "outer_timeline", json_object_get(root, "timeline"));
    for (size_t i = 0; i < MS_ARRAY_LEN(lists); i++) {
        if (json_object_get(root, lists[i].inner))
            json_object_set(root, lists[i].name, json_object_get(root, lists[i].inner));
    }
}

void ms_report_choose_inner(struct ms_report *report)
{
    layer_choose_lists(report->root);
    report->sites = ms_report_array(report->root, "sites");
}

bool ms_report_open_inner(const struct ms_report *report, struct ms_report *inner_p)
{
    json_t *root = json_copy(report->root), *run = json_copy(json_object_get(report->root, "run"));

    if (!root)
        return false;
    if (run)
        json_object_set_new(root, "run", run);
    layer_choose_lists(root);
    *inner_p = (struct ms_report){.root = root,
                                  .sites = ms_report_array(root, "sites"),
                                  .stacks = report->stacks,
                                  .frames = report->frames,
                                  .modules = report->modules};
    return true;
}

const json_t *ms_report_inner_fullest(const struct ms_report *report)
{
    const json_t *device, *fullest = NULL;
    size_t i;

    json_array_foreach (ms_report_array(report->root, "inner_devices"), i, device) {
        if (!fullest || ms_report_int(device, "peak_live_bytes") > ms_report_int(fullest, "peak_live_bytes"))
            fullest = device;
    }
    return fullest;
}

/* True if any heap is a device's: then those of the host are not told of beside them. */
static bool has_device_heap(json_t *heaps)
{
    json_t *heap;
    size_t i;

    json_array_foreach (heaps, i, heap) {
        if (ms_report_int(heap, "device") >= 0)
            return true;
    }
    return false;
}

/* True of the i-th, unless one before it that is told has the same name. */
static bool heap_is_told(json_t *heaps, size_t i, bool of_devices)
{
    const json_t *heap = json_array_get(heaps, i), *before;

    if (of_devices && ms_report_int(heap, "device") < 0)
        return false;
    for (size_t k = 0; k < i; k++) {
        before = json_array_get(heaps, k);
        if ((!of_devices || ms_report_int(before, "device") >= 0) &&
            !strcmp(ms_report_text(before, "name"), ms_report_text(heap, "name")))
            return false;
    }
    return true;
}

void ms_report_put_heaps(FILE *out, const struct ms_report *report)
{
    enum { NAMED = 3 };
    json_t *heaps = ms_report_array(report->root, "heaps"), *heap;
    bool of_devices = has_device_heap(heaps);
    size_t i, count = 0, told = 0;

    json_array_foreach (heaps, i, heap)
        count += heap_is_told(heaps, i, of_devices);
    json_array_foreach (heaps, i, heap) {
        if (told == NAMED || !heap_is_told(heaps, i, of_devices))
            continue;
        told++;
        fputs(told == 1 ? "" : told == count ? " and " : ", ", out);
        ms_text_put(out, ms_report_text(heap, "name"));
    }
    if (count > told)
        fprintf(out, " and %zu more", count - told);
    if (!told)
        fputs("the program", out);
}

bool ms_report_heaps_say_reserved(const struct ms_report *report)
{
    json_t *heap;
    size_t i;

    json_array_foreach (ms_report_array(report->root, "heaps"), i, heap) {
        if (ms_report_int(heap, "device") >= 0 && json_object_get(heap, "reserved_bytes"))
            return true;
    }
    return false;
}
