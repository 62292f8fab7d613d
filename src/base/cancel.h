/* cancel.h - holding off the cancellation of the calling thread.
 *
 * Floor 0. A hook makes the thread's cancellation deferred (hooks/section.h), so that it can end only where a
 * cancellation point is; whatever of ours calls one puts this around it, for a thread that died there would
 * leave a lock held. */
#ifndef MS_BASE_CANCEL_H
#define MS_BASE_CANCEL_H

#include <pthread.h>

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
