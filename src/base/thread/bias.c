/* bias.c - owners of locks; see bias.h.
 *
 * Floor 0. The order on which all depends: an owner stores where it is and then looks whether it owns the
 * lock; who takes the ownership away stores that and then looks where the owner is. Between the two stands,
 * on this side, the membarrier, which is a fence on the other side as well: so at least one of them sees the
 * other. A thread says in no record but its own where it is, so it does not matter how long it stood between
 * a look and a store.
 *
 * Two that are taken together are the same with one store, `both`, and one look, at `lost`, which whoever
 * takes a lock away raises between his store and the membarrier. Only the owner lowers it, and looks behind a
 * fence whether both are still its own: what was taken away before shows there, and what is taken away after
 * raises it again. */
#include "config.h"

#include <errno.h>
#include <linux/membarrier.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/thread/bias.h"
#include "base/clock.h"
#include "base/thread/guard.h"

enum { THREADS = 256, STREAK = 16, SPINS = 256, NAP_NS = 50000, SETTLE_NS = 2000000 };
/* Taking a lock away from its owner costs some microseconds, which an owner of WORTH_NS was worth: it may be
 * that often, and AT_ONCE times in a row. */
enum { WORTH_NS = 200000, AT_ONCE = 5 };

struct ms_bias_thread ms_bias_nobody;
MS_TLS struct ms_bias_thread *ms_bias_me = &ms_bias_nobody;

static struct ms_bias_thread threads[THREADS];
static _Atomic uint32_t next_thread;
static atomic_bool possible;

static bool membarrier(int command)
{
    return syscall(SYS_membarrier, command, 0, 0) == 0;
}

#if defined(MS_SCHEDULES) /* instrumented as for ThreadSanitizer, but by tests/schedules */
#define HAVE_OWNERS 1
#elif defined(__SANITIZE_THREAD__)
#define HAVE_OWNERS 0
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define HAVE_OWNERS 0
#endif
#endif
#ifndef HAVE_OWNERS
#ifdef MS_DEBUG_CHECKS
#define HAVE_OWNERS 0
#else
#define HAVE_OWNERS 1
#endif
#endif

void ms_bias_start(void)
{
    int saved_errno = errno;
    if (HAVE_OWNERS && membarrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED))
        atomic_store_explicit(&possible, true, memory_order_relaxed);
    errno = saved_errno;
}

void ms_bias_reset(void)
{
    atomic_store_explicit(&possible, false, memory_order_relaxed);
    memset((void *)threads, 0, sizeof threads);
    for (unsigned i = 0; i < THREADS; i++)
        ms_bias_revoke(&threads[i]); /* what a thread knew of its two it still knows */
    atomic_store_explicit(&next_thread, 0, memory_order_relaxed);
    ms_bias_me = &ms_bias_nobody;
}
MS_AT_FORK(MS_FORK_BIAS, ms_bias_reset);

/* Every running thread of the process is fenced. Where the kernel does not do it any more (a sandbox was
 * entered since), time does: a store is seen as soon as its processor has written it. */
static void fence_all(void)
{
    if (membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED))
        return;
    atomic_store_explicit(&possible, false, memory_order_relaxed);
    ms_clock_sleep(SETTLE_NS);
}

/* True if the thread is inside the lock, by itself or with another. Who sees it elsewhere also sees what it
 * did inside before. */
static bool is_inside(const struct ms_bias_thread *thread, const struct ms_bias *bias, enum ms_bias_kind kind)
{
    return atomic_load_explicit(&thread->inside[kind], memory_order_acquire) == bias ||
           (atomic_load_explicit(&thread->both, memory_order_acquire) &&
            atomic_load_explicit(&thread->pair[kind], memory_order_acquire) == bias);
}

/* False if the owner is still inside at the deadline (0: never). */
static bool wait_until_left(const struct ms_bias *bias, const struct ms_bias_thread *owner,
                            enum ms_bias_kind kind, uint64_t deadline_ns)
{
    for (unsigned i = 0; is_inside(owner, bias, kind); i++) {
        if (i < SPINS)
            continue;
        if (deadline_ns && ms_clock_ns() >= deadline_ns)
            return false;
        ms_clock_sleep(NAP_NS);
    }
    return true;
}

/* True if the lock may have an owner; false if it was taken away too often for that of late. */
static bool is_worth(const struct ms_bias *bias)
{
    return bias->worth_ns < ms_clock_ns() + (uint64_t)AT_ONCE * WORTH_NS;
}

/* It was taken away once more. */
static void note_taken(struct ms_bias *bias)
{
    uint64_t now_ns = ms_clock_ns();
    bias->worth_ns = (bias->worth_ns > now_ns ? bias->worth_ns : now_ns) + WORTH_NS;
}

/* With the plain lock held: nobody owns the lock any more. Its owner owns it again when it takes it next,
 * unless another thread does so before, or it is taken away too often. */
static bool take_away(struct ms_bias *bias, enum ms_bias_kind kind, uint64_t deadline_ns)
{
    struct ms_bias_thread *owner = atomic_load_explicit(&bias->owner, memory_order_relaxed);
    int saved_errno = errno;
    if (!owner)
        return true;
    atomic_store_explicit(&bias->owner, NULL, memory_order_seq_cst);
    ms_bias_revoke(owner);
    if (owner != ms_bias_me) {
        fence_all();
        if (!wait_until_left(bias, owner, kind, deadline_ns)) {
            atomic_store_explicit(&bias->owner, owner, memory_order_release);
            errno = saved_errno;
            return false;
        }
        note_taken(bias);
    }
    bias->streak = STREAK;
    bias->last = owner;
    errno = saved_errno;
    return true;
}

MS_NOINLINE void ms_bias_lock_slowly(struct ms_bias *bias, enum ms_bias_kind kind)
{
    ms_lock(&bias->lock);
    take_away(bias, kind, 0);
}

static bool bias_has_ended(uint32_t tid)
{
    return syscall(SYS_tgkill, getpid(), tid, 0) != 0 && errno == ESRCH;
}

/* A record for this thread; where all are taken, that of one that has ended, if the next that is looked at is
 * such. */
static struct ms_bias_thread *bias_join(void)
{
    uint32_t mine = ms_thread_id(),
             place = atomic_fetch_add_explicit(&next_thread, 1, memory_order_relaxed) % THREADS;
    struct ms_bias_thread *thread = &threads[place];
    uint32_t other = atomic_load_explicit(&thread->tid, memory_order_relaxed);
    int saved_errno = errno;
    bool may = !other || other == mine || bias_has_ended(other);
    errno = saved_errno;
    if (!may || !atomic_compare_exchange_strong(&thread->tid, &other, mine))
        return NULL;
    return ms_bias_me = thread;
}

/* Holding the plain lock, before it is let go: enough times in a row make an owner. */
static void maybe_own(struct ms_bias *bias)
{
    struct ms_bias_thread *me = ms_bias_me;
    if (me == &ms_bias_nobody && !(me = bias_join()))
        return;
    if (bias->last != me) {
        bias->last = me;
        bias->streak = 0;
    } else if (++bias->streak >= STREAK && is_worth(bias)) {
        atomic_store_explicit(&bias->owner, me, memory_order_release);
    }
}

MS_NOINLINE void ms_bias_unlock_slowly(struct ms_bias *bias)
{
    if (atomic_load_explicit(&possible, memory_order_relaxed))
        maybe_own(bias);
    ms_unlock(&bias->lock);
}

static bool seems_own(const struct ms_bias *bias)
{
    return ms_bias_me != &ms_bias_nobody &&
           atomic_load_explicit(&bias->owner, memory_order_relaxed) == ms_bias_me;
}

/* Looked at before as well, since a fence takes longer than all of the rest. */
struct ms_bias_thread *ms_bias_pair(struct ms_bias *tcache, struct ms_bias *shard, bool *others_are_void_p)
{
    struct ms_bias_thread *me = ms_bias_me;
    if (!seems_own(tcache) || !seems_own(shard))
        return NULL;
    atomic_store_explicit(&me->pair[MS_BIAS_TCACHE], tcache, memory_order_release);
    atomic_store_explicit(&me->pair[MS_BIAS_SHARD], shard, memory_order_release);
    if (atomic_exchange_explicit(&me->lost, 0, memory_order_relaxed))
        *others_are_void_p = true;
    atomic_thread_fence(memory_order_seq_cst);
    bool own = atomic_load_explicit(&tcache->owner, memory_order_acquire) == me &&
               atomic_load_explicit(&shard->owner, memory_order_acquire) == me;
    return own ? me : NULL;
}

void ms_bias_lock_plainly(struct ms_bias *bias, enum ms_bias_kind kind)
{
    ms_bias_lock_slowly(bias, kind);
}

void ms_bias_unlock_plainly(struct ms_bias *bias)
{
    ms_unlock(&bias->lock);
}

bool ms_bias_lock_within(struct ms_bias *bias, enum ms_bias_kind kind, unsigned timeout_ms)
{
    uint64_t deadline_ns = ms_clock_ns() + (uint64_t)timeout_ms * 1000000u;
    /* Below a signal handler that interrupted this thread inside it. */
    if (is_inside(ms_bias_me, bias, kind) || !ms_lock_within(&bias->lock, timeout_ms))
        return false;
    if (take_away(bias, kind, deadline_ns))
        return true;
    ms_unlock(&bias->lock);
    return false;
}
