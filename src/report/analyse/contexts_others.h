/* contexts_others.h - what of a context's memory is its own, and what others took while it began.
 *
 * Floor 4, command line only. How much a context took is told from what is in use behind it: of processes
 * that start together each has the others' contexts in its figure. A context is as large on each card of one
 * model, so the least that is known is the honest figure, and the rest is told apart. */
#ifndef MS_REPORT_ANALYSE_CONTEXTS_OTHERS_H
#define MS_REPORT_ANALYSE_CONTEXTS_OTHERS_H

#include "report/read/read.h"

/** Brings what contexts of the report took into `least`, an object with the least bytes by model of card; a
 * job's report has it of all its processes. */
void ms_contexts_least(json_t *least, const struct ms_report *report);
/** Contexts of contexts[] that were inferred take no more than the least of their model; what is beyond is
 * their `others_bytes`, and untracked in balances[]. May be done again with less. */
void ms_contexts_annotate(const struct ms_report *report, const json_t *least);

#endif
