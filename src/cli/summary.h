/* summary.h - one page about one report, for people.
 *
 * Floor 5. */
#ifndef MS_CLI_SUMMARY_H
#define MS_CLI_SUMMARY_H

#include <stdbool.h>
#include <stdio.h>

#include "report/read.h"

/** Print the page; `top` call sites are shown. All but the first of several pages begin with an empty
 * line. */
void ms_summary_print(FILE *out, const char *path, const struct ms_report *report, size_t top, bool first);

/** summary_oom.c: the section on memory that could not be had; nothing where there was none. */
void ms_summary_print_oom(FILE *out, const struct ms_report *report);

#endif
