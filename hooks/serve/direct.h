/* direct.h - calls of the CUDA runtime's that the pool answers in the runtime's own hook.
 *
 * Floor 3. cudaMalloc ends in cuMemAlloc_v2 of the context that is current, and cudaFree in cuMemFree_v2.
 * Where that is all there is to it, and the pool has what is asked for at hand, neither the runtime nor the
 * driver's hook is needed: what is not ordinary goes the whole way. A thread learns of a runtime that this is
 * so when a call of its went the whole way and was answered from the pool. */
#ifndef MS_HOOKS_SERVE_DIRECT_H
#define MS_HOOKS_SERVE_DIRECT_H

#include <stdatomic.h>

#include "base/thread/cancel.h"
#include "base/objects/objects.h"
#include "base/thread/slow_path.h"
#include "vendor/gpu.h"
#include "hooks/dispatch.h"
#include "hooks/init.h"
#include "hooks/lookup/resolve.h"
#include "fastpath/fastpath.h"

/** A runtime as this thread knows it: the driver that its `real` function ends in, NULL if it has to be asked
 * itself. It holds until something is loaded or unloaded. */
struct ms_direct {
    const void *real;
    const struct ms_gpu *gpu;
    uint64_t changes; /* ms_objects_changes() */
};
/** The calls that are answered so, and what is known of each, since each is another function of the
 * runtime's. */
enum ms_directly { MS_DIRECTLY_NOT, MS_DIRECTLY, MS_DIRECTLY_CURRENT, MS_DIRECTLY_POOL, MS_DIRECTLY_END };
_Static_assert(MS_DIRECTLY_END * sizeof(struct ms_direct) == MS_OWN_DIRECT_BYTES,
               "its place in thread_own.h");
static MS_INLINE const struct ms_direct *ms_direct_mine(enum ms_directly which)
{
    return (const struct ms_direct *)(const void *)ms_thread.own->direct + which;
}
/** The latest of these numbers, + 1, for which a thread has learned so: then frees are answered as well. */
extern MS_HIDDEN _Atomic uint64_t ms_direct_frees;

bool ms_direct_alloc(unsigned row, const void *frame, const void *caller, uint64_t *out, uint64_t bytes);
bool ms_direct_free(unsigned row, uint64_t address);
#define MS_DIRECTLY_UNORDERED UINT64_MAX /* in the place of a stream */
/** Behind a free that was a hit, and is counted here: looks at limbo. May wait, as the vendor's free would.
 * True. */
bool ms_direct_look(struct ms_thread *me, uint64_t stream, uint16_t row);
/** As ms_direct_alloc and ms_direct_free, in the order of a stream (direct_stream.c). */
bool ms_direct_alloc_async(unsigned row, enum ms_directly which, const void *frame, const void *caller,
                           uint64_t *out, uint64_t bytes, uint64_t pool, uint64_t handle);
bool ms_direct_free_async(unsigned row, uint64_t address, uint64_t stream);
/** The driver that a free ends in: of whatever this thread got from it. */
const struct ms_gpu *ms_direct_driver(enum ms_directly which);
/** A call to `target` was answered by the hook of a driver. */
void ms_direct_learn(enum ms_directly which, const struct ms_target *target, const struct ms_gpu *driver);
/** True if calls of the thread may be hits: it knows where its errno and its cancellation are. */
bool ms_direct_may_learn(void);
/** True if nothing makes calls as a whole out of the ordinary. */
bool ms_direct_is_ordinary(void);
/** A call of that row was answered so, when ms_slow_path_now() said `word`: the next may be a hit. */
void ms_direct_note_anew(unsigned row, const struct ms_target *target, const struct ms_gpu *driver,
                         uint64_t word);
static inline void ms_direct_note(unsigned row, const struct ms_target *target, const struct ms_gpu *driver,
                                  uint64_t word)
{
    const struct ms_kept_site *kept = ms_kept_site(row);

    if (MS_UNLIKELY(kept->word != word || kept->target.real != target->real))
        ms_direct_note_anew(row, target, driver, word);
}

static inline bool ms_direct_knows(enum ms_directly which, const struct ms_target *target)
{
    const struct ms_direct *mine = ms_direct_mine(which);

    return mine->real == target->real && mine->changes == ms_objects_changes();
}

/* Nothing of memshim's is going on in this thread, and the record is this process's. */
static MS_INLINE bool ms_direct_may(const struct ms_thread *me)
{
    return MS_LIKELY(me->depth == 0 && !me->outermost) && ms_init_owner();
}

/** Calls to what is kept for the row may be hits: one was answered so far (ms_direct_note), and nothing that
 * this depends on has changed, or is unloaded. Who is asked behind this, and before the vendor, looks no
 * further than at the thread. */
static MS_INLINE bool ms_direct_may_hit(enum ms_row row)
{
    return MS_LIKELY(ms_kept_site(row)->word == ms_slow_path_now());
}

/* Nothing of memshim's is going on in this thread, it has had something at hand, and its cancellation is
 * deferred. */
static MS_INLINE bool ms_direct_is_free(const struct ms_thread *me)
{
    return ms_direct_may(me) && MS_LIKELY(me->cancel_place != NULL) &&
           MS_LIKELY(!(*me->cancel_place & atomic_load_explicit(&ms_cancel_bits, memory_order_relaxed)));
}

/* Between the two a signal handler's calls go to the vendor. */
static MS_INLINE void ms_direct_enter_hit(struct ms_thread *me)
{
    me->depth = 1;
    atomic_signal_fence(memory_order_seq_cst);
}

static MS_INLINE void ms_direct_leave_hit(struct ms_thread *me)
{
    atomic_signal_fence(memory_order_seq_cst);
    me->depth = 0;
}

/** Out of what the thread has at hand: false, and nothing has happened, for all else. What is handed on are
 * values, so that the arguments need never lie in memory: to clear that takes a twentieth of a call. */
static MS_INLINE bool ms_hit_NAME_ALLOC(unsigned row, const void *frame, const void *caller,
                                        const struct ms_args *args)
{
    uint64_t *out = (uint64_t *)(uintptr_t)args->out, address;
    struct ms_thread *me = &ms_thread;

    MS_KEEP(me);
    if (MS_UNLIKELY(!out || !ms_direct_is_free(me)) ||
        (args->direct == MS_DIRECTLY && MS_UNLIKELY(!me->fast.of_context.heap)))
        return false;
    ms_direct_enter_hit(me);
    address = args->direct == MS_DIRECTLY
                  ? ms_fast_alloc(me, ms_kept_site(row)->driver, args->bytes, frame, caller, (uint16_t)row)
                  : ms_fast_alloc_ordered(me, ms_kept_site(row)->driver,
                                          (struct ms_fast_order){args->stream, args->key}, args->bytes, frame,
                                          caller, (uint16_t)row);
    ms_direct_leave_hit(me);
    if (MS_UNLIKELY(!address))
        return false;
    ms_ledger_call_counted(me->fast.counts, (uint16_t)row, args->bytes);
    *out = address;
    return true;
}

static MS_INLINE bool ms_hit_NAME(unsigned row, const void *frame, const void *caller,
                                  const struct ms_args *args)
{
    struct ms_thread *me = &ms_thread;
    enum ms_fast freed;

    (void)frame, (void)caller;
    MS_KEEP(me);
    if (MS_UNLIKELY(!args->key || !ms_direct_is_free(me)) ||
        (args->direct == MS_DIRECTLY && MS_UNLIKELY(!me->fast.of_context.heap)))
        return false;
    ms_direct_enter_hit(me);
    freed = args->direct == MS_DIRECTLY
                ? ms_fast_free(me, args->key)
                : ms_fast_free_ordered(me, ms_kept_site(row)->driver, args->key, args->stream);
    ms_direct_leave_hit(me);
    if (MS_LIKELY(freed == MS_FAST_DONE)) {
        ms_ledger_call_counted(me->fast.counts, (uint16_t)row, 0);
        return true;
    }
    return freed == MS_FAST_LOOK &&
           ms_direct_look(me, args->direct == MS_DIRECTLY ? MS_DIRECTLY_UNORDERED : args->stream,
                          (uint16_t)row);
}

/** Both are what is asked next in the rows of a runtime's that say `.direct`. */
static MS_INLINE bool ms_serve_NAME_ALLOC(unsigned row, const struct ms_target *target, const void *frame,
                                          const void *caller, const struct ms_args *args, int *status_p)
{
    uint64_t *out = (uint64_t *)(uintptr_t)args->out, word = ms_slow_path_now();

    *status_p = 0;
    if (!args->direct || !ms_direct_knows(args->direct, target) || !ms_direct_mine(args->direct)->gpu ||
        !ms_direct_may(&ms_thread) || (args->direct == MS_DIRECTLY && (!out || !args->bytes)))
        return false;
    if (args->direct != MS_DIRECTLY ? !ms_direct_alloc_async(row, args->direct, frame, caller, out,
                                                             args->bytes, args->key, args->stream)
                                    : !ms_direct_alloc(row, frame, caller, out, args->bytes))
        return false;
    ms_direct_note(row, target, ms_direct_mine(args->direct)->gpu, word);
    return true;
}

static MS_INLINE bool ms_serve_NAME(unsigned row, const struct ms_target *target, const void *frame,
                                    const void *caller, const struct ms_args *args, int *status_p)
{
    uint64_t word = ms_slow_path_now();

    (void)frame, (void)caller;
    *status_p = 0;
    if (!args->direct ||
        atomic_load_explicit(&ms_direct_frees, memory_order_relaxed) != ms_objects_changes() + 1 ||
        !ms_direct_may(&ms_thread))
        return false;
    if (args->direct != MS_DIRECTLY ? !ms_direct_free_async(row, args->key, args->stream)
                                    : !ms_direct_free(row, args->key))
        return false;
    ms_direct_note(row, target, ms_direct_driver(args->direct), word);
    return true;
}

#endif
