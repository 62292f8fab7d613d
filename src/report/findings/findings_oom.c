/* findings_oom.c - the rule out_of_memory; see findings.h.
 *
 * Floor 4, command line only. Requests of one call that failed alike are one finding. */
#include <stdlib.h>
#include <string.h>

#include "report/findings/findings.h"
#include "report/read/layer.h"
#include "report/text/text.h"

/* True if both were asked for by one call of one place, of one device. */
static bool is_alike(const json_t *a, const json_t *b)
{
    return !strcmp(ms_report_text(a, "api"), ms_report_text(b, "api")) &&
           ms_report_int(a, "stack") == ms_report_int(b, "stack") &&
           ms_report_int(a, "device") == ms_report_int(b, "device") &&
           !strcmp(ms_report_device_api(a), ms_report_device_api(b));
}

/* "; most was held by grow at cache.c:12" */
static char *holder_of(const struct ms_report *report, const json_t *row)
{
    const json_t *held = json_array_get(ms_report_array(row, "top_sites"), 0);
    char *line = held ? ms_finding_line(report, ms_report_oom_site(report, row, held), "") : NULL;
    char *text = line && *line ? ms_finding_text("; most was held by %s", line) : strdup("");

    free(line);
    return text;
}

/* `shown`: rows of which that is one. */
static void findings_oom_annotate(struct ms_finder *finder, const json_t *row, size_t times, json_int_t shown)
{
    static const char *const copied[] = {"t_ns", "device", "device_api", "api", "stack"};
    char *line = ms_finding_line(finder->report, row, "this call"), *holder = holder_of(finder->report, row);
    json_int_t requested = ms_report_int(row, "requested");
    const char *kind = ms_report_text(row, "kind"),
               *asked = requested || !*kind ? ms_text_size(requested).text : kind;
    char often[64] = "";
    json_t *found = NULL;

    if (times > 1)
        snprintf(often, sizeof(often), ", the last of %zu times%s", times,
                 ms_report_oom_count(finder->report) > shown ? " or more" : "");
    if (line && holder)
        found = ms_finding_add(
            finder, "out_of_memory", ms_report_int(row, "requested"), NULL,
            ms_finding_text("%s of %s failed%s: %s were allocated%s%s%s", ms_report_text(row, "api"), asked,
                            often, ms_text_size(ms_report_int(row, "live")).text,
                            ms_report_oom_is_inner(row) ? " by tensors" : "",
                            *ms_report_text(row, "cause") ? ", cause " : "", ms_report_text(row, "cause")),
            ms_finding_text("look at memshim oom, which says what would have made it fit what %s asked for%s",
                            line, holder));
    for (size_t i = 0; found && i < sizeof(copied) / sizeof(copied[0]); i++)
        if (json_object_get(row, copied[i]))
            json_object_set(found, copied[i], json_object_get(row, copied[i]));
    if (found && times > 1)
        json_object_set_new(found, "count", json_integer((json_int_t)times));
    free(line);
    free(holder);
}

void ms_findings_look_at_ooms(struct ms_finder *finder)
{
    enum { LOOKED_AT = 256 }; /* of each other: there are no more rows */
    json_t *rows = ms_report_ooms(finder->report);
    size_t count = json_array_size(rows);

    for (size_t i = count; i-- > 0 && count - i <= LOOKED_AT;) {
        const json_t *row = json_array_get(rows, i);
        size_t times = 1, k = i + 1;

        while (k < count && !is_alike(row, json_array_get(rows, k)))
            k++;
        if (k < count || !json_is_object(row)) /* told with the last one */
            continue;
        for (k = 0; k < i; k++)
            times += is_alike(row, json_array_get(rows, k));
        findings_oom_annotate(finder, row, times, (json_int_t)count);
    }
    json_decref(rows);
}
