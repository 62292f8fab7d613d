/* what_if.h - which of PyTorch's settings would have served a run better, and a request that was refused.
 *
 * Floor 5. The trace of the run says what was asked for until then; the model says what it would have come
 * to. */
#ifndef MS_CLI_TORCH_WHAT_IF_H
#define MS_CLI_TORCH_WHAT_IF_H

#include <stdio.h>

#include "cli/torch/tries.h"
#include "report/read/read.h"

/** Tries all settings on what came before a row of inner_oom[], and the request behind it, on a device that
 * has as much for PyTorch as it had then: `completed` says whether the request would have been served.
 * Returns how many, PyTorch as it comes first; 0 where the report's run has no trace that can be read, or the
 * row is of no such request. */
int ms_torch_what_if(const struct ms_report *report, const json_t *row, struct ms_torch_try *tries);

/** The whole run by its trace: what it reserved, and would have with each setting. An object with "trace",
 * "reserved_bytes", "ways" (of each setting "settings" and "reserved_bytes", PyTorch as it comes first) and,
 * unless that is best, "best" and "best_bytes". NULL where the report's run has no trace of its own that can
 * be read, another allocator than PyTorch's, more in it than can be tried at once, or something else than the
 * model has. */
json_t *ms_torch_what_if_run(const struct ms_report *report);
/** The line that a screen ends in, of such an object; nothing for NULL. */
void ms_torch_print_what_if(FILE *out, const json_t *what_if);

#endif
