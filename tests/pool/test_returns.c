/* test_returns.c - memory that goes back in the order of a stream: the driver has it when the host has waited
 * for what freed it, and nobody waits for what is not over. Also what goes back when the program has rested,
 * of memory in the order of streams. */
#include "config.h"

#include <stdlib.h>

#include "pool/stream/driver_frees.h"
#include "streams.h"
#include "tests/tap.h"

#define MIB  ((uint64_t)1 << 20)
#define UNIT (32 * MIB)

static const struct ms_gpu *gpu;

static uint64_t take_of(uint64_t bytes, uint64_t stream, uint64_t pool)
{
    struct ms_pool_block block;
    struct ms_stream *s = ms_stream_of(gpu, stream);
    if (!s || ms_stream_alloc(s, pool, bytes, MS_POOL_ANYHOW, &block) != MS_POOL_SERVED)
        return 0;
    model_given(stream, block.address, bytes);
    model_used(stream, block.address, bytes);
    return block.address;
}

static uint64_t take(uint64_t bytes, uint64_t stream)
{
    return take_of(bytes, stream, MS_MEMPOOL_CURRENT);
}

static void give(uint64_t address, uint64_t stream)
{
    struct ms_pool_block block;
    int status = 0;
    if (ms_pool_free_begin(address, MS_POOL_ANYHOW, &block, &status) != MS_POOL_SERVED)
        abort();
    model_freed(stream, address, block.granted, block.requested);
    ms_stream_free_end(&block, ms_stream_of(gpu, stream));
}

static void fresh(uint64_t keep)
{
    gpu = model_fresh(2048 * MIB);
    model.unit = UNIT;
    model.rounds = true;
    model_keep = keep;
}

static void sound(const char *when)
{
    const char *wrong = ms_pool_check();
    ok(!wrong, "%s: every invariant holds%s%s", when, wrong ? ": " : "", wrong ? wrong : "");
    is_u64(model.hazards + model.destroyed_captures + model.wrong_context + model.unknown_frees, 0,
           "%s: nothing is given too early, no capture is destroyed", when);
    is_u64(model.early_waits, 0, "%s: nobody waited for what was not over", when);
}

static void test_trim(void)
{
    fresh(0);
    uint64_t s = model_stream(), p = take(100 * MIB, s);
    ok(p && model_reserved(1) >= 100 * MIB, "memory of the driver's pool");
    give(p, s);
    model_finish(s);
    ok(ms_stream_trim(0) >= 100 * MIB, "all of it goes back");
    ok(model.host_waits > 0, "and is waited for");
    is_u64(ms_driver_frees_pending(0), 0, "so that nothing is under way");
    is_u64(model_reserved(1), 0, "and the device has it");
    sound("trimmed");
}

/* A pool that the program destroys is given back behind work that is not over. */
static void test_destroyed(void)
{
    fresh(0);
    uint64_t s = model_stream(), pool = model_pool(), p = take_of(100 * MIB, s, pool);
    give(p, s);
    model_issue(s);
    model_destroy_pool(pool);
    ok(ms_driver_frees_pending(0) >= 100 * MIB, "what goes back behind work is under way");
    is_u64(ms_driver_frees_settle(0), 0, "as long as the work is");
    model_finish(s);
    ok(ms_driver_frees_settle(0) >= 100 * MIB, "and the device's when that is over and was waited for");
    is_u64(ms_driver_frees_settle(0), 0, "once");
    sound("destroyed");
}

/* Whoever looks how far the stream got, for whatever, waits for what it gave back; and so it is behind the
 * stream's end. */
static void test_seen_by_others(void)
{
    fresh(0);
    uint64_t s = model_stream(), other = model_stream(), pool = model_pool(), p = take_of(100 * MIB, s, pool),
             q = take(2 * MIB, other);
    give(p, s);
    model_issue(s);
    give(q, s);
    model_destroy_pool(pool);
    uint64_t waits = model.host_waits;
    ok(take(24 * MIB, other) && model.host_waits == waits,
       "what another stream's blocks wait for is not over");
    model_finish(s);
    ok(take(24 * MIB, other) && model.host_waits > waits,
       "when it is, what went back there is waited for too");
    ok(ms_driver_frees_settle(0) >= 100 * MIB && ms_driver_frees_pending(0) == 0, "and is the device's");
    pool = model_pool();
    p = take_of(100 * MIB, s, pool);
    give(p, s);
    model_issue(s);
    model_destroy_pool(pool);
    model_destroy_stream(s);
    is_u64(ms_driver_frees_settle(0), 0, "the stream ends before its work");
    model_finish(s);
    ok(ms_driver_frees_settle(0) >= 100 * MIB && ms_driver_frees_pending(0) == 0,
       "and the device has it when that is over");
    sound("seen by others");
}

static void test_capture(void)
{
    fresh(0);
    uint64_t s = model_stream(), other = model_stream(), p = take(100 * MIB, s);
    give(p, s);
    model_finish(s);
    model_capture(other, true);
    ok(ms_stream_trim(0) >= 100 * MIB, "beside a capture in another stream");
    is_u64(ms_driver_frees_pending(0), 0, "it is waited for as well");
    model_capture(other, false);
    sound("captured");
}

static void test_context_dies(void)
{
    fresh(0);
    uint64_t s = model_stream(), pool = model_pool(), p = take_of(40 * MIB, s, pool);
    give(p, s);
    model_issue(s);
    model_destroy_pool(pool);
    ok(ms_driver_frees_pending(0) > 0, "something is under way");
    model_kill_context();
    is_u64(ms_driver_frees_pending(0), 0, "and is over with its context");
    sound("dead");
}

static void test_program_pool(void)
{
    fresh(0);
    uint64_t s = model_stream(), pool = model_pool();
    ok(take_of(MIB, s, pool) != 0, "a block of a pool of the program's");
    is_u64(model_reserved(pool), UNIT, "takes a unit");
    sound("program's pool");
}

static void test_rested(uint64_t keep, bool is_set, uint64_t most, const char *what)
{
    uint64_t live[4], idle[16];
    fresh(keep);
    model_policy.keep_is_set = is_set;
    uint64_t s = model_stream();
    for (int i = 0; i < 16; i++)
        idle[i] = take(64 * MIB, s);
    for (int i = 0; i < 4; i++)
        live[i] = take(32 * MIB, s);
    for (int i = 0; i < 16; i++)
        give(idle[i], s);
    ms_pool_rested();
    ok(model_reserved(1) >= 1152 * MIB, "%s: nothing goes back while the stream is at work", what);
    model_finish(s);
    ms_pool_rested();
    ok(model_reserved(1) <= 128 * MIB + most, "%s: no more stays than may, when it is not (%llu MiB)", what,
       (unsigned long long)(model_reserved(1) / MIB));
    is_u64(ms_driver_frees_pending(0), 0, "%s: and the device has it", what);
    ok(take(100 * MIB, s) != 0, "%s: more can be had", what);
    for (int i = 0; i < 4; i++)
        give(live[i], s);
    sound(what);
    model_policy.keep_is_set = false;
}

int main(void)
{
    plan(0);
    test_trim();
    test_destroyed();
    test_seen_by_others();
    test_capture();
    test_context_dies();
    test_program_pool();
    test_rested(256 * MIB, false, 32 * MIB + 64 * MIB, "rested");
    test_rested(256 * MIB, true, 32 * MIB + 64 * MIB + 256 * MIB, "rested, with MEMSHIM_KEEP");
    return done();
}
