/* told.c - what the command works out of a report once that has its names; see told.h.
 *
 * Floor 4, command line only. */
#include "report/told.h"

#include <stdint.h>

#include "report/callers.h"
#include "report/contexts_told.h"
#include "report/findings.h"
#include "report/leak_class.h"
#include "report/owners.h"
#include "report/view.h"

void ms_report_tell(struct ms_report *report, const json_t *least)
{
    json_t *known = least ? json_copy((json_t *)(uintptr_t)least) : json_object();

    ms_contexts_least(known, report);
    ms_contexts_tell(report, known);
    json_decref(known);
    ms_view_tell(report);
    ms_owners_tell(report);
    ms_callers_tell(report);
    ms_leak_classes_tell(report);
    ms_findings_tell(report);
}
