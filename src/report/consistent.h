/* consistent.h - whether the figures of a report agree with each other: what a schema cannot say.
 *
 * Floor 4, command line only. */
#ifndef MS_REPORT_CONSISTENT_H
#define MS_REPORT_CONSISTENT_H

#include "report/read.h"
#include "report/schema.h"

/** Check a report that satisfies the schema; complains about each figure or id that contradicts another.
 * Returns how many. */
size_t ms_report_consistent(const struct ms_report *report, ms_schema_complaint_func_t complain, void *arg);

#endif
