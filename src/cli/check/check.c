/* check.c - limits, and whether what was measured keeps them; see check.h.
 *
 * Floor 5. */
#include "cli/check/check.h"

#include <stdlib.h>
#include <string.h>

#include "base/size.h"
#include "cli/cli.h"
#include "report/findings/findings.h"
#include "report/analyse/fold.h"
#include "report/analyse/leak_class.h"
#include "report/text/text.h"

#define OF(kind) (1u << (kind))

const char *const ms_check_kinds[MS_CHECK_KINDS] = {"process", "device", "owner", "phase", "class"};

const struct ms_check_figure_info ms_check_figures[MS_CHECK_FIGURES] = {
    [MS_CHECK_PEAK] = {"peak", "peak", "More memory was allocated at once than is allowed.", MS_CHECK_DEVICE,
                       OF(MS_CHECK_DEVICE) | OF(MS_CHECK_OWNER) | OF(MS_CHECK_PHASE),
                       OF(MS_CHECK_DEVICE) | OF(MS_CHECK_OWNER) | OF(MS_CHECK_PHASE), "5%", false},
    [MS_CHECK_LEAK] = {"leak", "leaked", "More memory was never freed than is allowed.", MS_CHECK_PROCESS,
                       OF(MS_CHECK_PROCESS) | OF(MS_CHECK_DEVICE) | OF(MS_CHECK_OWNER) | OF(MS_CHECK_CLASS),
                       0, "0%", false},
    [MS_CHECK_GROWTH] = {"growth", "growth", "Memory grew by more than is allowed.", MS_CHECK_PROCESS,
                         OF(MS_CHECK_PROCESS) | OF(MS_CHECK_DEVICE) | OF(MS_CHECK_OWNER) | OF(MS_CHECK_PHASE),
                         OF(MS_CHECK_PROCESS) | OF(MS_CHECK_DEVICE) | OF(MS_CHECK_OWNER) | OF(MS_CHECK_PHASE),
                         "0%", false},
    [MS_CHECK_FRAG] = {"frag", "fragmentation",
                       "More inactive memory lay between allocated blocks than is allowed.", MS_CHECK_DEVICE,
                       OF(MS_CHECK_DEVICE), 0, "5%", false},
    [MS_CHECK_RESERVED] = {"reserved", "reserved", "More memory was reserved than is allowed.",
                           MS_CHECK_DEVICE, OF(MS_CHECK_DEVICE), 0, "5%", false},
    [MS_CHECK_OOM] = {"oom", "out of memory", "There was no memory more often than is allowed.",
                      MS_CHECK_PROCESS, OF(MS_CHECK_PROCESS), 0, "0%", true},
};

struct ms_text_number ms_check_amount_text(enum ms_check_figure figure, json_int_t amount)
{
    struct ms_text_number number;

    if (!ms_check_figures[figure].count)
        return ms_text_size(amount);
    snprintf(number.text, sizeof(number.text), "%" JSON_INTEGER_FORMAT, amount);
    return number;
}

int ms_check_amount_read(const char *what, const char *text, struct ms_check_amount *amount_p)
{
    char digits[16];
    size_t length = strlen(text);
    long number;

    if (!length || text[length - 1] != '%' || length > sizeof(digits)) {
        amount_p->percent = false;
        if (ms_size_lacks_unit(text))
            ms_cli_note("%s %s is %s bytes; %sM%s is likely meant", what, text, text, text,
                        strlen(text) <= 3 && atoi(text) <= 100 ? ", or a share with %," : "");
        return ms_cli_size(what, text, &amount_p->bytes);
    }
    memcpy(digits, text, length - 1);
    digits[length - 1] = '\0';
    if (ms_cli_number(what, digits, 0, 1000, &number) < 0)
        return -1;
    *amount_p = (struct ms_check_amount){(uint64_t)number, true};
    return 0;
}

/* The kind that `scope` of `length` characters begins with, and its name; MS_CHECK_KINDS for none. */
static enum ms_check_of read_kind(const char *scope, size_t length, char **name_p)
{
    const char *colon = memchr(scope, ':', length);
    size_t kind_length = colon ? (size_t)(colon - scope) : length;
    unsigned of = 0;

    while (of < MS_CHECK_KINDS && (strlen(ms_check_kinds[of]) != kind_length ||
                                   strncmp(ms_check_kinds[of], scope, kind_length) != 0))
        of++;
    *name_p = of < MS_CHECK_KINDS && colon ? strndup(colon + 1, length - kind_length - 1) : NULL;
    return (enum ms_check_of)of;
}

/* A class by its word alone: "lost=0". */
static bool read_class(const char *scope, size_t length, struct ms_check_limit *limit)
{
    enum ms_leak_class class = ms_leak_class_find(scope, length);

    if (limit->figure != MS_CHECK_LEAK || class > MS_LEAK_CONTEXT)
        return false;
    limit->of = MS_CHECK_CLASS;
    limit->name = strdup(ms_leak_class_word(class));
    return limit->name != NULL;
}

static int refuse_kind(enum ms_check_figure figure, const char *option, const char *text)
{
    const unsigned kinds = ms_check_figures[figure].kinds;
    char allowed[256] = "";
    size_t used = 0;

    for (unsigned of = 0; of < MS_CHECK_KINDS; of++)
        if (kinds & OF(of))
            used += (size_t)snprintf(allowed + used, sizeof(allowed) - used, "%s%s%s", used ? ", " : "",
                                     ms_check_kinds[of], of ? "[:NAME]" : "");
    if (figure == MS_CHECK_LEAK)
        used += (size_t)snprintf(allowed + used, sizeof(allowed) - used,
                                 ", growing, lost, held, interrupted, context");
    if (ms_check_figures[figure].tensors)
        snprintf(allowed + used, sizeof(allowed) - used, ", tensors, or tensors: before these");
    ms_cli_error("%s '%s': before the = may stand %s", option, text, allowed);
    return -1;
}

/* A size or a share, or how often. */
static int read_amount(enum ms_check_figure figure, const char *option, const char *text,
                       struct ms_check_amount *amount_p)
{
    long count;

    if (!ms_check_figures[figure].count)
        return ms_check_amount_read(option, text, amount_p);
    if (ms_cli_number(option, text, 0, 1000000, &count) < 0)
        return -1;
    *amount_p = (struct ms_check_amount){(uint64_t)count, false};
    return 0;
}

/* Reads what stands before the "="; false if that may not. */
static bool read_scope(struct ms_check_limit *limit, const char *scope, size_t length)
{
    static const char word[] = "tensors";
    const struct ms_check_figure_info *info = &ms_check_figures[limit->figure];
    size_t before =
        length >= sizeof(word) - 1 && !strncmp(scope, word, sizeof(word) - 1) ? sizeof(word) - 1 : 0;

    if (read_class(scope, length, limit))
        return true;
    if (before && length == before) {
        limit->tensors = true;
        return info->tensors != 0;
    }
    limit->tensors = before && scope[before] == ':';
    if (limit->tensors) {
        scope += before + 1;
        length -= before + 1;
    }
    limit->of = read_kind(scope, length, &limit->name);
    return limit->of != MS_CHECK_KINDS && (limit->tensors ? info->tensors : info->kinds) & OF(limit->of);
}

int ms_check_take_limit(struct ms_check_rules *rules, enum ms_check_figure figure, const char *option,
                        const char *text)
{
    const char *equals = strrchr(text, '=');
    struct ms_check_limit limit = {.figure = figure, .of = ms_check_figures[figure].usual};
    struct ms_check_limit *grown;

    if (equals && !read_scope(&limit, text, (size_t)(equals - text))) {
        free(limit.name);
        return refuse_kind(figure, option, text);
    }
    if (read_amount(figure, option, equals ? equals + 1 : text, &limit.amount) < 0) {
        free(limit.name);
        return -1;
    }
    if (limit.amount.percent && (limit.of == MS_CHECK_PROCESS || limit.of == MS_CHECK_CLASS ||
                                 (limit.of == MS_CHECK_OWNER && figure != MS_CHECK_PEAK))) {
        ms_cli_error("%s '%s': a share is one of a device; give device=%s, or a size", option, text,
                     equals ? equals + 1 : text);
        free(limit.name);
        return -1;
    }
    grown = realloc(rules->limits, (rules->limit_count + 1) * sizeof(*grown));
    if (!grown || asprintf(&limit.text, "%s %s", option, text) < 0) {
        ms_cli_error("no memory for %s", option);
        free(limit.name);
        rules->limits = grown ? grown : rules->limits;
        return -1;
    }
    rules->limits = grown;
    rules->limits[rules->limit_count++] = limit;
    return 0;
}

int ms_check_take_tolerance(struct ms_check_rules *rules, const char *text)
{
    const char *equals = strchr(text, '=');
    struct ms_check_amount amount;
    bool known = !equals;

    if (ms_check_amount_read("--tolerance", equals ? equals + 1 : text, &amount) < 0)
        return -1;
    for (unsigned figure = 0; figure < MS_CHECK_FIGURES; figure++) {
        const char *name = ms_check_figures[figure].name;

        if (equals && (strlen(name) != (size_t)(equals - text) || strncmp(name, text, strlen(name)) != 0))
            continue;
        known = true;
        rules->tolerance[figure] = amount;
        rules->tolerance_given[figure] = true;
    }
    if (!known)
        ms_cli_error("--tolerance '%s': before the = may stand peak, leak, growth, frag, reserved or oom",
                     text);
    return known ? 0 : -1;
}

bool ms_check_has_rules(const struct ms_check_rules *rules)
{
    return rules->limit_count || rules->baseline;
}

void ms_check_rules_free(struct ms_check_rules *rules)
{
    for (size_t i = 0; i < rules->limit_count; i++) {
        free(rules->limits[i].name);
        free(rules->limits[i].text);
    }
    for (size_t i = 0; i < rules->base_count; i++)
        free(rules->base[i].name);
    free(rules->limits);
    free(rules->base);
}

void ms_check_results_free(struct ms_check_results *results)
{
    for (size_t i = 0; i < results->count; i++)
        free(results->rows[i].rule);
    free(results->rows);
    ms_names_close(&results->names);
}

int ms_check_all_met(const struct ms_check_rules *rules)
{
    int status = 0;

    for (size_t i = 0; i < rules->limit_count; i++) {
        const struct ms_check_limit *limit = &rules->limits[i];

        if (limit->tensors && !limit->seen) {
            ms_cli_error("%s: no report has tensors; frameworks that tell theirs are in docs/user/tensors.md",
                         limit->text);
            status = -1;
            continue;
        }
        if (limit->met || limit->of == MS_CHECK_PROCESS)
            continue;
        if (limit->of == MS_CHECK_PHASE) {
            ms_cli_error("%s: there is no %s in any report; memshim phases lists them", limit->text,
                         limit->name ? "such phase" : "phase");
            status = -1;
        } else {
            ms_cli_note("%s: no %s in any report, so it holds nothing", limit->text,
                        limit->of == MS_CHECK_OWNER ? "such owner is" : "such device is");
        }
    }
    return status;
}

char *ms_check_title(const struct ms_check_result *result)
{
    const struct ms_check_measure *measure = &result->measure;
    const char *title = ms_check_figures[measure->figure].title;
    bool whole = measure->of == MS_CHECK_PROCESS;
    bool by_time = measure->figure == MS_CHECK_GROWTH && measure->of != MS_CHECK_PHASE;
    const char *layer = !measure->tensors ? "" : by_time ? " of tensors by time" : " of tensors";
    char *text = NULL, *process = ms_check_process(result->report, measure);

    if (!process ||
        asprintf(&text, "%s%s%s%s%s%s%s", title, layer, whole ? "" : " of ",
                 whole ? "" : ms_check_kinds[measure->of], whole ? "" : " ", measure->name, process) < 0)
        text = NULL;
    free(process);
    return text;
}

char *ms_check_message(const struct ms_check_result *result)
{
    char *title = ms_check_title(result), *text = NULL, among[64] = "", more[64] = "";

    if (result->measure.processes > 1)
        snprintf(among, sizeof(among), ", the most of %" JSON_INTEGER_FORMAT " processes",
                 result->measure.processes);
    if (result->more)
        snprintf(more, sizeof(more), "; %zu more processes do not keep it", result->more);
    if (!title ||
        asprintf(&text, "%s%s: %s, allowed %s (%s)%s", title, among,
                 ms_check_amount_text(result->measure.figure, result->measure.bytes).text,
                 ms_check_amount_text(result->measure.figure, result->allowed).text, result->rule, more) < 0)
        text = NULL;
    free(title);
    return text;
}

static const json_t *job_site(const struct ms_check_result *result)
{
    const json_t *job = json_object_get(result->report->root, "job");

    return result->measure.job_site < 0
               ? NULL
               : json_array_get(ms_report_array(job, "sites"), (size_t)result->measure.job_site);
}

const json_t *ms_check_site(const struct ms_check_result *result)
{
    const struct ms_check_measure *measure = &result->measure;

    if (!measure->tensors)
        return ms_report_site(result->report, measure->site);
    return measure->site < 0
               ? NULL
               : json_array_get(ms_report_array(result->report->root, "inner_sites"), (size_t)measure->site);
}

char *ms_check_line(const struct ms_check_result *result)
{
    const json_t *site = ms_check_site(result), *common = job_site(result);
    char *line = common ? strdup(ms_report_text(common, "at"))
                 : site ? ms_finding_line(result->report, site, "")
                        : NULL;

    if (line && *line)
        return line;
    free(line);
    return NULL;
}

const json_t *ms_check_place(const struct ms_check_result *result)
{
    const json_t *site = ms_check_site(result);
    bool inferred;

    return site ? ms_fold_own(result->report, ms_report_int(site, "stack"), &inferred) : job_site(result);
}
