/* cancel.h - the cancellation of the calling thread: what it is, and holding it off.
 *
 * Floor 0. A hook makes the thread's cancellation deferred (hooks/hook_scope.h), so that it can end only
 * where a cancellation point is; whatever of ours calls one puts ms_cancel_hold around it, for a thread that
 * died there would leave a lock held.
 *
 * A thread's type nearly always is deferred already. The C library keeps it in a bit of the thread's own
 * record; where that was found (ms_cancel_learn), looking at it takes a tenth of setting it to what it is. */
#ifndef MS_BASE_THREAD_CANCEL_H
#define MS_BASE_THREAD_CANCEL_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"
#include "base/thread/guard.h"

/** The place of the cancellation type: a byte at that distance from ms_thread, the same in every thread, and
 * the bits of it that are set in a thread whose cancellation is asynchronous. No bits: not known. */
extern MS_HIDDEN ptrdiff_t ms_cancel_distance;
extern MS_HIDDEN _Atomic unsigned char ms_cancel_bits;

/** Finds that out, once, when memshim starts, by changing the calling thread's type back and forth and
 * looking for what follows. To be called with cancellation disabled and deferred, so that nothing can come of
 * it. */
void ms_cancel_learn(void);

/** True if the calling thread's cancellation is deferred, as far as that can be told by looking: false proves
 * nothing. */
static inline bool ms_cancel_is_deferred(void)
{
    unsigned char bits = atomic_load_explicit(&ms_cancel_bits, memory_order_acquire);
    uintptr_t place = (uintptr_t)&ms_thread + (uintptr_t)ms_cancel_distance;
    return MS_LIKELY(bits && !(*(const volatile unsigned char *)place & bits));
}

/** The place of the calling thread's cancellation type; NULL if that is not known. */
static inline const unsigned char *ms_cancel_place(void)
{
    uintptr_t place = (uintptr_t)&ms_thread + (uintptr_t)ms_cancel_distance;
    return atomic_load_explicit(&ms_cancel_bits, memory_order_acquire) ? (const unsigned char *)place : NULL;
}

/** Returns what ms_cancel_release() is to be given. Nests. */
static inline int ms_cancel_hold(void)
{
    int before;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before);
    return before;
}

static inline void ms_cancel_release(int before)
{
    pthread_setcancelstate(before, &before);
}

#endif
