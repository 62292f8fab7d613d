/* lock.h - the lock of memshim's own short critical sections.
 *
 * Floor 0. A futex mutex of four bytes: no allocation, no destructor, fork children re-initialise it by
 * zeroing. Held for tens of instructions, never across a vendor call. Ranks grow inwards: a thread may only
 * take a lock of a higher rank than it holds, or of the same rank at a higher address (the elements of one
 * array, in order); checked under MS_DEBUG_CHECKS. A hook runs with the guard (guard.h) closed, so that a
 * signal handler that interrupts a holder passes through instead of taking the lock again. */
#ifndef MS_BASE_LOCK_H
#define MS_BASE_LOCK_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum ms_lock_rank {
    MS_RANK_RESOLVE = 1,
    MS_RANK_JOURNAL,
    MS_RANK_LOADER,
    MS_RANK_DEVICE,
    MS_RANK_OBJECT,
    MS_RANK_BLOCKS,
    MS_RANK_SITE,
    MS_RANK_STACK,
    MS_RANK_MODULE,
    MS_RANK_TIMELINE,
    MS_RANK_ARENA,
    MS_RANK_LOG,
    MS_RANK_STORE,
    MS_RANK_COUNT
};

struct ms_lock {
    _Atomic uint32_t state; /* 0 free, 1 held, 2 held and waited for */
    uint32_t rank;
};

#define MS_LOCK_INIT(r) {0, (r)}

/** errno is preserved by all of these. */
void ms_lock(struct ms_lock *lock);
void ms_unlock(struct ms_lock *lock);
/** As ms_lock, but gives up after about `timeout_ms`: for code that runs at the end of a process, where the
 * holder may be this very thread below a signal handler. Returns whether the lock is held. */
bool ms_lock_within(struct ms_lock *lock, unsigned timeout_ms);
/** In a fork child, where the holder does not exist. */
void ms_lock_reset(struct ms_lock *lock);

#endif
