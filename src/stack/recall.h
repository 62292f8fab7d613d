/* recall.h - what this thread's latest stack looked like, so that the next one is walked only as far as it
 * differs.
 *
 * Floor 1, for src/stack alone. A program allocates again and again from nearly the same place: most of its
 * stack is the one that was walked a moment ago. A frame is the same as a remembered one if its registers are
 * (address, stack and frame pointer); and then so are all further out, if the words that led from each of
 * them to its caller (the return address, and where it was saved the frame pointer) are still what they were.
 * Looking at those words costs a tenth of a walk, and what stack the frames make is known.
 *
 * Only what lies on the thread's own stack is remembered, which stays while the thread lives, and only plain
 * frames: no signal frames, no realigned stacks, nothing without tables. It holds for one generation of
 * loaded objects. Not for other threads, nor for a walk that interrupted another in the same thread. */
#ifndef MS_STACK_RECALL_H
#define MS_STACK_RECALL_H

#include <stdbool.h>
#include <stdint.h>

#include "stack/stack.h"

enum { MS_RECALL_MAX = 64 };

/** Frames by their number from the outermost, 0, on. Places on the stack are given in bytes below its upper
 * end. */
struct ms_recall {
    uint64_t generation;
    uintptr_t top;
    uint16_t count, max; /* max: how many frames that walk was to take at most */
    bool is_whole;       /* frame 0 is the end of the stack, not only of what was wanted */
    bool is_busy;
    uintptr_t pcs[MS_RECALL_MAX], fps[MS_RECALL_MAX];
    uint32_t sps[MS_RECALL_MAX];
    uint32_t pcs_at[MS_RECALL_MAX]; /* where the address in the caller was found; nothing for frame 0 */
    uint32_t fps_at[MS_RECALL_MAX]; /* where the caller's frame pointer was; 0: not on the stack */
    ms_stack_id ids[MS_RECALL_MAX]; /* the stack from this frame outwards */
};

/** A frame that was walked now, and how it led to its caller. */
struct ms_recall_step {
    uintptr_t pc, sp, fp, pc_at, fp_at;
};

/** A walk in progress. */
struct ms_recalling {
    struct ms_recall *recall;
    uint64_t generation;
    unsigned left;  /* frames that may still be met */
    unsigned known; /* frames that were met: the walk ended there */
    unsigned max;
    uintptr_t top; /* of the stack that was walked; 0: not to be remembered */
    bool is_whole;
    struct ms_recall_step steps[MS_RECALL_MAX];
};

#endif
