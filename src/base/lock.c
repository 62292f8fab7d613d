/* lock.c - a futex mutex; the fast ways are in lock.h.
 *
 * Floor 0. Waiters spin briefly first, for the sections behind these locks take tens of nanoseconds; then
 * they count themselves and sleep, never for longer than a millisecond at a time (see ms_unlock). */
#include "config.h"

#include <errno.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/compiler.h"
#include "base/lock.h"
#include "base/log.h"

enum { FREE, HELD };
enum { SPINS = 128, NAP_NS = 1000000 };

#ifdef MS_DEBUG_CHECKS
/* Per rank, the highest address held and how many are held. */
static MS_TLS struct {
    const struct ms_lock *highest;
    unsigned count;
} held[MS_RANK_COUNT];

void ms_lock_check(const struct ms_lock *lock)
{
    for (uint32_t rank = lock->rank + 1; rank < MS_RANK_COUNT; rank++) {
        if (held[rank].count)
            ms_log(MS_LOG_ERROR, "lock", "rank %u taken while rank %u is held", lock->rank, rank);
    }
    if (held[lock->rank].count && held[lock->rank].highest >= lock)
        ms_log(MS_LOG_ERROR, "lock", "rank %u taken twice, or out of order", lock->rank);
}

void ms_lock_note_taken(const struct ms_lock *lock)
{
    held[lock->rank].highest = lock;
    held[lock->rank].count++;
}

void ms_lock_note_released(const struct ms_lock *lock)
{
    held[lock->rank].count--;
}
#endif

static inline void relax(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

static bool try_lock(struct ms_lock *lock)
{
    uint32_t expected = FREE;
    return atomic_compare_exchange_strong_explicit(&lock->state, &expected, HELD, memory_order_acquire,
                                                   memory_order_relaxed);
}

static bool spin(struct ms_lock *lock)
{
    for (int i = 0; i < SPINS; i++) {
        if (atomic_load_explicit(&lock->state, memory_order_relaxed) == FREE && try_lock(lock))
            return true;
        if (atomic_load_explicit(&lock->waiters, memory_order_relaxed))
            return false;
        relax();
    }
    return false;
}

static uint64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* Waits until the lock is ours, or until `deadline_ns` has passed (0: never). */
static bool lock_wait_for(struct ms_lock *lock, uint64_t deadline_ns)
{
    int saved_errno = errno;
    bool taken;
    atomic_fetch_add_explicit(&lock->waiters, 1, memory_order_seq_cst);
    while (!(taken = try_lock(lock)) && (!deadline_ns || now_ns() < deadline_ns)) {
        const struct timespec nap = {0, NAP_NS};
        syscall(SYS_futex, &lock->state, FUTEX_WAIT_PRIVATE, HELD, &nap, NULL, 0);
    }
    atomic_fetch_sub_explicit(&lock->waiters, 1, memory_order_relaxed);
    errno = saved_errno;
    return taken;
}

void ms_lock_slowly(struct ms_lock *lock)
{
    if (!spin(lock))
        lock_wait_for(lock, 0);
}

bool ms_lock_within(struct ms_lock *lock, unsigned timeout_ms)
{
    if (!try_lock(lock) && !spin(lock) && !lock_wait_for(lock, now_ns() + (uint64_t)timeout_ms * 1000000u))
        return false;
    ms_lock_note_taken(lock);
    return true;
}

void ms_unlock_wake(struct ms_lock *lock)
{
    int saved_errno = errno;
    syscall(SYS_futex, &lock->state, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
    errno = saved_errno;
}

void ms_lock_reset(struct ms_lock *lock)
{
    atomic_store_explicit(&lock->state, FREE, memory_order_relaxed);
    atomic_store_explicit(&lock->waiters, 0, memory_order_relaxed);
#ifdef MS_DEBUG_CHECKS
    held[lock->rank].count = 0;
#endif
}
