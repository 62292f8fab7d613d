/* stack.h - call stacks: capture, and interning as a 32-bit id.
 *
 * Floor 1. Capture allocates nothing and takes no lock; interning takes a short lock only for a stack never
 * seen before. Stack id 0 is "no stack" (off, or dropped because a table was full; drops are counted). */
#ifndef MS_UNWIND_STACK_H
#define MS_UNWIND_STACK_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/compiler.h"

#define MS_STACK_DEPTH_MAX 256

typedef uint32_t ms_stack_id;

enum ms_walk { MS_WALK_UNWIND, MS_WALK_FP, MS_WALK_OFF };

/** Before the first capture; `depth` is clamped to 1..MS_STACK_DEPTH_MAX. */
void ms_stack_configure(enum ms_walk walk, unsigned depth);

/** Walk the calling thread's stack and intern it.
 *
 * `frame` is __builtin_frame_address(0) and `caller` the return address of the hook that the program called:
 * frames inside memshim are left out, and the first frame is always `caller`, even where nothing further can
 * be walked. Frames are return addresses as found on the stack: readers look up the byte before. So a frame
 * that a signal interrupted is given as the address after the one where it goes on. errno is preserved. */
ms_stack_id ms_stack_capture(const void *frame, const void *caller);

/** Blocks of this size or more are always sampled, smaller ones as often as their size is a part of it. */
#define MS_SAMPLE_BYTES ((uint64_t)1 << 20)

/** Stacks are taken of a sample only; before the first capture. */
void ms_stack_configure_sampling(bool on);
extern MS_HIDDEN _Atomic bool ms_stack_is_sampling;
static inline bool ms_stack_sampling(void)
{
    return atomic_load_explicit(&ms_stack_is_sampling, memory_order_relaxed);
}

/** True if a call for `bytes` is to take its stack, when stacks are sampled. Independent from call to
 * call. */
bool ms_stack_sampled(uint64_t bytes);

/** How many bytes a sampled block of `bytes` stands for: its size over the probability with which it was
 * taken. The sum over the sampled blocks of a site is an unbiased estimate of the site's bytes; divided by
 * `bytes` first, of its blocks. */
static inline uint64_t ms_stack_sample_bytes(uint64_t bytes)
{
    return bytes < MS_SAMPLE_BYTES ? MS_SAMPLE_BYTES : bytes;
}

/** The walk alone: fills at most `max` return addresses, innermost (`caller`) first, and returns how many. */
unsigned ms_stack_walk(enum ms_walk walk, const void *frame, const void *caller, uintptr_t *frames,
                       unsigned max);

/** Intern `count` frames (frame.h), innermost first: return addresses as a rule. */
ms_stack_id ms_stack_intern(const uintptr_t *frames, unsigned count);
/** As ms_stack_intern, for frames called from the stack `outer`; ids[i] is the stack from frames[i]
 * outwards. */
ms_stack_id ms_stack_intern_below(ms_stack_id outer, const uintptr_t *frames, unsigned count,
                                  ms_stack_id *ids);
/** The calling thread's latest stack is not to be built upon. */
void ms_stack_forget(void);

/** One node: the stack `id` is `frame_p` called from the stack `parent_p` (0: from nowhere). The frame's
 * object is the one that had `generation_p` at that address (ms_object_of). Returns 0, or -1 for an id that
 * does not exist. */
int ms_stack_node(ms_stack_id id, ms_stack_id *parent_p, uintptr_t *frame_p, uint32_t *generation_p);

/** Ids run from 1 to this. */
uint32_t ms_stack_count(void);
uint64_t ms_stack_dropped(void);

/** Forget everything, in a fork child; the rows go with the store. */
void ms_stack_reset(void);

#endif
