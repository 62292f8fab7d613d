/* clock.h - nanoseconds of CLOCK_MONOTONIC, cheaply.
 *
 * Floor 0. On x86-64 the time is extrapolated from the processor's counter, which takes a third of the
 * system's clock, where the kernel itself keeps time by that counter; it is set by the system's clock every
 * few milliseconds and stays within a microsecond of it. Two calls on different processors may be out of
 * order by as much: callers that subtract must not assume otherwise. No lock, no allocation; safe in signal
 * handlers. */
#ifndef MS_BASE_CLOCK_H
#define MS_BASE_CLOCK_H

#include <stdint.h>

uint64_t ms_clock_ns(void);

/** Finds out, once, whether the counter can be trusted: reads a file. Until then the system's clock is asked.
 */
void ms_clock_start(void);

#endif
