/* report.h - the JSON report of this process.
 *
 * Floor 4. The writer works on a snapshot of the ledger and allocates from its own arena, never with malloc,
 * so that it can run late in a process whose heap is damaged. It calls no vendor function. */
#ifndef MS_REPORT_WRITE_REPORT_H
#define MS_REPORT_WRITE_REPORT_H

#include <inttypes.h>

#include "record/file/process.h"

/** How run.id of a report is spelled: the number of a run of `memshim run`. */
#define MS_RUN_ID_FORMAT "%016" PRIx64

/** Write the report where MEMSHIM_REPORT says (placeholders expanded), atomically: a temporary file beside
 * it, then rename. `code` is the exit code, or the signal's number after MS_END_SIGNAL and MS_END_KILLED;
 * below 0 (or no signal) it is not known. A process of a run of `memshim run` replaces no file: where the
 * name is taken it puts a number in it. Returns 0 (also for "none", and in a privileged program, where
 * nothing is written), or -1 after one line in the log that names the path and the error. Never overwrites
 * through a symbolic link. errno is preserved. */
int ms_report_write(enum ms_end_reason reason, int code);

/** So many blocks were freed after the report was written: put that into it, if it is there still. */
void ms_report_late_frees(uint64_t count);

/** The report alone, into a descriptor: of this process, or of the one whose ledger was loaded. `at_rest`:
 * the record does not change. Where the number of late frees is in it goes to `late_frees_at_p` (may be
 * NULL). Returns 0, or -1 with errno. */
int ms_report_contents(int fd, enum ms_end_reason reason, int code, bool at_rest, uint64_t *late_frees_at_p);

#endif
