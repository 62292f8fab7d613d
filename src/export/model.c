/* model.c - see model.h.
 *
 * Floor 4. What a frame is called is worked out once for each row of frames[]; what it is folded into once
 * for stacks with Python and once for those without. */
#include "export/model.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "export/names.h"
#include "report/analyse/fold.h"
#include "report/analyse/leak_class.h"
#include "report/read/sites.h"
#include "report/text/text.h"
#include "report/text/utf8.h"

/* A name longer than this is cut, at a character: nobody reads on, and formats without shared strings would
 * write it once for each stack. */
enum { NAME_BYTES_MAX = 4096 };

enum { NOT_YET = -1, SHOWN = -2, LEFT_OUT = -3 }; /* instead of the number of a frame that stands for a run */

struct ms_model_parts {
    struct ms_names names, files;
    uint32_t *of_row;   /* frames[] row -> frame + 1 */
    int32_t *folded[2]; /* frames[] row -> the run's frame, or one of the above; [1]: in a merged stack */
    uint32_t *own;      /* name -> frame of ours + 1 */
    size_t own_room, row_count, frame_room, path_room;
    json_int_t *leaked; /* by site */
    bool all_frames, failed;
};

const struct ms_value_name ms_value_names[MS_VALUES] = {
    [MS_VALUE_PEAK] = {"peak", "At peak", "bytes"},
    [MS_VALUE_LIVE] = {"live", "Allocated at the end", "bytes"},
    [MS_VALUE_LEAKED] = {"leaked", "Leaked", "bytes"},
    [MS_VALUE_TOTAL] = {"total", "Allocated in total", "bytes"},
    [MS_VALUE_COUNT] = {"count", "Allocations", "allocations"},
    [MS_VALUE_ROUNDING] = {"rounding", "Rounding", "bytes"},
};

enum ms_value ms_value_find(const char *name)
{
    unsigned value = 0;

    while (value < MS_VALUES && strcmp(ms_value_names[value].name, name) != 0)
        value++;
    return (enum ms_value)value;
}

/* The text without what formats and terminals take for commands, cut to NAME_BYTES_MAX. */
static uint32_t clean_number(struct ms_model *model, struct ms_names *names, const char *text)
{
    char *clean = NULL;
    size_t bytes = 0, cut = 0, step;
    FILE *out = open_memstream(&clean, &bytes);
    uint32_t number;

    if (!out) {
        model->parts->failed = true;
        return 0;
    }
    ms_text_put(out, text);
    if (fclose(out) != 0 || !clean) {
        free(clean);
        model->parts->failed = true;
        return 0;
    }
    while (bytes > NAME_BYTES_MAX && (step = ms_utf8_bytes(clean + cut)) && cut + step <= NAME_BYTES_MAX)
        cut += step;
    if (bytes > NAME_BYTES_MAX)
        snprintf(clean + cut, bytes - cut + 1, "%s", bytes - cut > 3 ? "..." : "");
    number = ms_names_number(names, clean);
    free(clean);
    model->parts->failed = model->parts->failed || number == UINT32_MAX;
    return number == UINT32_MAX ? 0 : number;
}

static uint32_t add_frame(struct ms_model *model, const char *name)
{
    struct ms_model_parts *parts = model->parts;
    uint32_t name_id = clean_number(model, &parts->names, *name ? name : "?");

    if (model->frame_count == parts->frame_room) {
        size_t room = parts->frame_room ? parts->frame_room * 2 : 256;
        struct ms_model_frame *frames = realloc(model->frames, room * sizeof(*frames));

        if (!frames || room > INT32_MAX) {
            parts->failed = true;
            model->frames = frames ? frames : model->frames;
            return 0;
        }
        model->frames = frames;
        parts->frame_room = room;
    }
    if (parts->failed)
        return 0;
    model->frames[model->frame_count] = (struct ms_model_frame){.name_id = name_id, .file = ""};
    return (uint32_t)model->frame_count++;
}

/* A frame of ours: the same name is the same frame. */
static uint32_t own_frame(struct ms_model *model, const char *name)
{
    struct ms_model_parts *parts = model->parts;
    uint32_t id = clean_number(model, &parts->names, *name ? name : "?"), frame;

    if (parts->failed)
        return 0;
    if (id >= parts->own_room) {
        size_t room = (size_t)id * 2 + 256;
        uint32_t *own = realloc(parts->own, room * sizeof(*own));

        if (!own) {
            parts->failed = true;
            return 0;
        }
        memset(own + parts->own_room, 0, (room - parts->own_room) * sizeof(*own));
        parts->own = own;
        parts->own_room = room;
    }
    if (parts->own[id])
        return parts->own[id] - 1;
    frame = add_frame(model, name);
    parts->own[id] = frame + 1;
    return frame;
}

/* The frame of a row of frames[]. */
static uint32_t row_frame(struct ms_model *model, const json_t *json, size_t row)
{
    struct ms_model_parts *parts = model->parts;
    json_t *module = json_object_get(json, "module");
    char *name = NULL;
    size_t bytes;
    FILE *out;
    uint32_t frame, file = UINT32_MAX;

    if (parts->of_row[row])
        return parts->of_row[row] - 1;
    out = open_memstream(&name, &bytes);
    if (out)
        ms_text_frame_name(out, model->report, json);
    if (!out || fclose(out) != 0) {
        free(name);
        parts->failed = true;
        return 0;
    }
    frame = add_frame(model, name);
    free(name);
    if (parts->failed)
        return 0;
    if (*ms_report_text(json, "file"))
        file = clean_number(model, &parts->files, ms_report_text(json, "file"));
    if (parts->failed)
        return 0;
    if (file != UINT32_MAX)
        model->frames[frame].file = parts->files.texts[file];
    model->frames[frame].line = ms_report_int(json, "line") > 0 ? ms_report_int(json, "line") : 0;
    if (json_is_integer(module))
        model->frames[frame].module = ms_report_module(model->report, json_integer_value(module));
    model->frames[frame].rel_pc = strtoull(ms_report_text(json, "rel_pc"), NULL, 16);
    parts->of_row[row] = frame + 1;
    return frame;
}

/* The frame that stands for a run that this one belongs to, or SHOWN, or LEFT_OUT. */
static int32_t folded(struct ms_model *model, size_t row, bool merged)
{
    int32_t *kept = &model->parts->folded[merged][row];
    const char *whose;
    char text[64];

    if (model->parts->all_frames)
        return SHOWN;
    if (*kept == NOT_YET) {
        whose = ms_fold_whose(model->report, json_array_get(model->report->frames, row), merged);
        snprintf(text, sizeof(text), "[%s]", whose ? whose : "");
        *kept = !whose ? SHOWN : !*whose ? LEFT_OUT : (int32_t)own_frame(model, text);
    }
    return *kept;
}

static void put_path(struct ms_model *model, uint32_t frame)
{
    struct ms_model_parts *parts = model->parts;

    if (model->path_count == parts->path_room) {
        size_t room = parts->path_room ? parts->path_room * 2 : 4096;
        uint32_t *path = realloc(model->path, room * sizeof(*path));

        if (!path) {
            parts->failed = true;
            return;
        }
        model->path = path;
        parts->path_room = room;
    }
    model->path[model->path_count++] = frame;
}

static uint32_t frame_of(struct ms_model *model, size_t row)
{
    return row_frame(model, json_array_get(model->report->frames, row), row);
}

static void model_put_stack(struct ms_model *model, json_int_t stack)
{
    static size_t
        rows[MS_REPORT_DEPTH_MAX]; /* more than a stack frame should be; the command has one thread */
    size_t before = model->path_count;
    uint32_t last = UINT32_MAX;
    unsigned any;
    size_t count = ms_fold_stack(model->report, stack, rows, &any);

    /* Without what the C library runs below main. */
    while (!model->parts->all_frames && count > 1 &&
           ms_fold_of(model->report, rows[count - 1]) & MS_FOLD_STARTUP)
        count--;
    for (size_t i = count; i > 0 && !model->parts->failed; i--) {
        int32_t run = folded(model, rows[i - 1], (any & MS_FOLD_PYTHON) != 0);

        if (run == LEFT_OUT || (run >= 0 && (uint32_t)run == last))
            continue;
        last = run >= 0 ? (uint32_t)run : UINT32_MAX;
        put_path(model, run >= 0 ? (uint32_t)run : frame_of(model, rows[i - 1]));
    }
    for (size_t i = count; model->path_count == before && i > 0 && !model->parts->failed; i--)
        put_path(model, frame_of(model, rows[i - 1]));
}

/* "cuda 0" for a device's memory, else its kind: "pinned". Tensors of the host are on no device. */
static uint32_t place_frame(struct ms_model *model, const struct ms_site_row *site)
{
    char text[64];

    if (!site->counts)
        return own_frame(model, site->kind);
    if (site->device < 0)
        return own_frame(model, "no device");
    snprintf(text, sizeof(text), "%.32s %" JSON_INTEGER_FORMAT, ms_report_device_api(site->json),
             site->device);
    return own_frame(model, text);
}

static json_int_t not_negative(json_int_t value)
{
    return value > 0 ? value : 0;
}

static void model_add_site(struct ms_model *model, const struct ms_site_row *row, size_t i)
{
    struct ms_model_site *site = &model->sites[model->site_count++];
    uint32_t place = place_frame(model, row), call = own_frame(model, *row->api ? row->api : "?");

    *site =
        (struct ms_model_site){.json = row->json, .row = row, .first = model->path_count, .device = SIZE_MAX};
    if (row->counts)
        site->device = row->device_row;
    put_path(model, place);
    model_put_stack(model, row->stack);
    put_path(model, call);
    if (model->parts->failed)
        return;
    site->depth = model->path_count - site->first;
    site->place = model->parts->names.texts[model->frames[place].name_id];
    site->api = model->parts->names.texts[model->frames[call].name_id];
    site->values[MS_VALUE_PEAK] = not_negative(row->at_peak_bytes);
    site->values[MS_VALUE_LIVE] = not_negative(row->live_bytes);
    site->values[MS_VALUE_LEAKED] = not_negative(model->parts->leaked[i]);
    site->values[MS_VALUE_TOTAL] = not_negative(row->total_bytes);
    site->values[MS_VALUE_COUNT] = not_negative(row->total_count);
    site->values[MS_VALUE_ROUNDING] = not_negative(row->rounding_bytes);
}

/* The bytes that each site leaked, by its place in sites[], which most often is its id. */
static void add_leaks(struct ms_model *model, const struct ms_site_row *sites, size_t count)
{
    json_int_t *by_id = calloc(count + 1, sizeof(*by_id));
    json_t *leak;
    size_t i;

    model->parts->failed = model->parts->failed || !by_id;
    json_array_foreach (ms_report_array(model->report->root, "leaks"), i, leak) {
        json_int_t id = ms_report_int(leak, "site");

        if (by_id && ms_report_is_leak(leak) && id >= 0 && (size_t)id < count)
            by_id[id] = ms_report_sum(by_id[id], ms_leak_bytes(leak));
    }
    for (i = 0; by_id && i < count; i++)
        if (sites[i].id >= 0 && (size_t)sites[i].id < count)
            model->parts->leaked[i] = by_id[sites[i].id];
    free(by_id);
}

static int model_make_room(struct ms_model *model, size_t sites)
{
    struct ms_model_parts *parts = model->parts;

    parts->row_count = json_array_size(model->report->frames);
    parts->of_row = calloc(parts->row_count + 1, sizeof(*parts->of_row));
    parts->leaked = calloc(sites + 1, sizeof(*parts->leaked));
    model->sites = calloc(sites + 1, sizeof(*model->sites));
    for (size_t i = 0; i < MS_ARRAY_LEN(parts->folded); i++) {
        parts->folded[i] = malloc((parts->row_count + 1) * sizeof(*parts->folded[i]));
        if (!parts->folded[i])
            return -1;
        memset(parts->folded[i], 0xff, (parts->row_count + 1) * sizeof(*parts->folded[i])); /* NOT_YET */
    }
    return parts->of_row && parts->leaked && model->sites ? 0 : -1;
}

int ms_model_open(struct ms_model *model, const struct ms_report *report, bool all_frames)
{
    const struct ms_site_row *sites = ms_report_sites(report);
    size_t i, count = json_array_size(report->sites);

    *model = (struct ms_model){.report = report, .parts = calloc(1, sizeof(*model->parts))};
    if (!model->parts)
        return -1;
    model->parts->all_frames = all_frames;
    if (!sites || model_make_room(model, count) < 0) {
        ms_model_close(model);
        return -1;
    }
    add_leaks(model, sites, count);
    for (i = 0; i < count && !model->parts->failed; i++)
        model_add_site(model, &sites[i], i);
    if (model->parts->failed) {
        ms_model_close(model);
        return -1;
    }
    for (i = 0; i < model->frame_count; i++)
        model->frames[i].name = model->parts->names.texts[model->frames[i].name_id];
    model->name_count = model->parts->names.count;
    return 0;
}

void ms_model_close(struct ms_model *model)
{
    if (model->parts) {
        ms_names_close(&model->parts->names);
        ms_names_close(&model->parts->files);
        for (size_t i = 0; i < MS_ARRAY_LEN(model->parts->folded); i++)
            free(model->parts->folded[i]);
        free(model->parts->of_row);
        free(model->parts->own);
        free(model->parts->leaked);
    }
    free(model->parts);
    free(model->frames);
    free(model->path);
    free(model->sites);
    memset(model, 0, sizeof(*model));
}

json_int_t ms_model_sum(const struct ms_model *model, enum ms_value value)
{
    json_int_t sum = 0;

    for (size_t i = 0; i < model->site_count; i++)
        sum = ms_report_sum(sum, model->sites[i].values[value]);
    return sum;
}
