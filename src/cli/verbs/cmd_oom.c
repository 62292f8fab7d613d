/* cmd_oom.c - memshim oom: each time there was no memory: why, who held it, and what would have made it fit.
 *
 * Floor 5. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/load.h"
#include "cli/screens/multi_report.h"
#include "cli/screens/summary.h"
#include "cli/torch/what_if.h"
#include "record/footprint/pools.h"
#include "report/text/text.h"
#include "report/analyse/view.h"
#include "report/read/layer.h"

enum { STACK_SHOWN = 12, HOLDER_SHOWN = 4 };

struct oom_options {
    struct ms_cli_printing printing;
    long top;
};

static int oom_take(void *arg, int id, const char *value)
{
    struct oom_options *options = arg;

    if (ms_cli_take_printing(&options->printing, id, value))
        return 0;
    return ms_cli_number("--top", value, 0, 1000000, &options->top);
}

static int open_oom(const struct ms_report *report, const void *options, void *view_p)
{
    (void)options;
    *(json_t **)view_p = ms_cli_layer == MS_CLI_BLOCKS ? json_incref(ms_report_array(report->root, "oom"))
                                                       : ms_report_ooms(report);
    return 0;
}

static void close_oom(void *view)
{
    json_decref(*(json_t **)view);
}

static void oom_sum_up(const void *view, json_int_t figures[MS_MANY_FIGURES])
{
    figures[0] = (json_int_t)json_array_size(*(json_t *const *)view);
}

/* `replayed`: PyTorch's settings by the run's trace, and whether the request would have been served. */
static void set_replayed(json_t *object, const struct ms_report *report, const json_t *row)
{
    struct ms_torch_try tries[MS_TORCH_TRIES_MOST];
    int count = ms_torch_what_if(report, row, tries);
    json_t *replayed = json_array();

    for (int i = 0; i < count; i++)
        json_array_append_new(replayed, json_pack("{s:s, s:b}", "settings", tries[i].settings, "fits",
                                                  tries[i].result.completed));
    if (count)
        json_object_set(object, "replayed", replayed);
    json_decref(replayed);
}

static json_t *oom_report_json(const char *path, const struct ms_report *report, const void *view,
                               const void *options)
{
    json_t *rows = json_array(), *row, *object;
    size_t i;

    (void)options;
    json_array_foreach (*(json_t *const *)view, i, row) {
        json_t *copy = json_copy(row);

        if (!json_is_object(row)) {
            json_decref(copy);
            continue;
        }
        ms_cli_set_stack(copy, report, ms_report_int(row, "stack"));
        set_replayed(copy, report, row);
        json_array_append_new(rows, copy);
    }
    object = json_pack("{s:s, s:o}", "file", path, "oom", rows);
    ms_cli_set_view(object, report);
    return object;
}

/* "64.0 MiB of cudaMalloc, in main at app.c:7" */
static void oom_print_held(FILE *out, const struct ms_report *report, const json_t *row, const json_t *held)
{
    json_t *site = ms_report_oom_site(report, row, held);

    fprintf(out, "%s by ", ms_text_size(ms_report_int(held, "bytes")).text);
    ms_text_put(out, ms_cli_site_api(site));
    ms_text_put_own(out, report, ms_report_int(site, "stack"));
}

/* A report of before kinds were told has the pool's. */
static enum ms_asked_group group_of(const json_t *row)
{
    static const struct {
        const char *word;
        enum ms_asked_group group;
    } kinds[] = {
#define MS_ASKED_ROW(kind, word, group, told) {word, MS_ASKED_OF_##group},
#include "record/live/oom.def"
    };
    const char *kind = ms_report_text(row, "kind");

    for (size_t i = 0; i < MS_ARRAY_LEN(kinds); i++)
        if (!strcmp(kind, kinds[i].word))
            return kinds[i].group;
    return MS_ASKED_OF_POOL;
}

static const char *why(const json_t *row)
{
    static const char *const causes[] = {
#define MS_OOM_CAUSE_ROW(cause, word) [MS_OOM_##cause] = word,
#include "record/live/oom.def"
    };
    static const struct {
        enum ms_asked_group group;
        enum ms_oom_cause cause;
        const char *fragmentation, *why;
    } words[] = {
#define MS_OOM_WHY(group, cause, word, why) {MS_ASKED_OF_##group, MS_OOM_##cause, word, why},
#include "record/live/oom.def"
    };
    const char *cause = ms_report_text(row, "cause"), *fragmentation = ms_report_text(row, "fragmentation");
    enum ms_asked_group group = group_of(row);

    for (size_t i = 0; i < MS_ARRAY_LEN(words); i++)
        if (words[i].group == group && !strcmp(cause, causes[words[i].cause]) &&
            (!*words[i].fragmentation || !strcmp(fragmentation, words[i].fragmentation)))
            return words[i].why;
    return "not known";
}

/* As people write it: "256M", and of bytes that are not whole so many of the next larger one, which fits as
 * well. */
static void put_setting(FILE *out, const char *value)
{
    static const char units[] = "KMG";
    uint64_t bytes = strtoull(value, NULL, 10), unit = 1;
    size_t i = 0;

    if (!*value || value[strspn(value, "0123456789")] || bytes < 1024) {
        ms_text_put(out, value);
        return;
    }
    while (i < sizeof(units) - 1 && (bytes % (unit << 10) == 0 || (unit << 10) <= 1 << 20)) {
        unit <<= 10;
        i++;
    }
    fprintf(out, "%" PRIu64 "%c", bytes / unit + (bytes % unit != 0), units[i - 1]);
}

static void print_fit(FILE *out, const struct ms_report *report, const json_t *row, const json_t *fit)
{
    const char *how = ms_report_text(fit, "how");
    json_t *held;
    size_t i;

    if (!strcmp(how, "wait")) {
        fputs("    waiting for the device before asking\n", out);
    } else if (!strcmp(how, "policy") || !strcmp(how, "try")) {
        const char *name = ms_report_text(fit, "name");
        bool is_call = !strncmp(name, "torch.", strlen("torch."));

        fputs("    ", out);
        ms_text_put(out, name);
        fputc(is_call ? '(' : '=', out);
        put_setting(out, ms_report_text(fit, "value"));
        fputs(is_call ? ")" : "", out);
        fputs(strcmp(ms_report_text(fit, "name"), "MEMSHIM_BACKING") ? "\n"
                                                                     : ", for more calls to the driver\n",
              out);
    } else if (!strcmp(how, "ask_for_less")) {
        fprintf(out, "    asking for no more than %s\n", ms_text_size(ms_report_int(fit, "bytes")).text);
    } else if (!strcmp(how, "free")) {
        fprintf(out, "    freeing %s%s:\n", ms_text_size(ms_report_int(fit, "bytes")).text,
                ms_report_oom_is_inner(row) ? " of whole segments" : "");
        json_array_foreach (ms_report_array(fit, "sites"), i, held) {
            fputs("      ", out);
            oom_print_held(out, report, row, held);
            fputc('\n', out);
        }
    }
}

static void oom_print_holders(FILE *out, const struct ms_report *report, const json_t *row, size_t top)
{
    json_t *held;
    size_t i;

    if (json_array_size(ms_report_array(row, "owners")))
        fputs("  it was held by", out);
    json_array_foreach (ms_report_array(row, "owners"), i, held) {
        fprintf(out, "%s ", i ? "," : "");
        ms_text_put(out, ms_report_text(held, "owner"));
        fprintf(out, " (%s)", ms_text_size(ms_report_int(held, "bytes")).text);
    }
    fputs(i ? "\n" : "", out);
    json_array_foreach (ms_report_array(row, "top_sites"), i, held) {
        if (i >= top)
            break;
        fputs("    ", out);
        oom_print_held(out, report, row, held);
        fputc('\n', out);
        ms_text_stack(out, report, ms_report_int(ms_report_oom_site(report, row, held), "stack"), "        ",
                      HOLDER_SHOWN);
    }
}

/* A change of which nobody can say whether it would have done. */
static bool oom_is_try(const json_t *fit)
{
    return !strcmp(ms_report_text(fit, "how"), "try");
}

/* Settings of PyTorch's by the run's trace: the three that would have reserved least of those that fit. False
 * without a trace. */
static bool print_replayed(FILE *out, const struct ms_report *report, const json_t *row)
{
    enum { SHOWN = 3 };
    struct ms_torch_try tries[MS_TORCH_TRIES_MOST];
    bool told[MS_TORCH_TRIES_MOST] = {false};
    int count = ms_torch_what_if(report, row, tries), best;

    for (int shown = 0; shown < SHOWN && count; shown++) {
        best = -1;
        for (int i = 1; i < count; i++)
            if (!told[i] && tries[i].result.completed &&
                (best < 0 || tries[i].result.peak_reserved < tries[best].result.peak_reserved))
                best = i;
        if (best < 0 && !shown)
            fputs("  by its trace, no setting of PyTorch's allocator would have served it\n", out);
        if (best < 0)
            return true;
        if (!shown)
            fputs("  by its trace, these settings of PyTorch's allocator would have served it:\n", out);
        told[best] = true;
        fprintf(out, "    PYTORCH_ALLOC_CONF=%s, with %s reserved\n", tries[best].settings,
                ms_text_size((json_int_t)tries[best].result.peak_reserved).text);
    }
    return count > 0;
}

static void oom_print_row(FILE *out, const struct ms_report *report, const json_t *row, size_t top)
{
    const char *phase = ms_report_text(json_object_get(row, "phase"), "name");
    json_t *fits = ms_report_array(row, "would_fit"), *fit;
    size_t i, sure = 0;

    ms_summary_print_refused(out, row);
    if (*phase) {
        fputs(", in phase ", out);
        ms_text_put(out, phase);
    }
    ms_text_put_own(out, report, ms_report_int(row, "stack"));
    fputc('\n', out);
    ms_text_callers(out, report, ms_report_int(row, "stack"), "      ", STACK_SHOWN);
    fprintf(out, "  why: %s\n  ", why(row));
    ms_summary_print_then(out, row);
    fputc('\n', out);
    json_array_foreach (fits, i, fit)
        sure += !oom_is_try(fit);
    if (sure)
        fputs("  each of these would have made it fit:\n", out);
    json_array_foreach (fits, i, fit)
        if (!oom_is_try(fit))
            print_fit(out, report, row, fit);
    if (!print_replayed(out, report, row) && sure < json_array_size(fits)) {
        fputs("  this may have, as only another run can tell:\n", out);
        json_array_foreach (fits, i, fit)
            if (oom_is_try(fit))
                print_fit(out, report, row, fit);
    }
    oom_print_holders(out, report, row, top);
}

static void oom_print_text(FILE *out, const struct ms_report *report, const void *view, const void *options)
{
    json_t *rows = *(json_t *const *)view, *row;
    json_int_t left_out;
    size_t i;

    ms_view_print(out, report, "");
    if (!json_array_size(rows))
        fputs("there always was memory\n", out);
    json_array_foreach (rows, i, row) {
        fputs(i ? "\n" : "", out);
        oom_print_row(out, report, row, (size_t)((const struct oom_options *)options)->top);
    }
    if (json_array_size(rows)) {
        json_t *what_if = ms_torch_what_if_run(report);

        ms_torch_print_what_if(out, what_if);
        json_decref(what_if);
    }
    left_out = ms_report_oom_count(report) - (json_int_t)i;
    if (left_out > 0 && ms_cli_layer != MS_CLI_BLOCKS)
        fprintf(out, "\n%" JSON_INTEGER_FORMAT " earlier ones are not known\n", left_out);
}

int ms_cmd_oom(int argc, char **argv)
{
    static const struct ms_many_verb verb = {.view_bytes = sizeof(json_t *),
                                             .open = open_oom,
                                             .close = close_oom,
                                             .figures = oom_sum_up,
                                             .json = oom_report_json,
                                             .columns = {{"refused", true}},
                                             .after_path = ":\n",
                                             .text = oom_print_text};
    struct oom_options options = {.top = 5};

    return ms_many_run(argc, argv, oom_take, &options.printing, &verb, &options);
}
