/* analyse.c - what the command works out of a report once that has its names; see analyse.h.
 *
 * Floor 4, command line only. */
#include "report/analyse/analyse.h"

#include <stdint.h>

#include "report/analyse/callers.h"
#include "report/analyse/contexts_others.h"
#include "report/analyse/findings.h"
#include "report/analyse/leak_class.h"
#include "report/analyse/owners.h"
#include "report/analyse/view.h"

void ms_report_annotate(struct ms_report *report, const json_t *least)
{
    json_t *known = least ? json_copy((json_t *)(uintptr_t)least) : json_object();

    ms_contexts_least(known, report);
    ms_contexts_annotate(report, known);
    json_decref(known);
    ms_view_annotate(report);
    ms_owners_annotate(report);
    ms_callers_annotate(report);
    ms_leak_classes_annotate(report);
    ms_findings_annotate(report);
}
