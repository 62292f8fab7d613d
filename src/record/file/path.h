/* path.h - where the report and the trace go.
 *
 * Floor 2. */
#ifndef MS_RECORD_FILE_PATH_H
#define MS_RECORD_FILE_PATH_H

#include <stddef.h>

/** The value of MEMSHIM_REPORT or MEMSHIM_TRACE with %h (host), %p (process id), %r (rank, 0 without one), %R
 * (a dot and the rank, nothing without one), %e (program's file name) and %% filled in; what follows any
 * other % is kept. A relative result is put after `directory`. Returns 0, or -1 if it does not fit. */
int ms_path_expand(const char *pattern, const char *directory, char *path, size_t bytes);

#endif
