/* epochs.h - what is freed in a context, by the points of its timeline.
 *
 * Floor 2, the pool's clock. Part of a heap, with a lock of its own, which may be held across calls of the
 * vendor's; fence.h has what is done to it. */
#ifndef MS_POOL_CLOCK_EPOCHS_H
#define MS_POOL_CLOCK_EPOCHS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/compiler.h"
#include "base/lock.h"
#include "vendor/gpu.h"
#include "pool/clock/fence_timeline.h"

/** Streams that memshim makes for itself in a context, each at its first use. */
enum ms_own_stream {
    MS_OWN_ALLOC_FILLS, /* poison.c */
    MS_OWN_FREE_FILLS,
    MS_OWN_RETURNS, /* segment.c: what goes back, and nothing else */
    MS_OWN_JOINS,   /* stream_free.c: it waits for streams of other contexts */
    MS_OWN_STREAMS
};

/** Epochs of a heap are the points of its context: `time.now` tags frees, what is up to `time.reached` may be
 * used again. */
struct ms_fence {
    struct ms_lock lock;
    bool at_once;                 /* MEMSHIM_FREE=immediate: what is freed is over */
    _Atomic uint32_t freed_count; /* large blocks, since the budget was told */
    _Atomic uint64_t freed;       /* the newest epoch that tags something */
    struct ms_fence_timeline time;
    uint64_t orphaned; /* in this epoch a stream ended whose work only an event over the context covers */
    uint64_t left;     /* in this one, whose work an event of the ring covers, and none of another timeline */
    _Atomic uint64_t uncovered;   /* in this one, whose work nothing covers but a wait for the device */
    CUstream own[MS_OWN_STREAMS]; /* NULL: not made yet */
    _Atomic int graphs;           /* of the context, that may know addresses */
    _Atomic uint32_t unreachable; /* streams that can have work and take no event of ours */
};

/** The newest epoch that tags something. */
static inline uint64_t ms_fence_freed(const struct ms_fence *fence)
{
    return atomic_load_explicit(&fence->freed, memory_order_relaxed);
}
/** The epoch for a block that is freed now. */
static inline uint64_t ms_fence_tag(struct ms_fence *fence)
{
    uint64_t open = atomic_load_explicit(&fence->time.now, memory_order_seq_cst);
    uint64_t freed = atomic_load_explicit(&fence->freed, memory_order_relaxed);
    while (MS_UNLIKELY(freed < open) &&
           !atomic_compare_exchange_weak_explicit(&fence->freed, &freed, open, memory_order_relaxed,
                                                  memory_order_relaxed)) {
    }
    return open;
}
/** All that was tagged up to here may be used again. */
static inline uint64_t ms_fence_done(const struct ms_fence *fence)
{
    return MS_UNLIKELY(fence->at_once) ? UINT64_MAX : ms_fence_timeline_reached(&fence->time);
}

#endif
