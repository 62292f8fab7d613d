/* later.h - what later_driver.c has, and its users call. */
#ifndef MS_TESTS_HOOKS_LATER_H
#define MS_TESTS_HOOKS_LATER_H

#include "vendor/abi/cuda_driver_fn.h"

enum later_counted { LATER_OVER_CONTEXT, LATER_IN_STREAM, LATER_TAKEN_IN, LATER_COUNTS };
int later_count(enum later_counted what);

#define LATER_PARAMETERS                                                                                     \
    long a, long b, long c, long d, long e, long f, long g, double x0, double x1, double x2, double x3,      \
        double x4, double x5, double x6, double x7, double x8, long h, float y
#define LATER_ARGUMENTS 11, 12, 13, 14, 15, 16, 17, 0.5, 1.5, 2.5, 3.5, 4.5, 5.5, 6.5, 7.5, 8.5, 18, 9.5f
#define LATER_IS_WRONG                                                                                       \
    (a != 11 || b != 12 || c != 13 || d != 14 || e != 15 || f != 16 || g != 17 || x0 != 0.5 || x1 != 1.5 ||  \
     x2 != 2.5 || x3 != 3.5 || x4 != 4.5 || x5 != 5.5 || x6 != 6.5 || x7 != 7.5 || x8 != 8.5 || h != 18 ||   \
     y != 9.5f)
CUresult cuStreamBeginLaterCapture(CUstream stream, LATER_PARAMETERS);
/* Later versions of functions that memshim knows, with more arguments. */
CUresult cuMemAlloc_v9(LATER_PARAMETERS);
CUresult cuStreamBeginCapture_v9(CUstream stream, LATER_PARAMETERS);

#endif
