/* findings_left.c - the rules imports_open and registrations_left: what is no memory of the program's own,
 * and was never given back; see findings.h.
 *
 * Floor 4, command line only. Nothing is said of a process that runs, or that was ended: what it had open
 * then it may have had a use for. */
#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "report/findings/findings.h"
#include "report/read/sites.h"
#include "report/text/text.h"

enum {
#define MS_FINDING(rule, by, severity, confidence)
#define MS_FINDING_NUMBER(name, value, text, rule) name = (value),
#include "report/findings/findings.def"
#undef MS_FINDING
#undef MS_FINDING_NUMBER
};

static bool ended_in_order(const struct ms_report *report)
{
    return !strcmp(ms_report_text(json_object_get(report->root, "run"), "end_reason"), "exit");
}

static const struct left {
    const char *kind, *rule;
    json_int_t least; /* so many at least */
    unsigned many;
    const char *what, *one, *how, *why, *do_it, *then;
} lefts[] = {
    {"imported", "imports_open", 1, MS_MANY_IMPORTS, "others' memory", "block", "opened",
     "open to the end: as long as it is, whoever exported it cannot have it back", "close what",
     "opens, once it has been used"},
    {"registered", "registrations_left", REGISTERED_LEAST, MS_MANY_REGISTRATIONS, "host memory",
     "registration", "made",
     "never taken back: it stays in the machine's memory, and each costs the driver something",
     "unregister what", "registers before it is freed, or register it once"},
};

static const struct left *left_of(const char *kind)
{
    for (size_t i = 0; i < MS_ARRAY_LEN(lefts); i++)
        if (!strcmp(kind, lefts[i].kind))
            return &lefts[i];
    return NULL;
}

static void findings_left_annotate(struct ms_finder *finder, const struct ms_finding_rows *found)
{
    const json_t *site = found->row;
    const struct left *left = left_of(ms_report_text(site, "kind"));
    json_int_t count = ms_report_int(site, "live_count");
    char *line = left ? ms_finding_line(finder->report, site, "this call") : NULL;

    if (line)
        ms_finding_add(finder, left->rule, found->bytes, site,
                       ms_finding_text("%s of %s in %" JSON_INTEGER_FORMAT " %s%s, %s by %s and %s",
                                       ms_text_size(found->bytes).text, left->what, count, left->one,
                                       count == 1 ? "" : "s", left->how, ms_report_text(site, "api"),
                                       left->why),
                       ms_finding_text("%s %s %s", left->do_it, line, left->then));
    free(line);
}

void ms_findings_look_at_left(struct ms_finder *finder)
{
    const struct ms_site_row *sites = ms_report_sites(finder->report);
    size_t count = sites && ended_in_order(finder->report) ? json_array_size(finder->report->sites) : 0;

    for (size_t i = 0; i < count; i++) {
        const struct left *left = left_of(sites[i].kind);

        if (left && sites[i].live_count >= left->least)
            ms_finding_note(finder, (struct ms_finding_rows){.rule = left->many,
                                                             .row = sites[i].json,
                                                             .bytes = sites[i].live_bytes,
                                                             .tell = findings_left_annotate});
    }
}
