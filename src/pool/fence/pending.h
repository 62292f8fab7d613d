/* pending.h - how much of a context's memory may be pending; see pending.c.
 *
 * Floor 2, for src/pool/ alone: what hooks call is in pool.h. Part of a heap; read and counted up without a
 * lock. */
#ifndef MS_POOL_FENCE_PENDING_H
#define MS_POOL_FENCE_PENDING_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct ms_heap;

/* As many epochs as there can be events under way (MS_EVENTS_OF_CONTEXT): of an older one it is forgotten
 * what was freed before its end. */
enum { MS_PENDING_ENDS = 4096 };

/** Sums of what went into the pending list, which only grow; a difference of two is what is there. */
struct ms_pending {
    _Atomic uint64_t freed_bytes;   /* all */
    _Atomic uint64_t covered_bytes; /* freed before the newest epoch that has an event */
    _Atomic uint64_t over_bytes;    /* freed, and out of the pending list again */
    _Atomic uint64_t bound_bytes;   /* as it was when last looked at */
    _Atomic uint64_t look_bytes;    /* so much beyond `covered_bytes` before it is looked at again */
    _Atomic uint64_t joined_first,
        joined; /* epochs, see ms_pool_joined; the latter is done if no such wait is under way */
    _Atomic uint64_t in_vain; /* no free waits before this epoch is done */
    struct ms_pending_end {
        _Atomic uint64_t epoch, freed_bytes;
    } ends[MS_PENDING_ENDS];
};

/** A context begins, or its life is over. */
void ms_pending_begin(struct ms_heap *heap);
/** Opens the next epoch, and returns the one that it ends. Any thread, any lock. */
uint64_t ms_pending_next_epoch(struct ms_heap *heap);
/** An event was recorded behind `epoch`; it is done, and so is what was freed in it. Fence's lock held. */
void ms_pending_covered(struct ms_heap *heap, uint64_t epoch);
void ms_pending_retired(struct ms_heap *heap, uint64_t epoch);
/** The bytes that were freed up to the end of an epoch; 0 where that is forgotten. */
uint64_t ms_pending_freed_by(const struct ms_heap *heap, uint64_t epoch);
/** `bytes` more were freed, the latest of them in a block of `granted`. Whether it is to be looked at. */
bool ms_pending_count(struct ms_heap *heap, uint64_t granted, uint64_t bytes);
/** Closes the epoch where a quarter of the bound has gathered, or where memory is short, so that work which
 * is issued later does not hold it. Whether there is more than the bound allows, as far as that is known
 * without asking the vendor. No lock of ours held. */
bool ms_pending_poll(struct ms_heap *heap);
/** The bytes that were freed and no event covers, and the bytes that are pending at all: not less than there
 * is, but for what thread caches have not weighed. */
static inline uint64_t ms_pending_gathered(const struct ms_pending *pending)
{
    uint64_t covered = atomic_load_explicit(&pending->covered_bytes, memory_order_relaxed);
    uint64_t freed = atomic_load_explicit(&pending->freed_bytes, memory_order_relaxed);
    return freed > covered ? freed - covered : 0;
}
static inline uint64_t ms_pending_bytes(const struct ms_pending *pending)
{
    uint64_t over = atomic_load_explicit(&pending->over_bytes, memory_order_relaxed);
    uint64_t freed = atomic_load_explicit(&pending->freed_bytes, memory_order_relaxed);
    return freed > over ? freed - over : 0;
}

#endif
