/* vmm.h - what the tests of memory that is mapped by handle share: requests, and what must hold then. */
#ifndef MS_TESTS_POOL_VMM_H
#define MS_TESTS_POOL_VMM_H

#include <inttypes.h>

#include "tests/pool/calls.h"
#include "tests/tap.h"

#define KIB  ((uint64_t)1 << 10)
#define MIB  ((uint64_t)1 << 20)
#define GIB  ((uint64_t)1 << 30)
#define PAGE (2 * MIB)
#define MUCH (4 * GIB) /* where that is mapped a handle is up to 64 MiB long */

static const struct ms_gpu *gpu;
static struct fake_context *context;

static void fresh(uint64_t capacity)
{
    gpu = fake_fresh(capacity);
    fake_policy.vmm = true;
    context = fake_context(0);
    fake_set_current(context);
}

static int status_of(uint64_t bytes, uint64_t *address_p)
{
    struct ms_pool_block block = {0};
    int status = 0;
    enum ms_pool_verdict verdict =
        ms_pool_alloc(gpu, (uintptr_t)context, 0, bytes, MS_POOL_ANYHOW, &block, &status);
    *address_p = verdict == MS_POOL_SERVED ? block.address : 0;
    return verdict == MS_POOL_SERVED ? 0 : verdict == MS_POOL_PASSED ? -1 : status;
}

static uint64_t take(uint64_t bytes)
{
    uint64_t address;
    status_of(bytes, &address);
    return address;
}

static void sound(const char *when)
{
    const char *wrong = ms_pool_check();
    ok(!wrong, "%s: every invariant holds%s%s", when, wrong ? ": " : "", wrong ? wrong : "");
    is_u64(fake.vmm_errors, 0, "%s: the driver is used as it may be", when);
    is_u64(fake.blocking_frees, 0, "%s: nothing is unmapped while the device is busy", when);
}

static void end_context(const char *when)
{
    ms_pool_context_ending((uintptr_t)context);
    fake_kill(context);
    ms_pool_context_ended((uintptr_t)context, true);
    ok(!fake.handles && !fake.ranges && !fake.used[0] && !fake_segments,
       "%s: the context takes handles, addresses and segments with it", when);
}

#endif
