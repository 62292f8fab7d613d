/* test_free_waits.c - frees that wait for the device, and those that cannot: what they wait by, and what is in limbo afterwards. */
#include "config.h"

#include "one_context.h"

static void test_strict(void)
{
    fresh(GIB);
    fake_policy.free_rule = MS_POOL_STRICT;
    fake.moves = true;
    uint64_t a = take(MIB);
    fake_issue(context);
    is_int(give(a), 0, "strict: the free succeeds");
    ok(context->done == context->issued && fake.calls[FAKE_CTX_RECORD] == 1 && fake.calls[FAKE_QUERY] == 3,
       "strict: it waits for an event over the context");
    is_u64(fake.small_allocs + fake.blocking_frees + fake.calls[FAKE_SYNC], 0, "strict: by no free, and by no other call of the driver's");
    is_u64(figures().parts.limbo, 0, "strict: nothing is left in limbo");
    a = take(MIB);
    fake.fail_at = fake.all_calls + 1;
    fake.fail_status = CUDA_ERROR_LAUNCH_FAILED;
    is_int(give(a), CUDA_ERROR_LAUNCH_FAILED,
           "strict: the free reports an error of earlier work, as the driver's does");
}

static void test_strict_beside_a_capture(void)
{
    fresh(GIB);
    fake_policy.free_rule = MS_POOL_STRICT;
    fake.moves = true;
    uint64_t a = take(MIB);
    fake_issue(context);
    begin_capture();
    is_int(give(a), 0, "strict, with a capture open: the free succeeds");
    is_u64(fake.calls[FAKE_CTX_RECORD] + fake.calls[FAKE_SYNC] + fake.destroyed_captures, 0,
           "and waits for nothing, which would destroy it");
    is_u64(figures().parts.limbo, MIB, "the block is in limbo");
    end_capture();
    a = take(100);
    is_int(give(a), 0, "the next free waits again");
    is_u64(figures().parts.limbo, 0, "for both");
    sound("strict beside a capture");
}

static void test_strict_without_events(void)
{
    fresh(GIB);
    fake_policy.free_rule = MS_POOL_STRICT;
    fake.moves = true;
    uint64_t a = take(MIB);
    fake_issue(context);
    fake.fail_at = fake.all_calls + 1;
    fake.fail_status = CUDA_ERROR_OUT_OF_MEMORY;
    is_int(give(a), 0, "strict, without memory for an event: the free succeeds");
    is_u64(fake.calls[FAKE_SYNC], 1, "and waits for the whole device");
    is_u64(figures().parts.limbo, 0, "nothing is left in limbo");
    sound("strict without events");
}

static void test_captured_frees(void)
{
    fresh(GIB);
    uint64_t a = take(300 * MIB);
    begin_capture();
    fake_issue(context);
    give(a);
    is_u64(fake.calls[FAKE_ALLOC], 1, "however much is freed in a capture, nothing is allocated to wait by its free");
    is_u64(fake.calls[FAKE_SYNC] + fake.calls[FAKE_CTX_RECORD] + fake.destroyed_captures, 0, "and nothing waits");
    end_capture();
    sound("captured frees");
}

int main(void)
{
    plan(0);
    test_strict();
    test_strict_beside_a_capture();
    test_strict_without_events();
    test_captured_frees();
    return done();
}
