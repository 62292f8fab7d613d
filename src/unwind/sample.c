/* sample.c - which calls take their stack when stacks are sampled.
 *
 * Floor 1. No lock, no allocation. Random numbers are each thread's own. */
#include <stdatomic.h>
#include <time.h>

#include "base/compiler.h"
#include "unwind/stack.h"

_Atomic bool ms_stack_is_sampling;
static MS_TLS uint64_t state;

void ms_stack_configure_sampling(bool on)
{
    atomic_store_explicit(&ms_stack_is_sampling, on, memory_order_relaxed);
}

/* Threads begin at different places: their state lies at different addresses, at different times. */
static MS_NOINLINE uint64_t seed(void)
{
    struct timespec now = {0, 0};
    clock_gettime(CLOCK_MONOTONIC, &now);
    return ((uint64_t)(uintptr_t)&state ^ (uint64_t)now.tv_nsec << 32 ^ (uint64_t)now.tv_sec) *
               0x9e3779b97f4a7c15u |
           1;
}

bool ms_stack_sampled(uint64_t bytes)
{
    if (bytes >= MS_SAMPLE_BYTES)
        return true;
    uint64_t x = state ? state : seed();
    x ^= x << 13;
    x ^= x >> 7;
    x ^= x << 17;
    state = x;
    /* The upper bits of the product are the evenly spread ones; as many are used as MS_SAMPLE_BYTES has. */
    return (x * 0x2545f4914f6cdd1du) >> 44 < bytes;
}
