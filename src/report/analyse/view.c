/* view.c - whether a report shows tensors or segments; see view.h.
 *
 * Floor 4, command line only. An allocator of a framework stands between the program's line and the vendor's
 * function, so the frames from the vendor outwards are looked at, up to the interpreter's first. One that
 * caches decides, wherever it stands among them: RMM's pool asks its cuda_memory_resource for a segment. */
#include "report/analyse/view.h"

#include <stdlib.h>
#include <string.h>

#include "base/files.h"
#include "base/compiler.h"
#include "report/symbols/cxx.h"
#include "report/read/layer.h"
#include "report/read/sites.h"
#include "report/text/text.h"

/* PyTorch's deepest way from an operator to its allocator has some forty frames; more are only walked in
 * programs where no allocator is known. */
#define VIEW_DEPTH 128

enum shows { NOTHING, TENSORS, SEGMENTS, UNKNOWN, SHOWS_COUNT };

static const char *const shows_names[SHOWS_COUNT] = {"blocks", "tensors", "segments", "unknown"};

static const struct rule {
    const char *framework, *module, *function;
    enum shows shows;
} rules[] = {
#define MS_FRAMEWORK(framework, module, function, shows) {framework, module, function, shows},
#include "report/analyse/frameworks.def"
#undef MS_FRAMEWORK
};

/* The verdict on a frame, by its row in `known`: a rule's place counted from 1, or one of these. */
enum { NOT_LOOKED_AT = 0, NO_RULE = 254, INTERPRETER = 255 };
_Static_assert(MS_ARRAY_LEN(rules) < NO_RULE, "a byte holds them all");

struct pass {
    struct ms_report *report;
    unsigned char *known;
};

/* True if a function is a rule's: by its own name, not by what it is given or made for. */
static bool is_rules(const char *function, const struct rule *rule)
{
    char *name;
    bool fits;

    if (!*rule->function)
        return !*function;
    name = strstr(function, rule->function) ? ms_cxx_function(function) : NULL;
    fits = name && strstr(name, rule->function);
    free(name);
    return fits;
}

static unsigned char view_classify(const struct pass *pass, const json_t *frame)
{
    const json_t *module = json_is_integer(json_object_get(frame, "module"))
                               ? ms_report_module(pass->report, ms_report_int(frame, "module"))
                               : NULL;
    const char *file = ms_file_name(ms_report_text(module, "path"));
    const char *function = ms_report_text(frame, "function"), *kind = ms_report_text(frame, "kind");

    if (!strcmp(kind, "python") || !strcmp(ms_report_text(module, "owner"), "python"))
        return INTERPRETER;
    for (size_t i = 0; i < MS_ARRAY_LEN(rules); i++) {
        const struct rule *rule = &rules[i];

        if (strncmp(file, rule->module, strlen(rule->module)))
            continue;
        if (is_rules(function, rule))
            return (unsigned char)(i + 1);
    }
    return NO_RULE;
}

/* The rule that holds for a stack; NULL for none. */
static const struct rule *judge_stack(const struct pass *pass, json_int_t stack)
{
    const struct rule *found = NULL;
    json_t *frame;
    size_t row;

    for (size_t depth = 0; depth < VIEW_DEPTH && (frame = ms_report_stack_next(pass->report, &stack, &row));
         depth++) {
        if (pass->known[row] == NOT_LOOKED_AT)
            pass->known[row] = view_classify(pass, frame);
        if (pass->known[row] == INTERPRETER)
            break;
        if (pass->known[row] == NO_RULE)
            continue;
        if (rules[pass->known[row] - 1].shows == SEGMENTS)
            return &rules[pass->known[row] - 1];
        if (!found)
            found = &rules[pass->known[row] - 1];
    }
    return found;
}

/* A framework of which something was seen, with a bit for each enum shows. */
struct seen {
    const char *framework;
    unsigned shows;
};

static void view_note(struct seen *seen, const struct rule *rule)
{
    size_t i = 0;

    while (seen[i].framework && strcmp(seen[i].framework, rule->framework))
        i++;
    seen[i].framework = rule->framework;
    seen[i].shows |= 1U << rule->shows;
}

static const char *view_name(unsigned shows)
{
    bool tensors = shows & 1U << TENSORS, segments = shows & 1U << SEGMENTS;

    if (tensors && segments)
        return "mixed";
    if (shows & 1U << UNKNOWN && !segments)
        return shows_names[UNKNOWN];
    return shows_names[segments ? SEGMENTS : tensors ? TENSORS : NOTHING];
}

/* Host memory is left out: JAX stages copies in a cache of it also where each array is asked for. */
static void tell_view(const struct pass *pass)
{
    struct seen seen[MS_ARRAY_LEN(rules) + 1] = {{NULL, 0}};
    json_t *run = json_object_get(pass->report->root, "run"), *frameworks = json_array();
    const struct ms_site_row *sites = ms_report_sites(pass->report);
    size_t i, count = sites ? json_array_size(pass->report->sites) : 0;
    unsigned all = 0;

    for (i = 0; i < count; i++) {
        const struct rule *rule =
            sites[i].has_device && sites[i].device >= 0 ? judge_stack(pass, sites[i].stack) : NULL;

        if (rule)
            view_note(seen, rule);
    }
    for (i = 0; seen[i].framework; i++) {
        all |= seen[i].shows;
        json_array_append_new(
            frameworks, json_pack("{s:s, s:s}", "name", seen[i].framework, "view", view_name(seen[i].shows)));
    }
    json_object_set_new(run, "view", json_string(view_name(all)));
    json_object_set_new(run, "frameworks", frameworks);
}

/* Of the inner layer it is known: its blocks are what an allocator said that it gave. */
static void tell_heaps(struct ms_report *report)
{
    json_t *run = json_object_get(report->root, "run"), *frameworks = json_array(), *heap;
    size_t i;

    json_array_foreach (ms_report_array(report->root, "heaps"), i, heap)
        json_array_append_new(frameworks, json_pack("{s:s, s:s}", "name", ms_report_text(heap, "name"),
                                                    "view", shows_names[TENSORS]));
    json_object_set_new(run, "view", json_string(shows_names[TENSORS]));
    json_object_set_new(run, "frameworks", frameworks);
}

static void tell_leaks(const struct pass *pass)
{
    json_t *leak;
    size_t i;

    json_array_foreach (ms_report_array(pass->report->root, "leaks"), i, leak) {
        const json_t *site = ms_report_site(pass->report, ms_report_int(leak, "site"));
        const struct rule *rule =
            json_is_object(leak) ? judge_stack(pass, ms_report_int(site, "stack")) : NULL;

        if (!rule || rule->shows != SEGMENTS)
            continue;
        json_object_set_new(leak, "framework", json_string(rule->framework));
        if (strcmp(ms_report_text(leak, "class"), "suppressed"))
            json_object_set_new(leak, "class", json_string("cache"));
    }
}

void ms_view_annotate(struct ms_report *report)
{
    struct pass pass = {report, calloc(json_array_size(report->frames) + 1, 1)};

    if (!pass.known || !json_is_object(json_object_get(report->root, "run"))) {
        free(pass.known);
        return;
    }
    if (ms_report_is_inner(report)) {
        tell_heaps(report);
        free(pass.known);
        return;
    }
    tell_view(&pass);
    tell_leaks(&pass);
    free(pass.known);
}

void ms_view_names(FILE *out, const struct ms_report *report, const char *view)
{
    json_t *frameworks = ms_report_array(json_object_get(report->root, "run"), "frameworks"), *framework;
    size_t i, left = 0, told = 0;

    json_array_foreach (frameworks, i, framework)
        left += !view || !strcmp(ms_report_text(framework, "view"), view);
    json_array_foreach (frameworks, i, framework) {
        if (view && strcmp(ms_report_text(framework, "view"), view))
            continue;
        fputs(!told++ ? "" : --left > 1 ? ", " : " and ", out);
        ms_text_put(out, ms_report_text(framework, "name"));
    }
}

/* True of a program of Python's whose CuPy or RMM would have reported its tensors. */
static bool has_missed_hook(const struct ms_report *report)
{
    const json_t *run = json_object_get(report->root, "run"), *framework;
    json_t *frameworks = ms_report_array(run, "frameworks");
    size_t i;

    json_array_foreach (frameworks, i, framework) {
        const char *name = ms_report_text(framework, "name");

        if ((!strcmp(name, "CuPy") || !strcmp(name, "RMM")) &&
            strcmp(ms_report_text(framework, "view"), shows_names[TENSORS]) != 0)
            return strcmp(ms_report_text(json_object_get(run, "python"), "state"), "absent") != 0;
    }
    return false;
}

void ms_view_print(FILE *out, const struct ms_report *report, const char *indent)
{
    const char *view = ms_report_text(json_object_get(report->root, "run"), "view");

    if (ms_report_is_inner(report)) {
        fprintf(out, "%sshows the tensors that ", indent);
        ms_report_put_heaps(out, report);
        fputs(" gave; --layer blocks shows the segments in which they lie\n", out);
    } else if (!strcmp(view, "segments") && ms_report_has_inner(report)) {
        fprintf(out, "%sshows segments of the cache of ", indent);
        ms_view_names(out, report, NULL);
        fputs("; --layer tensors shows the tensors in them\n", out);
    } else if (!strcmp(view, "segments")) {
        fprintf(out, "%sshows segments of the cache of ", indent);
        ms_view_names(out, report, NULL);
        fputs(has_missed_hook(report)
                  ? ", not tensors: Python read no start-up hook of memshim run (-I, -E, -S)\n"
                  : ", not tensors; memshim run --see-through shows these\n",
              out);
    } else if (!strcmp(view, "tensors")) {
        fprintf(out, "%sshows the tensors of ", indent);
        ms_view_names(out, report, NULL);
        fputs(", each as it was asked for\n", out);
    } else if (!strcmp(view, "mixed")) {
        fprintf(out, "%sshows tensors and segments of caches mixed, of ", indent);
        ms_view_names(out, report, NULL);
        fputs("; memshim run --see-through shows the tensors\n", out);
    } else if (!strcmp(view, "unknown")) {
        fprintf(out, "%sshows what ", indent);
        ms_view_names(out, report, NULL);
        fputs(" asked for: without names of its functions nothing tells tensors from segments\n", out);
    }
}
