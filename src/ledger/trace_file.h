/* trace_file.h - the trace's file and the ring of lines that are not in it yet; private to trace*.c.
 *
 * Floor 2. A line has an offset from the first one on: trace_written and trace_end of the process's row say
 * which of them wait in the ring, and where they go in the file. So writing the same lines twice does no
 * harm, and a process may be killed at any moment. No descriptor is kept, since a host may close any number
 * and open a file of its own under it. */
#ifndef MS_LEDGER_TRACE_FILE_H
#define MS_LEDGER_TRACE_FILE_H

#include <stdint.h>

#include "ledger/process.h"

enum { MS_TRACE_RING_BYTES = MS_TABLE_TRACE_ROWS, MS_TRACE_SUMMARY_BYTES = 160 };

/** Makes the file, with its head, and notes it in the process's row. Returns 0 or an errno: EEXIST if there
 * is one. */
int ms_trace_file_create(const char *path);
/** Moves what waits into the file. Returns 0 or an errno; then the file ends with a whole line that was
 * written earlier. Under the writer's lock. */
int ms_trace_file_write(const char *path);
/** Puts a line of text, without its end, in the place that the head keeps for it. */
int ms_trace_file_summary(const char *path, const char *text);

#endif
