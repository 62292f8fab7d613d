/* layer.c - see layer.h.
 *
 * Floor 4, command line only. */
#include "report/read/layer.h"

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

static void layer_choose_lists(json_t *root)
{
    layer_choose_phases(root);
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

/* True if a row before has the same name. */
static bool is_named(json_t *heaps, size_t before, const char *name)
{
    for (size_t i = 0; i < before; i++) {
        if (!strcmp(ms_report_text(json_array_get(heaps, i), "name"), name))
            return true;
    }
    return false;
}

void ms_report_put_heaps(FILE *out, const struct ms_report *report)
{
    json_t *heaps = ms_report_array(report->root, "heaps"), *heap;
    size_t i, left = 0, told = 0;

    json_array_foreach (heaps, i, heap)
        left += !is_named(heaps, i, ms_report_text(heap, "name"));
    json_array_foreach (heaps, i, heap) {
        if (is_named(heaps, i, ms_report_text(heap, "name")))
            continue;
        fputs(!told++ ? "" : --left > 1 ? ", " : " and ", out);
        ms_text_put(out, ms_report_text(heap, "name"));
    }
    if (!told)
        fputs("the program", out);
}
