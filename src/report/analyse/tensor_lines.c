/* tensor_lines.c - see tensor_lines.h.
 *
 * Floor 4, command line only. */
#include "report/analyse/tensor_lines.h"

#include <stdlib.h>
#include <string.h>

#include "report/analyse/fold.h"
#include "report/read/sites.h"
#include "report/text/text.h"

static bool is_module_call(const json_t *frame)
{
    return strstr(ms_report_text(frame, "file"), "torch/nn/modules/module.py") != NULL &&
           strstr(ms_report_text(frame, "function"), "_call_impl") != NULL;
}

const json_t *ms_tensor_caller(const struct ms_report *report, json_int_t stack)
{
    json_t *frames[MS_REPORT_DEPTH_MAX];
    size_t count = ms_report_stack(report, stack, frames, MS_REPORT_DEPTH_MAX), i = count;
    bool inferred;

    while (i > 0 && !is_module_call(frames[i - 1]))
        i--;
    if (!i)
        return ms_fold_own(report, stack, &inferred);
    while (i < count &&
           (strcmp(ms_report_text(frames[i], "kind"), "python") != 0 || !ms_fold_is_own(report, frames[i])))
        i++;
    return i < count ? frames[i] : NULL;
}

char *ms_tensor_frame(const struct ms_report *report, const json_t *frame)
{
    char *text = NULL;
    size_t bytes;
    FILE *out = frame ? open_memstream(&text, &bytes) : NULL;

    if (!out)
        return strdup("the program");
    ms_text_frame(out, report, frame);
    if (fclose(out) == 0)
        return text;
    free(text);
    return NULL;
}

bool ms_tensor_is_same_function(const json_t *a, const json_t *b)
{
    return !strcmp(ms_report_text(a, "function"), ms_report_text(b, "function")) &&
           !strcmp(ms_report_text(a, "file"), ms_report_text(b, "file"));
}

bool ms_tensor_passes_has(const struct ms_tensor_passes *passes, const json_t *frame)
{
    for (size_t i = 0; frame && i < passes->count; i++)
        if (ms_tensor_is_same_function(passes->lines[i], frame))
            return true;
    return false;
}

struct ms_tensor_passes ms_tensor_passes(const struct ms_report *report)
{
    const struct ms_site_row *sites = ms_report_sites(report);
    size_t count = sites ? json_array_size(report->sites) : 0;
    struct ms_tensor_passes passes = {.lines = calloc(count + 1, sizeof(*passes.lines))};
    bool inferred;

    for (size_t i = 0; passes.lines && i < count; i++) {
        const json_t *line =
            strcmp(sites[i].owner, "gradients") ? NULL : ms_fold_own(report, sites[i].stack, &inferred);

        if (!strcmp(sites[i].owner, "gradients") &&
            (!line || strcmp(ms_report_text(line, "kind"), "python") != 0))
            passes.unknown = true;
        else if (line && !ms_tensor_passes_has(&passes, line))
            passes.lines[passes.count++] = line;
    }
    return passes;
}

/* --- sets of functions ---------------------------------------------------------------------------------- */

/* The next frame of a stack, from *at_p on, that is a line of the program's own, with its row; NULL after the
 * last. */
static const json_t *next_own(const struct ms_report *report, const size_t *rows, size_t count, size_t *at_p)
{
    while (*at_p < count) {
        size_t row = rows[(*at_p)++];

        if ((ms_fold_of(report, row) & (MS_FOLD_OWN | MS_FOLD_PYTHON)) == (MS_FOLD_OWN | MS_FOLD_PYTHON))
            return json_array_get(report->frames, row);
    }
    return NULL;
}

/* A set of functions has, by file, a set of their names. */
static bool has_function(const json_t *functions, const json_t *frame)
{
    return json_object_get(json_object_get(functions, ms_report_text(frame, "file")),
                           ms_report_text(frame, "function")) != NULL;
}

static void add_function(json_t *functions, const json_t *frame)
{
    const char *file = ms_report_text(frame, "file");
    json_t *names = json_object_get(functions, file);

    if (!names && json_object_set_new(functions, file, json_object()) == 0)
        names = json_object_get(functions, file);
    json_object_set_new(names, ms_report_text(frame, "function"), json_true());
}

/* Adds what is in a stack, from the innermost up to the first that is in `last`, where that is given. */
static void add_functions(const struct ms_report *report, json_t *functions, json_int_t stack,
                          const json_t *last)
{
    size_t rows[MS_REPORT_DEPTH_MAX], at = 0;
    unsigned any;
    size_t count = ms_fold_stack(report, stack, rows, &any);
    const json_t *frame;

    while ((frame = next_own(report, rows, count, &at)) != NULL) {
        add_function(functions, frame);
        if (last && has_function(last, frame))
            return;
    }
}

json_t *ms_tensor_starters(const struct ms_report *report)
{
    const struct ms_site_row *sites = ms_report_sites(report);
    size_t count = sites ? json_array_size(report->sites) : 0;
    json_t *models = json_object(), *starters = json_object();

    for (size_t i = 0; i < count; i++)
        if (!strcmp(sites[i].owner, "activations"))
            add_functions(report, models, sites[i].stack, NULL);
    for (size_t i = 0; i < count; i++)
        if (!strcmp(sites[i].owner, "gradients"))
            add_functions(report, starters, sites[i].stack, models);
    json_decref(models);
    return starters;
}

bool ms_tensor_functions_have(const struct ms_report *report, const json_t *functions, json_int_t stack)
{
    size_t rows[MS_REPORT_DEPTH_MAX], at = 0;
    unsigned any;
    size_t count = ms_fold_stack(report, stack, rows, &any);
    const json_t *frame;

    while ((frame = next_own(report, rows, count, &at)) != NULL)
        if (has_function(functions, frame))
            return true;
    return false;
}
