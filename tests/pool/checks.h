/* checks.h - what tests ask of the pool, and do to it, that no program can.
 *
 * Beside src/pool/api/internal.h, over the records themselves; for the programs of tests/pool and
 * tests/schedules. */
#ifndef MS_TESTS_POOL_CHECKS_H
#define MS_TESTS_POOL_CHECKS_H

#include <stdint.h>

/** Every invariant, stated in check.c; NULL, or a line that says which does not hold. At rest only. */
const char *ms_pool_check(void);
/** Gives back what can be without waiting, down to `keep_bytes` beyond live memory. Returns the bytes given
 * back. */
uint64_t ms_pool_trim(int device, uint64_t keep_bytes);

#endif
