/* no_memory.h - the vendor has said that there was no memory, whatever was asked of it: remembered once for
 * each call of the program's, with what was asked for and why it was not to be had (record/live/oom.def).
 *
 * Floor 3. Functions that are hooked for this alone (cuda_status.def) have no frame: where they succeed, all
 * that they cost is a comparison behind the call. */
#ifndef MS_HOOKS_FOLLOW_NO_MEMORY_H
#define MS_HOOKS_FOLLOW_NO_MEMORY_H

#include "hooks/dispatch.h"
#include "hooks/observe/inner.h"

/** A call has failed that has a frame; inside its hook scope. Nothing happens where `status` says anything
 * else, or where the program's call was told of already. */
void ms_no_memory_in_call(struct ms_call *call, int status);

/** A call has failed that has none, with a status that says so. The stack is taken here. */
void ms_no_memory(unsigned row, const struct ms_gpu *gpu, const struct ms_args *args, const void *frame,
                  const void *caller);

/** PyTorch has no memory for a piece, as the function of `row` says. */
void ms_no_memory_inner(enum ms_row row, const struct ms_inner_report *report, const void *frame,
                        const void *caller);

/** For wrappers without a frame, of an interface that is known to the compiler. */
static inline void ms_no_memory_look(unsigned row, int status, const struct ms_gpu *gpu,
                                     const struct ms_args *args, const void *frame, const void *caller)
{
    if (MS_UNLIKELY(status != 0) && ms_is_no_memory(ms_rows[row]->api, status))
        ms_no_memory(row, gpu, args, frame, caller);
}

#endif
