/* layer.h - which layer of a report its lists show: the blocks that the vendor gave, or the pieces of them
 * that an allocator of the program's gave on.
 *
 * Floor 4, command line only. Each layer has lists of the same form, devices[], sites[], leaks[], segments[]
 * and the timeline; the layer that is chosen stands under these names, so that whoever reads a report need
 * not know of layers. */
#ifndef MS_REPORT_READ_LAYER_H
#define MS_REPORT_READ_LAYER_H

#include <stdio.h>

#include "report/read/read.h"

/** True if anything of the inner layer was reported. */
bool ms_report_has_inner(const struct ms_report *report);
/** True if the lists are those of the inner layer. */
bool ms_report_is_inner(const struct ms_report *report);
/** The lists are those of the inner layer from now on; before anything is worked out of them. */
void ms_report_choose_inner(struct ms_report *report);
/** A view of a report's inner layer, which has lists of its own and shares the rest: good as long as `report`
 * is not changed; the caller closes it. False without memory. */
bool ms_report_open_inner(const struct ms_report *report, struct ms_report *inner_p);
/** The times when there was no memory, oldest first; the caller's to give back. One of an allocator of the
 * program's own is a row of the tensors' layer, and stands for what the vendor had refused it before. Rows
 * are those of oom[], with `layer`, where there are such. */
json_t *ms_report_ooms(const struct ms_report *report);
/** How many there were, with those of which the report has no row. */
json_int_t ms_report_oom_count(const struct ms_report *report);
/** The site of a row that one of those has of who held memory then; NULL if there is none. */
json_t *ms_report_oom_site(const struct ms_report *report, const json_t *oom, const json_t *held);
/** The site of this id of a layer, whichever the report's lists are of; NULL if there is none. */
json_t *ms_report_layer_site(const struct ms_report *report, bool inner, json_int_t id);
/** True if the row is one of the tensors' layer. */
bool ms_report_oom_is_inner(const json_t *oom);
/** The row of inner_devices[] whose pieces had the most at their peak; NULL if there is none. */
const json_t *ms_report_inner_fullest(const struct ms_report *report);
/** Puts the names of the allocators of the inner layer on `out`, each once, of those on devices if any is:
 * "PyTorch and weights", "a, b, c and 4 more". */
void ms_report_put_heaps(FILE *out, const struct ms_report *report);
/** True if one of them says what it has of a device. */
bool ms_report_heaps_say_reserved(const struct ms_report *report);

#endif
