/* next.h - the command that says more of what matters most.
 *
 * Floor 5. The closing line of `memshim run`, the summary and the job's screen ask here, so that they name
 * the same one. */
#ifndef MS_CLI_SCREENS_NEXT_H
#define MS_CLI_SCREENS_NEXT_H

#include <stdio.h>

#include "report/read/read.h"

/** A report and the name of its file. */
struct ms_next_report {
    const struct ms_report *report;
    const char *path;
};

/** Prints `before` and "memshim VERB FILE..." on a line: the verb of the report that is worst off, with the
 * files of all that are as badly off, or the first of them if they are many. Words are as a shell takes them.
 */
void ms_next_print(FILE *out, const char *before, const struct ms_next_report *reports, size_t count);
/** The finding that the screen tells, which the lines about leaks and want of memory have not said; NULL for
 * none. */
const json_t *ms_next_finding(const struct ms_report *report);
/** A path as the user would type it: below the working directory, relative to it. */
const char *ms_next_path(const char *path);

#endif
