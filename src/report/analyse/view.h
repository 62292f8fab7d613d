/* view.h - whether a report shows tensors or the segments of a framework's cache, told by who called.
 *
 * Floor 4, command line only. It takes names of functions, so it is told when the command loads a report, and
 * never in the process. */
#ifndef MS_REPORT_ANALYSE_VIEW_H
#define MS_REPORT_ANALYSE_VIEW_H

#include <stdio.h>

#include "report/read/read.h"

/** Once a report has its names: put run.view and run.frameworks[] into it, and give the leaks that are a
 * framework's cache the class `cache` and its name, unless they are suppressed. May be done again. */
void ms_view_annotate(struct ms_report *report);

/** One line behind `indent` for people: what the rows of a listing are. Nothing where no framework's
 * allocator was seen, as each block is then what the program asked for. */
void ms_view_print(FILE *out, const struct ms_report *report, const char *indent);

/** The names of run.frameworks[] of this view (NULL for any), as "PyTorch and JAX"; "" if there are none. */
void ms_view_names(FILE *out, const struct ms_report *report, const char *view);

#endif
