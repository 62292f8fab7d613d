/* later.h - what later_library.c has, and its users call. */
#ifndef MS_TESTS_HIP_LATER_H
#define MS_TESTS_HIP_LATER_H

#include "vendor/abi/hip_fn.h"

/* How often the library was asked something, or waited for, since it was loaded. */
int later_asked(void);

#define LATER_PARAMETERS long a, long b, long c, long d, long e, long f, double x, long g, float y
#define LATER_ARGUMENTS  11, 12, 13, 14, 15, 16, 0.5, 17, 9.5f
#define LATER_IS_WRONG                                                                                       \
    (a != 11 || b != 12 || c != 13 || d != 14 || e != 15 || f != 16 || x != 0.5 || g != 17 || y != 9.5f)
hipError_t hipStreamBeginLaterCapture(hipStream_t stream, LATER_PARAMETERS);

#endif
