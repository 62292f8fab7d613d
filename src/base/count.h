/* count.h - a counter that one thread at a time writes, and anybody reads; and one that only rises.
 *
 * Floor 0. One instruction where the machine has one, which a compiler does not make of an atomic load and an
 * atomic store; what is read meanwhile is the sum before or after. */
#ifndef MS_BASE_COUNT_H
#define MS_BASE_COUNT_H

#include <stdatomic.h>
#include <stdint.h>

#include "base/compiler.h"

#if defined(__x86_64__) && !defined(__SANITIZE_THREAD__) && !defined(MS_SCHEDULES)
#define MS_COUNTS_AT_ONCE 1
#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
#undef MS_COUNTS_AT_ONCE
#endif
#endif
#endif

static MS_INLINE void ms_count(_Atomic uint64_t *counter, uint64_t change)
{
#ifdef MS_COUNTS_AT_ONCE
    __asm__("addq %1, %0" : "+m"(*(uint64_t *)counter) : "er"(change) : "cc");
#else
    atomic_store_explicit(counter, atomic_load_explicit(counter, memory_order_relaxed) + change,
                          memory_order_relaxed);
#endif
}

static MS_INLINE void ms_count_down(_Atomic uint64_t *counter, uint64_t change)
{
#ifdef MS_COUNTS_AT_ONCE
    __asm__("subq %1, %0" : "+m"(*(uint64_t *)counter) : "er"(change) : "cc");
#else
    ms_count(counter, -change);
#endif
}

/** The larger of both, whoever else does the same. */
static inline void ms_raise(_Atomic uint64_t *value, uint64_t to)
{
    uint64_t before = atomic_load_explicit(value, memory_order_relaxed);
    while (before < to && !atomic_compare_exchange_weak_explicit(value, &before, to, memory_order_relaxed,
                                                                 memory_order_relaxed)) {
    }
}

#endif
