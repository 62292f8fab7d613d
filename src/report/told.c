/* told.c - what the command works out of a report once that has its names; see told.h.
 *
 * Floor 4, command line only. */
#include "report/told.h"

#include "report/callers.h"
#include "report/findings.h"
#include "report/leak_class.h"
#include "report/owners.h"
#include "report/view.h"

void ms_report_tell(struct ms_report *report)
{
    ms_view_tell(report);
    ms_owners_tell(report);
    ms_callers_tell(report);
    ms_leak_classes_tell(report);
    ms_findings_tell(report);
}
