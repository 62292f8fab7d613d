/* thread_own.h - what a thread has for itself beyond thread-local storage.
 *
 * Floor 0: the places alone; each room asserts that what it keeps there fits. The C library keeps only a few
 * hundred bytes for the thread-local storage of libraries that are loaded when a thread runs already, and
 * under LD_AUDIT all are: one that wants more is not loaded, and its program does not start. So what is large
 * lies here, behind one pointer of the thread's one structure (guard.h). A record comes from the arena when
 * something is first kept in it, and passes to another thread when its own has ended. */
#ifndef MS_BASE_THREAD_THREAD_OWN_H
#define MS_BASE_THREAD_THREAD_OWN_H

#include <stdint.h>

#include "base/thread/guard.h"

enum {
    MS_OWN_SITES_BYTES = 336,
    MS_OWN_RUNTIMES_BYTES = 96,
    MS_OWN_RECALL_BYTES = 2888,
    MS_OWN_STREAMS_BYTES = 3584
};

struct ms_own {
    uint64_t sites[MS_OWN_SITES_BYTES / 8];       /* hooks/lookup/resolve.h */
    uint64_t runtimes[MS_OWN_RUNTIMES_BYTES / 8]; /* hooks/serve/runtime.h */
    uint64_t recall[MS_OWN_RECALL_BYTES / 8];     /* unwind/native/recall.h */
    uint64_t *streams;                            /* fastpath/streams.h; NULL: of no use so far */
};

/** The record that every thread has to begin with: all zeros, and nobody writes there. */
extern MS_HIDDEN const struct ms_own ms_own_none;

/** A record for the calling thread, all zeros; NULL without memory. Inside memshim's own code, and outside
 * all locks. */
struct ms_own *ms_own_take(void);

/** The calling thread's, to be written to. */
static inline struct ms_own *ms_own_mine(void)
{
    return MS_LIKELY(ms_thread.own != &ms_own_none) ? (struct ms_own *)ms_thread.own : ms_own_take();
}

/** As ms_own_mine, with its `streams`. */
struct ms_own *ms_own_with_streams(void);

/** In a fork child: the only thread keeps nothing so far. */
void ms_own_reset(void);

#endif
