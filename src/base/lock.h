/* lock.h - the lock of memshim's own short critical sections.
 *
 * Floor 0. A futex mutex of four bytes: no allocation, no destructor, fork children re-initialise it by
 * zeroing. Held for tens of instructions, never across a vendor call. Ranks grow inwards: a thread may only
 * take a lock of a higher rank than it holds, or of the same rank at a higher address (the elements of one
 * array, in order); checked under MS_DEBUG_CHECKS. A hook runs with the guard (guard.h) closed, so that a
 * signal handler that interrupts a holder passes through instead of taking the lock again. */
#ifndef MS_BASE_LOCK_H
#define MS_BASE_LOCK_H

#include "config.h" /* MS_DEBUG_CHECKS */

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/at_fork.h"
#include "base/compiler.h"

enum ms_lock_rank {
    MS_RANK_RESOLVE = 1,
    MS_RANK_JOURNAL,
    MS_RANK_TRACE_FILE,
    MS_RANK_LOADER,
    MS_RANK_POOL_STREAMS,
    MS_RANK_POOL_FENCE,
    MS_RANK_POOL_TCACHE,
    MS_RANK_POOL_HEAP,
    MS_RANK_POOL_PINS,
    MS_RANK_POOL_TABLES,
    MS_RANK_SHARE_JOIN,
    MS_RANK_SHARE,
    MS_RANK_DEVICE,
    MS_RANK_OBJECT,
    MS_RANK_EXPORT,
    MS_RANK_BLOCKS,
    MS_RANK_PHASE,
    MS_RANK_PEAK,
    MS_RANK_SITE,
    MS_RANK_STACK,
    MS_RANK_CODE,
    MS_RANK_MODULE,
    MS_RANK_TIMELINE,
    MS_RANK_TRACE,
    MS_RANK_ARENA,
    MS_RANK_LOG,
    MS_RANK_STORE,
    MS_RANK_COUNT
};

struct ms_lock {
    _Atomic uint32_t state; /* 0 free, 1 held */
    uint16_t rank;
    _Atomic uint16_t waiters; /* in the kernel, or on the way there */
};

#define MS_LOCK_INIT(r)                                                                                      \
    {                                                                                                        \
        0, (r), 0                                                                                            \
    }

/** errno is preserved by all of these. */
void ms_lock_slowly(struct ms_lock *lock);
void ms_unlock_wake(struct ms_lock *lock);
/** Under MS_DEBUG_CHECKS: the order of ranks. */
void ms_lock_check(const struct ms_lock *lock);
void ms_lock_note_taken(const struct ms_lock *lock);
void ms_lock_note_released(const struct ms_lock *lock);
#ifndef MS_DEBUG_CHECKS
#define ms_lock_check(lock) ((void)(lock))
#ifndef MS_SCHEDULES /* which hears of these itself */
#define ms_lock_note_taken(lock)    ((void)(lock))
#define ms_lock_note_released(lock) ((void)(lock))
#endif
#endif

/** Takes the lock if it is free; returns whether. */
static inline bool ms_lock_if_free(struct ms_lock *lock)
{
    uint32_t free_state = 0;
    ms_lock_check(lock);
    if (MS_UNLIKELY(!atomic_compare_exchange_strong_explicit(&lock->state, &free_state, 1,
                                                             memory_order_acquire, memory_order_relaxed)))
        return false;
    ms_lock_note_taken(lock);
    return true;
}

static inline void ms_lock(struct ms_lock *lock)
{
    if (MS_LIKELY(ms_lock_if_free(lock)))
        return;
    ms_lock_slowly(lock);
    ms_lock_note_taken(lock);
}

/** True if the lock was free, and is held now. */
static inline bool ms_trylock(struct ms_lock *lock)
{
    uint32_t free_state = 0;
    if (!atomic_compare_exchange_strong_explicit(&lock->state, &free_state, 1, memory_order_acquire,
                                                 memory_order_relaxed))
        return false;
    ms_lock_note_taken(lock);
    return true;
}

/* A plain store, which costs a fifth of an exchange. The look at `waiters` may overtake it, and a waiter that
 * has counted itself just then is not woken: waiters look again after a millisecond. */
static inline void ms_unlock(struct ms_lock *lock)
{
    ms_lock_note_released(lock);
    atomic_store_explicit(&lock->state, 0, memory_order_release);
    if (MS_UNLIKELY(atomic_load_explicit(&lock->waiters, memory_order_relaxed)))
        ms_unlock_wake(lock);
}

/** As ms_lock, but gives up after about `timeout_ms`: for code that runs at the end of a process, where the
 * holder may be this very thread below a signal handler. Returns whether the lock is held. */
bool ms_lock_within(struct ms_lock *lock, unsigned timeout_ms);
/** In a fork child, where the holder does not exist. */
void ms_lock_reset(struct ms_lock *lock);

#endif
