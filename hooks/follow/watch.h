/* watch.h - calls that the vendor answers and that the pool must know of: the program waits for a context,
 * begins or ends a capture, makes or destroys a stream or a graph, shares a block.
 *
 * Floor 3. Nothing is recorded of them. Around a capture's begin and end, and around the end of a stream, the
 * pool's fence lock is held across the vendor's call (no fence may fall into a capture: it would destroy it);
 * the guard stays closed meanwhile. */
#ifndef MS_HOOKS_FOLLOW_WATCH_H
#define MS_HOOKS_FOLLOW_WATCH_H

#include "hooks/dispatch.h"

struct ms_watch {
    bool on, was_capturing;
    bool counted; /* as a call that may change what is in use (balance.h) */
    bool follows; /* nothing is served: what there is to know of the driver's memory alone */
    uint8_t class;
    const struct ms_gpu *gpu;
    const struct ms_args *args;
    uint64_t context, mark;
    struct ms_mempool *ending;
    struct ms_hook_scope scope;
};

void ms_watch_begin(struct ms_watch *watch, enum ms_class class, const struct ms_gpu *gpu,
                    const struct ms_args *args);
/** `status` is the vendor's; the row, the frame and the caller are the call's. */
void ms_watch_end(struct ms_watch *watch, int status, unsigned row, const void *frame, const void *caller);

#endif
