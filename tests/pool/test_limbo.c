/* test_limbo.c - how much may be pending, and what the free that leaves more waits for.
 *
 * The host is ahead of a device whose work ends when the test says so. A free waits as the hooks do it: it
 * begins, and is looked at. */
#include "config.h"

#include "pool/api/internal.h"
#include "tests/pool/one_context.h"

/* What the free of a block comes to: whether it has to wait, and for what. */
static struct ms_pool_wait pending;

static bool waits(uint64_t address)
{
    struct ms_pool_block block;
    int status = 0;
    if (ms_pool_free_begin(address, MS_POOL_ANYHOW, &block, &status) != MS_POOL_SERVED ||
        ms_pool_free_end(&block) != 0)
        return false;
    return block.over && ms_pool_wait_begin(&block, &pending);
}

static void bounded(uint64_t bound)
{
    fresh((uint64_t)1 << 40);
    fake_policy.oom_wait_ms = 10000;
    fake_sizes.pending = bound;
}

/* Work for each of these blocks, and then their frees: how many of them would wait. */
static int free_behind_work(const uint64_t *blocks, int count)
{
    int waiting = 0;
    for (int i = 0; i < count; i++) {
        fake_issue(context);
        waiting += waits(blocks[i]);
    }
    return waiting;
}

static void take_all(uint64_t *blocks, int count, uint64_t bytes)
{
    for (int i = 0; i < count; i++)
        blocks[i] = take(bytes);
}

/* An event for each quarter of the bound; the first that has to wait waits for the first of them, and no
 * longer. */
static void test_bound(void)
{
    uint64_t blocks[32];
    bounded(64 * MIB);
    take_all(blocks, 32, 4 * MIB);
    is_int(free_behind_work(blocks, 16), 0, "64 MiB may be in limbo");
    ok(fake.calls[FAKE_CTX_RECORD] >= 3 && fake.calls[FAKE_CTX_RECORD] <= 4,
       "with an event for each quarter of it: %" PRIu64, fake.calls[FAKE_CTX_RECORD]);
    uint64_t events = fake.calls[FAKE_CTX_RECORD];
    fake_issue(context);
    ok(waits(blocks[16]), "the next free waits");
    is_u64(fake.calls[FAKE_CTX_RECORD], events, "for an event that is there");
    ok(!ms_pool_wait_poll(&pending), "which is not over");
    context->done = 5;
    ok(ms_pool_wait_poll(&pending), "until the work before it is done, and no more than that");
    is_u64(fake.calls[FAKE_SYNC] + fake.blocking_frees, 0, "nothing waited for the device");
    sound("bound");
}

/* What is small counts as much, whoever holds it back. */
static void test_small(void)
{
    enum { COUNT = 40000 };
    static uint64_t blocks[COUNT];
    bounded(64 * MIB);
    take_all(blocks, COUNT, 4096);
    int waiting = free_behind_work(blocks, COUNT);
    ok(fake.calls[FAKE_CTX_RECORD] >= 4, "small blocks close epochs as well: %" PRIu64,
       fake.calls[FAKE_CTX_RECORD]);
    ok(waiting > 100, "and frees of them wait: %d of %d", waiting, COUNT);
    is_u64(fake.calls[FAKE_SYNC] + fake.blocking_frees, 0, "nothing waited for the device");
}

/* Thread caches tell of freed bytes as soon as enough have gathered, and not before. */
static void test_told(void)
{
    enum { COUNT = 1000 };
    static uint64_t blocks[COUNT];
    uint64_t freed = 0, told = 0, untold = 0;
    int times = 0;
    bounded(64 * MIB);
    take_all(blocks, COUNT, 4096);
    const struct ms_pending *sums = &ms_heap_of((uintptr_t)context)->pending_sums;
    for (int i = 0; i < COUNT; i++) {
        give(blocks[i]);
        freed += 4096;
        uint64_t now = atomic_load(&sums->freed_bytes);
        times += now != told;
        told = now;
        untold = freed - told > untold ? freed - told : untold;
    }
    is_int(times, COUNT * 4096 / (int)MS_PENDING_WEIGH_BYTES, "limbo is told when 256 KiB have gathered");
    is_u64(untold, MS_PENDING_WEIGH_BYTES - 4096, "and holds back no more than that");
}

/* Where no event suffices one is recorded, once: what is issued while the free waits is not waited for. */
static void test_one_event(void)
{
    bounded(64 * MIB);
    uint64_t block = take(128 * MIB);
    fake_issue(context);
    ok(waits(block), "a block that is larger than the bound waits for what comes before its free");
    uint64_t events = fake.calls[FAKE_CTX_RECORD];
    context->done = context->issued;
    for (int i = 0; i < 10; i++) {
        fake_issue(context);
        give(take(8 * MIB));
    }
    ok(ms_pool_wait_poll(&pending), "and not for what is issued while it waits");
    ok(events <= 2, "with one event (%" PRIu64 ")", events);
}

static void test_ends(void)
{
    uint64_t blocks[20];
    bounded(64 * MIB);
    take_all(blocks, 20, 16 * MIB);
    ok(free_behind_work(blocks, 8) > 0, "a free waits");
    fake.fail_at = fake.all_calls + 1;
    fake.failed_call = FAKE_QUERY;
    fake.fail_status = CUDA_ERROR_ILLEGAL_ADDRESS;
    ok(ms_pool_wait_poll(&pending), "any answer but that it is not ready ends the wait");
    bounded(64 * MIB);
    take_all(blocks, 20, 16 * MIB);
    ok(free_behind_work(blocks, 8) > 0 && !ms_pool_wait_poll(&pending), "another");
    ms_pool_context_ending((uintptr_t)context);
    ok(ms_pool_wait_poll(&pending), "the context's end does, before it is gone");
    fake_kill(context);
    ms_pool_context_ended((uintptr_t)context, true);
    ok(ms_pool_wait_poll(&pending), "and when it is");
    context = fake_context(0);
    fake_set_current(context);
    ok(take(MIB) && ms_pool_wait_poll(&pending), "and when there is another in its place");
    ms_at_fork_run(MS_FORK_POOL);
    ok(ms_pool_wait_poll(&pending), "a child of fork has nothing to wait for");
}

static void test_in_vain(void)
{
    uint64_t blocks[40];
    bounded(64 * MIB);
    fake_policy.oom_wait_ms = 1;
    take_all(blocks, 40, 16 * MIB);
    ok(free_behind_work(blocks, 8) > 0, "a free waits");
    uint64_t notes = fake_notes;
    while (!ms_pool_wait_poll(&pending))
        ;
    ok(fake_notes == notes + 1, "for so long and no longer, which is told: %s", fake_last_note);
    is_int(free_behind_work(blocks + 8, 8), 0, "no other waits before that is done");
    context->done = context->issued;
    free_behind_work(blocks + 16, 4);
    ok(free_behind_work(blocks + 20, 8) > 0, "after it the bound holds again");
    sound("in vain");
}

static void test_exempt(void)
{
    uint64_t blocks[40];
    bounded(64 * MIB);
    fake_policy.free_rule = MS_POOL_IMMEDIATE;
    take_all(blocks, 40, 16 * MIB);
    is_int(free_behind_work(blocks, 10), 0, "there is no limbo where memory is used again at once");
    bounded(64 * MIB);
    take_all(blocks, 40, 16 * MIB);
    ms_pool_capture_enter((uintptr_t)context);
    ms_pool_capture_leave((uintptr_t)context, A_STREAM, true);
    is_int(free_behind_work(blocks, 4), 0,
           "while a capture is open no event can be recorded, so none is waited for");
    uint64_t events = fake.calls[FAKE_CTX_RECORD];
    ms_pool_capture_enter((uintptr_t)context);
    ms_pool_capture_leave((uintptr_t)context, A_STREAM, false);
    is_u64(events + fake.destroyed_captures, 0, "and the capture is whole");
    bounded(64 * MIB);
    take_all(blocks, 40, 16 * MIB);
    ms_pool_joined((uintptr_t)context);
    fake_issue(context);
    is_int(free_behind_work(blocks, 10), 0, "events behind another context's work are not waited for");
    context->done = context->issued;
    is_int(free_behind_work(blocks + 10, 1), 0, "when one of them is done");
    ok(free_behind_work(blocks + 11, 9) > 0, "later ones are");
    bounded(0);
    take_all(blocks, 40, 16 * MIB);
    is_int(free_behind_work(blocks, 40), 0, "without a bound no free waits");
}

/* As much as may be pending, and what is live: no more than that is reserved, whatever is freed behind
 * work. */
static void test_loop(void)
{
    bounded(64 * MIB);
    for (int i = 0; i < 400; i++) {
        uint64_t one = take(16 * MIB), two = take(16 * MIB);
        fake_issue(context);
        for (int k = 0; k < 2; k++) {
            if (!waits(k ? two : one))
                continue;
            while (!ms_pool_wait_poll(&pending) && context->done < context->issued)
                context->done++;
        }
    }
    ok(figures().peak_reserved_bytes <= 120 * MIB, "a loop of two blocks of 16 MiB reserves %" PRIu64 " MiB",
       figures().peak_reserved_bytes / MIB);
    sound("loop");
}

int main(void)
{
    plan(0);
    test_bound();
    test_small();
    test_told();
    test_one_event();
    test_ends();
    test_in_vain();
    test_exempt();
    test_loop();
    return done();
}
