/* findings.c - the findings of a report, gathered and ranked; see findings.h.
 *
 * Floor 4, command line only. */
#include "report/findings/findings.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "report/analyse/fold.h"
#include "report/text/text.h"

enum by { RECORD, COMMAND };

static const struct rule {
    const char *name;
    enum by by;
    const char *severity, *confidence;
} rules[] = {
#define MS_FINDING(rule, by, severity, confidence) {#rule, by, #severity, #confidence},
#define MS_FINDING_NUMBER(name, value, text, rule)
#include "report/findings/findings.def"
#undef MS_FINDING
#undef MS_FINDING_NUMBER
};

/* The rules of enum ms_finding_many. */
static const char *const many_names[MS_MANY_COUNT] = {[MS_MANY_LEAK] = "leak",
                                                      [MS_MANY_GROWTH] = "growth",
                                                      [MS_MANY_TEMPORARY] = "temporary_vendor_calls",
                                                      [MS_MANY_IMPORTS] = "imports_open",
                                                      [MS_MANY_REGISTRATIONS] = "registrations_left"};

static const struct rule *rule_of(const char *name)
{
    for (size_t i = 0; i < MS_ARRAY_LEN(rules); i++) {
        if (!strcmp(rules[i].name, name))
            return &rules[i];
    }
    return NULL;
}

char *ms_finding_text(const char *format, ...)
{
    va_list ap;
    char *text = NULL;

    va_start(ap, format);
    if (vasprintf(&text, format, ap) < 0)
        text = NULL;
    va_end(ap);
    return text;
}

char *ms_finding_line(const struct ms_report *report, const json_t *row, const char *without)
{
    bool inferred;
    const json_t *frame = ms_fold_own(report, ms_report_int(row, "stack"), &inferred);
    size_t bytes;
    char *line = NULL;
    FILE *out = frame ? open_memstream(&line, &bytes) : NULL;

    if (!out)
        return strdup(without);
    ms_text_frame(out, report, frame);
    ms_text_put_callers(out, report, ms_report_int(row, "stack"));
    if (fclose(out)) {
        free(line);
        return NULL;
    }
    return line;
}

void ms_finding_note(struct ms_finder *finder, struct ms_finding_rows found)
{
    if (finder->found_count == finder->found_room) {
        size_t room = finder->found_room ? 2 * finder->found_room : 256;
        struct ms_finding_rows *all = realloc(finder->found, room * sizeof(*all));

        if (!all)
            return;
        finder->found = all;
        finder->found_room = room;
    }
    finder->found[finder->found_count++] = found;
}

static int compare_found(const void *a, const void *b)
{
    const struct ms_finding_rows *x = a, *y = b;

    if (x->rule != y->rule)
        return x->rule < y->rule ? -1 : 1;
    return x->bytes > y->bytes ? -1 : x->bytes < y->bytes;
}

/* As many as a rule shows, and those that are as large as the last of them: whoever ranks them decides. */
void ms_finding_tell_noted(struct ms_finder *finder)
{
    size_t first = 0;

    if (finder->found_count)
        qsort(finder->found, finder->found_count, sizeof(*finder->found), compare_found);
    for (size_t i = 0; i < finder->found_count; i++) {
        const struct ms_finding_rows *found = &finder->found[i];

        first = found->rule == finder->found[first].rule ? first : i;
        if (i - first < MS_FINDINGS_OF_RULE_MAX ||
            found->bytes == finder->found[first + MS_FINDINGS_OF_RULE_MAX - 1].bytes) {
            found->tell(finder, found);
            continue;
        }
        finder->untold[found->rule].count++;
        finder->untold[found->rule].bytes = ms_report_sum(finder->untold[found->rule].bytes, found->bytes);
    }
    free(finder->found);
    finder->found = NULL;
    finder->found_count = finder->found_room = 0;
}

json_t *ms_finding_add(struct ms_finder *finder, const char *rule, json_int_t bytes, const json_t *site,
                       char *message, char *advice)
{
    const struct rule *known = rule_of(rule);
    json_t *row =
        message && advice && known
            ? json_pack("{s:s, s:s, s:s, s:I, s:s, s:s}", "rule", rule, "severity", known->severity,
                        "confidence", known->confidence, "bytes", bytes, "message", message, "advice", advice)
            : NULL;
    static const char *const copied[] = {"device", "device_api"};

    if (row && site)
        json_object_set(row, "site", json_object_get(site, "id"));
    for (size_t i = 0; row && site && i < MS_ARRAY_LEN(copied); i++) {
        if (json_object_get(site, copied[i]))
            json_object_set(row, copied[i], json_object_get(site, copied[i]));
    }
    if (row)
        json_array_append_new(finder->rows, row);
    free(message);
    free(advice);
    return row;
}

/* The sites most of whose bytes went with a context, by rows of devices[]. */
static const json_t **most_died(const struct ms_report *report)
{
    const json_t **most =
        calloc(json_array_size(ms_report_array(report->root, "devices")) + 1, sizeof(*most));
    json_t *leak;
    size_t i;

    json_array_foreach (ms_report_array(report->root, "leaks"), i, leak) {
        json_int_t died = ms_report_int(leak, "died_with_context_bytes");
        size_t at = died > 0 ? ms_report_device_of(report, leak) : SIZE_MAX;

        if (most && at != SIZE_MAX &&
            (!most[at] || died > ms_report_int(most[at], "died_with_context_bytes")))
            most[at] = leak;
    }
    return most;
}

/* A finding about memory that went with its context gets a line too: that of the site of which most went. */
static void place_death(const struct ms_report *report, json_t *row, const json_t *const *most)
{
    size_t at = strcmp(ms_report_text(row, "rule"), "context_died_with_blocks")
                    ? SIZE_MAX
                    : ms_report_device_of(report, row);

    if (most && at != SIZE_MAX && most[at] && !json_object_get(row, "site"))
        json_object_set(row, "site", json_object_get(most[at], "site"));
}

/* Which rows of devices[] have a stream that hoards: that is why most was reserved there. */
static bool *hoarding(const struct ms_report *report, const json_t *rows)
{
    bool *found = calloc(json_array_size(ms_report_array(report->root, "devices")) + 1, sizeof(*found));
    json_t *row;
    size_t i;

    json_array_foreach (rows, i, row) {
        size_t at =
            strcmp(ms_report_text(row, "rule"), "stream_hoard") ? SIZE_MAX : ms_report_device_of(report, row);

        if (found && at != SIZE_MAX)
            found[at] = true;
    }
    return found;
}

/* Without those of reserved_far_above_live of which another says why. */
static json_t *without_explained(const struct ms_report *report, json_t *rows)
{
    bool *explained = hoarding(report, rows);
    json_t *kept = json_array(), *row;
    size_t i;

    json_array_foreach (rows, i, row) {
        size_t at = strcmp(ms_report_text(row, "rule"), "reserved_far_above_live")
                        ? SIZE_MAX
                        : ms_report_device_of(report, row);

        if (!explained || at == SIZE_MAX || !explained[at])
            json_array_append(kept, row);
    }
    free(explained);
    json_decref(rows);
    return kept;
}

const char *ms_finding_deed(const json_t *row)
{
    const char *rule = ms_report_text(row, "rule");

    return !strcmp(rule, "out_of_memory")     ? "asked for"
           : !strcmp(rule, "use_after_free")  ? "used"
           : strstr(rule, "regist")           ? "registered"
           : !strcmp(rule, "forked_with_gpu") ? "called"
                                              : "freed";
}

static int weight(const json_t *row)
{
    if (!strcmp(ms_report_text(row, "rule"), "out_of_memory")) /* what ends programs comes first */
        return 2;
    return strcmp(ms_report_text(row, "severity"), "error") ? 0 : 1;
}

static int findings_compare(const void *a, const void *b)
{
    const json_t *x = *(json_t *const *)a, *y = *(json_t *const *)b;
    json_int_t left = ms_report_int(x, "bytes"), right = ms_report_int(y, "bytes");
    int order;

    if (weight(x) != weight(y))
        return weight(x) > weight(y) ? -1 : 1;
    if (left != right)
        return left > right ? -1 : 1;
    order = strcmp(ms_report_text(x, "rule"), ms_report_text(y, "rule"));
    left = ms_report_int(x, "site"), right = ms_report_int(y, "site");
    return order ? order : left < right ? -1 : left > right;
}

/* The rows, ranked; of each rule of the command's no more than may be, and then how much the others are, with
 * those that were not told. */
static json_t *ranked(json_t *rows, const struct ms_finder *finder)
{
    size_t count = json_array_size(rows), told[MS_ARRAY_LEN(rules)] = {0}, left[MS_ARRAY_LEN(rules)] = {0}, i;
    json_int_t bytes[MS_ARRAY_LEN(rules)] = {0};
    json_t **all = calloc(count + 1, sizeof(*all)), *row, *result = json_array();

    if (!all) {
        json_decref(result);
        return rows;
    }
    json_array_foreach (rows, i, row)
        all[i] = row;
    if (count)
        qsort(all, count, sizeof(*all), findings_compare);
    for (i = 0; i < count; i++) {
        const struct rule *rule = rule_of(ms_report_text(all[i], "rule"));
        size_t at = rule && rule->by == COMMAND ? (size_t)(rule - rules) : SIZE_MAX;

        if (at == SIZE_MAX || told[at]++ < MS_FINDINGS_OF_RULE_MAX) {
            json_array_append(result, all[i]);
            continue;
        }
        bytes[at] = ms_report_sum(bytes[at], ms_report_int(all[i], "bytes"));
        left[at]++;
    }
    for (i = 0; i < MS_MANY_COUNT; i++) {
        size_t at = (size_t)(rule_of(many_names[i]) - rules);

        bytes[at] = ms_report_sum(bytes[at], finder->untold[i].bytes);
        left[at] += finder->untold[i].count;
    }
    free(all);
    json_decref(rows);
    for (i = 0; i < MS_ARRAY_LEN(rules); i++) {
        struct ms_finder last = {.rows = result};

        if (left[i])
            ms_finding_add(
                &last, rules[i].name, bytes[i], NULL,
                ms_finding_text("%zu more like these, %s together", left[i], ms_text_size(bytes[i]).text),
                strdup("mend the larger ones first"));
    }
    return result;
}

void ms_findings_annotate(struct ms_report *report)
{
    struct ms_finder finder = {.report = report, .rows = json_array()};
    const json_t **died = most_died(report);
    json_t *row;
    size_t i;

    json_array_foreach (ms_report_array(report->root, "findings"), i, row) {
        const struct rule *rule = rule_of(ms_report_text(row, "rule"));

        if (!json_is_object(row) || (rule && rule->by == COMMAND))
            continue;
        place_death(report, row, died);
        json_array_append(finder.rows, row);
    }
    free(died);
    ms_findings_look(&finder);
    json_object_set_new(report->root, "findings", ranked(without_explained(report, finder.rows), &finder));
}

void ms_findings_put(struct ms_report *report, json_t *row)
{
    json_t *rows = ms_report_array(report->root, "findings");
    json_t *other;
    size_t at = 0;

    while ((other = json_array_get(rows, at)) && findings_compare(&other, &row) <= 0)
        at++;
    json_array_insert_new(rows, at, row);
}
