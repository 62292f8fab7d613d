/* run_summary.h - what `memshim run` says when the program has ended.
 *
 * Floor 5. */
#ifndef MS_CLI_RUN_RUN_SUMMARY_H
#define MS_CLI_RUN_RUN_SUMMARY_H

#include "cli/run/child.h"
#include "cli/live/ledgers.h"
#include "cli/run/run_reports.h"

/** How much was used and leaked, where the reports are and what to type next; or why there is no report, and
 * that the simulated GPU (`sim`: that was it) is there where none is. */
void ms_closing_print(const struct ms_reports *outcome, const struct ms_ledgers_left *left,
                      const struct ms_child *child, const char *program, bool sim);

/** The leaks of every process, as `memshim leaks` shows them, the largest of each: why the gate did not
 * pass. */
void ms_closing_leaks(const struct ms_reports *outcome);

#endif
