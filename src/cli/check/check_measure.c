/* check_measure.c - what a report says, one row for each figure of each thing that it is of; see check.h.
 *
 * Floor 5. Nothing is added up here that was not live at the same time. */
#include <stdlib.h>
#include <string.h>

#include "cli/check/check.h"
#include "cli/array.h"
#include "report/analyse/leak_class.h"
#include "report/analyse/owners.h"
#include "report/read/layer.h"

struct ms_check_measure *ms_check_measure_add(struct ms_check_measures *measures, enum ms_check_figure figure,
                                              enum ms_check_of of, const char *name, json_int_t bytes)
{
    struct ms_check_measure *rows =
        ms_array_grow(measures->rows, sizeof(*rows), measures->count, &measures->room, 64);
    uint32_t number = ms_names_number(&measures->names, name);

    if (rows)
        measures->rows = rows;
    if (!rows || number == UINT32_MAX)
        return NULL;
    rows[measures->count] = (struct ms_check_measure){.figure = figure,
                                                      .of = of,
                                                      .name = measures->names.texts[number],
                                                      .bytes = bytes,
                                                      .site = -1,
                                                      .process = -1,
                                                      .processes = 1,
                                                      .job_site = -1};
    return &rows[measures->count++];
}

void ms_check_measures_free(struct ms_check_measures *measures)
{
    free(measures->rows);
    ms_names_close(&measures->names);
}

bool ms_check_is_same(const struct ms_check_measure *a, const struct ms_check_measure *b)
{
    return a->figure == b->figure && a->of == b->of && a->tensors == b->tensors &&
           (a->name == b->name || !strcmp(a->name, b->name));
}

/* A measuring under way: one report, and the rows that it gave so far. */
struct meter {
    const struct ms_report *report; /* of tensors: the view whose lists are theirs */
    struct ms_check_measures *measures;
    bool tensors, failed;
};

static struct ms_check_measure *check_measure_add(struct meter *meter, enum ms_check_figure figure,
                                                  enum ms_check_of of, const char *name, json_int_t bytes)
{
    struct ms_check_measure *row = ms_check_measure_add(meter->measures, figure, of, name, bytes);

    meter->failed = meter->failed || !row;
    if (row)
        row->tensors = meter->tensors;
    return row;
}

/* Of a device, of an owner, of both, or of everything. */
struct thing {
    size_t device;     /* row of devices[]; SIZE_MAX: wherever */
    const char *owner; /* NULL: anybody's */
};

static bool is_of(const struct meter *meter, const json_t *site, const struct thing *thing)
{
    if (thing->owner && strcmp(ms_report_text(site, "owner"), thing->owner) != 0)
        return false;
    return thing->device == SIZE_MAX ||
           (ms_report_is_device_memory(site) && ms_report_device_of(meter->report, site) == thing->device);
}

static void check_measure_blame(struct ms_check_measure *row, const json_t *site, json_int_t bytes)
{
    if (bytes > row->site_bytes) {
        row->site = ms_report_int(site, "id");
        row->site_bytes = bytes;
    }
}

static void blame_holders(const struct meter *meter, struct ms_check_measure *row, const struct thing *thing)
{
    json_t *site;
    size_t i;

    if (!row)
        return;
    json_array_foreach (meter->report->sites, i, site)
        if (is_of(meter, site, thing))
            check_measure_blame(row, site, ms_report_int(site, "at_peak_bytes"));
}

static void add_leaks(struct meter *meter, enum ms_check_of of, const char *name, const struct thing *thing)
{
    struct ms_check_measure *row = check_measure_add(meter, MS_CHECK_LEAK, of, name, 0);
    json_t *leak;
    size_t i;

    json_array_foreach (ms_report_array(meter->report->root, "leaks"), i, leak) {
        const json_t *site = ms_report_site(meter->report, ms_report_int(leak, "site"));

        if (!row || !site || !ms_report_is_leak(leak) || !is_of(meter, site, thing))
            continue;
        row->bytes = ms_report_sum(row->bytes, ms_leak_bytes(leak));
        check_measure_blame(row, site, ms_leak_bytes(leak));
    }
}

/* Memory that grew as long as the program ran: leaks that do, and memory that was freed only at the end. */
static void add_growth(struct meter *meter, enum ms_check_of of, const char *name, const struct thing *thing)
{
    struct ms_check_measure *row = check_measure_add(meter, MS_CHECK_GROWTH, of, name, 0);
    json_t *leak, *site;
    size_t i;

    json_array_foreach (ms_report_array(meter->report->root, "leaks"), i, leak) {
        site = ms_report_site(meter->report, ms_report_int(leak, "site"));
        if (!row || !site || ms_leak_class_of(leak) != MS_LEAK_GROWING || !is_of(meter, site, thing))
            continue;
        row->bytes = ms_report_sum(row->bytes, ms_report_int(leak, "bytes"));
        check_measure_blame(row, site, ms_report_int(leak, "bytes"));
    }
    json_array_foreach (meter->report->sites, i, site) {
        json_int_t grew = ms_report_int(site, "grew_bytes");

        if (!row || grew <= 0 || !is_of(meter, site, thing))
            continue;
        row->bytes = ms_report_sum(row->bytes, grew);
        check_measure_blame(row, site, grew);
    }
}

/* The bytes of each class that were never freed. */
static void add_classes(struct meter *meter)
{
    for (unsigned class = MS_LEAK_GROWING; class <= MS_LEAK_CONTEXT; class ++) {
        const char *word = ms_leak_class_word((enum ms_leak_class) class);
        struct ms_check_measure *row = check_measure_add(meter, MS_CHECK_LEAK, MS_CHECK_CLASS, word, 0);
        json_t *leak;
        size_t i;

        json_array_foreach (ms_report_array(meter->report->root, "leaks"), i, leak) {
            const json_t *site = ms_report_site(meter->report, ms_report_int(leak, "site"));

            if (!row || !site || ms_leak_class_of(leak) != class)
                continue;
            row->bytes = ms_report_sum(row->bytes, ms_leak_bytes(leak));
            check_measure_blame(row, site, ms_leak_bytes(leak));
        }
    }
}

static void set_whole(struct ms_check_measure *row, json_int_t whole)
{
    if (row)
        row->whole = whole;
}

/* Free memory between blocks, when the pool had most. */
static void add_frag(struct meter *meter, const char *name, const json_t *device, const struct thing *thing)
{
    const json_t *parts = json_object_get(device, "peak_parts");
    struct ms_check_measure *row =
        check_measure_add(meter, MS_CHECK_FRAG, MS_CHECK_DEVICE, name, ms_report_int(parts, "stranded"));

    set_whole(row, ms_report_reserved(device));
    blame_holders(meter, row, thing);
}

/* How often there was no memory, and who held most the last time. */
static void add_ooms(struct meter *meter)
{
    struct ms_check_measure *row =
        check_measure_add(meter, MS_CHECK_OOM, MS_CHECK_PROCESS, "", ms_report_oom_count(meter->report));
    json_t *ooms = ms_report_ooms(meter->report), *oom;
    size_t i;

    json_array_foreach (ooms, i, oom) {
        const json_t *held = ms_report_oom_is_inner(oom) == ms_report_is_inner(meter->report)
                                 ? json_array_get(ms_report_array(oom, "top_sites"), 0)
                                 : NULL;

        if (!row)
            break;
        if (held) {
            row->site = ms_report_int(held, "site");
            row->site_bytes = ms_report_int(held, "bytes");
        }
    }
    json_decref(ooms);
}

static void set_whole_of_latest(struct meter *meter, const json_t *device)
{
    set_whole(meter->failed ? NULL : &meter->measures->rows[meter->measures->count - 1],
              ms_report_int(device, "total_bytes"));
}

static void measure_device(struct meter *meter, size_t i, const json_t *device)
{
    const struct thing thing = {i, NULL};
    const char *api = ms_report_text(device, "api");
    char name[64];
    struct ms_check_measure *row;

    snprintf(name, sizeof(name), "%.32s%s%" JSON_INTEGER_FORMAT, *api && strcmp(api, "cuda") ? api : "",
             *api && strcmp(api, "cuda") ? " " : "", ms_report_int(device, "index"));
    row = check_measure_add(meter, MS_CHECK_PEAK, MS_CHECK_DEVICE, name,
                            ms_report_int(device, "peak_live_bytes"));
    set_whole(row, ms_report_int(device, "total_bytes"));
    blame_holders(meter, row, &thing);
    if (!meter->tensors) {
        row = check_measure_add(meter, MS_CHECK_RESERVED, MS_CHECK_DEVICE, name, ms_report_reserved(device));
        set_whole(row, ms_report_int(device, "total_bytes"));
        blame_holders(meter, row, &thing);
        add_frag(meter, name, device, &thing);
        add_leaks(meter, MS_CHECK_DEVICE, name, &thing);
        set_whole_of_latest(meter, device);
    }
    add_growth(meter, MS_CHECK_DEVICE, name, &thing);
    set_whole_of_latest(meter, device);
}

static json_int_t total_of(const struct meter *meter, const json_t *row)
{
    size_t i = ms_report_device_of(meter->report, row);

    return i == SIZE_MAX ? 0
                         : ms_report_int(json_array_get(ms_report_array(meter->report->root, "devices"), i),
                                         "total_bytes");
}

static bool is_first_of_owner(const json_t *owners, size_t i)
{
    for (size_t k = 0; k < i; k++)
        if (!strcmp(ms_report_text(json_array_get(owners, k), "owner"),
                    ms_report_text(json_array_get(owners, i), "owner")))
            return false;
    return true;
}

static void measure_owner(struct meter *meter, const json_t *owners, size_t i)
{
    const json_t *json = json_array_get(owners, i);
    const char *name = ms_report_text(json, "owner");
    struct thing thing = {SIZE_MAX, name};

    if (meter->tensors && !ms_report_int(json, "sites")) /* what an allocator caches is no tensor */
        return;
    if (is_first_of_owner(owners, i)) {
        if (!meter->tensors)
            add_leaks(meter, MS_CHECK_OWNER, name, &thing);
        add_growth(meter, MS_CHECK_OWNER, name, &thing);
    }
    if (!strcmp(ms_report_text(json, "memory"), "device")) {
        struct ms_check_measure *row = check_measure_add(meter, MS_CHECK_PEAK, MS_CHECK_OWNER, name,
                                                         ms_report_int(json, "at_peak_bytes"));

        set_whole(row, total_of(meter, json));
        thing.device = ms_report_device_of(meter->report, json);
        blame_holders(meter, row, &thing);
    }
}

static void measure_phase(struct meter *meter, const char *name, const json_t *device)
{
    const json_t *held = json_array_get(ms_report_array(device, "sites"), 0);
    const enum ms_check_figure figures[] = {MS_CHECK_PEAK, MS_CHECK_GROWTH};
    const char *const keys[] = {"peak_bytes", "growth_bytes"};

    for (size_t i = 0; i < 2; i++) {
        struct ms_check_measure *row = check_measure_add(
            meter, figures[i], MS_CHECK_PHASE, name, ms_report_int(json_object_get(device, keys[i]), "max"));

        set_whole(row, total_of(meter, device));
        if (row && held) {
            row->site = ms_report_int(held, "site");
            row->site_bytes = ms_report_int(held, "bytes");
        }
    }
}

/* Figures that each layer has. */
static void measure_layer(struct meter *meter)
{
    const struct ms_report *report = meter->report;
    json_t *row, *device, *owners = ms_report_array(report->root, "owners");
    size_t i, k;

    add_growth(meter, MS_CHECK_PROCESS, "", &(struct thing){SIZE_MAX, NULL});
    json_array_foreach (ms_report_array(report->root, "devices"), i, row)
        if (ms_report_device_first(report, row) == i)
            measure_device(meter, i, row);
    for (i = 0; i < json_array_size(owners); i++)
        measure_owner(meter, owners, i);
    json_array_foreach (ms_report_array(report->root, "phases"), i, row)
        json_array_foreach (ms_report_array(row, "devices"), k, device)
            measure_phase(meter, ms_report_text(row, "name"), device);
}

/* Tensors are held to the end by every program that ends with its model alive, so that they do not count as
 * leaked; it is told what they were at most, and by how much they grew. */
static bool measure_tensors(const struct ms_report *report, struct ms_check_measures *measures)
{
    struct ms_report inner;
    struct meter meter = {&inner, measures, true, false};

    if (!ms_report_open_inner(report, &inner))
        return false;
    ms_owners_annotate(&inner);
    measure_layer(&meter);
    ms_report_close(&inner);
    return !meter.failed;
}

int ms_check_measure(const struct ms_report *report, struct ms_check_measures *measures_p)
{
    struct meter meter = {report, measures_p, false, false};

    *measures_p = (struct ms_check_measures){.rows = NULL};
    if (ms_check_is_job(report))
        return ms_check_measure_job(report, measures_p);
    add_leaks(&meter, MS_CHECK_PROCESS, "", &(struct thing){SIZE_MAX, NULL});
    add_classes(&meter);
    add_ooms(&meter);
    measure_layer(&meter);
    if (ms_report_has_inner(report) && !measure_tensors(report, measures_p))
        return -1;
    return meter.failed ? -1 : 0;
}
