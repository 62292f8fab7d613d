/* clock.h - nanoseconds of CLOCK_MONOTONIC, cheaply; and a rest.
 *
 * Floor 0. On x86-64 the time is extrapolated from the processor's counter, which takes a third of the
 * system's clock, where the kernel itself keeps time by that counter; it is set by the system's clock every
 * few milliseconds and stays within a microsecond of it. Two calls on different processors may be out of
 * order by as much: callers that subtract must not assume otherwise. That a process has rested is noticed
 * here, too. No lock, no allocation; safe in signal handlers. */
#ifndef MS_BASE_CLOCK_H
#define MS_BASE_CLOCK_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/compiler.h"

/** The system's clock, and the extrapolation's new beginning where that is due. */
uint64_t ms_clock_slowly(void);

#if defined(__x86_64__)
enum { MS_CLOCK_RATE_BITS = 32, MS_CLOCK_OLD_TICKS = 1 << 24 };

/** The point from which time is extrapolated; guarded by a sequence number. */
extern MS_HIDDEN struct MS_CACHELINE ms_clock_anchor {
    _Atomic uint32_t sequence; /* odd while it is set */
    _Atomic uint64_t ticks, ns;
    _Atomic uint64_t rate; /* ns per tick << RATE_BITS; 0: not known, or not to be trusted */
} ms_clock_anchor;

static inline uint64_t ms_clock_ns(void)
{
    struct ms_clock_anchor *anchor = &ms_clock_anchor;
    uint32_t sequence = atomic_load_explicit(&anchor->sequence, memory_order_acquire);
    uint64_t rate = atomic_load_explicit(&anchor->rate, memory_order_relaxed);
    uint64_t ns = atomic_load_explicit(&anchor->ns, memory_order_relaxed);
    uint64_t ticks = __builtin_ia32_rdtsc() - atomic_load_explicit(&anchor->ticks, memory_order_relaxed);
    atomic_thread_fence(memory_order_acquire);
    if (MS_UNLIKELY((sequence & 1) || !rate || ticks >= MS_CLOCK_OLD_TICKS ||
                    sequence != atomic_load_explicit(&anchor->sequence, memory_order_relaxed)))
        return ms_clock_slowly();
    return ns + (ticks * rate >> MS_CLOCK_RATE_BITS);
}

/** A thread's own copy of the anchor, by which it asks for the time since `start_ns` without looking whether
 * somebody sets it just then. It is too old when the anchor would be. */
struct ms_clock_own {
    uint64_t ticks, ns, rate, old_ticks; /* old_ticks: 0 where there is none */
};
static inline void ms_clock_own_take(struct ms_clock_own *own, uint64_t start_ns)
{
    struct ms_clock_anchor *anchor = &ms_clock_anchor;
    uint32_t sequence = atomic_load_explicit(&anchor->sequence, memory_order_acquire);
    own->rate = atomic_load_explicit(&anchor->rate, memory_order_relaxed);
    own->ns = atomic_load_explicit(&anchor->ns, memory_order_relaxed) - start_ns;
    own->ticks = atomic_load_explicit(&anchor->ticks, memory_order_relaxed);
    atomic_thread_fence(memory_order_acquire);
    own->old_ticks = (sequence & 1) || !own->rate || !start_ns || own->ns >> 63 ||
                             sequence != atomic_load_explicit(&anchor->sequence, memory_order_relaxed)
                         ? 0
                         : MS_CLOCK_OLD_TICKS;
}
/** False if it is too old. */
static inline bool ms_clock_own_ns(const struct ms_clock_own *own, uint64_t *ns_p)
{
    uint64_t ticks = __builtin_ia32_rdtsc() - own->ticks;
    *ns_p = own->ns + (ticks * own->rate >> MS_CLOCK_RATE_BITS);
    return MS_LIKELY(ticks < own->old_ticks);
}
#else
static inline uint64_t ms_clock_ns(void)
{
    return ms_clock_slowly();
}

struct ms_clock_own {
    uint64_t start_ns;
};
static inline void ms_clock_own_take(struct ms_clock_own *own, uint64_t start_ns)
{
    own->start_ns = start_ns;
}
static inline bool ms_clock_own_ns(const struct ms_clock_own *own, uint64_t *ns_p)
{
    uint64_t now_ns = ms_clock_ns();
    *ns_p = now_ns - own->start_ns;
    return own->start_ns && now_ns > own->start_ns;
}
#endif

/** Rests for about `ns`, less if a signal comes. errno stays as it is, and pthread_cancel does not end the
 * thread here, as it would in nanosleep: the caller may be in the middle of something. */
void ms_clock_sleep(uint64_t ns);

/** The next of several rests, twice as long as the one before: from 20 microseconds to 2 milliseconds. *ns_p
 * is 0 before the first. */
void ms_clock_sleep_longer(uint64_t *ns_p);

/** A *rest*: for a second and more nobody asked for the time, in the whole process. Whoever is the first to
 * ask after it sets `bits` in the word; to be registered once, when memshim starts. It costs the usual way of
 * asking nothing: what is extrapolated is too old by then in any case. */
void ms_clock_tell_rests(_Atomic uint32_t *word, uint32_t bits);
/** It was no rest: the caller has been waiting for the device until now. */
void ms_clock_no_rest(void);

/** `look` is called whenever somebody asks for the time and the anchor is old: every few milliseconds in a
 * process that makes calls. It runs in the program's threads, also in signal handlers: no lock, no call of
 * the kernel's. To be registered once. */
void ms_clock_watch(void (*look)(void));

/** Finds out, once, whether the counter can be trusted: reads a file. Until then the system's clock is
 * asked. */
void ms_clock_start(void);

#endif
