/* guard.h - what a thread is doing inside memshim.
 *
 * Floor 0. `depth` > 0 while the thread runs memshim's own code: a hook entered then (by a signal handler, or
 * by a vendor call of ours) passes straight to the vendor. It is opened again around the program's own vendor
 * call, so that what the vendor's runtime calls in turn is still seen. */
#ifndef MS_BASE_THREAD_GUARD_H
#define MS_BASE_THREAD_GUARD_H

#include <stdbool.h>

#include "base/compiler.h"
#include "base/thread/fast_cache.h"

struct ms_call; /* hooks/dispatch.h: the outermost hooked call of this thread, or NULL */
struct ms_own;

struct ms_thread {
    int depth;
    int recording; /* a driver hook is open: what the driver calls in turn is its own business */
    unsigned tid;  /* 0 until asked for: gettid is a system call */
    /* how often the vendor had no memory for it since an allocator of the program's last gave a piece
     */
    unsigned refused;
    struct ms_call *outermost;
    /* where this thread's errno lies, and the type of its cancellation (cancel.h): once it had a hit */
    int *errno_place;
    const unsigned char *cancel_place;
    const struct ms_own *own; /* what else it has for itself (thread_own.h); never NULL */
    struct ms_fast_cache fast;
};

extern MS_TLS struct ms_thread ms_thread;

/** The kernel's thread id, cached; a fork child zeroes `tid` to ask again. */
unsigned ms_thread_query_id(void);
static inline unsigned ms_thread_id(void)
{
    return MS_LIKELY(ms_thread.tid) ? ms_thread.tid : ms_thread_query_id();
}

/** True if no thread of this process has that id. */
bool ms_thread_is_gone(unsigned tid);

static inline int ms_guard_enter(void)
{
    return ms_thread.depth++;
}

static inline void ms_guard_leave(void)
{
    ms_thread.depth--;
}

#endif
