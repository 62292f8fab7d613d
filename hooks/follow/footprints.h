/* footprints.h - what the driver takes of a device when a context begins or a module is loaded, for the
 * report's contexts[].
 *
 * Floor 3. How much it is nobody tells: what is free is asked before and after, where a context of the device
 * is current before. Before the first one there is none to ask in: then it is what is in use afterwards. */
#ifndef MS_HOOKS_FOLLOW_FOOTPRINTS_H
#define MS_HOOKS_FOLLOW_FOOTPRINTS_H

#include "hooks/dispatch.h"
#include "record/footprint/balance.h"

/** Around cuDevicePrimaryCtxRetain, which makes the context the first time. */
void ms_footprints_primary_begin(struct ms_call *call);
void ms_footprints_primary_end(struct ms_call *call, uint64_t context);
/** Around what makes a context, or loads a module or library. */
void ms_footprints_begin(struct ms_call *call);
void ms_footprints_context_end(struct ms_call *call, int status);
void ms_footprints_module_end(struct ms_call *call, int status);
/** Records what a context took that no call has made, when the driver is asked for the first time: memory in
 * use that is nobody's is the context's, and of the call in that frame. Returns whether a row was made. */
bool ms_footprints_first_seen(const struct ms_gpu *gpu, int device, uint64_t context,
                              const struct ms_balance *balance, unsigned row, const void *frame,
                              const void *caller);
/** The vendor gave memory in the order of a stream, or for a graph: what is freed of it goes back to the
 * device at any wait, whoever's. */
void ms_footprints_returns_later(void);
/** A module or library was unloaded. */
void ms_footprints_module_gone(struct ms_call *call, int status);

#endif
