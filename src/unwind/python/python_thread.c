/* python_thread.c - the memory of threads that run Python.
 *
 * Floor 1. No lock: a list that only grows, whose entries change owners by one exchange. */
#include <stdatomic.h>

#include "base/arena.h"
#include "base/at_fork.h"
#include "base/thread/guard.h"
#include "unwind/python/python_thread.h"

/* Of those that are in use, so many are asked whether their thread is gone, before a new one is made: each
 * costs a system call. */
enum { ASKED_MAX = 8 };

static MS_TLS struct ms_python_thread *mine;
static struct ms_python_thread *_Atomic first;
static struct ms_python_thread *_Atomic asked_last;

static bool take_over(struct ms_python_thread *thread, uint32_t tid)
{
    uint32_t owner = atomic_load_explicit(&thread->owner, memory_order_relaxed);
    if (owner != tid && !ms_thread_is_gone(owner))
        return false;
    if (!atomic_compare_exchange_strong_explicit(&thread->owner, &owner, tid, memory_order_acquire,
                                                 memory_order_relaxed))
        return false;
    thread->is_busy = false;
    thread->count = 0;
    thread->frames = 0;
    return true;
}

/* Goes on where the last search ended, so that all have their turn. */
static struct ms_python_thread *find_left(uint32_t tid)
{
    struct ms_python_thread *thread = atomic_load_explicit(&asked_last, memory_order_acquire);
    for (unsigned i = 0; i < ASKED_MAX; i++) {
        thread = thread ? thread->next : NULL;
        if (!thread)
            thread = atomic_load_explicit(&first, memory_order_acquire);
        if (!thread)
            return NULL;
        atomic_store_explicit(&asked_last, thread, memory_order_release);
        if (take_over(thread, tid))
            return thread;
    }
    return NULL;
}

static struct ms_python_thread *python_thread_make(uint32_t tid)
{
    struct ms_python_thread *thread = ms_arena_alloc(sizeof *thread);
    if (!thread)
        return NULL;
    atomic_store_explicit(&thread->owner, tid, memory_order_relaxed);
    thread->next = atomic_load_explicit(&first, memory_order_relaxed);
    while (!atomic_compare_exchange_weak_explicit(&first, &thread->next, thread, memory_order_release,
                                                  memory_order_relaxed))
        ;
    return thread;
}

struct ms_python_thread *ms_python_thread(void)
{
    if (MS_LIKELY(mine != NULL))
        return mine;
    uint32_t tid = ms_thread_id();
    struct ms_python_thread *thread = find_left(tid);
    mine = thread ? thread : python_thread_make(tid);
    return mine;
}

struct ms_python_thread *ms_python_thread_if_any(void)
{
    return mine;
}

static void python_threads_reset(void)
{
    mine = NULL;
    atomic_store_explicit(&first, NULL, memory_order_relaxed);
    atomic_store_explicit(&asked_last, NULL, memory_order_relaxed);
}
MS_AT_FORK(MS_FORK_STACK, python_threads_reset);
