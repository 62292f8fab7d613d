/* symbols.c - names for the frames of a report; see symbols.h.
 *
 * Floor 4, command line only. Frames are resolved module by module. */
#include "report/symbols/symbols.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "report/symbols/name_cache.h"
#include "report/symbols/pyframes.h"

#define INLINE_MAX 64 /* functions one address may lie in */

struct pass {
    struct ms_report *report;
    const struct ms_symbol_places *places;
    ms_symbols_complaint_func_t complain;
    void *arg;
    struct ms_symbols_result *result;
    size_t *extra_first; /* per original frame: its first appended frame, 0 for none */
    size_t *extra_count;
};

static MS_PRINTF(2, 3) void symbols_say(const struct pass *pass, const char *format, ...)
{
    char line[4608];
    va_list args;

    if (!pass->complain)
        return;
    va_start(args, format);
    vsnprintf(line, sizeof(line), format, args);
    va_end(args);
    pass->complain(pass->arg, line);
}

static bool lacks_name(const json_t *frame)
{
    const char *kind = ms_report_text(frame, "kind");

    return (!*kind || !strcmp(kind, "native")) && !*ms_report_text(frame, "function") &&
           *ms_report_text(frame, "rel_pc") && json_is_integer(json_object_get(frame, "module"));
}

/* Names come from files that need not be UTF-8, which JSON is. */
static void set_text(json_t *frame, const char *key, const char *text)
{
    json_t *value = text ? json_string(text) : NULL;
    char *clean = text && !value ? strdup(text) : NULL;
    char *c;

    for (c = clean; c && *c; c++)
        if ((unsigned char)*c >= 0x80)
            *c = '?';
    if (clean)
        value = json_string(clean);
    free(clean);
    if (value)
        json_object_set_new(frame, key, value);
}

static void fill_frame(json_t *frame, const struct ms_location *location)
{
    set_text(frame, "function", location->function);
    set_text(frame, "file", location->file);
    if (location->file && location->line > 0)
        json_object_set_new(frame, "line", json_integer(location->line));
    if (location->inlined)
        json_object_set_new(frame, "inlined", json_true());
}

/* The functions that the innermost one was inlined into, as frames of their own behind all others. */
static void append_callers(struct pass *pass, size_t index, const json_t *frame,
                           const struct ms_location *locations, size_t count)
{
    static const char *const kept[] = {"kind", "module", "rel_pc"};
    size_t i, k;

    pass->extra_first[index] = json_array_size(pass->report->frames);
    pass->extra_count[index] = count - 1;
    for (i = 1; i < count; i++) {
        json_t *caller = json_object();

        for (k = 0; k < MS_ARRAY_LEN(kept); k++)
            if (json_object_get(frame, kept[k]))
                json_object_set(caller, kept[k], json_object_get(frame, kept[k]));
        fill_frame(caller, &locations[i]);
        json_array_append_new(pass->report->frames, caller);
    }
}

/* A module whose frames are looked at. */
struct opened {
    struct ms_resolver *resolver;
    struct ms_name_cache *names; /* what was looked up before; NULL for nothing */
};

static size_t symbols_look_up(const struct opened *opened, uint64_t pc, struct ms_location *locations)
{
    size_t count;

    if (ms_name_cache_find(opened->names, pc, locations, INLINE_MAX, &count))
        return count;
    count = ms_resolver_lookup(opened->resolver, pc, locations, INLINE_MAX);
    ms_name_cache_add(opened->names, pc, locations, count);
    return count;
}

static void resolve_frame(struct pass *pass, const struct opened *opened, size_t index)
{
    json_t *frame = json_array_get(pass->report->frames, index);
    struct ms_location locations[INLINE_MAX];
    uint64_t return_address;
    size_t count;
    char *end;

    errno = 0;
    return_address = strtoull(ms_report_text(frame, "rel_pc"), &end, 16);
    if (errno || *end || !return_address)
        return;
    count = symbols_look_up(opened, return_address - 1, locations);
    if (!count)
        return;
    fill_frame(frame, &locations[0]);
    if (count > 1)
        append_callers(pass, index, frame, locations, count);
    pass->result->resolved += locations[0].function != NULL;
    pass->result->lines += locations[0].file != NULL;
}

/* Names from files elsewhere are not kept: the places are asked for by name, and change. */
static struct ms_name_cache *open_names(const struct pass *pass, const char *build_id,
                                        struct ms_resolver *resolver)
{
    char state[256] = "";

    if (pass->places->sysroot || pass->places->debug_path)
        return NULL;
    ms_resolver_state(resolver, state, sizeof(state));
    return ms_name_cache_open(build_id, state);
}

static bool open_module(const struct pass *pass, json_int_t id, struct opened *opened_p)
{
    const json_t *module = ms_report_module(pass->report, id);
    const char *path = ms_report_text(module, "path");

    if (*path != '/') /* the vdso, or memory that no file stands behind */
        return false;
    switch (ms_resolver_open(path, ms_report_text(module, "build_id"), pass->places, &opened_p->resolver)) {
    case MS_RESOLVER_OK:
        opened_p->names = open_names(pass, ms_report_text(module, "build_id"), opened_p->resolver);
        return true;
    case MS_RESOLVER_MISSING:
        symbols_say(pass, "%s%s: not found: its frames stay unnamed",
                    pass->places->sysroot ? pass->places->sysroot : "", path);
        break;
    case MS_RESOLVER_MISMATCH:
        symbols_say(pass, "%s%s: another build than the recorded one (build id %s): its frames stay unnamed",
                    pass->places->sysroot ? pass->places->sysroot : "", path,
                    ms_report_text(module, "build_id"));
        break;
    case MS_RESOLVER_BROKEN:
        symbols_say(pass, "%s%s: cannot be read as an ELF file: its frames stay unnamed",
                    pass->places->sysroot ? pass->places->sysroot : "", path);
        break;
    }
    return false;
}

struct order {
    json_int_t module;
    size_t frame;
};

static int compare_order(const void *a, const void *b)
{
    const struct order *x = a, *y = b;

    if (x->module != y->module)
        return x->module < y->module ? -1 : 1;
    return x->frame < y->frame ? -1 : x->frame > y->frame;
}

static void close_module(const struct opened *opened)
{
    ms_name_cache_close(opened->names);
    ms_resolver_close(opened->resolver);
}

static void resolve_frames(struct pass *pass, struct order *orders, size_t count)
{
    struct opened opened = {NULL, NULL};
    bool usable = false;
    size_t i;

    for (i = 0; i < count; i++) {
        if (!i || orders[i].module != orders[i - 1].module) {
            if (usable)
                close_module(&opened);
            usable = open_module(pass, orders[i].module, &opened);
        }
        if (usable)
            resolve_frame(pass, &opened, orders[i].frame);
    }
    if (usable)
        close_module(&opened);
}

/* Node 0 is "no stack" and has no frame, whatever stands in its place. */
static size_t extra_of(const struct pass *pass, size_t id, size_t frames)
{
    const json_t *frame = json_array_get(json_array_get(pass->report->stacks, id), 1);
    json_int_t index = json_integer_value(frame);

    return id && json_is_integer(frame) && index >= 0 && (size_t)index < frames ? pass->extra_count[index]
                                                                                : 0;
}

/* Rows that speak of a stack: sites[] and oom[] today, whatever else gets a member "stack" later. */
static void renumber_rows(const struct ms_report *report, const json_int_t *numbers, size_t count)
{
    const char *name;
    json_t *rows, *row;
    size_t i;

    json_object_foreach (report->root, name, rows) {
        json_array_foreach (rows, i, row) {
            json_t *stack = json_object_get(row, "stack");

            if (json_is_integer(stack) && json_integer_value(stack) > 0 &&
                (size_t)json_integer_value(stack) < count)
                json_object_set_new(row, "stack", json_integer(numbers[json_integer_value(stack)]));
        }
    }
}

/* A node whose frame became several gets nodes for the outer functions right before it, so that a parent
 * still comes before its children. `numbers` is where each old node goes. */
static json_t *expand_stacks(const struct pass *pass, const json_int_t *numbers, size_t count, size_t frames)
{
    json_t *expanded = json_array();
    size_t id, k;

    for (id = 0; id < count; id++) {
        json_t *node = json_array_get(pass->report->stacks, id);
        json_int_t parent = json_integer_value(json_array_get(node, 0));
        json_int_t frame = json_integer_value(json_array_get(node, 1));

        if (parent > 0 && (size_t)parent < count)
            parent = numbers[parent];
        for (k = extra_of(pass, id, frames); k > 0; k--) {
            json_array_append_new(
                expanded, json_pack("[I, I]", parent, (json_int_t)(pass->extra_first[frame] + k - 1)));
            parent = (json_int_t)json_array_size(expanded) - 1;
        }
        json_array_append_new(expanded, json_pack("[I, I]", parent, frame));
    }
    return expanded;
}

static void insert_callers(const struct pass *pass, size_t frames)
{
    struct ms_report *report = pass->report;
    size_t id, count = json_array_size(report->stacks);
    json_int_t *numbers = calloc(count + 1, sizeof(*numbers));
    json_int_t next = 0;
    json_t *expanded;

    if (!numbers || frames == json_array_size(report->frames)) {
        free(numbers);
        return;
    }
    for (id = 0; id < count; id++) {
        next += (json_int_t)extra_of(pass, id, frames);
        numbers[id] = next++;
    }
    expanded = expand_stacks(pass, numbers, count, frames);
    json_object_set_new(report->root, "stacks", expanded);
    report->stacks = expanded;
    renumber_rows(report, numbers, count);
    free(numbers);
}

void ms_symbols_resolve(struct ms_report *report, const struct ms_symbol_places *places,
                        ms_symbols_complaint_func_t complain, void *arg, struct ms_symbols_result *result_p)
{
    struct pass pass = {
        .report = report, .places = places, .complain = complain, .arg = arg, .result = result_p};
    size_t frames = json_array_size(report->frames);
    struct order *orders = calloc(frames + 1, sizeof(*orders));
    size_t i, python, count = 0;

    memset(result_p, 0, sizeof(*result_p));
    python = ms_pyframes_resolve(report, &result_p->resolved, &result_p->lines, &result_p->astray);
    pass.extra_first = calloc(frames + 1, sizeof(size_t));
    pass.extra_count = calloc(frames + 1, sizeof(size_t));
    if (orders && pass.extra_first && pass.extra_count) {
        for (i = 0; i < frames; i++) {
            const json_t *frame = json_array_get(report->frames, i);

            if (lacks_name(frame))
                orders[count++] = (struct order){ms_report_int(frame, "module"), i};
        }
        qsort(orders, count, sizeof(*orders), compare_order);
        result_p->frames = python + count;
        resolve_frames(&pass, orders, count);
        insert_callers(&pass, frames);
        if (json_is_object(json_object_get(report->root, "run")))
            json_object_set_new(json_object_get(report->root, "run"), "symbolized", json_true());
    }
    ms_report_changed(report);
    free(orders);
    free(pass.extra_first);
    free(pass.extra_count);
}
