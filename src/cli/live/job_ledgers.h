/* job_ledgers.h - the processes of a job on this machine, out of their ledgers: now, or when one of them had
 * no memory.
 *
 * Floor 5. */
#ifndef MS_CLI_LIVE_JOB_LEDGERS_H
#define MS_CLI_LIVE_JOB_LEDGERS_H

#include <stdint.h>

#include "cli/job/job.h"
#include "cli/run/run_reports.h"

/** Take each process that goes on and is of the job with this number. 0, or -1 after an error line. */
int ms_job_ledgers_living(struct ms_job *job, uint64_t number);

/** After a run: if one of its processes had no memory, one job report of what those of its job held then
 * (record/file/job_copies.h) is written beside `pattern`, where reports go, and the copies are removed. */
void ms_job_ledgers_tell(const struct ms_program_run *run, const char *pattern, bool quiet);

#endif
