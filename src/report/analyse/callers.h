/* callers.h - who called a helper that allocates for several.
 *
 * Floor 4, command line only. Where call sites have the program's own line in common, as where one function
 * allocates for all, that line says little: each is told with the frames in which they differ, as
 * "alloc (serve.py:4) <- kv (serve.py:6)". */
#ifndef MS_REPORT_ANALYSE_CALLERS_H
#define MS_REPORT_ANALYSE_CALLERS_H

#include "report/read/read.h"

/** So many frames are told of one site beside its own line. */
enum { MS_CALLERS_MAX = 3 };

/** Puts `callers`, rows of frames[], into the rows of sites[] that need them. May be done again. */
void ms_callers_annotate(struct ms_report *report);
/** Those of the site with this stack, innermost first, at most MS_CALLERS_MAX; returns how many. */
size_t ms_callers_of(const struct ms_report *report, json_int_t stack, const json_t **frames);

#endif
