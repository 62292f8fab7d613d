/* lock.c - a futex mutex: free, held, held and waited for.
 *
 * Floor 0. The algorithm is the three-state mutex of "Futexes Are Tricky": only a holder that saw state 2
 * makes a system call to let go. Waiters spin briefly first, for the sections behind these locks take tens of
 * nanoseconds. */
#include "config.h"

#include <errno.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/compiler.h"
#include "base/lock.h"
#include "base/log.h"

enum { FREE, HELD, CONTENDED };
enum { SPINS = 128 };

#ifdef MS_DEBUG_CHECKS
/* Per rank, the highest address held and how many are held. */
static MS_TLS struct {
    const struct ms_lock *highest;
    unsigned count;
} held[MS_RANK_COUNT];

static void check_rank(const struct ms_lock *lock)
{
    for (uint32_t rank = lock->rank + 1; rank < MS_RANK_COUNT; rank++) {
        if (held[rank].count)
            ms_log(MS_LOG_ERROR, "lock", "rank %u taken while rank %u is held", lock->rank, rank);
    }
    if (held[lock->rank].count && held[lock->rank].highest >= lock)
        ms_log(MS_LOG_ERROR, "lock", "rank %u taken twice, or out of order", lock->rank);
}

static void note_taken(const struct ms_lock *lock)
{
    held[lock->rank].highest = lock;
    held[lock->rank].count++;
}

static void note_released(const struct ms_lock *lock)
{
    held[lock->rank].count--;
}
#else
static inline void check_rank(const struct ms_lock *lock)
{
    (void)lock;
}

static inline void note_taken(const struct ms_lock *lock)
{
    (void)lock;
}

static inline void note_released(const struct ms_lock *lock)
{
    (void)lock;
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
        uint32_t state = atomic_load_explicit(&lock->state, memory_order_relaxed);
        if (state == FREE && try_lock(lock))
            return true;
        if (state == CONTENDED)
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
static bool wait_for(struct ms_lock *lock, uint64_t deadline_ns)
{
    int saved_errno = errno;
    bool taken = true;
    while (atomic_exchange_explicit(&lock->state, CONTENDED, memory_order_acquire) != FREE) {
        struct timespec left, *timeout = NULL;
        if (deadline_ns) {
            uint64_t now = now_ns();
            if (now >= deadline_ns) {
                taken = false;
                break;
            }
            left.tv_sec = (time_t)((deadline_ns - now) / 1000000000u);
            left.tv_nsec = (long)((deadline_ns - now) % 1000000000u);
            timeout = &left;
        }
        syscall(SYS_futex, &lock->state, FUTEX_WAIT_PRIVATE, CONTENDED, timeout, NULL, 0);
    }
    errno = saved_errno;
    return taken;
}

void ms_lock(struct ms_lock *lock)
{
    check_rank(lock);
    if (MS_UNLIKELY(!try_lock(lock)) && !spin(lock))
        wait_for(lock, 0);
    note_taken(lock);
}

bool ms_lock_within(struct ms_lock *lock, unsigned timeout_ms)
{
    if (!try_lock(lock) && !spin(lock) && !wait_for(lock, now_ns() + (uint64_t)timeout_ms * 1000000u))
        return false;
    note_taken(lock);
    return true;
}

void ms_unlock(struct ms_lock *lock)
{
    note_released(lock);
    if (MS_LIKELY(atomic_exchange_explicit(&lock->state, FREE, memory_order_release) == HELD))
        return;
    int saved_errno = errno;
    syscall(SYS_futex, &lock->state, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
    errno = saved_errno;
}

void ms_lock_reset(struct ms_lock *lock)
{
    atomic_store_explicit(&lock->state, FREE, memory_order_relaxed);
#ifdef MS_DEBUG_CHECKS
    held[lock->rank].count = 0;
#endif
}
