/* merge.h - one stack of a native one and a Python one.
 *
 * Floor 1, for src/unwind alone, but for the reset. No lock but the tree's, no allocation, reentrant. */
#ifndef MS_UNWIND_PYTHON_MERGE_H
#define MS_UNWIND_PYTHON_MERGE_H

#include <stdint.h>

#include "unwind/stack.h"

/** The call whose native stack was taken, as ms_stack_capture has it. */
struct ms_merge_call {
    enum ms_walk walk;
    unsigned depth;
    const void *frame;
    uintptr_t caller;
};

/** The stack of this call whose native part is `native` (not 0), with the calling thread's Python frames:
 * `native` itself where no interpreter is here. Called from a frame that is still there in the walk. */
ms_stack_id ms_merge_capture(ms_stack_id native, const struct ms_merge_call *call);

/** The frames of this call (frame.h) as the tree would have them, into `merged` (MS_PAIRED_MAX); returns how
 * many, 0 where native and Python frames are kept apart. Nothing is recorded, so that tests can take more
 * stacks than the tables hold. Python frames are those of the calling thread's latest ms_python_capture(). */
unsigned ms_merge_frames(const struct ms_merge_call *call, uintptr_t *merged);

#endif
