/* unwind.h - the walk by unwind tables, of which configure chooses one: over cached rules (walk_rules.c), or
 * by libgcc's unwinder (walk_libgcc.c) where libunwind could not be built.
 *
 * Floor 1, for src/unwind alone. */
#ifndef MS_UNWIND_NATIVE_UNWIND_H
#define MS_UNWIND_NATIVE_UNWIND_H

#include <stdbool.h>
#include <stdint.h>

#include "base/compiler.h"
#include "unwind/native/memory.h"
#include "unwind/native/recall.h"

enum {
    MS_WALK_INNER_MAX = 16,            /* frames of ours between the walk and the program's call */
    MS_WALK_FRAME_BYTES_MAX = 8 << 20, /* no function's frame is larger than the usual stack */
};

/** Return addresses from `caller` outwards; 0 if the tables do not lead there. As ms_stack_walk, but errno is
 * not kept. */
unsigned ms_unwind_walk(const void *frame, uintptr_t caller, uintptr_t *frames, unsigned max);
/** As ms_unwind_walk, and sps[i] is the stack pointer in frame i: what that frame keeps on the stack lies
 * from there up to sps[i + 1]. */
unsigned ms_unwind_walk_extents(const void *frame, uintptr_t caller, uintptr_t *frames, uintptr_t *sps,
                                unsigned max);
/** As ms_unwind_walk, but ends at the first frame that is remembered: then `recalling->known` frames go on
 * from there, that frame being the first of them, and the last of those that are returned. */
unsigned ms_unwind_walk_recalling(const void *frame, uintptr_t caller, uintptr_t *frames, unsigned max,
                                  struct ms_recalling *recalling);

/** A walk in progress: the words of the stack that can be read at once, [lo, lo + span]. */
struct ms_reach {
    uintptr_t lo, span; /* span 0: none */
};

/** Make the word at `at` readable at once; false if it cannot be. */
static inline bool ms_reach_for(struct ms_reach *reach, uintptr_t at)
{
    struct ms_range range = ms_memory_range(at);
    if (range.hi - range.lo < sizeof at || at > range.hi - sizeof at)
        return false;
    *reach = (struct ms_reach){range.lo, range.hi - range.lo - sizeof at + 1};
    return true;
}

/** The word at `at`; false, and no fault, if it cannot be read. */
static inline MS_RAW bool ms_reach_load(struct ms_reach *reach, uintptr_t at, uintptr_t *value_p)
{
    if (MS_UNLIKELY(at - reach->lo >= reach->span) && !ms_reach_for(reach, at))
        return false;
    *value_p = *(const uintptr_t *)at;
    return true;
}

/** A signed return address (pointer authentication) without its signature. */
static inline MS_RAW uintptr_t ms_strip(uintptr_t pc)
{
#ifdef __aarch64__
    return pc & 0x0000ffffffffffff;
#else
    return pc;
#endif
}

#endif
