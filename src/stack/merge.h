/* merge.h - one stack of a native one and a Python one.
 *
 * Floor 1, for src/stack alone, but for the reset. No lock but the tree's, no allocation, reentrant. */
#ifndef MS_STACK_MERGE_H
#define MS_STACK_MERGE_H

#include <stdint.h>

#include "stack/stack.h"

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

/** In a fork child: nothing is known, as the tables are new. */
void ms_merge_reset(void);

#endif
