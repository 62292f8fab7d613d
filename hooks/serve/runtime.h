/* runtime.h - calls of the CUDA runtime's that are answered in the runtime's own hook.
 *
 * Floor 3. cudaMalloc ends in cuMemAlloc_v2 of the context that is current, cudaFree in cuMemFree_v2, and
 * those in stream order likewise. Where that is all there is to it, and the pool has what is asked for at
 * hand, neither the runtime nor the driver's hook is needed. The fast path (src/fastpath) is tried first,
 * then the slow path with what the pool has at hand (serve.c). All else goes through the runtime to the
 * driver's hook. A thread learns of a runtime that this is so when a call of its went all the way and was
 * answered from the pool. */
#ifndef MS_HOOKS_SERVE_RUNTIME_H
#define MS_HOOKS_SERVE_RUNTIME_H

#include <stdatomic.h>

#include "base/thread/cancel.h"
#include "base/objects/objects.h"
#include "base/thread/slow_path.h"
#include "fastpath/fastpath.h"
#include "vendor/gpu.h"
#include "hooks/dispatch.h"
#include "hooks/init.h"
#include "hooks/lookup/resolve.h"

/** A runtime as this thread knows it: the driver that its `real` function ends in, NULL if it has to be asked
 * itself. It holds until something is loaded or unloaded. */
struct ms_runtime {
    const void *real;
    const struct ms_gpu *gpu;
    uint64_t changes; /* ms_objects_changes() */
};
/** The calls that are answered so, and what is known of each, since each is another function of the
 * runtime's: of the context, of the stream's current pool, of a pool that is named. */
enum ms_runtime_call {
    MS_RUNTIME_OTHER,
    MS_RUNTIME_CONTEXT,
    MS_RUNTIME_CURRENT,
    MS_RUNTIME_POOL,
    MS_RUNTIME_CALLS
};
_Static_assert(MS_RUNTIME_CALLS * sizeof(struct ms_runtime) == MS_OWN_RUNTIMES_BYTES,
               "its place in thread_own.h");
static MS_INLINE const struct ms_runtime *ms_runtime_mine(enum ms_runtime_call which)
{
    return (const struct ms_runtime *)(const void *)ms_thread.own->runtimes + which;
}

/** A call to `target` was answered by the hook of a driver. */
void ms_runtime_learn(enum ms_runtime_call which, const struct ms_target *target,
                      const struct ms_gpu *driver);
static inline bool ms_runtime_knows(enum ms_runtime_call which, const struct ms_target *target)
{
    const struct ms_runtime *mine = ms_runtime_mine(which);

    return mine->real == target->real && mine->changes == ms_objects_changes();
}

/* Nothing of memshim's is going on in this thread, and the record is this process's. */
static MS_INLINE bool ms_runtime_may(const struct ms_thread *me)
{
    return MS_LIKELY(me->depth == 0 && !me->outermost) && ms_init_owner();
}

/* --- the fast path ---------------------------------------------------------------------------------- */

/** Calls to what is kept for the row may take the fast path: one was answered in this hook so far, and
 * nothing that this depends on has changed, or is unloaded. Who is asked behind this, and before the vendor,
 * looks no further than at the thread. */
static MS_INLINE bool ms_runtime_may_be_fast(enum ms_row row)
{
    return MS_LIKELY(ms_kept_site(row)->word == ms_slow_path_now());
}

/* Nothing of memshim's is going on in this thread, it has had something at hand, and its cancellation is
 * deferred. What is at hand is looked at inside, as a signal handler's call may change that up to then. */
static MS_INLINE bool ms_runtime_is_free(const struct ms_thread *me)
{
    return ms_runtime_may(me) && MS_LIKELY(me->cancel_place != NULL) &&
           MS_LIKELY(!(*me->cancel_place & atomic_load_explicit(&ms_cancel_bits, memory_order_relaxed)));
}

/* Between the two a signal handler's calls go to the vendor. */
static MS_INLINE void ms_runtime_enter_fast(struct ms_thread *me)
{
    me->depth = 1;
    atomic_signal_fence(memory_order_seq_cst);
}

static MS_INLINE void ms_runtime_leave_fast(struct ms_thread *me)
{
    atomic_signal_fence(memory_order_seq_cst);
    me->depth = 0;
}

/** Both: false, and nothing has happened, for all that is not at hand. They hand on values, so that the
 * arguments need never lie in memory: to clear that takes a twentieth of a call. */
static MS_INLINE bool ms_fast_NAME_ALLOC(unsigned row, const void *frame, const void *caller,
                                         const struct ms_args *args)
{
    uint64_t *out = (uint64_t *)(uintptr_t)args->out, address;
    struct ms_thread *me = &ms_thread;

    MS_KEEP(me);
    if (MS_UNLIKELY(!out || !ms_runtime_is_free(me)))
        return false;
    ms_runtime_enter_fast(me);
    address = args->runtime == MS_RUNTIME_CONTEXT
                  ? ms_fast_alloc(me, ms_kept_site(row)->driver, args->bytes, frame, caller, (uint16_t)row)
                  : ms_fast_alloc_ordered(me, ms_kept_site(row)->driver,
                                          (struct ms_fast_order){args->stream, args->key}, args->bytes, frame,
                                          caller, (uint16_t)row);
    ms_runtime_leave_fast(me);
    if (MS_UNLIKELY(!address))
        return false;
    ms_ledger_call_counted(me->fast.counts, (uint16_t)row, args->bytes);
    *out = address;
    return true;
}

#define MS_RUNTIME_UNORDERED UINT64_MAX /* in the place of a stream */
/** Behind a free on the fast path, which is left and counted here: looks at the pending list, or at the pool
 * of what the stream freed. May wait, as the vendor's free would. True. */
bool ms_runtime_look(struct ms_thread *me, uint64_t stream, uint16_t row);
static MS_INLINE bool ms_fast_NAME(unsigned row, const void *frame, const void *caller,
                                   const struct ms_args *args)
{
    struct ms_thread *me = &ms_thread;
    bool is_ordered = args->runtime != MS_RUNTIME_CONTEXT;
    enum ms_fast freed;

    (void)frame, (void)caller;
    MS_KEEP(me);
    if (MS_UNLIKELY(!args->key || !ms_runtime_is_free(me)))
        return false;
    ms_runtime_enter_fast(me);
    freed = is_ordered ? ms_fast_free_ordered(me, ms_kept_site(row)->driver, args->key, args->stream)
                       : ms_fast_free(me, args->key);
    if (MS_UNLIKELY(freed == MS_FAST_LOOK))
        return ms_runtime_look(me, is_ordered ? args->stream : MS_RUNTIME_UNORDERED, (uint16_t)row);
    ms_runtime_leave_fast(me);
    if (MS_LIKELY(freed == MS_FAST_DONE)) {
        ms_ledger_call_counted(me->fast.counts, (uint16_t)row, 0);
        return true;
    }
    return false;
}

/* --- the slow path, with what the pool has at hand ----------------------------------------------------- */

/** For calls of which ms_runtime_knows the function, and that ms_runtime_may answer. */
bool ms_runtime_alloc(unsigned row, const struct ms_target *target, const void *frame, const void *caller,
                      const struct ms_args *args);
bool ms_runtime_free(unsigned row, const struct ms_target *target, const void *frame, const void *caller,
                     const struct ms_args *args);
/** The latest ms_objects_changes(), + 1, for which a thread has learned: then frees are answered as well. */
extern MS_HIDDEN _Atomic uint64_t ms_runtime_frees;

static MS_INLINE bool ms_serve_NAME_ALLOC(unsigned row, const struct ms_target *target, const void *frame,
                                          const void *caller, const struct ms_args *args, int *status_p)
{
    *status_p = 0;
    return args->runtime && ms_runtime_knows(args->runtime, target) && ms_runtime_mine(args->runtime)->gpu &&
           ms_runtime_may(&ms_thread) && ms_runtime_alloc(row, target, frame, caller, args);
}

static MS_INLINE bool ms_serve_NAME(unsigned row, const struct ms_target *target, const void *frame,
                                    const void *caller, const struct ms_args *args, int *status_p)
{
    *status_p = 0;
    return args->runtime &&
           atomic_load_explicit(&ms_runtime_frees, memory_order_relaxed) == ms_objects_changes() + 1 &&
           ms_runtime_may(&ms_thread) && ms_runtime_free(row, target, frame, caller, args);
}

#endif
