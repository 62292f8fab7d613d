/* clock.c - see clock.h.
 *
 * Floor 0. One anchor (counter, time and rate) for all threads, guarded by a sequence number: who finds it
 * old sets it anew, unless another does so just then. */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/compiler.h"

static uint64_t system_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

#if defined(__x86_64__)
#include <cpuid.h>
#include <x86intrin.h>

enum { RATE_BITS = 32, OLD_TICKS = 1 << 24, NEW_NS = 2000000 };

static atomic_bool trusted;
static struct MS_CACHELINE {
    _Atomic uint32_t sequence; /* odd while it is set */
    _Atomic uint64_t ticks, ns;
    _Atomic uint64_t rate; /* ns per tick << RATE_BITS; 0 until there were two anchors */
} anchor;

/* The rate since the last anchor. A counter that changes its pace by more than a hundredth (a virtual machine
 * that moved) is not trusted again. */
static uint64_t new_rate(uint64_t ticks, uint64_t ns, uint64_t old)
{
    uint64_t rate = (uint64_t)(((__uint128_t)ns << RATE_BITS) / ticks);
    if (old && (rate > old + old / 100 || rate < old - old / 100))
        atomic_store_explicit(&trusted, false, memory_order_relaxed);
    return rate;
}

static MS_NOINLINE uint64_t set_anchor(void)
{
    uint32_t sequence = atomic_load_explicit(&anchor.sequence, memory_order_relaxed);
    uint64_t ticks = __rdtsc(), ns = system_ns();
    if ((sequence & 1) || !atomic_compare_exchange_strong(&anchor.sequence, &sequence, sequence + 1))
        return ns;
    uint64_t old_ticks = atomic_load_explicit(&anchor.ticks, memory_order_relaxed);
    uint64_t old_ns = atomic_load_explicit(&anchor.ns, memory_order_relaxed);
    if (!old_ns || (ticks > old_ticks && ns > old_ns + NEW_NS)) {
        if (old_ns)
            atomic_store_explicit(&anchor.rate,
                                  new_rate(ticks - old_ticks, ns - old_ns,
                                           atomic_load_explicit(&anchor.rate, memory_order_relaxed)),
                                  memory_order_relaxed);
        atomic_store_explicit(&anchor.ticks, ticks, memory_order_relaxed);
        atomic_store_explicit(&anchor.ns, ns, memory_order_relaxed);
    }
    atomic_store_explicit(&anchor.sequence, sequence + 2, memory_order_release);
    return ns;
}

uint64_t ms_clock_ns(void)
{
    if (MS_UNLIKELY(!atomic_load_explicit(&trusted, memory_order_relaxed)))
        return system_ns();
    uint32_t sequence = atomic_load_explicit(&anchor.sequence, memory_order_acquire);
    uint64_t rate = atomic_load_explicit(&anchor.rate, memory_order_relaxed);
    uint64_t ns = atomic_load_explicit(&anchor.ns, memory_order_relaxed);
    uint64_t ticks = __rdtsc() - atomic_load_explicit(&anchor.ticks, memory_order_relaxed);
    atomic_thread_fence(memory_order_acquire);
    if (MS_UNLIKELY((sequence & 1) || !rate || ticks >= OLD_TICKS ||
                    sequence != atomic_load_explicit(&anchor.sequence, memory_order_relaxed)))
        return set_anchor();
    return ns + (ticks * rate >> RATE_BITS);
}

/* The counter runs at one rate in all states of the processor. */
static bool is_invariant(void)
{
    unsigned a, b, c, d;
    return __get_cpuid(0x80000007, &a, &b, &c, &d) && (d & 1 << 8);
}

/* The kernel keeps time by the counter, in its own name or a hypervisor's, so it found it the same on all
 * processors. */
static bool kernel_uses_counter(void)
{
    char name[64] = "";
    int fd = open("/sys/devices/system/clocksource/clocksource0/current_clocksource", O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return false;
    ssize_t length = read(fd, name, sizeof name - 1);
    close(fd);
    return length > 0 && (strcmp(name, "tsc\n") == 0 || strcmp(name, "kvm-clock\n") == 0 ||
                          strcmp(name, "hyperv_clocksource_tsc_page\n") == 0);
}

void ms_clock_start(void)
{
    int saved_errno = errno;
    if (!atomic_load_explicit(&trusted, memory_order_relaxed) && is_invariant() && kernel_uses_counter())
        atomic_store_explicit(&trusted, true, memory_order_relaxed);
    errno = saved_errno;
}

#else

uint64_t ms_clock_ns(void)
{
    return system_ns();
}

void ms_clock_start(void)
{
}

#endif
