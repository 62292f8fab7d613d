/* findings_left.c - the rules imports_open and registrations_left: what is no memory of the program's own,
 * and was never given back; see findings.h.
 *
 * Floor 4, command line only. Nothing is said of a process that runs, or that was ended: what it had open
 * then it may have had a use for. */
#include <stdlib.h>
#include <string.h>

#include "report/findings.h"
#include "report/sites.h"
#include "report/text.h"

enum {
#define MS_FINDING(rule, by, severity, confidence)
#define MS_FINDING_NUMBER(name, value, text, rule) name = (value),
#include "report/findings.def"
#undef MS_FINDING
#undef MS_FINDING_NUMBER
};

static bool ended_in_order(const struct ms_report *report)
{
    return !strcmp(ms_report_text(json_object_get(report->root, "run"), "end_reason"), "exit");
}

static void tell_import(struct ms_finder *finder, const struct ms_found *found)
{
    const json_t *site = found->row;
    json_int_t count = ms_report_int(site, "live_count");
    char *line = ms_finding_line(finder->report, site, "this call");

    if (line)
        ms_finding_add(
            finder, "imports_open", found->bytes, site,
            ms_finding_text("%s of others' memory, opened by %s in %" JSON_INTEGER_FORMAT
                            " block%s, open to the end: as long as it is, whoever exported it cannot "
                            "have it back",
                            ms_text_size(found->bytes).text, ms_report_text(site, "api"), count,
                            count == 1 ? "" : "s"),
            ms_finding_text("close what %s opens, once it has been used", line));
    free(line);
}

static void tell_registration(struct ms_finder *finder, const struct ms_found *found)
{
    const json_t *site = found->row;
    char *line = ms_finding_line(finder->report, site, "this call");

    if (line)
        ms_finding_add(
            finder, "registrations_left", found->bytes, site,
            ms_finding_text("%s in %" JSON_INTEGER_FORMAT
                            " registrations by %s were never taken back: they stay in the machine's "
                            "memory, and each costs the driver something",
                            ms_text_size(found->bytes).text, ms_report_int(site, "live_count"),
                            ms_report_text(site, "api")),
            ms_finding_text("unregister what %s registers before it is freed, or register it once", line));
    free(line);
}

void ms_findings_look_at_left(struct ms_finder *finder)
{
    const struct ms_site_row *sites = ms_report_sites(finder->report);
    size_t count = sites && ended_in_order(finder->report) ? json_array_size(finder->report->sites) : 0;

    for (size_t i = 0; i < count; i++) {
        struct ms_found found = {.row = sites[i].json, .bytes = sites[i].live_bytes};
        json_int_t left = sites[i].live_count;

        if (!strcmp(sites[i].kind, "imported") && left > 0) {
            found.rule = MS_MANY_IMPORTS;
            found.tell = tell_import;
        } else if (!strcmp(sites[i].kind, "registered") && left >= REGISTERED_LEAST) {
            found.rule = MS_MANY_REGISTRATIONS;
            found.tell = tell_registration;
        } else {
            continue;
        }
        ms_finding_note(finder, found);
    }
}
