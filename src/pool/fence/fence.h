/* fence.h - epochs of a heap, and the events that retire them; see fence.c.
 *
 * Floor 2, for src/pool/ alone. Part of a heap, with a lock of its own, which may be held across calls of the
 * vendor's. */
#ifndef MS_POOL_FENCE_FENCE_H
#define MS_POOL_FENCE_FENCE_H

#include "pool/clock/epochs.h"

struct ms_heap;

/** True if something was freed that no event covers yet, or that events have not retired yet. */
bool ms_fence_pending(struct ms_heap *heap);
/** Closes the epoch, if it tags anything. False if it cannot be now. No lock of ours held. */
bool ms_fence_close(struct ms_heap *heap);
/** Fence's lock held: closes the epoch, whatever is in it. Whether everything that was issued up to now has
 * its event; `status_p` (or NULL) is what the driver says, CUDA_SUCCESS while a capture is in the way. */
bool ms_fence_close_locked(struct ms_heap *heap, int *status_p);
/** Looks at the events. Returns whether `done` has moved. */
bool ms_fence_poll(struct ms_heap *heap);
/** As ms_fence_poll, but with the fence's lock held. Returns what the driver said last: CUDA_SUCCESS if
 * nothing is under way. */
int ms_fence_poll_locked(struct ms_heap *heap);
/** True if what is vacant can go back now (source.h). No lock held. */
bool ms_fence_quiet(struct ms_heap *heap);
/** Of a context: whether nothing is going on there, so that a fresh event over it is done at once, or within
 * `ns`. */
bool ms_fence_over_at_once(struct ms_heap *heap, uint64_t ns);
/** As ms_fence_over_at_once, where the context has no such event: as far as streams are known. */
bool ms_fence_device_idle(struct ms_heap *heap, uint64_t ns);
void ms_fence_retired(struct ms_heap *heap, uint64_t epoch);
/** For memory that is no heap's (external.c): the epoch of the context in which something is freed now, 0
 * without a fence; and whether one has passed, which is looked at once, after closing it if wanted. No lock
 * held. */
uint64_t ms_pool_epoch(const struct ms_gpu *gpu, uint64_t context, int device);
bool ms_pool_epoch_done(uint64_t context, uint64_t epoch, bool close);
void ms_fence_forget(struct ms_heap *heap);
/** captured.c: no graph knows what is in the heap any more, or memory is short. Takes the heap's lock. */
void ms_captured_forget(struct ms_heap *heap);
/** Fence's lock held, as for all that follow. An event in `stream`, or over the context (NULL), that retires
 * `upto`, or nothing (0). The driver's status. */
int ms_fence_mark(struct ms_heap *heap, CUstream stream, uint64_t upto);
/** fence_streams.c: whether there can be no event over the context; events in all streams instead. */
bool ms_fence_by_streams(const struct ms_heap *heap);
int ms_fence_mark_streams(struct ms_heap *heap, uint64_t upto);
/** Events in all streams of the context, the last of which tells of `upto`, put into any timeline; each
 * counts in `events_p` (or NULL). Into another than the fence's there is none before all is over that ended
 * streams have left. Under the lock of the fence, where it is its timeline, or else the streams'. */
int ms_fence_mark_each(struct ms_fence_timeline *time, uint64_t context, uint64_t upto,
                       _Atomic uint64_t *events_p);
/** True if an epoch can close at all: by an event over the context, or because each stream that can have work
 * takes one. Without a lock. */
bool ms_fence_can_close(const struct ms_heap *heap);
extern MS_HIDDEN _Atomic bool ms_fence_streams_lost; /* ms_pool_streams_lost was called */
/** True if streams can have work in the context's memory and take no event of ours. */
static inline bool ms_fence_is_unreachable(const struct ms_fence *fence)
{
    return atomic_load_explicit(&fence->unreachable, memory_order_seq_cst) ||
           atomic_load_explicit(&ms_fence_streams_lost, memory_order_seq_cst) ||
           atomic_load_explicit(&fence->uncovered, memory_order_seq_cst) >
               ms_fence_timeline_reached(&fence->time);
}
/** A stream of the context is about to end. */
void ms_fence_stream_ends(uint64_t context, CUstream stream);
/** Fence's lock held, the context current: NULL if the driver makes none. */
CUstream ms_fence_own_stream(struct ms_heap *heap, enum ms_own_stream which);

#endif
