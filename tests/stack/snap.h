/* snap.h - one stack taken in two ways at one place: by our walk and by libgcc's unwinder, and compared frame
 * by frame.
 *
 * For programs under tests/stack alone. */
#ifndef MS_TESTS_STACK_SNAP_H
#define MS_TESTS_STACK_SNAP_H

#include <stdint.h>
#include <unwind.h>

#include "base/compiler.h"
#include "unwind/stack.h"

enum { SNAP_MAX = MS_STACK_DEPTH_MAX };

struct snap {
    uintptr_t ours[SNAP_MAX], libgcc[SNAP_MAX];
    unsigned ours_count, libgcc_count;
};

struct snap_libgcc {
    struct snap *snap;
    uintptr_t caller;
};

static inline _Unwind_Reason_Code snap_frame(struct _Unwind_Context *context, void *arg)
{
    struct snap_libgcc *state = arg;
    struct snap *snap = state->snap;
    int is_interrupted = 0;
    uintptr_t pc = _Unwind_GetIPInfo(context, &is_interrupted);
    pc += is_interrupted ? 1 : 0; /* as stack.h has it */
    if (pc <= 1 || snap->libgcc_count == SNAP_MAX)
        return _URC_END_OF_STACK;
    if (snap->libgcc_count || pc == state->caller)
        snap->libgcc[snap->libgcc_count++] = pc;
    return _URC_NO_REASON;
}

/** Both stacks of the caller's caller, the innermost frame being where this returns to. */
static MS_NOINLINE __attribute__((unused)) void snap_take(struct snap *snap)
{
    struct snap_libgcc state = {snap, (uintptr_t)__builtin_return_address(0)};
    snap->libgcc_count = 0;
    snap->ours_count = ms_stack_walk(MS_WALK_UNWIND, __builtin_frame_address(0), __builtin_return_address(0),
                                     snap->ours, SNAP_MAX);
    _Unwind_Backtrace(snap_frame, &state);
    __asm__ volatile("" ::: "memory");
}

/** The first frame in which they differ; -1 if none. Async signal safe. */
static inline int snap_difference(const struct snap *snap)
{
    unsigned shorter = snap->ours_count < snap->libgcc_count ? snap->ours_count : snap->libgcc_count;
    for (unsigned i = 0; i < shorter; i++) {
        if (snap->ours[i] != snap->libgcc[i])
            return (int)i;
    }
    return snap->ours_count == snap->libgcc_count ? -1 : (int)shorter;
}

/** frames.c has this many shapes of functions. gcc's tables are wrong for an instruction in the epilogue of
 * the last one, and libgcc's unwinder faults if it is interrupted there: left out where that can happen. */
enum { FRAMES_SHAPES = 8, FRAMES_SOUND = 7 };

/** Calls `what(arg)` from below `depth` functions, compiled without frame pointers, of the first `shapes`
 * shapes. */
void frames_call(unsigned depth, unsigned shapes, void (*what)(void *), void *arg);

#endif
