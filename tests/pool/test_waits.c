/* test_waits.c - memory that a stream has before another is done with it: who is made to wait for what, and
 * who never is. Over the driver of streams.h, which counts whatever is given away too early. */
#include "config.h"

#include <stdlib.h>

#include "streams_calls.h"
#include "tests/tap.h"

#define MIB ((uint64_t)1 << 20)

static const struct ms_gpu *gpu;
static uint64_t a, b, c;

static uint64_t take(uint64_t bytes, uint64_t stream)
{
    return model_take(gpu, MS_MEMPOOL_CURRENT, bytes, stream);
}

static void give(uint64_t address, uint64_t stream)
{
    struct ms_pool_block block;
    int status = 0;
    struct ms_stream *s = ms_stream_of(gpu, stream);
    if (!s) /* the driver failed to say which it is, once */
        s = ms_stream_of(gpu, stream);
    if (ms_pool_free_begin(address, MS_POOL_ANYHOW, &block, &status) != MS_POOL_SERVED)
        abort();
    model_freed(stream, address, block.granted, block.requested);
    ms_stream_free_end(&block, s);
}

/* Three streams on a device that has room for one large block. */
static void fresh(uint64_t capacity)
{
    gpu = model_fresh(capacity);
    model.total = capacity;
    a = model_stream();
    b = model_stream();
    c = model_stream();
}

static void sound(const char *when)
{
    const char *wrong = ms_pool_check();
    ok(!wrong, "%s: every invariant holds%s%s", when, wrong ? ": " : "", wrong ? wrong : "");
    is_u64(model.hazards + model.destroyed_captures + model.wrong_context + model.unknown_frees, 0,
           "%s: nothing is given too early, no capture is destroyed, no event is in the wrong place", when);
}

static struct ms_stream_figures sum;
static void add(uint32_t i, const struct ms_stream_figures *f)
{
    (void)i;
    sum.borrowed += f->borrowed;
    sum.waited += f->waited;
}
static const struct ms_stream_figures *figures(void)
{
    sum = (struct ms_stream_figures){0};
    ms_stream_each(add);
    return &sum;
}

static void test_behind(void)
{
    fresh(64 * MIB);
    uint64_t p = take(40 * MIB, a);
    give(p, a);
    uint64_t freed = model_issued(a);
    model_issue(a); /* and it gets no further for a long time */
    ok(take(40 * MIB, b) == p,
       "what a stream has freed and still uses is another's, when there is nothing else");
    is_u64(model_waits_for(b, a), freed, "which waits for the free, and for nothing that came after it");
    is_u64(model.waits, 1, "once");
    ok(figures()->waited == 1 && figures()->borrowed == 0, "and it is counted");
    sound("behind");
}

static void test_rule(void)
{
    fresh(64 * MIB);
    uint64_t p = take(40 * MIB, a);
    ms_mempool_set(1, MS_MEMPOOL_INTERNAL, 0);
    give(p, a);
    is_u64(take(40 * MIB, b), 0, "not where the pool's rule forbids it");
    ms_mempool_set(1, MS_MEMPOOL_INTERNAL, 1);
    ok(take(40 * MIB, b) == p, "but when it is allowed again");
    sound("rule");
}

static void test_parts(void)
{
    fresh(64 * MIB);
    uint64_t p = take(40 * MIB, a), got[5] = {0};
    bool all = true;
    give(p, a);
    for (int i = 0; i < 5; i++)
        all &= (got[i] = take(8 * MIB, i % 2 ? b : c)) != 0;
    ok(all, "pieces of it are, and streams wait each for itself");
    for (int i = 0; i < 5; i++)
        give(got[i], i % 2 ? b : c);
    for (int i = 0; i < 5; i++)
        all &= (got[i] = take(8 * MIB, i % 2 ? c : b)) != 0;
    ok(all, "and of each other's pieces");
    sound("parts");
}

/* The driver would not join what is not over, and the program, refused, may let the stream go on. */
static void test_side_by_side(void)
{
    fresh(64 * MIB);
    uint64_t p = take(25 * MIB, a), q = take(25 * MIB, a), r;
    give(p, a);
    give(q, a);
    is_u64(take(40 * MIB, b), 0, "nobody waits for two blocks to have one");
    is_u64(model.waits, 0, "at all");
    r = take(20 * MIB, b);
    ok(r && take(20 * MIB, c), "but for each of them");
    is_u64(model_waits_for(b, a) != model_waits_for(c, a), 1, "at its own free");
    model_finish(a);
    sound("side by side");
}

static void test_chain(void)
{
    fresh(64 * MIB);
    uint64_t p = take(50 * MIB, a), d = model_stream();
    give(p, a);
    ok(take(50 * MIB, b) == p, "a chain: the second waits for the first");
    give(p, b);
    ok(take(50 * MIB, c) == p, "the third for the second");
    give(p, c);
    ok(take(50 * MIB, d) == p && model_waits_for(d, a) && model_waits_for(d, b),
       "the fourth for all of them");
    give(p, d);
    ok(take(50 * MIB, a) == p, "and it comes back to the first");
    is_u64(model.allocs, 1, "all with one allocation of the driver's");
    sound("chain");
}

static void test_third(void)
{
    fresh(64 * MIB);
    uint64_t p = take(50 * MIB, a), waits;
    give(p, b);
    waits = model.waits;
    ok(take(50 * MIB, b) == p && model.waits == waits,
       "who freed another's block has it again without a wait");
    give(p, b);
    ok(take(50 * MIB, c) == p && model.waits > waits, "a third waits for it");
    give(p, c);
    ok(take(50 * MIB, a) == p && model_waits_for(a, c), "and so does the one that it belongs to");
    sound("third");
}

static void test_ends(void)
{
    fresh(64 * MIB);
    uint64_t p = take(50 * MIB, a), freed;
    give(p, a);
    freed = model_issued(a);
    model_issue(a);
    model_destroy_stream(a);
    ok(take(50 * MIB, b) == p, "a stream that was destroyed with work is waited for");
    is_u64(model.hazards, 0, "up to its free, and not later than %u", (unsigned)freed);
    give(p, b);
    model_destroy_stream(b);
    ok(take(50 * MIB, c) == p, "and the next");
    model_kill_context();
    sound("ends");
}

static void test_captures(void)
{
    fresh(64 * MIB);
    uint64_t p = take(50 * MIB, a);
    give(p, a);
    model_capture(a, true);
    ok(take(50 * MIB, b) == p, "a stream that captures meanwhile is waited for as it was before");
    give(p, b);
    model_capture(c, true);
    is_u64(take(50 * MIB, c), 0, "one that captures is the driver's, and waits for nobody");
    model_capture(c, false);
    ok(take(50 * MIB, c) == p, "until it does no more");
    sound("captures");
}

/* Whoever freed it was alone then: no event is known to be as early as the free. */
static void test_unmarked(void)
{
    gpu = model_fresh(64 * MIB);
    model.total = 64 * MIB;
    a = model_stream();
    uint64_t p = take(50 * MIB, a);
    give(p, a);
    b = model_stream();
    is_u64(take(50 * MIB, b), 0, "nobody waits for an event that is later than the free");
    is_u64(model.waits, 0, "at all");
    model_finish(a);
    ok(take(50 * MIB, b) == p, "it is given when that is over");
    sound("unmarked");
}

static void test_plenty(void)
{
    fresh(512 * MIB);
    uint64_t before, p;
    take(10 * MIB, b);
    give(take(4 * MIB, a), a);
    before = model.events;
    for (int i = 0; i < 1000; i++) {
        p = take(MIB + (uint64_t)(i % 4) * MIB, a);
        give(p, a);
    }
    ok(model.events - before < 5, "no free costs an event while the device has plenty");
    sound("plenty");
}

/* More frees than are remembered, of all sizes, while none of them is over. */
static void test_many(void)
{
    static uint64_t blocks[3000];
    bool all = true;
    fresh(64 * MIB);
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < 3000; i++)
            all &= (blocks[i] = take(512 + (uint64_t)(i % 7) * 4096, a)) != 0;
        for (int i = 0; i < 3000; i++)
            give(blocks[i], a);
        for (int i = 0; i < 150; i++)
            give(take((uint64_t)(i % 50 + 1) << 17, a), a);
    }
    ok(all, "many blocks");
    for (int i = 0; i < 40; i++)
        take(MIB, i % 2 ? b : c);
    model_finish(a);
    ok(take(8 * MIB, b) || take(8 * MIB, c), "and what is over is found");
    sound("many");
}

/* The driver refuses the n-th call. */
static void test_failures(void)
{
    uint64_t wrong = 0, hazards = 0;
    for (uint64_t n = 1; n < 120; n++) {
        uint64_t p, q;
        fresh(64 * MIB);
        model.fail_at = n;
        model_policy.oom_wait_ms = 0;
        for (int i = 0; i < 6; i++) {
            p = take((uint64_t)(i % 3 + 1) * 12 * MIB, i % 2 ? a : b);
            if (p)
                give(p, i % 3 ? a : c);
            q = take(30 * MIB, c);
            if (q)
                give(q, b);
        }
        wrong += ms_pool_check() != NULL;
        hazards += model.hazards + model.destroyed_captures + model.wrong_context;
    }
    is_u64(wrong, 0, "every invariant holds when the n-th call of the driver's fails");
    is_u64(hazards, 0, "and nothing is given too early");
}

int main(void)
{
    plan(0);
    test_behind();
    test_rule();
    test_parts();
    test_side_by_side();
    test_chain();
    test_third();
    test_ends();
    test_captures();
    test_unmarked();
    test_plenty();
    test_many();
    test_failures();
    return done();
}
