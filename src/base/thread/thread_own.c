/* thread_own.c - see thread_own.h.
 *
 * Floor 0. No lock: a record has its thread's number, which another thread puts its own in the place of when
 * that thread is gone. */
#include <errno.h>
#include <stdatomic.h>
#include <string.h>

#include "base/arena.h"
#include "base/thread/thread_own.h"

#include "base/at_fork.h"

/* Of those that are in use, so many are asked whether their thread is gone, before a new one is made: each
 * costs a system call. */
enum { ASKED_MAX = 8 };

/* The kernel orders a thread's end before whatever finds the thread gone, which ThreadSanitizer cannot see:
 * under it no record has a second thread. */
#if defined(__SANITIZE_THREAD__)
#define RECORDS_COME_BACK false
#elif defined(__clang__)
#if __has_feature(thread_sanitizer)
#define RECORDS_COME_BACK false
#endif
#endif
#ifndef RECORDS_COME_BACK
#define RECORDS_COME_BACK true
#endif

struct record {
    struct ms_own own;
    _Atomic uint32_t tid;
    struct record *next;
};

const struct ms_own ms_own_none;

static struct record *_Atomic first;
static struct record *_Atomic asked_last;

static bool take_over(struct record *record, uint32_t tid)
{
    uint32_t owner = atomic_load_explicit(&record->tid, memory_order_relaxed);
    if (owner != tid && !ms_thread_is_gone(owner))
        return false;
    if (!atomic_compare_exchange_strong_explicit(&record->tid, &owner, tid, memory_order_acquire,
                                                 memory_order_relaxed))
        return false;
    uint64_t *streams = record->own.streams;
    if (streams)
        memset(streams, 0, MS_OWN_STREAMS_BYTES);
    record->own = (struct ms_own){.streams = streams};
    return true;
}

/* Goes on where the last search ended, so that all have their turn. */
static struct record *find_left(uint32_t tid)
{
    struct record *record = atomic_load_explicit(&asked_last, memory_order_acquire);
    for (unsigned i = 0; i < ASKED_MAX; i++) {
        record = record ? record->next : NULL;
        if (!record)
            record = atomic_load_explicit(&first, memory_order_acquire);
        if (!record)
            return NULL;
        atomic_store_explicit(&asked_last, record, memory_order_release);
        if (take_over(record, tid))
            return record;
    }
    return NULL;
}

static struct record *thread_own_make(uint32_t tid)
{
    struct record *record = ms_arena_alloc(sizeof *record);
    if (!record)
        return NULL;
    atomic_store_explicit(&record->tid, tid, memory_order_relaxed);
    record->next = atomic_load_explicit(&first, memory_order_relaxed);
    while (!atomic_compare_exchange_weak_explicit(&first, &record->next, record, memory_order_release,
                                                  memory_order_relaxed))
        ;
    return record;
}

MS_NOINLINE struct ms_own *ms_own_take(void)
{
    int saved_errno = errno;
    uint32_t tid = ms_thread_id();
    struct record *record = RECORDS_COME_BACK ? find_left(tid) : NULL;
    if (!record)
        record = thread_own_make(tid);
    errno = saved_errno;
    if (!record)
        return NULL;
    ms_thread.own = &record->own;
    return &record->own;
}

struct ms_own *ms_own_with_streams(void)
{
    struct ms_own *own = ms_own_mine();
    if (own && !own->streams)
        own->streams = ms_arena_alloc(MS_OWN_STREAMS_BYTES);
    return own && own->streams ? own : NULL;
}

void ms_own_reset(void)
{
    ms_thread.own = &ms_own_none;
    atomic_store_explicit(&first, NULL, memory_order_relaxed);
    atomic_store_explicit(&asked_last, NULL, memory_order_relaxed);
}
MS_AT_FORK(MS_FORK_OWN, ms_own_reset);
