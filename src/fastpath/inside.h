/* inside.h - the part of the fast path that a request and a free have in common: when the thread may go on by
 * itself, when what it has at hand is void, and which blocks are counted so.
 *
 * Floor 2.5, for src/fastpath alone. */
#ifndef MS_FASTPATH_INSIDE_H
#define MS_FASTPATH_INSIDE_H

#include "base/thread/guard.h"
#include "pool/api/internal.h"
#include "record/file/trace.h"
#include "record/live/totals.h"

/** learn.c: nothing is at hand any more, since one of the thread's locks was taken away. */
void ms_fast_forget_all(struct ms_thread *me);

/* The next call goes the slow path, which learns anew. */
static inline bool fast_forget(struct ms_fast_cache *fast)
{
    fast->of_context.heap = fast->aside = NULL;
    return false;
}

/* Takes both locks, which are the chosen ones: inside, all is what it was when it came to hand. */
static MS_INLINE bool fast_enter(struct ms_thread *me)
{
    if (MS_LIKELY(ms_bias_enter_both(me->fast.own)))
        return true;
    ms_fast_forget_all(me);
    return false;
}

static MS_INLINE void fast_leave(const struct ms_thread *me)
{
    ms_bias_leave_both(me->fast.own);
}

/* True if the driver says that this context is current. It may leave something in errno; what else is done
 * here does not. */
static MS_INLINE bool fast_is_current(const struct ms_thread *me, const struct ms_gpu *gpu, uint64_t context)
{
    int saved_errno = *me->errno_place;
    uint64_t current;
    bool told = ms_gpu_context_told(gpu, &current);
    *me->errno_place = saved_errno;
    return told && current == context;
}

static MS_INLINE enum ms_kind ms_fast_kind(bool is_ordered)
{
    return is_ordered ? MS_KIND_ASYNC : MS_KIND_DEVICE;
}

/* The tags in the row of a block that is counted in here, and of none that differs in any way. */
static MS_INLINE unsigned ms_fast_tags(bool is_ordered)
{
    return ms_fast_kind(is_ordered) | MS_SPACE_ADDRESS << 4 | MS_BLOCK_ROW_SERVED |
           (is_ordered ? MS_BLOCK_ROW_OUTLIVES : 0);
}

#endif
