/* owners.h - whose each byte is: the program's, a framework's, a library's, a package's.
 *
 * Floor 4, command line only. It takes names of functions, so it is told when the command has them, and never
 * in the process. */
#ifndef MS_REPORT_ANALYSE_OWNERS_H
#define MS_REPORT_ANALYSE_OWNERS_H

#include "report/read/read.h"

/** Once a report has its names: give each row of sites[] its `owner` ("program", "unknown", or a name), and
 * put owners[] into the report, which adds sites up by owner, kind of memory and device, most bytes at the
 * peak first. May be done again. */
void ms_owners_annotate(struct ms_report *report);

/** True if this owner is a library that takes memory for itself when it is first called, and mostly keeps
 * it. */
bool ms_owners_is_library(const char *owner);

#endif
