/* path.h - where the report goes.
 *
 * Floor 4. */
#ifndef MS_REPORT_PATH_H
#define MS_REPORT_PATH_H

#include <stddef.h>

/** MEMSHIM_REPORT's value with %h (host), %p (process id), %r (rank, 0 without one), %e (program's file name)
 * and %% filled in; what follows any other % is kept. A relative result is put after `directory`. Returns 0,
 * or -1 if it does not fit. */
int ms_report_expand(const char *pattern, const char *directory, char *path, size_t bytes);

#endif
