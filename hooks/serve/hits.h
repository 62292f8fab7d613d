/* hits.h - calls that are answered in the hook that the program's call enters first, out of what the thread
 * has at hand.
 *
 * Floor 3. What is asked here is the fast path (src/fastpath): it holds for a call site, and for as long as
 * nothing is out of the ordinary (base/thread/slow_path.h). A call of the slow path that was answered from
 * the pool says what the next may use (ms_hit_answered): in a hook that records that is the call itself; in a
 * hook of CUDA's runtime, which ends in the driver's, it is one that was answered there (runtime.h). Which of
 * a vendor's calls may be hits, and what each asks for, its rows say (`hit`). */
#ifndef MS_HOOKS_SERVE_HITS_H
#define MS_HOOKS_SERVE_HITS_H

#include <stdatomic.h>

#include "base/thread/cancel.h"
#include "base/thread/slow_path.h"
#include "fastpath/fastpath.h"
#include "hooks/dispatch.h"
#include "hooks/init.h"
#include "hooks/lookup/resolve.h"

/** Kinds of calls that may be hits: memory of the context; in the order of a stream of its current pool, or
 * of one that is named. */
enum ms_hit { MS_HIT_NONE, MS_HIT_CONTEXT, MS_HIT_CURRENT, MS_HIT_POOL, MS_HIT_KINDS };

/* Nothing of memshim's is going on in this thread, and the record is this process's. */
static MS_INLINE bool ms_hit_may(const struct ms_thread *me)
{
    return MS_LIKELY(me->depth == 0 && !me->outermost) && ms_init_owner();
}

/** Calls to what is kept for the row may take the fast path: one was answered in this hook so far, and
 * nothing that this depends on has changed, or is unloaded. Who is asked behind this, and before the vendor,
 * looks no further than at the thread. */
static MS_INLINE bool ms_hit_may_be_fast(enum ms_row row)
{
    return MS_LIKELY(ms_kept_site(row)->word == ms_slow_path_now());
}

/* Nothing of memshim's is going on in this thread, it has had something at hand, and its cancellation is
 * deferred. What is at hand is looked at inside, as a signal handler's call may change that up to then. */
static MS_INLINE bool ms_hit_is_free(const struct ms_thread *me)
{
    return ms_hit_may(me) && MS_LIKELY(me->cancel_place != NULL) &&
           MS_LIKELY(!(*me->cancel_place & atomic_load_explicit(&ms_cancel_bits, memory_order_relaxed)));
}

/* Between the two a signal handler's calls go to the vendor. */
static MS_INLINE void ms_hit_enter(struct ms_thread *me)
{
    me->depth = 1;
    atomic_signal_fence(memory_order_seq_cst);
}

static MS_INLINE void ms_hit_leave(struct ms_thread *me)
{
    atomic_signal_fence(memory_order_seq_cst);
    me->depth = 0;
}

/** Both: false, and nothing has happened, for all that is not at hand. They hand on values, so that the
 * arguments need never lie in memory: to clear that takes a twentieth of a call. */
static MS_INLINE bool ms_hit_alloc(unsigned row, const void *frame, const void *caller,
                                   const struct ms_args *args)
{
    uint64_t *out = (uint64_t *)(uintptr_t)args->out, address;
    struct ms_thread *me = &ms_thread;

    MS_KEEP(me);
    if (MS_UNLIKELY(!out || !ms_hit_is_free(me)))
        return false;
    ms_hit_enter(me);
    address = args->hit == MS_HIT_CONTEXT
                  ? ms_fast_alloc(me, ms_kept_site(row)->driver, args->bytes, frame, caller, (uint16_t)row)
                  : ms_fast_alloc_ordered(me, ms_kept_site(row)->driver,
                                          (struct ms_fast_order){args->stream, args->key}, args->bytes, frame,
                                          caller, (uint16_t)row);
    ms_hit_leave(me);
    if (MS_UNLIKELY(!address))
        return false;
    ms_ledger_call_counted(me->fast.counts, (uint16_t)row, args->bytes);
    *out = address;
    return true;
}

/* Of what is in a row of neither kind. */
static MS_INLINE bool ms_hit_none(unsigned row, const void *frame, const void *caller,
                                  const struct ms_args *args)
{
    (void)row, (void)frame, (void)caller, (void)args;
    return false;
}

#define MS_HIT_UNORDERED UINT64_MAX /* in the place of a stream */
/** Behind a free on the fast path, which is left and counted here: looks at the pending list, or at the pool
 * of what the stream freed. May wait, as the vendor's free would. True. */
bool ms_hit_look(struct ms_thread *me, uint64_t stream, uint16_t row);
static MS_INLINE bool ms_hit_free(unsigned row, const void *frame, const void *caller,
                                  const struct ms_args *args)
{
    struct ms_thread *me = &ms_thread;
    bool is_ordered = args->hit != MS_HIT_CONTEXT;
    enum ms_fast freed;

    (void)frame, (void)caller;
    MS_KEEP(me);
    if (MS_UNLIKELY(!args->key || !ms_hit_is_free(me)))
        return false;
    ms_hit_enter(me);
    freed = is_ordered ? ms_fast_free_ordered(me, ms_kept_site(row)->driver, args->key, args->stream)
                       : ms_fast_free(me, args->key);
    if (MS_UNLIKELY(freed == MS_FAST_LOOK))
        return ms_hit_look(me, is_ordered ? args->stream : MS_HIT_UNORDERED, (uint16_t)row);
    ms_hit_leave(me);
    if (MS_LIKELY(freed == MS_FAST_DONE)) {
        ms_ledger_call_counted(me->fast.counts, (uint16_t)row, 0);
        return true;
    }
    return false;
}

/** A call to `target` that may be a hit was answered from the pool, by `driver` (NULL: nobody knows), on the
 * slow path, which began when ms_slow_path_now() said `word`: what it used comes to hand, and the next such
 * call may take the fast path. */
void ms_hit_answered(unsigned row, const struct ms_target *target, const struct ms_gpu *driver,
                     const struct ms_args *args, uint64_t word);

#endif
