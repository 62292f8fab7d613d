/* findings_uses.c - the rules of MEMSHIM_USES: never_used, freed_late, allocated_early, pinned_beyond_use;
 * see findings.h.
 *
 * Floor 4, command line only. What the peak would be was counted by the process (uses_replay.c); here it is
 * said, where it is enough, with the line. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "report/findings/findings.h"
#include "report/text/text.h"

enum {
#define MS_FINDING(rule, by, severity, confidence)
#define MS_FINDING_NUMBER(name, value, text, rule) name = (value),
#include "report/findings/findings.def"
#undef MS_FINDING
#undef MS_FINDING_NUMBER
};

static const struct {
    const char *idle, *rule, *what, *advice;
} rules[] = {
    {"never", "never_used", "was never used", "do not allocate what %s allocates"},
    {"late", "freed_late", "was not used any more", "free what %s allocates behind its last use"},
    {"early", "allocated_early", "had not been used yet", "allocate at its first use what %s allocates"},
};

static json_int_t findings_uses_peak_of(const struct ms_report *report, const json_t *row)
{
    size_t at = ms_report_device_of(report, row);

    return at == SIZE_MAX ? 0
                          : ms_report_int(json_array_get(ms_report_array(report->root, "devices"), at),
                                          "peak_live_bytes");
}

/* By what the rows of `uses` know, which is more than the rule in general. */
static void confide(json_t *found, const json_t *row)
{
    if (found)
        json_object_set(found, "confidence", json_object_get(row, "confidence"));
}

/* `format` has the line's place in it. */
static char *with_line(const char *format, const char *line)
{
    const char *place = strstr(format, "%s");

    return ms_finding_text("%.*s%s%s", (int)(place - format), format, line, place + 2);
}

static void look_at_idle(struct ms_finder *finder, const json_t *row)
{
    const json_t *site = ms_report_site(finder->report, ms_report_int(row, "site"));
    json_int_t falls = ms_report_int(row, "falls_bytes"), bytes = ms_report_int(row, "bytes"),
               count = ms_report_int(row, "count");
    size_t rule = 0;
    char *line;

    while (rule < MS_ARRAY_LEN(rules) && strcmp(rules[rule].idle, ms_report_text(row, "idle")))
        rule++;
    if (!site || rule == MS_ARRAY_LEN(rules) || falls < IDLE_LEAST ||
        falls < findings_uses_peak_of(finder->report, row) / IDLE_SHARE)
        return;
    line = ms_finding_line(finder->report, site, "this call");
    if (line)
        confide(
            ms_finding_add(finder, rules[rule].rule, falls, site,
                           ms_finding_text("%s of %s in %" JSON_INTEGER_FORMAT
                                           " block%s %s when most was allocated; without that the peak would "
                                           "be %s lower",
                                           ms_text_size(bytes).text, ms_report_text(site, "api"), count,
                                           count == 1 ? "" : "s", rules[rule].what, ms_text_size(falls).text),
                           with_line(rules[rule].advice, line)),
            row);
    free(line);
}

/* A finding on pinned memory that uses did not reach. The share that they reached of all that the site ever
 * pinned is taken for that of the most that it held at once. */
static void look_at_pinned(struct ms_finder *finder, const json_t *row)
{
    const json_t *site = ms_report_site(finder->report, ms_report_int(row, "site"));
    json_int_t bytes = ms_report_int(row, "bytes"), reach = ms_report_int(row, "reach_bytes"), most, unused;
    char *line;

    if (!site || bytes <= 0 || reach > bytes / PINNED_SHARE)
        return;
    most = ms_report_int(site, "max_bytes");
    unused = (json_int_t)((double)most * (1 - (double)reach / (double)bytes));
    if (unused < PINNED_LEAST)
        return;
    line = ms_finding_line(finder->report, site, "this call");
    if (line)
        confide(ms_finding_add(finder, "pinned_beyond_use", unused, site,
                               ms_finding_text("%s of %s are pinned, and copies and kernels went into %s of "
                                               "that",
                                               ms_text_size(most).text, ms_report_text(site, "api"),
                                               ms_text_size(most - unused).text),
                               ms_finding_text("pin less by %s, or leave it pageable", line)),
                row);
    free(line);
}

void ms_findings_look_at_uses(struct ms_finder *finder)
{
    const json_t *uses = json_object_get(finder->report->root, "uses");
    json_t *row;
    size_t i;

    if (strcmp(ms_report_text(uses, "state"), "told"))
        return;
    json_array_foreach (json_object_get(uses, "idle"), i, row)
        look_at_idle(finder, row);
    json_array_foreach (json_object_get(uses, "pinned"), i, row)
        look_at_pinned(finder, row);
}
