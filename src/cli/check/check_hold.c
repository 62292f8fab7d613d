/* check_hold.c - whether what was measured keeps limits and a baseline; see check.h.
 *
 * Floor 5. The rows of a job's processes that are of the same thing are held together: one result says that
 * all keep a rule, and each process that does not has its own, those most beyond it first. */
#include <stdlib.h>
#include <string.h>

#include "cli/check/check.h"
#include "cli/array.h"

/* So many processes are named of those that break one rule. */
enum { PROCESSES_NAMED = 64 };

/* One rule, for the report that is being held against it. */
struct holding {
    const struct ms_check_rules *rules;
    struct ms_check_limit *limit; /* NULL: the baseline */
    const char *path;
    const struct ms_report *report;
    struct ms_check_results *results;
};

/* The bytes that the amount comes to; a share is cut to whole bytes. */
static json_int_t bytes_of(const struct ms_check_amount *amount, json_int_t whole)
{
    if (amount->percent)
        return (json_int_t)((__int128)whole * (__int128)amount->bytes / 100);
    return amount->bytes > INT64_MAX ? INT64_MAX : (json_int_t)amount->bytes;
}

static bool is_about(const struct ms_check_limit *limit, const struct ms_check_measure *measure)
{
    return limit->figure == measure->figure && limit->of == measure->of &&
           limit->tensors == measure->tensors && (!limit->name || !strcmp(limit->name, measure->name));
}

static const struct ms_check_base *find_base(const struct ms_check_rules *rules,
                                             const struct ms_check_measure *measure)
{
    for (size_t i = 0; i < rules->base_count; i++)
        if (rules->base[i].figure == measure->figure && rules->base[i].of == measure->of &&
            rules->base[i].tensors == measure->tensors && !strcmp(rules->base[i].name, measure->name))
            return &rules->base[i];
    return NULL;
}

static json_int_t allowed_of(const struct holding *holding, const struct ms_check_measure *measure)
{
    const struct ms_check_base *base;

    if (holding->limit)
        return bytes_of(&holding->limit->amount, measure->whole);
    base = find_base(holding->rules, measure);
    return base ? ms_report_sum(base->bytes,
                                bytes_of(&holding->rules->tolerance[measure->figure], base->bytes))
                : INT64_MAX;
}

/* The name of the rule, to be freed. */
static char *rule_text(const struct holding *holding, const struct ms_check_measure *measure)
{
    const struct ms_check_base *base = holding->limit ? NULL : find_base(holding->rules, measure);
    const struct ms_check_amount *tolerance = &holding->rules->tolerance[measure->figure];
    char *text = NULL, more[48];

    if (!base)
        return holding->limit ? strdup(holding->limit->text) : NULL;
    if (tolerance->percent)
        snprintf(more, sizeof(more), "%llu%%", (unsigned long long)tolerance->bytes);
    else
        snprintf(more, sizeof(more), "%s",
                 ms_check_amount_text(measure->figure, bytes_of(tolerance, 0)).text);
    return asprintf(&text, "baseline %s + %s", ms_check_amount_text(measure->figure, base->bytes).text,
                    more) < 0
               ? NULL
               : text;
}

static int check_hold_add(const struct holding *holding, const struct ms_check_measure *measure, size_t more)
{
    struct ms_check_results *results = holding->results;
    struct ms_check_result result = {.report = holding->report,
                                     .path = holding->path,
                                     .measure = *measure,
                                     .allowed = allowed_of(holding, measure),
                                     .more = more};
    struct ms_check_result *rows =
        ms_array_grow(results->rows, sizeof(*rows), results->count, &results->room, 64);
    uint32_t name = ms_names_number(&results->names, measure->name);

    if (rows)
        results->rows = rows;
    if (!rows || name == UINT32_MAX || !(result.rule = rule_text(holding, measure)))
        return -1;
    result.measure.name = results->names.texts[name];
    result.held = measure->bytes <= result.allowed;
    results->rows[results->count++] = result;
    results->failed += !result.held;
    return 0;
}

/* --- rows of the same thing -------------------------------------------------------------------------------
 */

static const struct holding *sorting;

static json_int_t beyond(const struct ms_check_measure *measure)
{
    return measure->bytes - allowed_of(sorting, measure);
}

static int by_beyond(const void *a, const void *b)
{
    const struct ms_check_measure *x = *(const struct ms_check_measure *const *)a;
    const struct ms_check_measure *y = *(const struct ms_check_measure *const *)b;
    json_int_t left = beyond(x), right = beyond(y);

    if (left != right)
        return left > right ? -1 : 1;
    return x->process < y->process ? -1 : x->process > y->process;
}

static int add_broken(const struct holding *holding, const struct ms_check_measure **broken, size_t count)
{
    size_t named = count < PROCESSES_NAMED ? count : PROCESSES_NAMED;
    int status = 0;

    sorting = holding;
    qsort(broken, count, sizeof(*broken), by_beyond);
    for (size_t i = 0; status == 0 && i < named; i++)
        status = check_hold_add(holding, broken[i], i + 1 == named ? count - named : 0);
    return status;
}

/* The one with most stands for all; equal ones by row. */
static int add_most(const struct holding *holding, const struct ms_check_measure *rows, size_t count)
{
    struct ms_check_measure most = rows[0];
    json_int_t processes = rows[0].processes;

    for (size_t i = 1; i < count; i++) {
        processes = ms_report_sum(processes, rows[i].processes);
        if (rows[i].bytes > most.bytes || (rows[i].bytes == most.bytes && rows[i].process < most.process))
            most = rows[i];
    }
    most.processes = processes;
    return check_hold_add(holding, &most, 0);
}

static int hold_rows(const struct holding *holding, const struct ms_check_measure *rows, size_t count)
{
    const struct ms_check_measure **broken = calloc(count, sizeof(*broken));
    size_t broken_count = 0;
    int status;

    if (!broken)
        return -1;
    for (size_t i = 0; i < count; i++)
        if (rows[i].bytes > allowed_of(holding, &rows[i]))
            broken[broken_count++] = &rows[i];
    status = broken_count ? add_broken(holding, broken, broken_count) : add_most(holding, rows, count);
    free(broken);
    return status;
}

static bool is_anything(const struct ms_check_measure *rows, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (rows[i].bytes > 0)
            return true;
    return false;
}

/* A row that the baseline does not have is not held by itself: it is in the figures of its device and of the
 * process. */
static int check_hold_hold(const struct holding *holding, const struct ms_check_measure *rows, size_t count)
{
    const struct ms_check_base *base = holding->limit ? NULL : find_base(holding->rules, &rows[0]);

    if (holding->limit) {
        holding->limit->seen = holding->limit->seen || rows[0].tensors;
        if (!is_about(holding->limit, &rows[0]))
            return 0;
        holding->limit->met = true;
    } else {
        if (!base)
            holding->results->fresh += rows[0].of != MS_CHECK_CLASS && is_anything(rows, count);
        if (!base || (!base->bytes && !is_anything(rows, count)))
            return 0;
    }
    return hold_rows(holding, rows, count);
}

/* Each process of a job is measured by itself, and its rows lie together by what they are of. */
static int hold_each(const struct holding *holding, const struct ms_check_measures *measures)
{
    int status = 0;
    size_t next;

    for (size_t i = 0; status == 0 && i < measures->count; i = next) {
        for (next = i + 1; next < measures->count && measures->rows[i].process >= 0 &&
                           ms_check_is_same(&measures->rows[i], &measures->rows[next]);)
            next++;
        status = check_hold_hold(holding, &measures->rows[i], next - i);
    }
    return status;
}

int ms_check_report(struct ms_check_rules *rules, const char *path, const struct ms_report *report,
                    struct ms_check_results *results)
{
    struct holding holding = {.rules = rules, .path = path, .report = report, .results = results};
    struct ms_check_measures measures;
    int status = ms_check_measure(report, &measures);

    for (size_t k = 0; status == 0 && k < rules->limit_count; k++) {
        holding.limit = &rules->limits[k];
        status = hold_each(&holding, &measures);
    }
    holding.limit = NULL;
    if (status == 0 && rules->baseline)
        status = hold_each(&holding, &measures);
    ms_check_measures_free(&measures);
    return status;
}
