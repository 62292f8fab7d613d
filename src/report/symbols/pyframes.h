/* pyframes.h - functions and lines for the Python frames of a report.
 *
 * Floor 4, command line only. */
#ifndef MS_REPORT_SYMBOLS_PYFRAMES_H
#define MS_REPORT_SYMBOLS_PYFRAMES_H

#include "report/read/read.h"

/** Python frames whose `code` is no row of codes[]. */
struct ms_pyframes_dangling {
    size_t count;
    size_t first; /* the first of them, in frames[] */
};

/** Puts function, file and line into the Python frames that have none, from codes[]. Returns how many there
 * were; of these, *resolved_p got a name and *lines_p a line. */
size_t ms_pyframes_resolve(struct ms_report *report, size_t *resolved_p, size_t *lines_p,
                           struct ms_pyframes_dangling *astray_p);

#endif
