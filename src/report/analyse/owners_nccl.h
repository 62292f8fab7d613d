/* owners_nccl.h - what of NCCL's memory is by which of its functions, and of which communicator.
 *
 * Floor 4, command line only; for owners.c. */
#ifndef MS_REPORT_ANALYSE_OWNERS_NCCL_H
#define MS_REPORT_ANALYSE_OWNERS_NCCL_H

#include "report/read/sites.h"

/** True if a site's memory is what NCCL took in a call of the program's for something else than a buffer of
 * the program's own. */
bool ms_nccl_takes(const struct ms_site_row *site);
/** Adds a site of NCCL's to the parts, an object by entry point and communicator. */
void ms_nccl_add(const struct ms_report *report, const struct ms_site_row *site, json_t *parts);

#endif
