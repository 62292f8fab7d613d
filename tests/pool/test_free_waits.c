/* test_free_waits.c - frees that wait for the device, and those that cannot, beside captures that are seen
 * and those that are not: what they wait by, and what is pending afterwards. */
#include "config.h"

#include "vendor/context_scope.h"
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
    is_u64(fake.small_allocs + fake.blocking_frees + fake.calls[FAKE_SYNC], 0,
           "strict: by no free, and by no other call of the driver's");
    is_u64(figures().parts.pending, 0, "strict: nothing is left in limbo");
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
    is_u64(figures().parts.pending, MIB, "the block is in limbo");
    end_capture();
    a = take(100);
    is_int(give(a), 0, "the next free waits again");
    is_u64(figures().parts.pending, 0, "for both");
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
    is_u64(figures().parts.pending, 0, "nothing is left in limbo");
    sound("strict without events");
}

static void test_captured_frees(void)
{
    fresh(GIB);
    uint64_t a = take(300 * MIB);
    begin_capture();
    fake_issue(context);
    give(a);
    is_u64(fake.calls[FAKE_ALLOC], 1,
           "however much is freed in a capture, nothing is allocated to wait by its free");
    is_u64(fake.calls[FAKE_SYNC] + fake.calls[FAKE_CTX_RECORD] + fake.destroyed_captures, 0,
           "and nothing waits");
    end_capture();
    sound("captured frees");
}

static void wait_for_all(void)
{
    uint64_t mark = ms_pool_sync_begin((uintptr_t)context);
    fake_finish(context);
    ms_pool_sync_end((uintptr_t)context, mark, CUDA_SUCCESS);
}

/* Frees a block, and looks for what may be used again: whether that is all. */
static bool comes_back(uint64_t *block_p)
{
    give(*block_p);
    ms_pool_reclaimable(0);
    bool all = figures().parts.pending == 0;
    *block_p = take(20 * MIB);
    return all;
}

/* From the moment when somebody may begin captures unseen. Streams may have been born, and have ended, long
 * before. */
static void test_unseen_captures(void)
{
    fresh(GIB);
    ms_stream_born(gpu, (uintptr_t)context, 0x1000);
    ms_stream_born(gpu, (uintptr_t)context, 0x2000);
    uint64_t a = take(20 * MIB);
    ok(comes_back(&a), "an event over the context");
    uint64_t over = fake.calls[FAKE_CTX_RECORD];
    end_stream(0x2000);
    atomic_store(&ms_captures_unseen, 1);
    ok(!comes_back(&a), "what a stream of the past may still do no event covers");
    is_u64(fake.calls[FAKE_RECORD], 0, "so there is none");
    wait_for_all();
    ok(comes_back(&a), "once the program has waited, events in streams do");
    is_u64(fake.calls[FAKE_RECORD], 2, "in the one that is left, and the default one");
    fake.capturing = 0x1000;
    ok(!comes_back(&a), "while a stream captures nothing is used again");
    is_u64(fake.calls[FAKE_RECORD], 2, "and nothing recorded");
    fake.capturing = 0;
    fake.takes_in = 0x1000;
    ok(!comes_back(&a), "an event that a capture took in covers nothing");
    fake.takes_in = 0;
    ok(comes_back(&a), "the next one does");
    end_stream(0x1000);
    fake_issue(context);
    ok(!comes_back(&a), "a stream that ends now leaves an event behind");
    fake_finish(context);
    ok(comes_back(&a), "which is waited for");
    for (uint64_t i = 0; i < 300; i++)
        ms_stream_born(gpu, (uintptr_t)context, 0x10000 + i * 16);
    uint64_t marks = fake.calls[FAKE_RECORD];
    ok(comes_back(&a), "however many streams there are, events in all of them say so");
    is_u64(fake.calls[FAKE_RECORD] - marks, 301, "one in each, and in the default one");
    ms_pool_unreachable((uintptr_t)context);
    ok(!comes_back(&a), "where not every stream takes one, nothing is used again");
    wait_for_all();
    is_u64(figures().parts.pending, 0, "until the program waits");
    is_u64(fake.calls[FAKE_CTX_RECORD], over, "there is no event over the context any more");
    is_u64(fake.small_allocs + fake.calls[FAKE_SYNC], 0, "and nothing waits");
    sound("unseen captures");
    atomic_store(&ms_captures_unseen, 0);
}

int main(void)
{
    plan(0);
    test_strict();
    test_strict_beside_a_capture();
    test_strict_without_events();
    test_captured_frees();
    test_unseen_captures();
    return done();
}
