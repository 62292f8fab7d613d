/* clock.h - a pause, and the time, for programs under tests/. */
#ifndef MS_TESTS_CLOCK_H
#define MS_TESTS_CLOCK_H

#include <errno.h>
#include <time.h>

/** Signals do not shorten it. */
__attribute__((unused)) static void pause_ms(unsigned ms)
{
    struct timespec rest = {ms / 1000, (long)(ms % 1000) * 1000000L};

    while (nanosleep(&rest, &rest) && errno == EINTR)
        ;
}

__attribute__((unused)) static double now_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

#endif
