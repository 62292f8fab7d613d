/* calls.h - what every program does over the driver of fake.h: it frees a block, and looks at the figures.
 * One test includes it. */
#ifndef MS_TESTS_POOL_CALLS_H
#define MS_TESTS_POOL_CALLS_H

#include "tests/pool/fake.h"

/* The pool's status; -1 if the driver is to answer. */
static int give(uint64_t address)
{
    struct ms_pool_block block;
    int status = 0;
    enum ms_pool_verdict verdict = ms_pool_free_begin(address, MS_POOL_ANYHOW, &block, &status);
    return verdict == MS_POOL_SERVED ? ms_pool_free_end(&block) : verdict == MS_POOL_PASSED ? -1 : status;
}

static struct ms_pool_figures figures(void)
{
    struct ms_pool_figures f;
    ms_pool_figures(0, &f);
    return f;
}

#endif
