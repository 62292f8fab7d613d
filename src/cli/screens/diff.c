/* diff.c - two reports added up beside each other; see diff.h.
 *
 * Floor 5. */
#include "cli/screens/diff.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "cli/array.h"
#include "export/names.h"
#include "report/findings/findings.h"
#include "report/analyse/fold.h"
#include "report/analyse/leak_class.h"
#include "report/text/text.h"

const char *const ms_diff_values[MS_DIFF_VALUES] = {"peak", "live", "leaked", "reserved", "calls"};
const char *const ms_diff_bys[MS_DIFF_BYS] = {"site", "function", "owner", "phase"};
const char *const ms_diff_states[MS_DIFF_STATES] = {"new", "gone", "grown", "shrunk", "same"};

json_int_t ms_diff_change(const struct ms_diff_row *row, enum ms_diff_value value)
{
    json_int_t after = row->values[MS_DIFF_AFTER][value], before = row->values[MS_DIFF_BEFORE][value], change;

    /* A figure of a report may be anything: cut to what can be written. */
    if (__builtin_sub_overflow(after, before, &change))
        return after > before ? INT64_MAX : -INT64_MAX;
    return change;
}

static struct ms_diff_row *add_row(struct ms_diff *diff)
{
    struct ms_diff_row *rows = ms_array_grow(diff->rows, sizeof(*rows), diff->count, &diff->room, 256);

    if (!rows)
        return NULL;
    diff->rows = rows;
    diff->rows[diff->count] = (struct ms_diff_row){.state = MS_DIFF_SAME};
    return &diff->rows[diff->count++];
}

static void diff_add_site(struct ms_diff_row *row, unsigned side, const struct ms_model_site *site)
{
    const json_int_t values[MS_DIFF_VALUES] = {
        site->values[MS_VALUE_PEAK], site->values[MS_VALUE_LIVE], site->values[MS_VALUE_LEAKED],
        ms_report_sum(site->values[MS_VALUE_LIVE], site->values[MS_VALUE_ROUNDING]),
        site->values[MS_VALUE_COUNT]};

    for (unsigned value = 0; value < MS_DIFF_VALUES; value++)
        row->values[side][value] = ms_report_sum(row->values[side][value], values[value]);
}

/* --- by site ------------------------------------------------------------------------------------------- */

/* "make_weights at train.c:41 (cudaMalloc, cuda 0)" */
static char *site_name(const struct ms_diff_side *side, const struct ms_model_site *site)
{
    char *line = ms_finding_line(side->report, site->json, "(no stack)"), *name = NULL;

    if (!line || asprintf(&name, "%s (%s, %s)", line, site->api, site->place) < 0)
        name = NULL;
    free(line);
    return name;
}

static int diff_put_site(struct ms_diff *diff, struct ms_diff_row *row, unsigned side, size_t i)
{
    const struct ms_model_site *site = &diff->side[side].model.sites[i];

    row->name[side] = site_name(&diff->side[side], site);
    row->site[side] = site->json;
    diff_add_site(row, side, site);
    return row->name[side] ? 0 : -1;
}

static int diff_add_sites(struct ms_diff *diff)
{
    const struct ms_model *before = &diff->side[MS_DIFF_BEFORE].model;
    const struct ms_model *after = &diff->side[MS_DIFF_AFTER].model;
    size_t *pairs = calloc(before->site_count + 1, sizeof(*pairs));
    unsigned char *paired = calloc(after->site_count + 1, 1);
    int status = pairs && paired ? ms_diff_pair(before, after, pairs) : -1;

    for (size_t i = 0; status == 0 && i < before->site_count; i++) {
        struct ms_diff_row *row = add_row(diff);

        status = row ? diff_put_site(diff, row, MS_DIFF_BEFORE, i) : -1;
        if (status == 0 && pairs[i] != SIZE_MAX) {
            paired[pairs[i]] = 1;
            status = diff_put_site(diff, row, MS_DIFF_AFTER, pairs[i]);
        }
    }
    for (size_t i = 0; status == 0 && i < after->site_count; i++) {
        struct ms_diff_row *row = paired[i] ? NULL : add_row(diff);

        if (!paired[i])
            status = row ? diff_put_site(diff, row, MS_DIFF_AFTER, i) : -1;
    }
    free(pairs);
    free(paired);
    return status;
}

/* --- by a name: functions, owners, phases -------------------------------------------------------------- */

/* The row of a name, new if there is none; names are numbered as rows are. */
static struct ms_diff_row *named_row(struct ms_diff *diff, struct ms_names *names, const char *name,
                                     unsigned side)
{
    uint32_t number = ms_names_number(names, name);
    struct ms_diff_row *row;

    if (number == UINT32_MAX)
        return NULL;
    row = number < diff->count ? &diff->rows[number] : add_row(diff);
    if (row && !row->name[side])
        row->name[side] = strdup(name);
    return row && row->name[side] ? row : NULL;
}

/* The name of the program's own line in a site's stack; to be freed. */
static char *function_of(const struct ms_report *report, const json_t *site)
{
    bool inferred;
    const json_t *own = ms_fold_own(report, ms_report_int(site, "stack"), &inferred);
    size_t bytes;
    char *name = NULL;
    FILE *out = own ? open_memstream(&name, &bytes) : NULL;

    if (!own)
        return strdup("(no stack)");
    if (!out)
        return NULL;
    ms_text_frame_name(out, report, own);
    if (fclose(out) == 0)
        return name;
    free(name);
    return NULL;
}

static int add_named(struct ms_diff *diff, struct ms_names *names, unsigned side)
{
    const struct ms_diff_side *from = &diff->side[side];

    for (size_t i = 0; i < from->model.site_count; i++) {
        const struct ms_model_site *site = &from->model.sites[i];
        const char *owner = ms_report_text(site->json, "owner");
        char *name = diff->by == MS_DIFF_OWNER ? strdup(*owner ? owner : "unknown")
                                               : function_of(from->report, site->json);
        struct ms_diff_row *row = name ? named_row(diff, names, name, side) : NULL;

        free(name);
        if (!row)
            return -1;
        diff_add_site(row, side, site);
    }
    return 0;
}

/* Of a phase: its largest peak on any device, what it left live, and its allocations. */
static int add_phases(struct ms_diff *diff, struct ms_names *names, unsigned side)
{
    json_t *phase, *device;
    size_t i, k;

    json_array_foreach (ms_report_array(diff->side[side].report->root, "phases"), i, phase) {
        struct ms_diff_row *row = named_row(diff, names, ms_report_text(phase, "name"), side);
        json_int_t *values = row ? row->values[side] : NULL;

        if (!row)
            return -1;
        json_array_foreach (ms_report_array(phase, "devices"), k, device) {
            json_int_t peak = ms_report_int(json_object_get(device, "peak_bytes"), "max");

            values[MS_DIFF_PEAK] = peak > values[MS_DIFF_PEAK] ? peak : values[MS_DIFF_PEAK];
            values[MS_DIFF_LIVE] = ms_report_sum(
                values[MS_DIFF_LIVE], ms_report_int(json_object_get(device, "growth_bytes"), "total"));
            values[MS_DIFF_CALLS] =
                ms_report_sum(values[MS_DIFF_CALLS], ms_report_int(device, "allocated_count"));
        }
    }
    return 0;
}

static int add_names(struct ms_diff *diff)
{
    struct ms_names names = {NULL, NULL, 0, 0, 0};
    int status = 0;

    for (unsigned side = 0; side < MS_DIFF_SIDES && status == 0; side++)
        status = diff->by == MS_DIFF_PHASE ? add_phases(diff, &names, side) : add_named(diff, &names, side);
    ms_names_close(&names);
    return status;
}

/* --- devices ---------------------------------------------------------------------------------------------
 */

static struct ms_diff_row *diff_device_row(struct ms_diff *diff, const json_t *device, unsigned side)
{
    const char *api = ms_report_text(device, "api");
    char name[64];
    size_t i = 0;

    snprintf(name, sizeof(name), "%.32s %" JSON_INTEGER_FORMAT, *api ? api : "cuda",
             ms_report_int(device, "index"));
    while (i < diff->device_count &&
           strcmp(diff->devices[i].name[0] ? diff->devices[i].name[0] : diff->devices[i].name[1], name) != 0)
        i++;
    if (i == diff->device_count)
        diff->devices[diff->device_count++] = (struct ms_diff_row){.state = MS_DIFF_SAME};
    free(diff->devices[i].name[side]);
    diff->devices[i].name[side] = strdup(name);
    return diff->devices[i].name[side] ? &diff->devices[i] : NULL;
}

static int add_devices(struct ms_diff *diff, unsigned side)
{
    const struct ms_report *report = diff->side[side].report;
    json_t *devices = ms_report_array(report->root, "devices"), *device;
    json_int_t *leaked = calloc(json_array_size(devices) + 1, sizeof(*leaked));
    size_t i;
    int status = leaked ? 0 : -1;

    if (leaked)
        ms_report_leaked(report, leaked);
    json_array_foreach (devices, i, device) {
        struct ms_diff_row *row = NULL;

        if (status < 0 || ms_report_device_first(report, device) != i)
            continue;
        row = diff_device_row(diff, device, side);
        status = row ? 0 : -1;
        if (!row)
            continue;
        row->values[side][MS_DIFF_PEAK] = ms_report_int(device, "peak_live_bytes");
        row->values[side][MS_DIFF_LIVE] = ms_report_int(device, "live_bytes");
        row->values[side][MS_DIFF_LEAKED] = leaked[i];
        row->values[side][MS_DIFF_RESERVED] = ms_report_reserved(device);
        row->values[side][MS_DIFF_CALLS] = ms_report_int(device, "allocated_count");
    }
    free(leaked);
    return status;
}

/* --- the whole -------------------------------------------------------------------------------------------
 */

static enum ms_diff_value sort_value;

/* Growth, most first; then what shrank, most first; then by name, so that two runs can be compared. */
static int compare_rows(const void *a, const void *b)
{
    const struct ms_diff_row *x = a, *y = b;
    json_int_t left = ms_diff_change(x, sort_value), right = ms_diff_change(y, sort_value);
    int left_class = left > 0 ? 0 : left < 0 ? 1 : 2, right_class = right > 0 ? 0 : right < 0 ? 1 : 2;

    if (left_class != right_class)
        return left_class - right_class;
    if (left != right)
        return left_class ? (left < right ? -1 : 1) : (left > right ? -1 : 1);
    return strcmp(x->name[1] ? x->name[1] : x->name[0], y->name[1] ? y->name[1] : y->name[0]);
}

static enum ms_diff_state diff_state_of(const struct ms_diff_row *row, enum ms_diff_value value)
{
    json_int_t change = ms_diff_change(row, value);

    if (!row->name[MS_DIFF_BEFORE])
        return MS_DIFF_NEW;
    if (!row->name[MS_DIFF_AFTER])
        return MS_DIFF_GONE;
    return change > 0 ? MS_DIFF_GROWN : change < 0 ? MS_DIFF_SHRUNK : MS_DIFF_SAME;
}

static void finish(struct ms_diff *diff)
{
    for (size_t i = 0; i < diff->count; i++) {
        diff->rows[i].state = diff_state_of(&diff->rows[i], diff->value);
        diff->states[diff->rows[i].state]++;
    }
    sort_value = diff->value;
    if (diff->count)
        qsort(diff->rows, diff->count, sizeof(*diff->rows), compare_rows);
    for (size_t i = 0; i < diff->device_count; i++)
        diff->devices[i].state = diff_state_of(&diff->devices[i], diff->value);
}

int ms_diff_open(struct ms_diff *diff, const struct ms_report *before, const struct ms_report *after,
                 bool all_frames)
{
    const struct ms_report *reports[MS_DIFF_SIDES] = {before, after};
    size_t devices = 1;
    int status = 0;

    for (unsigned side = 0; side < MS_DIFF_SIDES; side++) {
        diff->side[side].report = reports[side];
        devices += json_array_size(ms_report_array(reports[side]->root, "devices"));
    }
    diff->devices = calloc(devices, sizeof(*diff->devices));
    status = diff->devices ? 0 : -1;
    for (unsigned side = 0; side < MS_DIFF_SIDES && status == 0; side++) {
        status = ms_model_open(&diff->side[side].model, reports[side], all_frames);
        if (status == 0)
            status = add_devices(diff, side);
    }
    if (status == 0)
        status = diff->by == MS_DIFF_SITE ? diff_add_sites(diff) : add_names(diff);
    if (status == 0)
        finish(diff);
    else
        ms_diff_close(diff);
    return status;
}

static void free_rows(struct ms_diff_row *rows, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        free(rows[i].name[0]);
        free(rows[i].name[1]);
    }
    free(rows);
}

void ms_diff_close(struct ms_diff *diff)
{
    free_rows(diff->rows, diff->count);
    free_rows(diff->devices, diff->device_count);
    diff->rows = diff->devices = NULL;
    diff->count = diff->device_count = 0;
    for (unsigned side = 0; side < MS_DIFF_SIDES; side++)
        if (diff->side[side].model.parts)
            ms_model_close(&diff->side[side].model);
}
