/* walk.c - the return addresses of the calling thread.
 *
 * Floor 1. No lock, no allocation, reentrant. Two walks:
 * - by unwind tables, with libgcc's unwinder. It is linked in statically and hidden: the host's C++
 * exceptions go on through the host's own copy, and nothing has to be opened. It finds tables by
 * _dl_find_object, which takes no lock.
 * - by frame pointers. Whatever a frame pointer register held may be followed here, so a page is read only
 * after the kernel was asked whether it can be. */
#include "config.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <unwind.h>

#include "base/compiler.h"
#include "stack/stack.h"

enum {
    INNER_MAX = 16,            /* frames of ours between the walk and the program's call */
    PAGE_BYTES = 4096,         /* the smallest there is */
    FRAME_BYTES_MAX = 8 << 20, /* no function's frame is larger than the usual stack */
    KERNEL_SIGSET_BYTES = 8,
};

static _Atomic int configured_walk = MS_WALK_UNWIND;
static _Atomic unsigned configured_depth = 64;

void ms_stack_configure(enum ms_walk walk, unsigned depth)
{
    depth = depth < 1 ? 1 : depth;
    depth = depth > MS_STACK_DEPTH_MAX ? MS_STACK_DEPTH_MAX : depth;
    atomic_store_explicit(&configured_walk, (int)walk, memory_order_relaxed);
    atomic_store_explicit(&configured_depth, depth, memory_order_relaxed);
}

/* Frames until `caller` are memshim's own. Those are kept apart: they are wanted if `caller` never comes. */
struct unwinding {
    uintptr_t caller;
    uintptr_t *frames;
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
    if (is_interrupted) /* a signal's victim stopped at this very instruction, and readers look at the byte
                           before */
        pc++;
    if (!state->found) {
        state->found = pc == state->caller;
        if (!state->found && ++state->inner > INNER_MAX)
            return _URC_END_OF_STACK;
        if (!state->found)
            return _URC_NO_REASON;
    }
    state->frames[state->count++] = pc;
    return state->count < state->max ? _URC_NO_REASON : _URC_END_OF_STACK;
}

static unsigned walk_tables(uintptr_t caller, uintptr_t *frames, unsigned max)
{
    struct unwinding state = {.caller = caller, .frames = frames, .max = max};
    _Unwind_Backtrace(take_frame, &state);
    return state.count;
}

/* Whether the kernel can read the eight bytes at `address`. It copies the new mask in before it looks at
 * `how`, which is not a valid one: EFAULT says unreadable, EINVAL readable, and no mask is changed either
 * way. */
static bool is_readable(uintptr_t address)
{
    long result = syscall(SYS_rt_sigprocmask, -1, address, NULL, KERNEL_SIGSET_BYTES);
    return result < 0 && errno == EINVAL;
}

/* A signed return address (pointer authentication) without its signature. */
static uintptr_t strip(uintptr_t pc)
{
#ifdef __aarch64__
    return pc & 0x0000ffffffffffff;
#else
    return pc;
#endif
}

/* A frame pointer points at the caller's frame pointer, followed by the return address. Callers lie higher.
 */
static MS_NOINLINE __attribute__((no_sanitize("address", "thread"))) unsigned
walk_pointers(uintptr_t frame, uintptr_t *frames, unsigned max)
{
    unsigned count = 0;
    int saved_errno = errno;
    uintptr_t readable_page = frame / PAGE_BYTES;
    while (count < max) {
        uintptr_t next = *(const uintptr_t *)frame;
        if (next <= frame || next - frame > FRAME_BYTES_MAX || next % sizeof next != 0)
            break;
        uintptr_t last_page = (next + sizeof next) / PAGE_BYTES;
        if (last_page != readable_page) {
            if (!is_readable(next) || !is_readable(next + sizeof next))
                break;
            readable_page = last_page;
        }
        uintptr_t pc = strip(((const uintptr_t *)next)[1]);
        if (pc < PAGE_BYTES)
            break;
        frames[count++] = pc;
        frame = next;
    }
    errno = saved_errno;
    return count;
}

unsigned ms_stack_walk(enum ms_walk walk, const void *frame, const void *caller, uintptr_t *frames,
                       unsigned max)
{
    uintptr_t first = (uintptr_t)caller;
    if (walk == MS_WALK_OFF || max == 0)
        return 0;
    unsigned count = 0;
    if (walk == MS_WALK_UNWIND)
        count = walk_tables(first, frames, max);
    if (count)
        return count;
    /* Asked for, or the tables do not lead to the caller (it was entered without a frame, by hand-written
     * code). */
    frames[0] = first;
    return 1 + (walk == MS_WALK_FP ? walk_pointers((uintptr_t)frame, frames + 1, max - 1) : 0);
}

ms_stack_id ms_stack_capture(const void *frame, const void *caller)
{
    uintptr_t frames[MS_STACK_DEPTH_MAX];
    enum ms_walk walk = (enum ms_walk)atomic_load_explicit(&configured_walk, memory_order_relaxed);
    unsigned depth = atomic_load_explicit(&configured_depth, memory_order_relaxed);
    unsigned count = ms_stack_walk(walk, frame, caller, frames, depth);
    return count ? ms_stack_intern(frames, count) : 0;
}
