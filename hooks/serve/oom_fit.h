/* oom_fit.h - when there was no memory: how what is free is in pieces, and what would have made it fit.
 *
 * Floor 3, for serve_oom.c. Figures are what they were when the driver and the pool had no more to offer, so
 * that the report has them, however the process ends. */
#ifndef MS_HOOKS_SERVE_OOM_FIT_H
#define MS_HOOKS_SERVE_OOM_FIT_H

#include "vendor/gpu.h"
#include "hooks/serve/serve.h"

/** Of a view whose cause is fragmentation. What is free for others than who asked does not count for the
 * kinds that are no stream's. */
enum ms_oom_fragmentation ms_oom_fragmentation(const struct ms_oom_view *view, const struct ms_gpu *gpu,
                                               int device, uint64_t bytes, uint64_t stream);
/** `bytes` in the steps in which the device's memory is given. */
uint64_t ms_oom_whole(int device, uint64_t bytes);
/** Fills in view->fit, from the rest of it; `room` is what MEMSHIM_LIMIT leaves. */
void ms_oom_fit(struct ms_oom_view *view, int device, uint64_t bytes, uint64_t room);
/** view->fit of a request to an allocator of the program's own (PyTorch). */
void ms_oom_fit_cache(struct ms_oom_view *view, const struct ms_oom_asked *asked, uint64_t room);

#endif
