/*
 * Time: what it is, and letting it pass.
 */
#include <errno.h>
#include <time.h>

#include "sim/cuda/sim.h"

uint64_t sim_now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000U + (uint64_t)now.tv_nsec;
}

/** Lets ns nanoseconds pass: sleeps while there is much left, spins at the end. Leaves errno alone. */
void sim_spend(uint64_t ns)
{
    uint64_t end = sim_now_ns() + ns;
    int saved = errno;

    for (uint64_t now = sim_now_ns(); now < end; now = sim_now_ns()) {
        uint64_t left = end - now;

        if (left > 100000) {
            struct timespec pause = {(time_t)((left - 60000) / 1000000000U),
                                     (long)((left - 60000) % 1000000000U)};
            nanosleep(&pause, NULL);
        }
    }
    errno = saved;
}
