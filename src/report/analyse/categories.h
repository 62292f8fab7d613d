/* categories.h - what a tensor is for: parameters, gradients, and so on, inferred from its frames.
 *
 * Floor 4, command line only. It takes names of functions. */
#ifndef MS_REPORT_ANALYSE_CATEGORIES_H
#define MS_REPORT_ANALYSE_CATEGORIES_H

#include "report/read/read.h"

/** A place for the rule of each row of frames[]; NULL without memory. The caller frees it. */
unsigned char *ms_categories_open(const struct ms_report *report);
/** The category of what was allocated from a stack; NULL where no rule holds. */
const char *ms_category_of(const struct ms_report *report, unsigned char *known, json_int_t stack);

#endif
