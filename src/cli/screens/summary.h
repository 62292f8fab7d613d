/* summary.h - what a report says, for people: on one screen, or all of it.
 *
 * Floor 5. */
#ifndef MS_CLI_SCREENS_SUMMARY_H
#define MS_CLI_SCREENS_SUMMARY_H

#include <stdbool.h>
#include <stdio.h>

#include "cli/screens/next.h"
#include "report/read/read.h"

/** summary_screen.c: who held the memory, what leaked, what is wasted and why, and what to do next with all
 * the reports that were given: twenty lines at most. */
void ms_summary_screen(FILE *out, const char *path, const struct ms_report *report,
                       const struct ms_next_report *all, size_t count);
/** A job: a line for each process (of many the fullest), least and most, and the screen of the fullest. */
void ms_summary_job(FILE *out, char **paths, const struct ms_report *reports, size_t count);

/** summary_text.c: the program, how it ended, and where the report is; three lines, or four with what the
 * rows are. */
void ms_summary_print_run(FILE *out, const char *path, const struct ms_report *report);
/** Who held most at the device's peak, in a line, unless it was all the program's. */
bool ms_summary_print_held(FILE *out, const struct ms_report *report, const json_t *device);

/** Print all of it; `top` call sites are shown. All but the first of several pages begin with an empty
 * line. */
void ms_summary_print(FILE *out, const char *path, const struct ms_report *report, size_t top, bool first);

/** summary_waste.c: what of the fullest pool was reserved and not allocated, and what goes back of it. */
void ms_summary_print_waste(FILE *out, const struct ms_report *report);

/** summary_oom.c: the section on memory that could not be had; nothing where there was none. */
void ms_summary_print_oom(FILE *out, const struct ms_report *report);
/** The last request that could not be had, by whose line, and who held most then: two lines, each behind
 * `before`. False, and nothing, if there was enough. */
bool ms_summary_print_failed(FILE *out, const struct ms_report *report, const char *before);
/** Which call asked for what, on which device: of a row of oom[], without the line's end. */
void ms_summary_print_asked(FILE *out, const json_t *row);
/** Memory that was allocated and reserved then: of a row of ms_report_ooms, without the line's end. */
void ms_summary_print_then(FILE *out, const json_t *row);
/** When which call asked for how much of which device, in vain: a row of oom[], without the line's end. */
void ms_summary_print_refused(FILE *out, const json_t *row);

#endif
