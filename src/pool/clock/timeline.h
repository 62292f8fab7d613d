/* timeline.h - the order in which things get over in a stream, and the events that tell; see timeline.c.
 *
 * Floor 2, the pool's clock. A *point* is a number of a timeline's: what was freed there. It is reached when
 * an event that stands behind it is done. Part of a stream's record; its lock is the streams', which may be
 * held across the vendor's record and query of an event. Neither waits. */
#ifndef MS_POOL_CLOCK_TIMELINE_H
#define MS_POOL_CLOCK_TIMELINE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "gpu/gpu.h"

enum { MS_TIMELINE_MARKS = 256, MS_TIMELINE_SPARE = 4 };

/** An event: when it is done, all is over up to `number`. */
struct ms_mark {
    CUevent event;
    uint64_t number;
};

struct ms_timeline {
    const struct ms_gpu *gpu;
    _Atomic uint64_t context; /* in which its events are made; read without the lock as well */
    uint64_t now;             /* the latest point; they never begin anew */
    uint64_t reached;         /* what has no higher number is over */
    uint32_t first, count;
    struct ms_mark *marks; /* MS_TIMELINE_MARKS in a ring, numbers rising; NULL before the first */
    CUevent spare[MS_TIMELINE_SPARE];
    uint32_t spare_count;
    bool closed; /* nothing more will be put there: events are not kept */
};

/** Begins, for a stream of this context; where it was another's before, all of that is reached. */
void ms_timeline_begin(struct ms_timeline *time, const struct ms_gpu *gpu, uint64_t context);
/** The point of what is freed now. */
uint64_t ms_timeline_point(struct ms_timeline *time);
/** An event behind everything in `stream`, or in the whole context (NULL), for the latest point. False if
 * there cannot be one: then a later one covers it. It is for the caller to know that no capture is harmed. */
bool ms_timeline_mark(struct ms_timeline *time, CUstream stream);
/** The latest point's mark tells nothing that is wanted any more. */
void ms_timeline_take_back(struct ms_timeline *time, uint64_t point);
/** Up to which point there is an event, or was. */
uint64_t ms_timeline_covered(const struct ms_timeline *time);
/** The event that was recorded for this very point; NULL if there is none (any more). */
CUevent ms_timeline_exact(struct ms_timeline *time, uint64_t point);
/** Whether the point is reached; looks at one event at most, again and again for so long. */
bool ms_timeline_is_reached(struct ms_timeline *time, uint64_t point, uint64_t look_ns);
/** Looks at events in their order until one is not done. */
void ms_timeline_look(struct ms_timeline *time);
/** Its stream ends, and its work goes on; events that are spare go. */
void ms_timeline_close(struct ms_timeline *time);
/** Everything counts as reached: its context has died, and its events with it (`gone`), or nobody will ask.
 */
void ms_timeline_end(struct ms_timeline *time, bool gone);

#endif
