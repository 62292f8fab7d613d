/* fence_timeline.h - the order in which things get over in a stream or a context, and the events that tell;
 * see fence_timeline.c.
 *
 * Floor 2, the pool's clock. A *point* is a number of a timeline's: what was freed there. It is reached when
 * an event that stands behind it is done. Part of a stream's record or of a heap's fence; its lock is the
 * streams', or the fence's, which may be held across the vendor's record and query of an event. Neither
 * waits. */
#ifndef MS_POOL_CLOCK_FENCE_TIMELINE_H
#define MS_POOL_CLOCK_FENCE_TIMELINE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "vendor/gpu.h"

/* Events that may be under way: of a stream, and of a context whose host is far ahead. */
enum { MS_EVENTS_OF_STREAM = 256, MS_EVENTS_OF_CONTEXT = 4096 };

/** An event: when it is done, all is over up to `number`; 0: it is one of several, and the last one says. */
struct ms_fence_event {
    CUevent event;
    uint64_t number;
};

struct ms_fence_timeline {
    _Atomic uint64_t now;     /* the number of what is freed now; they never begin anew */
    _Atomic uint64_t reached; /* what has no higher number is over; both are read without the lock as well */
    _Atomic uint64_t context; /* in which its events are made; the same */
    const struct ms_gpu *gpu;
    uint32_t first, count, room;
    struct ms_fence_event *marks; /* `room` of them in a ring, numbers rising; NULL before the first */
    uint32_t spare_count;         /* events for the next marks, which lie behind those in the ring */
    uint64_t given_back; /* whoever sees that this is over waits for the event, at once: see driver_frees.c */
    bool closed;         /* nothing more will be put there: events are not kept */
    bool spoiled;        /* a capture took in one of several events */
};

/** Begins, for a stream of this context or the context itself; where it was another's before, all of that is
 * reached. `room`: as many marks, always the same of one timeline. */
void ms_fence_timeline_begin(struct ms_fence_timeline *time, const struct ms_gpu *gpu, uint64_t context,
                             uint32_t room);
/** The point of what is freed now, and nothing else. */
uint64_t ms_fence_timeline_point(struct ms_fence_timeline *time);
/** The latest point that was taken. */
static inline uint64_t ms_fence_timeline_latest(const struct ms_fence_timeline *time)
{
    return atomic_load_explicit(&time->now, memory_order_relaxed) - 1;
}
static inline uint64_t ms_fence_timeline_reached(const struct ms_fence_timeline *time)
{
    return atomic_load_explicit(&time->reached, memory_order_acquire);
}
/** An event behind everything in `stream`, or in the whole context (NULL), that tells of `number`. What the
 * driver says; where there cannot be one, a later one covers it. It is for the caller to know that no capture
 * is harmed. */
int ms_fence_timeline_mark(struct ms_fence_timeline *time, CUstream stream, uint64_t number);
/** As ms_fence_timeline_mark, in a visit; and whether the stream has nothing to do, so that it needs no
 * event: false as well where that cannot be asked. */
int ms_fence_timeline_mark_here(struct ms_fence_timeline *time, CUstream stream, uint64_t number);
bool ms_fence_timeline_is_idle(const struct ms_fence_timeline *time, CUstream stream);
/** The latest point's mark tells nothing that is wanted any more. */
void ms_fence_timeline_take_back(struct ms_fence_timeline *time, uint64_t point);
/** Up to which point there is an event, or was. */
uint64_t ms_fence_timeline_covered(const struct ms_fence_timeline *time);
/** The event that was recorded for this very point; NULL if there is none (any more). */
CUevent ms_fence_timeline_exact(struct ms_fence_timeline *time, uint64_t point);
/** Of which point one of the `count` events tells, the oldest first; 0: of none, by itself. */
static inline uint64_t ms_fence_timeline_number(const struct ms_fence_timeline *time, uint32_t i)
{
    return time->marks[(time->first + i) % time->room].number;
}
/** True if the point is reached; looks at one event at most, again and again for `look_ns`. */
bool ms_fence_timeline_is_reached(struct ms_fence_timeline *time, uint64_t point, uint64_t look_ns);
/** Looks at events in their order until one is not done. Returns what the driver said last. */
int ms_fence_timeline_poll(struct ms_fence_timeline *time);
/** The program has waited: everything is over up to `number`. */
void ms_fence_timeline_reach(struct ms_fence_timeline *time, uint64_t number);
/** Its stream ends, and its work goes on; events that are spare go. */
void ms_fence_timeline_close(struct ms_fence_timeline *time);
/** Everything counts as reached: its context has died, and its events with it (`gone`), or nobody will
 * ask. */
void ms_fence_timeline_end(struct ms_fence_timeline *time, bool gone);

/** An event of the context that tells nothing, and back again. In a visit; NULL if the driver makes none. */
CUevent ms_fence_timeline_take_event(struct ms_fence_timeline *time, int *status_p);
void ms_fence_timeline_keep_event(struct ms_fence_timeline *time, CUevent event);

#endif
