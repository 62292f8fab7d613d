/* consistent.h - whether the figures of a report agree with each other: what a schema cannot say.
 *
 * Floor 4, command line only. */
#ifndef MS_REPORT_ANALYSE_CONSISTENT_H
#define MS_REPORT_ANALYSE_CONSISTENT_H

#include "report/read/read.h"

/** Called for each contradiction: where ("$.devices[0].index") and what. Both strings end with the call. */
typedef void (*ms_complaint_func_t)(void *arg, const char *path, const char *text);

/** Check a report, of whatever form; complains about each figure or id that contradicts another. Returns how
 * many. */
size_t ms_report_consistent(const struct ms_report *report, ms_complaint_func_t complain, void *arg);

/** The report's schema as it is installed: text that ends with a NUL. */
extern const char ms_report_schema[];

#endif
