/* what_if.h - which of PyTorch's settings would have had memory for a request that was refused.
 *
 * Floor 5. The trace of the run says what was asked for until then; the model says what it would have come
 * to. */
#ifndef MS_CLI_TORCH_WHAT_IF_H
#define MS_CLI_TORCH_WHAT_IF_H

#include "cli/torch/tries.h"
#include "report/read/read.h"

/** Tries all settings on what came before a row of inner_oom[], and the request behind it, on a device that
 * has as much for PyTorch as it had then: `completed` says whether the request would have been served.
 * Returns how many, PyTorch as it comes first; 0 where the report's run has no trace that can be read, or the
 * row is of no such request. */
int ms_torch_what_if(const struct ms_report *report, const json_t *row, struct ms_torch_try *tries);

#endif
