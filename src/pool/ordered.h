/* ordered.h - what a heap knows of the streams that are given work: MEMSHIM_FREE=ordered (ordered.c).
 *
 * Floor 2, for src/pool/ alone; what the hooks call is in pool.h. */
#ifndef MS_POOL_ORDERED_H
#define MS_POOL_ORDERED_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/lock.h"
#include "gpu/gpu.h"

struct ms_heap;

enum { MS_ORDERED_STREAMS = 256 };

/** A stream that was given work while its heap's context was watched. Its record is its own until the context
 * ends, or until another stream needs it after this one's end. */
struct ms_pool_stream {
    struct ms_heap *heap;   /* whose memory it may touch */
    uint64_t id, handle;    /* by the driver's number, which is never used again; and what calls are given */
    /* of a thread's own default stream: that thread's number, which is never used again */
    uint64_t owner;
    uint32_t thread;        /* ... and how the system calls it */
    /* the epoch in which it was given work last; it has some while this is not done */
    _Atomic uint64_t busy;
    uint64_t seen;          /* the newest mark that it waits behind. Order's lock */
    bool over;              /* the stream was destroyed, or its thread ended; its work goes on */
};

struct ms_order {
    struct ms_lock lock; /* held across the vendor's record and wait: a stream that joins waits for both */
    struct ms_pool_stream *_Atomic worker; /* who was given work last; BETWEEN while that changes */
    _Atomic uint64_t others;               /* the newest epoch in which anybody else was */
    uint64_t unknown;                      /* ... and in which work was given before anybody looked */
    _Atomic uint32_t freed; /* blocks were freed at once since the worker's last mark: MARK_* */
    _Atomic int shut;       /* captures are open, or about to be: nothing is free at once */
    /* The mark: an event in the stream that had the work, at the place of the last free. */
    CUevent event;
    uint32_t settlers; /* threads that look at this event without the lock */
    struct ms_pool_stream *marked;
    uint64_t serial, upto; /* which mark it is; it is over when this epoch is done */
    _Atomic uint32_t stream_count;
    struct ms_pool_stream streams[MS_ORDERED_STREAMS];
    _Atomic uint64_t at_once, marks, waits, host_waits; /* blocks, events, waits on the device, by the host */
};

/** Before the block is given to anybody: whether a block that is freed now may be used again at once. May
 * call the vendor; no lock held. */
bool ms_ordered_frees_at_once(struct ms_heap *heap);
/** What is queued in a stream of memshim's own in this context may touch free memory from here on. False if
 * that cannot be ordered. The context is current; no lock held. */
bool ms_ordered_guard(struct ms_heap *heap, CUstream stream);
/** The host waits until nobody's work can touch memory that was handed out: it is about to be seen from
 * elsewhere. */
void ms_ordered_settle(struct ms_heap *heap);
/** A context has this heap; it is gone. */
void ms_ordered_born(struct ms_heap *heap);
void ms_ordered_forget(struct ms_heap *heap);
/** In a fork child. */
void ms_ordered_reset(void);

#endif
