/* analyse.h - what the command works out of a report once that has its names.
 *
 * Floor 4, command line only. */
#ifndef MS_REPORT_ANALYSE_ANALYSE_H
#define MS_REPORT_ANALYSE_ANALYSE_H

#include "report/read/read.h"

/** Tells contexts apart (contexts_others.h), by what is known of cards in `least` too, unless that is NULL;
 * what the rows are (view.h), whose (owners.h), how it leaked (leak_class.h), and what to think of it
 * (findings.h). May be done again. */
void ms_report_annotate(struct ms_report *report, const json_t *least);

#endif
