/* test_streams.c - memory in the order of streams: who gets what when, and what goes back, over a driver that
 * counts whatever is given away too early. MEMSHIM_TEST_STEPS sets how long the long walk is. */
#include "config.h"

#include <stdlib.h>

#include "streams_calls.h"
#include "tests/tap.h"

#define KIB ((uint64_t)1 << 10)
#define MIB ((uint64_t)1 << 20)

static const struct ms_gpu *gpu;

static uint64_t take_from(uint64_t pool, uint64_t bytes, uint64_t stream)
{
    return model_take(gpu, pool, bytes, stream);
}

static uint64_t take(uint64_t bytes, uint64_t stream)
{
    return take_from(MS_MEMPOOL_CURRENT, bytes, stream);
}

static int give(uint64_t address, uint64_t stream)
{
    return model_give(gpu, address, stream);
}

static void sound(const char *when)
{
    const char *wrong = ms_pool_check();
    ok(!wrong, "%s: every invariant holds%s%s", when, wrong ? ": " : "", wrong ? wrong : "");
    is_u64(model.hazards + model.destroyed_captures + model.wrong_context + model.unknown_frees, 0,
           "%s: nothing is given too early, no capture is destroyed, no event is in the wrong place", when);
}

static void test_own(void)
{
    gpu = model_fresh(512 * MIB);
    uint64_t s = model_stream(), p = take(1000, s), q = take(4 * MIB, s);
    ok(p && q, "two blocks");
    is_int(give(p, s), 0, "one is freed");
    ok(take(1000, s) == p, "and had again by its own stream, which is busy");
    give(q, s);
    for (int i = 0; i < 10000; i++) {
        uint64_t bytes = (uint64_t)1 << (9 + i % 14);
        give(take(bytes, s), s);
    }
    is_u64(model.events + model.context_events + model.queries, 0, "without an event");
    is_int(give(p, s), 0, "the last one is freed");
    is_int(give(p, s), CUDA_ERROR_INVALID_VALUE, "but not twice");
    is_int(give(12345, s), -1, "what is nobody's is the driver's to answer");
    sound("own");
}

static void test_crossed(void)
{
    gpu = model_fresh(512 * MIB);
    uint64_t a = model_stream(), b = model_stream(), p = take(8 * MIB, a), q;
    give(p, b);
    q = take(8 * MIB, a);
    ok(q && q != p, "what another stream has yet to get done with is not had again");
    model_finish(b);
    bool again = false;
    for (int i = 0; i < 8 && !again; i++) {
        uint64_t r = take(8 * MIB, a);
        again = r == p;
        give(r, b);
        model_finish(b);
    }
    ok(again && model.allocs <= 3, "but when it is, before much else is taken");
    uint64_t many[1000], before = model.events;
    for (int i = 0; i < 1000; i++)
        many[i] = take(4096, a);
    for (int i = 0; i < 1000; i++)
        give(many[i], b);
    ok(model.events - before <= 40, "%" PRIu64 " events for 1000 small frees", model.events - before);
    sound("crossed");
}

static void test_idle(void)
{
    gpu = model_fresh(64 * MIB);
    uint64_t a = model_stream(), b = model_stream(), p = take(40 * MIB, a);
    ms_mempool_set(1, MS_MEMPOOL_INTERNAL, 0);
    give(p, a);
    is_u64(take(40 * MIB, b), 0,
           "no memory, a stream is busy and nobody may be made to wait: the driver answers");
    is_u64(model.waits, 0, "and nobody waits");
    model_finish(a);
    ok(take(40 * MIB, b) == p, "what an idle stream has free is another's");
    sound("idle");
}

static void test_stream_ends(void)
{
    gpu = model_fresh(512 * MIB);
    uint64_t a = model_stream(), b, p = take(MIB, a), q = take(MIB, a);
    give(p, a);
    model_destroy_stream(a);
    b = model_stream();
    ok(b != a, "a stream that is busy keeps its place");
    ok(take(MIB, b) != p, "and its memory");
    model_finish(a);
    uint64_t c = model_stream();
    is_u64(c, a, "its handle comes back for another");
    uint64_t r = take(MIB, c);
    ok(r == p || r != q, "which takes up what it left");
    is_int(give(q, c), 0, "and may free what lives on");
    sound("stream ends");
}

static void test_pool_ends(void)
{
    gpu = model_fresh(512 * MIB);
    uint64_t s = model_stream(), pool = model_pool(), p = take_from(pool, 3 * MIB, s),
             q = take_from(pool, 20 * MIB, s);
    struct ms_mempool_use use;
    ok(ms_mempool_use(pool, &use) && use.used == 23 * MIB && use.high == 23 * MIB,
       "what is in use is counted");
    give(q, s);
    ok(ms_mempool_use(pool, &use) && use.used == 3 * MIB && use.high == 23 * MIB, "and what was");
    ms_mempool_reset_high(pool);
    ok(ms_mempool_use(pool, &use) && use.high == 3 * MIB, "until that is set back");
    model_destroy_pool(pool);
    is_u64(model_live(), 1, "a pool that ends keeps what lives in it");
    is_u64(take_from(pool, MIB, s), 0, "gives no more");
    is_int(give(p, s), 0, "and takes it back");
    is_u64(model_live(), 0, "to the last byte");
    for (int i = 0; i < 300; i++) {
        pool = model_pool();
        p = take_from(pool, MIB, s);
        if (!p)
            break;
        give(p, s);
        model_destroy_pool(pool);
    }
    ok(p != 0, "three hundred pools come and go");
    sound("pool ends");
}

static void test_current(void)
{
    gpu = model_fresh(512 * MIB);
    uint64_t s = model_stream(), pool = model_pool(), p = take(MIB, s), q;
    struct ms_mempool_use use;
    model_set_current(pool);
    q = take(2 * MIB, s);
    ok(ms_mempool_use(pool, &use) && use.used == 2 * MIB, "requests come from the current pool");
    model_destroy_pool(pool);
    ok(take(MIB, s) && ms_mempool_use(1, &use) && use.used == 2 * MIB,
       "and from the default one when that is gone");
    give(p, s);
    give(q, s);
    sound("current");
}

static void test_keeping(void)
{
    gpu = model_fresh(512 * MIB);
    uint64_t s = model_stream(), p = take(100 * MIB, s);
    give(p, s);
    ms_stream_trim(0);
    is_u64(model_live(), 1, "what a stream is at stays");
    model_finish(s);
    ms_stream_at_sync(gpu, 0);
    is_u64(model_live(), 1, "within MEMSHIM_KEEP too");
    is_u64(ms_stream_trim(0), 100 * MIB, "a trim gives back what no stream uses");
    is_u64(model_live(), 0, "all of it");
    gpu = model_fresh(512 * MIB);
    model_keep = 10 * MIB;
    s = model_stream();
    p = take(100 * MIB, s);
    give(p, s);
    model_finish(s);
    ms_stream_at_sync(gpu, 0);
    is_u64(model_live(), 0, "what is beyond MEMSHIM_KEEP goes back when the program waits");
    ms_mempool_set(1, MS_MEMPOOL_THRESHOLD, UINT64_MAX);
    give(take(100 * MIB, s), s);
    model_finish(s);
    ms_stream_at_sync(gpu, 0);
    is_u64(model_live(), 1, "but for what the pool was told to keep");
    ms_mempool_trim(1);
    is_u64(model_live(), 0, "until it is trimmed");
    sound("keeping");
}

static void test_capture(void)
{
    gpu = model_fresh(512 * MIB);
    uint64_t a = model_stream(), b = model_stream(), p = take(4 * MIB, b), q = take(30 * MIB, a);
    model_capture(a, true);
    ms_pool_graph_alive(0, 1);
    is_u64(take(MIB, a), 0, "a stream that captures is the driver's");
    ok(take(MIB, b) != 0, "another is served meanwhile");
    give(p, b);
    give(q, b); /* of the capturing stream's stream arena */
    ms_pool_graph_alive(0, 1);
    model_capture(a, false);
    model_finish(a);
    model_finish(b);
    ms_stream_trim(0);
    ok(model_live() > 0, "what was live meanwhile stays while there are graphs");
    ms_pool_graph_alive(0, -2);
    ms_stream_trim(0);
    sound("capture");
}

/* What is free of a pool that was destroyed goes back, whoever frees it, wherever, and whatever graphs there
 * are. */
static void test_pool_is_gone(void)
{
    gpu = model_fresh(512 * MIB);
    uint64_t a = model_stream(), b = model_stream(), pool = model_pool(), other = model_pool();
    uint64_t p = take_from(pool, MIB, a), q = take_from(other, MIB, a);
    give(p, b);
    model_destroy_pool(pool);
    ok(model_live() > 1, "what another stream has freed stays until that has got there");
    model_finish(b);
    model_finish(a);
    ms_stream_at_sync(gpu, 0);
    is_u64(model_live(), 1, "and goes back when the program waits");
    model_capture(b, true);
    ms_pool_graph_alive(0, 1);
    model_capture(b, false);
    model_finish(a);
    model_destroy_pool(other);
    give(q, a);
    model_finish(a);
    ms_stream_at_sync(gpu, 0);
    is_u64(model_live(), 0, "even if a graph may know it: that memory has ended with its pool");
    ms_pool_graph_alive(0, -1);
    sound("pool is gone");
}

static uint64_t idle_stream, new_pool;

static void ask_another_pool(void)
{
    ok(take_from(new_pool, MIB, idle_stream) != 0,
       "while memory goes back, another stream asks another pool for some");
}

/* The memory of a pool that is gone goes back in the order of the stream that was at it, which has work. */
static void test_pool_is_gone_meanwhile(void)
{
    gpu = model_fresh(512 * MIB);
    uint64_t a = model_stream(), pool = model_pool(), p = take_from(pool, MIB, a);
    idle_stream = model_stream();
    new_pool = model_pool();
    model_issue(a);
    model_used(a, p, MIB);
    model_destroy_pool(pool);
    model.on_leaving = ask_another_pool;
    give(p, a);
    sound("a pool that is gone, and another one meanwhile");
}

static void test_short_beside_graphs(void)
{
    gpu = model_fresh(100 * MIB);
    uint64_t a = model_stream(), b = model_stream(), p = take(80 * MIB, a);
    model_capture(b, true);
    ms_pool_graph_alive(0, 1);
    model_capture(b, false);
    give(p, a);
    model_finish(a);
    ok(take(90 * MIB, b) != 0,
       "what is free serves another size where memory is short, whatever graphs there are");
    ms_pool_graph_alive(0, -1);
    sound("short beside graphs");
}

static void test_context_dies(void)
{
    gpu = model_fresh(512 * MIB);
    uint64_t a = model_stream(), b = model_stream(), p = take(8 * MIB, a), q = take(8 * MIB, a);
    give(p, a);
    give(q, b);
    model_kill_context();
    a = model_stream();
    uint64_t r = take(8 * MIB, a);
    ok(r == p || r == q, "memory of a pool outlives the context, and its streams' work");
    sound("context dies");
}

static void test_padding(void)
{
    gpu = model_fresh(512 * MIB);
    model.offset = 512;
    uint64_t s = model_stream(), p = take(MIB, s);
    ok(p != 0, "memory that does not begin on a page is served from the next one");
    give(p, s);
    model_finish(s);
    ms_stream_trim(0);
    is_u64(model_live(), 0, "and goes back as it came");
    sound("padding");
}

static uint64_t elsewhere;
static void take_elsewhere(void)
{
    take(MIB, elsewhere);
}

/* That memory does not begin on a page is seen by two threads at once. */
static void test_padding_meanwhile(void)
{
    uint64_t s, p;
    bool has = true;
    gpu = model_fresh(512 * MIB);
    model.offset = 512;
    s = model_stream();
    elsewhere = model_stream();
    model.meanwhile = take_elsewhere;
    for (int i = 0; i < 64 && has; i++) {
        p = take(64 * KIB, s);
        has = p && model_has(p, 64 * KIB);
    }
    ok(has, "while another thread finds that out as well, nothing is given beyond what the driver gave");
    sound("padding meanwhile");
}

/* --- what the driver takes at a time -------------------------------------------------------------------- */

#define UNIT  (32 * MIB)
#define FIRST (4 * MIB) /* of it, what a stream begins with */

static void fresh_with_units(bool rounds)
{
    gpu = model_fresh(1024 * MIB);
    model.unit = UNIT;
    model.rounds = rounds;
}

static void test_units(void)
{
    uint64_t s, p[12], calls;
    fresh_with_units(false);
    s = model_stream();
    take(1000, s);
    is_u64(model_reserved(1), UNIT, "the first block takes a unit of the driver's");
    calls = model.allocs;
    bool all = true;
    for (int i = 0; i < 9; i++)
        all &= (p[i] = take(3 * MIB + 512, s)) != 0;
    ok(all && model.allocs == calls + 3 && model_reserved(1) == UNIT,
       "of which the stream asks for parts, each as long as what it has");
    is_u64(p[0] % 512, 0, "from a multiple of 512 on");
    take(2 * MIB, s);
    is_u64(model_reserved(1), 2 * UNIT, "then another is taken");
    take(100 * MIB, s);
    is_u64(model_reserved(1), 2 * UNIT + 100 * MIB, "and just as much for what is longer");
    sound("units");

    fresh_with_units(false);
    s = model_stream();
    model_issue(s);
    take(1000, s);
    is_u64(model_reserved(1), UNIT, "a stream that has work begins with one unit too");
    take(29 * MIB, s);
    is_u64(model_reserved(1), UNIT, "all of it");
    is_u64(model.frees, 0, "of which nothing is on its way back");
    sound("units of a busy stream");

    fresh_with_units(true);
    s = model_stream();
    take(1000, s);
    take(100 * MIB, s);
    is_u64(model_reserved(1), 4 * UNIT, "where the driver rounds up, behind what it has left of the first");
    ok(take(23 * MIB, s) && model_reserved(1) == 4 * UNIT, "what the last unit has is used");
    take(100 * MIB, s);
    take(100 * MIB, s);
    is_u64(model_reserved(1), 11 * UNIT, "what is longer takes what the one before it left of its last unit");
    sound("rounded units");
}

static void test_shared_units(void)
{
    fresh_with_units(false);
    uint64_t a = model_stream(), b = model_stream(), c = model_stream();
    take(20 * MIB, a);
    take(1000, b);
    is_u64(model_reserved(1), UNIT, "the second stream of a pool has of the first one's unit");
    take(3 * MIB, c);
    take(3 * MIB, b);
    take(7 * MIB, c);
    is_u64(model_reserved(1), 2 * UNIT, "which all others share, and then of another");
    take(20 * MIB, b);
    take(20 * MIB, b);
    is_u64(model_reserved(1), 3 * UNIT, "until it is used up");
    sound("shared units");

    fresh_with_units(false);
    model.capacity = model.total = 4 * UNIT;
    a = model_stream(), b = model_stream();
    take(28 * MIB, a);
    uint64_t used = model.used;
    ok(take(1000, b) && model.used == used + 2 * MIB,
       "where there is little a stream that is not alone takes no more than it must");
    sound("shared units, near the end");
}

/* Four units, free again, when something longer is asked for. */
static uint64_t reserved_after_merge(bool busy, uint64_t threshold)
{
    uint64_t p[4];
    fresh_with_units(false);
    uint64_t s = model_stream();
    take(1000, s);
    ms_mempool_set(1, MS_MEMPOOL_THRESHOLD, threshold);
    for (int i = 0; i < 4; i++)
        p[i] = take(UNIT, s);
    for (int i = 0; i < 4; i++)
        give(p[i], s);
    if (!busy)
        model_finish(s);
    take(4 * UNIT, s);
    sound(busy ? "a longer block, busy" : "a longer block");
    return model_reserved(1);
}

static void test_merging(void)
{
    is_u64(reserved_after_merge(false, 0), FIRST + 4 * UNIT,
           "what is vacant makes room for something longer");
    is_u64(reserved_after_merge(false, UINT64_MAX), FIRST + 4 * UNIT,
           "whatever the pool keeps for the program");
    is_u64(reserved_after_merge(true, 0), FIRST + 8 * UNIT, "but not while the stream may be at it");
}

/* --- a long walk --------------------------------------------------------------------------------------- */

struct held {
    uint64_t address, bytes;
};
static uint64_t seed;
static uint64_t chance(uint64_t n)
{
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (seed >> 33) % n;
}

static uint64_t size(void)
{
    switch (chance(4)) {
    case 0:
        return 1 + chance(64 * KIB);
    case 1:
        return 64 * KIB + chance(MIB);
    case 2:
        return MIB + chance(4 * MIB);
    default:
        return chance(8) ? 512 * (1 + chance(8)) : 16 * MIB + chance(8 * MIB);
    }
}

enum { HELD = 64, STREAMS = 6 };

static void step(struct held *held, uint64_t *streams, uint64_t *pools)
{
    struct held *h = &held[chance(HELD)];
    uint64_t s = chance(10) ? streams[chance(STREAMS)] : 1, bytes = size();
    uint64_t act = chance(200);
    struct ms_stream *known = act < 160 && s ? ms_stream_of(gpu, s) : NULL;
    bool captures = known && ms_stream_captures(known);
    if (act < 150 && h->address && known && !captures) {
        give(h->address, s);
        h->address = 0;
    } else if (act < 150 && !h->address && known && !captures) {
        uint64_t pool = pools[chance(2)];
        h->address = take_from(pool, bytes, s);
        h->bytes = bytes;
    } else if (act < 180) {
        model_finish(s);
    } else if (act < 184 && s > 1) {
        for (int i = 0; i < STREAMS; i++)
            streams[i] = streams[i] == s ? 0 : streams[i];
        model_destroy_stream(s);
    } else if (act < 190) {
        int i = (int)chance(STREAMS);
        streams[i] = streams[i] ? streams[i] : model_stream();
    } else if (act < 192) {
        ms_mempool_trim(chance(2) + 1);
    } else if (act < 194) {
        ms_stream_at_sync(gpu, 0);
    } else if (act == 194) {
        if (pools[1])
            model_destroy_pool(pools[1]);
        pools[1] = pools[1] ? 0 : model_pool();
    } else if (act == 195 && s > 1) {
        model_capture(s, !captures && !ms_stream_captures(ms_stream_of(gpu, s)));
    }
}

static void walk(uint64_t steps, uint64_t capacity, uint64_t fail_at, bool units)
{
    struct held held[HELD] = {{0}};
    uint64_t streams[STREAMS] = {0}, pools[2] = {MS_MEMPOOL_CURRENT, 0};
    gpu = model_fresh(capacity);
    model.total = capacity;
    model.fail_at = fail_at;
    model.unit = units ? UNIT : 0;
    model.rounds = units && seed % 2;
    model_policy.oom_wait_ms = 0;
    for (int i = 0; i < STREAMS; i++)
        streams[i] = model_stream();
    for (uint64_t i = 0; i < steps; i++) {
        step(held, streams, pools);
        if (i % 512 == 0 && ms_pool_check()) {
            diag("step %" PRIu64 ": %s", i, ms_pool_check());
            break;
        }
    }
}

static void test_walk(void)
{
    const char *wanted = getenv("MEMSHIM_TEST_STEPS");
    uint64_t steps = wanted ? strtoull(wanted, NULL, 10) : 60000;
    for (seed = 1; seed < 4; seed++) {
        uint64_t kept = seed;
        walk(steps / 6, kept == 1 ? 400 * MIB : 150 * MIB, 0, false);
        sound(kept == 1 ? "with plenty" : "with little");
        walk(steps / 6, kept == 1 ? 400 * MIB : 150 * MIB, 0, true);
        sound(kept == 1 ? "with plenty, in units" : "with little, in units");
        seed = kept;
    }
}

/* Whatever call of the driver's fails: nothing is lost, nobody gets memory too early. */
static void test_failures(void)
{
    uint64_t wrong = 0, hazards = 0, n = 1;
    for (; n < 400; n += 1 + n / 50) {
        seed = 5;
        walk(3000, 200 * MIB, n, n % 2);
        wrong += ms_pool_check() != NULL;
        hazards += model.hazards + model.destroyed_captures;
    }
    is_u64(wrong, 0, "every invariant holds when the n-th call of the driver's fails");
    is_u64(hazards, 0, "and nothing is given too early");
}

int main(void)
{
    plan(0);
    test_own();
    test_crossed();
    test_idle();
    test_stream_ends();
    test_pool_ends();
    test_current();
    test_keeping();
    test_capture();
    test_pool_is_gone();
    test_pool_is_gone_meanwhile();
    test_short_beside_graphs();
    test_context_dies();
    test_padding();
    test_padding_meanwhile();
    test_units();
    test_shared_units();
    test_merging();
    test_walk();
    test_failures();
    return done();
}
