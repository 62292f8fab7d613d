/* check.c - limits, and whether what was measured keeps them; see check.h.
 *
 * Floor 5. */
#include "cli/check.h"

#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/grow.h"
#include "report/findings.h"
#include "report/text.h"

#define OF(kind) (1u << (kind))

const char *const ms_check_kinds[MS_CHECK_KINDS] = {"process", "device", "owner", "phase"};

const struct ms_check_figure_info ms_check_figures[MS_CHECK_FIGURES] = {
    [MS_CHECK_PEAK] = {"peak", "peak", "More memory was live at once than is allowed.", MS_CHECK_DEVICE,
                       OF(MS_CHECK_DEVICE) | OF(MS_CHECK_OWNER) | OF(MS_CHECK_PHASE), "5%"},
    [MS_CHECK_LEAK] = {"leak", "leaked", "More memory was never freed than is allowed.", MS_CHECK_PROCESS,
                       OF(MS_CHECK_PROCESS) | OF(MS_CHECK_DEVICE) | OF(MS_CHECK_OWNER), "0%"},
    [MS_CHECK_GROWTH] = {"growth", "growth", "Memory grew by more than is allowed.", MS_CHECK_PROCESS,
                         OF(MS_CHECK_PROCESS) | OF(MS_CHECK_DEVICE) | OF(MS_CHECK_OWNER) | OF(MS_CHECK_PHASE),
                         "0%"},
    [MS_CHECK_FRAG] = {"frag", "stranded", "More free memory lay between live blocks than is allowed.",
                       MS_CHECK_DEVICE, OF(MS_CHECK_DEVICE), "5%"},
    [MS_CHECK_RESERVED] = {"reserved", "reserved", "More memory was reserved for the pool than is allowed.",
                           MS_CHECK_DEVICE, OF(MS_CHECK_DEVICE), "5%"},
};

int ms_check_amount_read(const char *what, const char *text, struct ms_check_amount *amount_p)
{
    char digits[16];
    size_t length = strlen(text);
    long number;

    if (!length || text[length - 1] != '%' || length > sizeof(digits)) {
        amount_p->percent = false;
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

static int refuse_kind(enum ms_check_figure figure, const char *option, const char *text)
{
    const unsigned kinds = ms_check_figures[figure].kinds;
    char allowed[128] = "";
    size_t used = 0;

    for (unsigned of = 0; of < MS_CHECK_KINDS; of++)
        if (kinds & OF(of))
            used += (size_t)snprintf(allowed + used, sizeof(allowed) - used, "%s%s%s", used ? ", " : "",
                                     ms_check_kinds[of], of ? "[:NAME]" : "");
    ms_cli_error("%s '%s': before the = may stand %s", option, text, allowed);
    return -1;
}

int ms_check_take_limit(struct ms_check_rules *rules, enum ms_check_figure figure, const char *option,
                        const char *text)
{
    const char *equals = strrchr(text, '=');
    struct ms_check_limit limit = {.figure = figure, .of = ms_check_figures[figure].usual};
    struct ms_check_limit *grown;

    if (equals)
        limit.of = read_kind(text, (size_t)(equals - text), &limit.name);
    if (limit.of == MS_CHECK_KINDS || !(ms_check_figures[figure].kinds & OF(limit.of))) {
        free(limit.name);
        return refuse_kind(figure, option, text);
    }
    if (ms_check_amount_read(option, equals ? equals + 1 : text, &limit.amount) < 0) {
        free(limit.name);
        return -1;
    }
    if (limit.amount.percent &&
        (limit.of == MS_CHECK_PROCESS || (limit.of == MS_CHECK_OWNER && figure != MS_CHECK_PEAK))) {
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
        ms_cli_error("--tolerance '%s': before the = may stand peak, leak, growth, frag or reserved", text);
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
}

/* What the amount comes to; a share is cut to whole bytes. */
static json_int_t bytes_of(const struct ms_check_amount *amount, json_int_t whole)
{
    if (amount->percent)
        return (json_int_t)((__int128)whole * (__int128)amount->bytes / 100);
    return amount->bytes > INT64_MAX ? INT64_MAX : (json_int_t)amount->bytes;
}

static int add(struct ms_check_results *results, const struct ms_check_result *result)
{
    struct ms_check_result *rows;

    if (!result->rule)
        return -1;
    rows = ms_grow(results->rows, sizeof(*rows), results->count, &results->room, 64);
    if (!rows)
        return -1;
    results->rows = rows;
    results->rows[results->count++] = *result;
    results->failed += !result->held;
    return 0;
}

static bool is_about(const struct ms_check_limit *limit, const struct ms_check_measure *measure)
{
    return limit->figure == measure->figure && limit->of == measure->of &&
           (!limit->name || !strcmp(limit->name, measure->name));
}

static int hold_limit(struct ms_check_limit *limit, const char *path, const struct ms_report *report,
                      const struct ms_check_measure *measure, struct ms_check_results *results)
{
    struct ms_check_result result = {
        report, path, *measure, bytes_of(&limit->amount, measure->whole), strdup(limit->text), false};

    limit->met = true;
    result.held = measure->bytes <= result.allowed;
    return add(results, &result);
}

static const struct ms_check_base *find_base(const struct ms_check_rules *rules,
                                             const struct ms_check_measure *measure)
{
    for (size_t i = 0; i < rules->base_count; i++)
        if (rules->base[i].figure == measure->figure && rules->base[i].of == measure->of &&
            !strcmp(rules->base[i].name, measure->name))
            return &rules->base[i];
    return NULL;
}

/* What is new beside a baseline is in the figures of its device and of the process. */
static int hold_base(const struct ms_check_rules *rules, const char *path, const struct ms_report *report,
                     const struct ms_check_measure *measure, struct ms_check_results *results)
{
    const struct ms_check_base *base = find_base(rules, measure);
    const struct ms_check_amount *tolerance = &rules->tolerance[measure->figure];
    struct ms_check_result result = {report, path, *measure, 0, NULL, false};
    char more[48];

    if (!base)
        results->fresh += measure->bytes > 0;
    if (!base || (!base->bytes && measure->bytes <= 0))
        return 0;
    result.allowed = ms_report_sum(base->bytes, bytes_of(tolerance, base->bytes));
    result.held = measure->bytes <= result.allowed;
    if (tolerance->percent)
        snprintf(more, sizeof(more), "%llu%%", (unsigned long long)tolerance->bytes);
    else
        snprintf(more, sizeof(more), "%s", ms_text_size(bytes_of(tolerance, 0)).text);
    if (asprintf(&result.rule, "baseline %s + %s", ms_text_size(base->bytes).text, more) < 0)
        return -1;
    return add(results, &result);
}

int ms_check_report(struct ms_check_rules *rules, const char *path, const struct ms_report *report,
                    struct ms_check_results *results)
{
    struct ms_check_measures measures;
    int status = ms_check_measure(report, &measures);

    for (size_t k = 0; status == 0 && k < rules->limit_count; k++)
        for (size_t i = 0; status == 0 && i < measures.count; i++)
            if (is_about(&rules->limits[k], &measures.rows[i]))
                status = hold_limit(&rules->limits[k], path, report, &measures.rows[i], results);
    for (size_t i = 0; status == 0 && rules->baseline && i < measures.count; i++)
        status = hold_base(rules, path, report, &measures.rows[i], results);
    free(measures.rows);
    return status;
}

int ms_check_all_met(const struct ms_check_rules *rules)
{
    int status = 0;

    for (size_t i = 0; i < rules->limit_count; i++) {
        const struct ms_check_limit *limit = &rules->limits[i];

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

void ms_check_title(const struct ms_check_measure *measure, char *text, size_t bytes)
{
    const char *title = ms_check_figures[measure->figure].title;

    if (measure->of == MS_CHECK_PROCESS)
        snprintf(text, bytes, "%s", title);
    else
        snprintf(text, bytes, "%s of %s %s", title, ms_check_kinds[measure->of], measure->name);
}

char *ms_check_message(const struct ms_check_result *result)
{
    char title[320], *text = NULL;

    ms_check_title(&result->measure, title, sizeof(title));
    if (asprintf(&text, "%s: %s, allowed %s (%s)", title, ms_text_size(result->measure.bytes).text,
                 ms_text_size(result->allowed).text, result->rule) < 0)
        return NULL;
    return text;
}

char *ms_check_line(const struct ms_check_result *result)
{
    const json_t *site = ms_report_site(result->report, result->measure.site);

    char *line = site ? ms_finding_line(result->report, site, "") : NULL;

    if (line && *line)
        return line;
    free(line);
    return NULL;
}
