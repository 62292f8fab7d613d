/* clock.c - see clock.h.
 *
 * Floor 0. One anchor (counter, time and rate) for all threads, guarded by a sequence number: who finds it
 * old sets it anew, unless another does so just then. */
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/compiler.h"

enum { NAP_LEAST_NS = 20000, NAP_MOST_NS = 2000000 };

static uint64_t system_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

void ms_clock_sleep(uint64_t ns)
{
    const struct timespec rest = {(time_t)(ns / 1000000000u), (long)(ns % 1000000000u)};
    int saved_errno = errno;
    syscall(SYS_clock_nanosleep, CLOCK_MONOTONIC, 0, &rest, NULL);
    errno = saved_errno;
}

void ms_clock_sleep_longer(uint64_t *ns_p)
{
    uint64_t twice = *ns_p ? *ns_p * 2 : NAP_LEAST_NS;
    *ns_p = twice < NAP_MOST_NS ? twice : NAP_MOST_NS;
    ms_clock_sleep(*ns_p);
}

/* --- rests ---------------------------------------------------------------------------------------------- */

#define REST_NS 1000000000u

/* when somebody asked, give or take the age up to which an anchor is used */
static _Atomic uint64_t asked_ns;
static _Atomic uint32_t *_Atomic rest_word;
static uint32_t rest_bits;

void ms_clock_tell_rests(_Atomic uint32_t *word, uint32_t bits)
{
    rest_bits = bits;
    atomic_store_explicit(&rest_word, word, memory_order_release);
}

void ms_clock_no_rest(void)
{
    atomic_store_explicit(&asked_ns, system_ns(), memory_order_relaxed);
}

static void (*_Atomic watch)(void);

void ms_clock_watch(void (*look)(void))
{
    atomic_store_explicit(&watch, look, memory_order_release);
}

static uint64_t notice_rest(uint64_t now_ns)
{
    uint64_t before_ns = atomic_exchange_explicit(&asked_ns, now_ns, memory_order_relaxed);
    _Atomic uint32_t *word = atomic_load_explicit(&rest_word, memory_order_acquire);
    if (MS_UNLIKELY(before_ns && now_ns > before_ns + REST_NS && word))
        atomic_fetch_or_explicit(word, rest_bits, memory_order_relaxed);
    void (*look)(void) = atomic_load_explicit(&watch, memory_order_acquire);
    if (look)
        look();
    return now_ns;
}

#if defined(__x86_64__)
#include <cpuid.h>
#include <x86intrin.h>

enum { NEW_NS = 2000000, READS_MAX = 4, MOMENT_TICKS = 4000 };

static atomic_bool trusted;
struct ms_clock_anchor ms_clock_anchor;

/* The rate since the last ms_clock_anchor. A counter that changes its pace by more than a hundredth (a
 * virtual machine that moved) is not trusted again: 0 then. */
static uint64_t new_rate(uint64_t ticks, uint64_t ns, uint64_t old)
{
    uint64_t rate = (uint64_t)(((__uint128_t)ns << MS_CLOCK_RATE_BITS) / ticks);
    if (!old || (rate <= old + old / 100 && rate >= old - old / 100))
        return rate;
    atomic_store_explicit(&trusted, false, memory_order_relaxed);
    return 0;
}

/* Counter and time of one moment: false if the thread was interrupted between the two each time, which would
 * look as if the counter had changed its pace. */
static bool read_both(uint64_t *ticks_p, uint64_t *ns_p)
{
    for (int i = 0; i < READS_MAX; i++) {
        uint64_t before = __rdtsc();
        *ns_p = system_ns();
        uint64_t after = __rdtsc();
        *ticks_p = before + (after - before) / 2;
        if (after - before < MOMENT_TICKS)
            return true;
    }
    return false;
}

static uint64_t set_anchor(void)
{
    uint32_t sequence = atomic_load_explicit(&ms_clock_anchor.sequence, memory_order_relaxed);
    uint64_t ticks, ns;
    if (!read_both(&ticks, &ns) || (sequence & 1) ||
        !atomic_compare_exchange_strong(&ms_clock_anchor.sequence, &sequence, sequence + 1))
        return ns;
    uint64_t old_ticks = atomic_load_explicit(&ms_clock_anchor.ticks, memory_order_relaxed);
    uint64_t old_ns = atomic_load_explicit(&ms_clock_anchor.ns, memory_order_relaxed);
    if (!old_ns || (ticks > old_ticks && ns > old_ns + NEW_NS)) {
        if (old_ns)
            atomic_store_explicit(&ms_clock_anchor.rate,
                                  new_rate(ticks - old_ticks, ns - old_ns,
                                           atomic_load_explicit(&ms_clock_anchor.rate, memory_order_relaxed)),
                                  memory_order_relaxed);
        atomic_store_explicit(&ms_clock_anchor.ticks, ticks, memory_order_relaxed);
        atomic_store_explicit(&ms_clock_anchor.ns, ns, memory_order_relaxed);
    }
    atomic_store_explicit(&ms_clock_anchor.sequence, sequence + 2, memory_order_release);
    return ns;
}

uint64_t ms_clock_slowly(void)
{
    return notice_rest(atomic_load_explicit(&trusted, memory_order_relaxed) ? set_anchor() : system_ns());
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

uint64_t ms_clock_slowly(void)
{
    return notice_rest(system_ns());
}

void ms_clock_start(void)
{
}

#endif
