/* fast_cache.h - what a thread has at hand for a call that hits: found by an earlier one, held against the
 * truth by the next.
 *
 * Floor 0: the places alone; src/fastpath fills them in. A part of the thread's one structure (guard.h),
 * which the hook finds once and hands down. Nobody else looks in here: what lies here leads to records that
 * stay, and is good as long as the thread cache's and the shard's lock are this thread's own (bias.h). So
 * when a shard, memory or a context ends those are taken away, or said to be. */
#ifndef MS_BASE_THREAD_FAST_CACHE_H
#define MS_BASE_THREAD_FAST_CACHE_H

#include <stdint.h>

#include "base/clock.h"

struct ms_bias_thread;
struct ms_counts;
struct ms_heap;
struct ms_shard;
struct ms_tcache;

/* A heap that the thread's calls hit. */
struct ms_fast_heap {
    struct ms_heap *heap; /* NULL: nothing is at hand */
    struct ms_tcache *tcache;
    struct ms_shard *shard; /* of the heap's device */
};

struct ms_fast_cache {
    struct ms_fast_heap of_context; /* the heap of `context`: at hand while its two locks are those chosen */
    struct ms_heap *aside;          /* that heap, while those of another one are */
    const struct ms_fast_heap *chosen; /* that other one (ms_bias_choose_both) */
    struct ms_bias_thread *own;        /* the thread as owner of both locks */
    uint64_t context;
    struct ms_counts *counts;  /* of calls, by this thread alone; NULL: it shares others' */
    struct ms_clock_own clock; /* the record's time */
};

#endif
