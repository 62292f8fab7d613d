/* planted_clock.c - a clock of the program's own, so that what goes by time does not go by how busy the
 * machine is: CLOCK_MONOTONIC is the system's until a scene takes it, and then stands where the scene puts
 * it.
 *
 * memshim asks for it as everybody does, by the C library's name, which the program has first. But it does
 * not ask each time: on x86-64 it extrapolates from the processor's counter, until it finds that the two do
 * not go together (src/base/clock.c). */
#include "planted.h"

#include <stdatomic.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { ROUNDS = 200, ROUNDS_MAX = 4000000, STEPS_NS = 10000000 };

static _Atomic uint64_t stands_ns; /* 0: it is the system's */
static atomic_bool is_uneven;
static atomic_ulong times_asked;
static uint64_t begun_ns;

static uint64_t system_ns(void)
{
    struct timespec t;

    syscall(SYS_clock_gettime, CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000 + (uint64_t)t.tv_nsec;
}

int clock_gettime(clockid_t id, struct timespec *t)
{
    unsigned long number = atomic_fetch_add(&times_asked, 1);
    uint64_t ns = id == CLOCK_MONOTONIC ? atomic_load(&stands_ns) : 0;

    if (!ns)
        return (int)syscall(SYS_clock_gettime, id, t);
    if (atomic_load(&is_uneven))
        ns = atomic_fetch_add(&stands_ns, number % 2 ? STEPS_NS : STEPS_NS / 3);
    *t = (struct timespec){(time_t)(ns / 1000000000), (long)(ns % 1000000000)};
    return 0;
}

__attribute__((constructor)) static void begin(void)
{
    begun_ns = system_ns();
}

/* Whether memshim asked for the time. Without memshim nobody does. */
static bool is_asked(void)
{
    unsigned long before = atomic_load(&times_asked);
    void *p = NULL;

    MUST(cudaMalloc(&p, KIB));
    MUST(cudaFree(p));
    return atomic_load(&times_asked) > before;
}

void take_clock(void)
{
    for (uint64_t ns = system_ns(); system_ns() < ns + 2 * STEPS_NS;)
        is_asked(); /* it learns the counter's pace */
    atomic_store(&is_uneven, true);
    atomic_store(&stands_ns, system_ns());
    for (int row = 0, i = 0; row < ROUNDS && i < ROUNDS_MAX; i++)
        row = is_asked() ? row + 1 : 0;
    atomic_store(&is_uneven, false);
}

void pass_time(unsigned parts)
{
    static uint64_t all_ns;

    if (!all_ns)
        all_ns = 2 * (atomic_load(&stands_ns) - begun_ns) + UINT64_C(4000000000);
    atomic_fetch_add(&stands_ns, all_ns / parts);
}
