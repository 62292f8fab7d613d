/* load.c - a report with names, for the verbs that read one; see load.h.
 *
 * Floor 5. */
#include "cli/load.h"

#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/screens/suppress.h"
#include "report/findings/findings.h"
#include "report/analyse/callers.h"
#include "report/analyse/fold.h"
#include "report/read/layer.h"
#include "report/symbols/symbols.h"
#include "report/text/text.h"
#include "report/analyse/analyse.h"

static void count_module(void *arg, const char *line)
{
    (void)line;
    ++*(unsigned *)arg;
}

void ms_cli_note_dangling(const char *path, const struct ms_report *report,
                          const struct ms_pyframes_dangling *astray)
{
    size_t codes = json_array_size(ms_report_array(report->root, "codes"));

    if (astray->count)
        ms_cli_note(
            "%s: frames[%zu].code is not one of the %zu rows of codes[], so %zu Python frame%s without "
            "function and line",
            path, astray->first, codes, astray->count, astray->count == 1 ? " is" : "s are");
}

static void load_choose_layer(const char *path, struct ms_report *report)
{
    if (ms_cli_layer != MS_CLI_BLOCKS && ms_report_has_inner(report))
        ms_report_choose_inner(report);
    else if (ms_cli_layer == MS_CLI_TENSORS)
        ms_cli_note("%s: nothing reported tensors, so these are the blocks that the program allocated", path);
}

void ms_cli_tell(const char *path, struct ms_report *report, const json_t *least)
{
    struct ms_symbol_places places = {NULL, NULL};
    struct ms_symbols_result result = {.astray = {0, 0}};
    unsigned unusable = 0;

    if (json_object_get(report->root, "job"))
        ms_cli_note("%s: %zu processes merged; this is the one that was fullest, and memshim merge shows all",
                    path, json_array_size(ms_report_array(report->root, "ranks")));
    if (!ms_report_bool(json_object_get(report->root, "run"), "symbolized"))
        ms_symbols_resolve(report, &places, count_module, &unusable, &result);
    ms_cli_note_dangling(path, report, &result.astray);
    load_choose_layer(path, report);
    ms_report_annotate(report, least);
    if (ms_suppress_apply(report))
        ms_findings_annotate(report); /* once more: what is suppressed is none */
    if (unusable)
        ms_cli_note("%s: %u module%s not here in the recorded build, so frames are without names; memshim "
                    "symbolize says which",
                    path, unusable, unusable == 1 ? " is" : "s are");
}

int ms_cli_load(const char *path, struct ms_report *report_p)
{
    if (ms_suppress_load() < 0 || ms_cli_read(path, report_p) < 0)
        return -1;
    ms_cli_tell(path, report_p, NULL);
    return 0;
}

static const char *sort_key;

static int compare_sites(const void *a, const void *b)
{
    const json_t *x = *(json_t *const *)a, *y = *(json_t *const *)b;
    json_int_t left = ms_report_int(x, sort_key), right = ms_report_int(y, sort_key);

    if (left != right)
        return left > right ? -1 : 1;
    left = ms_report_int(x, "id"), right = ms_report_int(y, "id");
    return left < right ? -1 : left > right;
}

json_t **ms_cli_sites_by(const struct ms_report *report, const char *key, size_t *count_p)
{
    size_t i, count = json_array_size(report->sites);
    json_t **sites = count ? calloc(count, sizeof(*sites)) : NULL;
    json_t *site;

    *count_p = sites ? count : 0;
    if (!sites)
        return NULL;
    json_array_foreach (report->sites, i, site)
        sites[i] = site;
    sort_key = key;
    qsort(sites, count, sizeof(*sites), compare_sites);
    return sites;
}

static json_t *frame_json(const struct ms_report *report, const json_t *row)
{
    static const char *const keys[] = {"kind",    "function", "file", "line",
                                       "inlined", "rel_pc",   "mark", "name"};
    json_t *frame = json_object();
    json_t *module = json_object_get(row, "module");

    for (size_t k = 0; k < MS_ARRAY_LEN(keys); k++)
        if (json_object_get(row, keys[k]))
            json_object_set(frame, keys[k], json_object_get(row, keys[k]));
    if (json_is_integer(module))
        json_object_set_new(
            frame, "module",
            json_string(ms_report_text(ms_report_module(report, json_integer_value(module)), "path")));
    return frame;
}

/* Each frame is in thousands of stacks: one object is in all of them. */
static struct {
    json_t *row, *told; /* both are held, so that no other row comes to lie there */
    const struct ms_report *report;
} * known;
static size_t known_count, known_mask;

static size_t load_place_of(const struct ms_report *report, const json_t *row)
{
    size_t i = ((uintptr_t)row >> 4) * 0x9e3779b97f4a7c15u >> 20 & known_mask;

    while (known[i].row && (known[i].row != row || known[i].report != report))
        i = (i + 1) & known_mask;
    return i;
}

/* Room for one more, at most half of it taken. */
static bool load_make_room(void)
{
    enum { FIRST = 1024 };
    size_t size = known ? (known_mask + 1) * 2 : FIRST;
    __typeof__(known) before = known, after;
    size_t places = known ? known_mask + 1 : 0;

    if (known_count * 2 < places)
        return true;
    if (!(after = calloc(size, sizeof(*after))))
        return false;
    known = after;
    known_mask = size - 1;
    for (size_t i = 0; i < places; i++)
        if (before[i].row)
            after[load_place_of(before[i].report, before[i].row)] = before[i];
    free(before);
    return true;
}

static json_t *shared_frame(const struct ms_report *report, json_t *row)
{
    size_t i;

    if (!load_make_room())
        return frame_json(report, row);
    i = load_place_of(report, row);
    if (!known[i].row) {
        known[i].row = json_incref(row);
        known[i].report = report;
        known[i].told = frame_json(report, row);
        known_count++;
    }
    return json_incref(known[i].told);
}

json_t *ms_cli_stack_json(const struct ms_report *report, json_int_t stack)
{
    json_t *frames[MS_REPORT_DEPTH_MAX];
    size_t count = ms_report_stack(report, stack, frames, MS_REPORT_DEPTH_MAX);
    json_t *array = json_array();

    for (size_t i = 0; i < count; i++)
        json_array_append_new(array, shared_frame(report, frames[i]));
    return array;
}

void ms_cli_set_stack(json_t *object, const struct ms_report *report, json_int_t stack)
{
    bool inferred;
    const json_t *callers[MS_CALLERS_MAX], *own = ms_fold_own(report, stack, &inferred);
    size_t count = ms_callers_of(report, stack, callers);
    json_t *frame = !own       ? NULL
                    : inferred ? frame_json(report, own)
                               : shared_frame(report, (json_t *)(uintptr_t)own);

    json_object_set_new(object, "stack", ms_cli_stack_json(report, stack));
    if (frame && inferred)
        json_object_set_new(frame, "inferred", json_true());
    if (frame)
        json_object_set_new(object, "own", frame);
    if (count) {
        json_t *array = json_array();

        for (size_t i = 0; i < count; i++)
            json_array_append_new(array, shared_frame(report, (json_t *)(uintptr_t)callers[i]));
        json_object_set_new(object, "callers", array);
    }
}

void ms_cli_set_view(json_t *object, const struct ms_report *report)
{
    static const char *const keys[] = {"view", "frameworks"};
    const json_t *run = json_object_get(report->root, "run");

    for (size_t i = 0; i < MS_ARRAY_LEN(keys); i++)
        if (json_object_get(run, keys[i]))
            json_object_set(object, keys[i], json_object_get(run, keys[i]));
}

int ms_cli_value(const char *what, const char *text, enum ms_value *value_p)
{
    *value_p = ms_value_find(text);
    if (*value_p < MS_VALUES)
        return 0;
    ms_cli_error("%s '%s' is not allowed: peak, live, leaked, total, count or rounding", what, text);
    return -1;
}

int ms_cli_take_stacks(struct ms_cli_stacks *stacks, int id, const char *value)
{
    if (id == 'v')
        return ms_cli_value("--value", value, &stacks->value) < 0 ? -1 : 1;
    stacks->inverted = stacks->inverted || id == 'i';
    stacks->all_frames = stacks->all_frames || id == 'a';
    return ms_cli_take_printing(&stacks->printing, id, value) || id == 'i' ? 1 : 0;
}

const char *ms_cli_site_api(const json_t *site)
{
    const char *api = ms_report_text(site, "api");

    return *api ? api : "?";
}

void ms_cli_print_json(FILE *out, json_t *value)
{
    ms_text_json(out, value, JSON_INDENT(2));
    fputc('\n', out);
    json_decref(value);
}
