/* walk_libgcc.c - the walk by unwind tables with libgcc's unwinder, for builds without libunwind.
 *
 * Floor 1. libgcc's unwinder is linked in statically and hidden: the host's C++ exceptions go on through the
 * host's own copy, and nothing has to be opened. It finds tables by _dl_find_object, which takes no lock. It
 * interprets them anew for every frame of every walk, which costs about twenty times what cached rules do. */
#include <stddef.h>
#include <unwind.h>

#include "unwind/native/unwind.h"

/* Frames until `caller` are memshim's own. */
struct unwinding {
    uintptr_t caller;
    uintptr_t *frames, *sps; /* sps: NULL if they are not wanted */
    unsigned count, max, inner;
    bool found;
};

static _Unwind_Reason_Code take_frame(struct _Unwind_Context *context, void *arg)
{
    struct unwinding *state = arg;
    int is_interrupted = 0;
    uintptr_t pc = _Unwind_GetIPInfo(context, &is_interrupted);
    if (pc == 0)
        return _URC_END_OF_STACK;
    pc += is_interrupted ? 1 : 0; /* as stack.h has it */
    if (!state->found) {
        state->found = pc == state->caller;
        if (!state->found && ++state->inner > MS_WALK_INNER_MAX)
            return _URC_END_OF_STACK;
        if (!state->found)
            return _URC_NO_REASON;
    }
    /* The CFA, as libgcc calls it here, is that of the frame further in: the place where this one's
     * begins. */
    if (state->sps)
        state->sps[state->count] = _Unwind_GetCFA(context);
    state->frames[state->count++] = pc;
    return state->count < state->max ? _URC_NO_REASON : _URC_END_OF_STACK;
}

/* Nothing is remembered: this one does not tell where it found what. */
unsigned ms_unwind_walk_recalling(const void *frame, uintptr_t caller, uintptr_t *frames, unsigned max,
                                  struct ms_recalling *recalling)
{
    recalling->known = 0;
    recalling->top = 0;
    return ms_unwind_walk(frame, caller, frames, max);
}

unsigned ms_unwind_walk(const void *frame, uintptr_t caller, uintptr_t *frames, unsigned max)
{
    return ms_unwind_walk_extents(frame, caller, frames, NULL, max);
}

unsigned ms_unwind_walk_extents(const void *frame, uintptr_t caller, uintptr_t *frames, uintptr_t *sps,
                                unsigned max)
{
    struct unwinding state = {.caller = caller, .frames = frames, .sps = sps, .max = max};
    (void)frame;
    _Unwind_Backtrace(take_frame, &state);
    return state.count;
}
