/* figures.h - what the rest of the pool tells figures.c, and asks of it; and whether the pool stands still.
 *
 * Floor 2, for src/pool/ and its tests alone. */
#ifndef MS_POOL_API_FIGURES_H
#define MS_POOL_API_FIGURES_H

#include "base/compiler.h"
#include "base/lock.h"
#include "pool/api/pool.h"

struct ms_heap;
struct ms_request;

/** The vendor gave or took: counts, keeps the peak, tells the observer. No lock held. */
void ms_figures_changed(struct ms_heap *heap);
void ms_figures_changed_on(int device);
/** The most that was reserved on the device. */
uint64_t ms_figures_peak(int device);
/** The vendor gave memory for `request`, whose block the calling thread has got and no thread cache counts
 * yet: in the figures of this moment, of which the peak may be one, it counts as requested. Until
 * ms_figures_arrived of the same thread. */
void ms_figures_grew(struct ms_heap *heap, const struct ms_request *request);
/** The block is about to be counted, or came to nothing. Nothing to do where nothing grew. */
void ms_figures_arrived(void);
/** Sums that all devices have in common (ms_devices[].gone, peak). */
extern struct ms_lock ms_figures_lock;
/** The observer hears of a segment that came or went. No lock held. */
void ms_figures_tell(const struct ms_segment_record *segment, bool added);
/** The figures of a heap stay counted when its context is gone. All locks of the heap held. */
void ms_figures_retire(struct ms_heap *heap);
/** Those of one heap. */
void ms_figures_of_heap(struct ms_heap *heap, struct ms_pool_figures *figures_p);

/* stop.c */
/** The calling thread has stopped the pool, and so holds its locks. */
extern MS_TLS bool ms_pool_is_stopped;
/** For who only looks: who has stopped the pool holds it. */
static inline void ms_lock_to_look(struct ms_lock *lock)
{
    if (!ms_pool_is_stopped)
        ms_lock(lock);
}
static inline void ms_unlock_after_look(struct ms_lock *lock)
{
    if (!ms_pool_is_stopped)
        ms_unlock(lock);
}

#endif
