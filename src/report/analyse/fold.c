/* fold.c - which frames of a stack people want to see; see fold.h.
 *
 * Floor 4, command line only. */
#include "report/analyse/fold.h"

#include <ctype.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "report/symbols/cxx.h"
#include "report/text/text.h"

enum by { MODULE, PATH, PYTHON, NAME };

static const struct rule {
    const char *whose;
    enum by by;
    const char *text, *function;
} rules[] = {
#define MS_FOLD(whose, by, text, function) {whose, by, text, function},
#include "report/analyse/fold.def"
#undef MS_FOLD
};

/* A frame as the rules see it. */
struct seen {
    const char *function, *path, *file; /* of the module, or the source file of Python */
    bool python, packaged;              /* it lies in a package of Python's */
};

static bool fold_is_named(const char *function, const char *start)
{
    char *name = strstr(function, start) ? ms_cxx_function(function) : NULL;
    bool begins = name && !strncmp(name, start, strlen(start));

    free(name);
    return begins;
}

static bool begins(const char *text, const char *start)
{
    return *text == *start && !strncmp(text, start, strlen(start));
}

static bool ends(const char *text, const char *end)
{
    size_t length = strlen(text), wanted = strlen(end);

    return length >= wanted && !strcmp(text + length - wanted, end);
}

static bool is_kind(const json_t *frame, const char *kind)
{
    return !strcmp(ms_report_text(frame, "kind"), kind);
}

#define PACKAGES "-packages/"

static struct seen see(const struct ms_report *report, const json_t *frame)
{
    json_t *module = json_object_get(frame, "module");
    struct seen seen = {.function = ms_report_text(frame, "function"), .python = is_kind(frame, "python")};
    const char *slash;

    if (seen.python)
        seen.path = ms_report_text(frame, "file");
    else
        seen.path = ms_report_text(
            json_is_integer(module) ? ms_report_module(report, json_integer_value(module)) : NULL, "path");
    slash = strrchr(seen.path, '/');
    seen.file = slash ? slash + 1 : seen.path;
    seen.packaged = strstr(seen.path, PACKAGES) != NULL;
    return seen;
}

static bool lies_in(const struct seen *seen, const char *part)
{
    return (seen->packaged || !begins(part, PACKAGES)) && strstr(seen->path, part);
}

static bool fold_fits(const struct rule *rule, const struct seen *seen)
{
    if (*rule->function && !ends(seen->function, rule->function))
        return false;
    switch (rule->by) {
    case MODULE:
        return !seen->python && begins(seen->file, rule->text);
    case PATH:
        return lies_in(seen, rule->text);
    case PYTHON:
        return seen->python && lies_in(seen, rule->text);
    case NAME:
    default:
        return !seen->python && fold_is_named(seen->function, rule->text);
    }
}

bool ms_fold_is_startup(const json_t *frame)
{
    static const char *const names[] = {"_start",
                                        "__libc_start_main",
                                        "__libc_start_main_impl",
                                        "__libc_start_call_main",
                                        "start_thread",
                                        "clone",
                                        "__clone",
                                        "__clone3"};
    const char *function = ms_report_text(frame, "function");

    for (size_t i = 0; i < MS_ARRAY_LEN(names); i++) {
        if (strcmp(function, names[i]) == 0)
            return true;
    }
    return false;
}

static const char *whose_of(const json_t *frame, const struct seen *seen)
{
    if (is_kind(frame, "mark"))
        return NULL;
    for (size_t i = 0; i < MS_ARRAY_LEN(rules); i++) {
        if (fold_fits(&rules[i], seen))
            return rules[i].whose;
    }
    return !seen->python && ms_fold_is_startup(frame) ? "" : NULL;
}

const char *ms_fold_whose(const struct ms_report *report, const json_t *frame, bool merged)
{
    struct seen seen = see(report, frame);
    const char *whose = whose_of(frame, &seen);

    return merged && whose && !strcmp(whose, "the interpreter") ? "" : whose;
}

bool ms_fold_is_merged(json_t *const *frames, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (is_kind(frames[i], "python"))
            return true;
    }
    return false;
}

/* Python's own library: .../lib/python3.12/..., a zip of it, or what is frozen into the interpreter. */
static bool is_standard_library(const char *path)
{
    const char *part = strstr(path, "/lib/python");

    return begins(path, "<frozen ") || (part && isdigit((unsigned char)part[strlen("/lib/python")]));
}

static bool is_own(const struct seen *seen)
{
    static const char *const libraries[] = {"/lib/", "/lib64/", "/usr/", "/opt/", "/nix/", "/gnu/"};

    if (!*seen->path || strstr(seen->path, "/site-packages/") || strstr(seen->path, "/dist-packages/"))
        return false;
    if (seen->python)
        return !is_standard_library(seen->path);
    for (size_t i = 0; i < MS_ARRAY_LEN(libraries); i++) {
        if (begins(seen->path, libraries[i]))
            return false;
    }
    return *seen->path == '/';
}

bool ms_fold_is_own(const struct ms_report *report, const json_t *frame)
{
    struct seen seen = see(report, frame);

    return is_own(&seen);
}

static unsigned char fold_learn(const struct ms_report *report, const json_t *frame)
{
    struct seen seen = see(report, frame);
    unsigned known = MS_FOLD_SEEN;

    if (is_kind(frame, "mark"))
        known |= strcmp(ms_report_text(frame, "mark"), "inferred") ? MS_FOLD_MARK
                                                                   : MS_FOLD_MARK | MS_FOLD_INFERRED;
    known |= seen.python ? MS_FOLD_PYTHON : 0;
    known |= ms_fold_is_startup(frame) ? MS_FOLD_STARTUP : 0;
    known |= is_own(&seen) ? MS_FOLD_OWN : 0;
    known |= whose_of(frame, &seen) ? MS_FOLD_FOLDED : 0;
    return (unsigned char)known;
}

size_t ms_fold_stack(const struct ms_report *report, json_int_t stack, size_t *rows, unsigned *any_p)
{
    unsigned char **folds_p = &((struct ms_report *)report)->folds;
    size_t count = 0;
    json_t *frame;

    if (!*folds_p)
        *folds_p = calloc(json_array_size(report->frames) + 1, 1);
    for (*any_p = 0; *folds_p && count < MS_REPORT_DEPTH_MAX &&
                     (frame = ms_report_stack_next(report, &stack, &rows[count])) != NULL;
         count++) {
        unsigned char *known_p = &(*folds_p)[rows[count]];

        if (!*known_p)
            *known_p = fold_learn(report, frame);
        *any_p |= *known_p;
    }
    return count;
}

size_t ms_fold_own_of(const struct ms_report *report, const size_t *rows, size_t count, bool *inferred_p)
{
    size_t shown = SIZE_MAX, i;
    bool inferred = false;

    *inferred_p = false;
    while (count > 1 && ms_fold_of(report, rows[count - 1]) & MS_FOLD_STARTUP)
        count--;
    for (i = 0; i < count; i++) {
        unsigned known = ms_fold_of(report, rows[i]);

        inferred = inferred || known & MS_FOLD_INFERRED;
        if (known & (MS_FOLD_MARK | MS_FOLD_FOLDED))
            continue;
        if (known & MS_FOLD_OWN) {
            *inferred_p = inferred;
            return i;
        }
        shown = shown == SIZE_MAX ? i : shown;
    }
    return shown;
}

const json_t *ms_fold_own(const struct ms_report *report, json_int_t stack, bool *inferred_p)
{
    size_t rows[MS_REPORT_DEPTH_MAX];
    unsigned any;
    size_t count = ms_fold_stack(report, stack, rows, &any);
    size_t own = ms_fold_own_of(report, rows, count, inferred_p);

    return own == SIZE_MAX ? NULL : json_array_get(report->frames, rows[own]);
}

void ms_fold_put_name(FILE *out, const char *name)
{
    char *plain = ms_cxx_plain(name);

    ms_text_put(out, plain ? plain : name);
    free(plain);
}

void ms_fold_put_function(FILE *out, const char *name)
{
    char *function = ms_cxx_function(name);

    ms_text_put(out, function ? function : name);
    free(function);
}
