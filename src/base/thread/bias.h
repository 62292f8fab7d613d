/* bias.h - a lock that one thread takes nearly always, and takes without an atomic exchange.
 *
 * Floor 0. The thread that has taken such a lock a number of times in a row becomes its owner. From then on
 * it says where it is by a plain store, and looks whether the lock is still its own; no fence stands between
 * the two. Whoever else wants the lock takes the plain lock behind it, takes the ownership away, has the
 * kernel put a fence into every running thread (membarrier), and waits until the owner has left. If he comes
 * for a visit only, the owner owns it again when it takes it next. All of that costs microseconds, so a lock
 * that is taken away too often has no owner for a while. Where the kernel has no such fence, under
 * ThreadSanitizer, and where ranks are checked (MS_DEBUG_CHECKS), there are no owners, and this is the plain
 * lock.
 *
 * What holds for struct ms_lock holds here: short sections, no call of the vendor's, fork children start
 * anew. A thread is inside one owned lock of each kind at a time, and takes others as anybody would. */
#ifndef MS_BASE_THREAD_BIAS_H
#define MS_BASE_THREAD_BIAS_H

#include <stddef.h>

#include "base/lock.h"

enum ms_bias_kind { MS_BIAS_TCACHE, MS_BIAS_SHARD, MS_BIAS_KINDS };

struct ms_bias;

/** A thread, as owner of locks. Records are for ever, and pass to other threads. */
struct MS_CACHELINE ms_bias_thread {
    struct ms_bias *_Atomic inside[MS_BIAS_KINDS];
    /* Two that it takes together: which they are, whether it is inside, and whether any of its locks was
       taken away since it found that both are its own. */
    struct ms_bias *_Atomic pair[MS_BIAS_KINDS];
    _Atomic uint32_t both, lost;
    _Atomic uint32_t tid; /* the kernel's number; 0: nobody's */
};

struct ms_bias {
    struct ms_bias_thread *_Atomic owner;
    struct ms_lock lock;
    /* Under the lock: who had it last without being its owner, and how often in a row. */
    const struct ms_bias_thread *last;
    uint32_t streak;
    uint64_t worth_ns; /* when its owners will have been worth how often it was taken away */
};

#define MS_BIAS_INIT(r)                                                                                      \
    {                                                                                                        \
        NULL, MS_LOCK_INIT(r), NULL, 0, 0                                                                    \
    }

/** The calling thread; ms_bias_nobody until it first may own a lock. */
extern MS_TLS struct ms_bias_thread *ms_bias_me;
extern MS_HIDDEN struct ms_bias_thread ms_bias_nobody;

/** Once, when memshim starts: asks the kernel. In a fork child all is forgotten first. */
void ms_bias_start(void);
void ms_bias_reset(void);

void ms_bias_lock_slowly(struct ms_bias *bias, enum ms_bias_kind kind);
void ms_bias_unlock_slowly(struct ms_bias *bias);

/** Takes the lock if it is the calling thread's own. */
static inline bool ms_bias_enter(struct ms_bias *bias, enum ms_bias_kind kind)
{
    struct ms_bias_thread *me = ms_bias_me;
    if (MS_UNLIKELY(atomic_load_explicit(&bias->owner, memory_order_relaxed) != me ||
                    atomic_load_explicit(&me->inside[kind], memory_order_relaxed)))
        return false;
    atomic_store_explicit(&me->inside[kind], bias, memory_order_relaxed);
    atomic_signal_fence(memory_order_seq_cst);
    if (MS_LIKELY(atomic_load_explicit(&bias->owner, memory_order_acquire) == me))
        return true;
    atomic_store_explicit(&me->inside[kind], NULL, memory_order_release);
    return false;
}

static inline void ms_bias_lock(struct ms_bias *bias, enum ms_bias_kind kind)
{
    if (MS_UNLIKELY(!ms_bias_enter(bias, kind)))
        ms_bias_lock_slowly(bias, kind);
}

/** Takes the lock if nobody has it and nobody else owns it; returns whether. */
static inline bool ms_bias_try(struct ms_bias *bias, enum ms_bias_kind kind)
{
    if (MS_LIKELY(ms_bias_enter(bias, kind)))
        return true;
    if (atomic_load_explicit(&bias->owner, memory_order_relaxed) || !ms_trylock(&bias->lock))
        return false;
    if (MS_LIKELY(!atomic_load_explicit(&bias->owner, memory_order_relaxed)))
        return true;
    ms_unlock(&bias->lock);
    return false;
}

static inline void ms_bias_unlock(struct ms_bias *bias, enum ms_bias_kind kind)
{
    struct ms_bias_thread *me = ms_bias_me;
    if (MS_LIKELY(atomic_load_explicit(&me->inside[kind], memory_order_relaxed) == bias))
        atomic_store_explicit(&me->inside[kind], NULL, memory_order_release);
    else
        ms_bias_unlock_slowly(bias);
}

/** One of each kind, if both are the calling thread's own: from now on it takes them together, by a store and
 * a look, as long as none of its locks is taken away. NULL if they are not. It may have several such pairs,
 * one after another; `others_are_void_p` becomes true if those that it had are none any more. For a thread
 * that is inside none. */
struct ms_bias_thread *ms_bias_pair(struct ms_bias *tcache, struct ms_bias *shard, bool *others_are_void_p);
/** The answers of ms_bias_pair become void, and the thread has to ask anew. */
static inline void ms_bias_revoke(struct ms_bias_thread *thread)
{
    atomic_store_explicit(&thread->lost, 1, memory_order_seq_cst);
}
static inline void ms_bias_leave_both(struct ms_bias_thread *me)
{
    atomic_store_explicit(&me->both, 0, memory_order_release);
}
/** From now on it takes these two, of which it was told before that both are its own. Whoever takes one of
 * them away looks behind the fence that he has put into this thread: he sees which two are meant, or this
 * thread sees `lost`; and who sees the new ones sees what was done under those before. */
static inline void ms_bias_choose_both(struct ms_bias_thread *me, struct ms_bias *tcache,
                                       struct ms_bias *shard)
{
    atomic_store_explicit(&me->pair[MS_BIAS_TCACHE], tcache, memory_order_release);
    atomic_store_explicit(&me->pair[MS_BIAS_SHARD], shard, memory_order_release);
}
static inline bool ms_bias_enter_both(struct ms_bias_thread *me)
{
    atomic_store_explicit(&me->both, 1, memory_order_relaxed);
    atomic_signal_fence(memory_order_seq_cst);
    if (MS_LIKELY(!atomic_load_explicit(&me->lost, memory_order_acquire)))
        return true;
    ms_bias_leave_both(me);
    return false;
}
/** Its owner, if it has one, takes no two together any more before it has asked anew. */
static inline void ms_bias_revoke_owner(const struct ms_bias *bias)
{
    struct ms_bias_thread *owner = atomic_load_explicit(&bias->owner, memory_order_seq_cst);
    if (owner)
        ms_bias_revoke(owner);
}

/** As ms_bias_unlock, for who took the lock because of what lies there, and does not come to own it. */
static inline void ms_bias_unlock_visited(struct ms_bias *bias, enum ms_bias_kind kind)
{
    struct ms_bias_thread *me = ms_bias_me;
    if (atomic_load_explicit(&me->inside[kind], memory_order_relaxed) == bias)
        atomic_store_explicit(&me->inside[kind], NULL, memory_order_release);
    else
        ms_unlock(&bias->lock);
}

/** Inside: whether the calling thread had it last, but for who came for a visit. */
static inline bool ms_bias_was_mine(const struct ms_bias *bias)
{
    return bias->last == ms_bias_me;
}

/** For who takes many: nobody owns it then, nor does by this. */
void ms_bias_lock_plainly(struct ms_bias *bias, enum ms_bias_kind kind);
void ms_bias_unlock_plainly(struct ms_bias *bias);
/** As ms_lock_within; false as well if the owner does not leave, who then goes on as before. */
bool ms_bias_lock_within(struct ms_bias *bias, enum ms_bias_kind kind, unsigned timeout_ms);

#endif
