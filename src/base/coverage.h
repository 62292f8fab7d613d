/* coverage.h - writes what --enable-coverage counted, where a process ends without the C library's exit.
 * Called by hooks/observe/ends.c and the command's main(); takes no lock of ours. */
#ifndef MS_BASE_COVERAGE_H
#define MS_BASE_COVERAGE_H

#include "config.h"

#ifdef MS_COVERAGE
void __gcov_dump(void);
void __gcov_reset(void);
#endif

/** Adds the counters to their files, and begins anew: what runs from here on is added by the next call. */
static inline void ms_coverage_write(void)
{
#ifdef MS_COVERAGE
    __gcov_dump();
    __gcov_reset();
#endif
}

#endif
