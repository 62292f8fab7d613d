/* programs_small_streams.c - one step of the streams' protocols each, of two tasks: small enough for all
 * schedules with up to three preemptions (rule `every`). Over the driver of tests/pool/streams.h, of which
 * every call is a point. */
#include <stddef.h>

#include "base/thread/bias.h"
#include "engine.h"
#include "locks.h"
#include "pool/stream/stream_arena.h"
#include "pool/stream/driver_frees.h"
#include "programs.h"
#include "streams_calls.h"

enum { BYTES = 4096, FIRST_POOL = 1 };
#define MIB ((uint64_t)1 << 20)

static const struct ms_gpu *gpu;
static uint64_t stream[3], pool, block[3];
static struct ms_stream *met[2];

static void a_call(void)
{
    locks_at_vendor();
    engine_point(__builtin_return_address(0));
}

static void prepared(void)
{
    ms_bias_start();
    model.on_call = a_call;
}

static uint64_t take(uint64_t bytes, uint64_t to)
{
    return model_take(gpu, MS_MEMPOOL_CURRENT, bytes, to);
}

static void give(uint64_t address, uint64_t on)
{
    if (address && model_give(gpu, address, on) != 0)
        engine_fail("a live block cannot be freed");
}

static void check(void)
{
    const char *wrong = ms_pool_check();
    if (wrong)
        engine_fail("%s", wrong);
    if (model.hazards)
        engine_fail("%llu times memory was given away too early", (unsigned long long)model.hazards);
    if (model.destroyed_captures + model.wrong_context + model.unknown_frees + model.stale_handles +
        model.early_waits)
        engine_fail("a capture was destroyed, a call was wrong, or a wait was long");
}

/* Two streams with a block each, of which the first has work. */
static void set_up(void)
{
    gpu = model_fresh(64 * MIB);
    for (unsigned i = 0; i < 2; i++) {
        stream[i] = model_stream();
        block[i] = take(BYTES, stream[i]);
    }
    model_issue(stream[0]);
    model_issue(stream[1]);
}

static void prepare(void)
{
    set_up();
    prepared();
}

/* --- blocks that another stream frees
 * --------------------------------------------------------------------- */

static void free_elsewhere(void *arg)
{
    size_t which = (size_t)arg;
    give(block[which], stream[!which]);
}

static void take_at_home(void *arg)
{
    (void)arg;
    take(BYTES, stream[0]);
}

static void start_across(void)
{
    engine_task(free_elsewhere, (void *)0);
    engine_task(take_at_home, NULL);
}

static void start_both_across(void)
{
    engine_task(free_elsewhere, (void *)0);
    engine_task(free_elsewhere, (void *)1);
}

/* What was freed is on its way home, and its work is over. */
static void prepare_home(void)
{
    set_up();
    block[2] = take(BYTES, stream[0]);
    give(block[0], stream[1]);
    model_finish(stream[1]);
    prepared();
}

static void free_another(void *arg)
{
    (void)arg;
    give(block[2], stream[1]);
}

static void start_home(void)
{
    engine_task(take_at_home, NULL);
    engine_task(free_another, NULL);
}

/* --- what another stream has free
 * ------------------------------------------------------------------------- */

/* The first has two blocks of which one is free; the other has a little of its own. */
static void prepare_borrowing(void)
{
    gpu = model_fresh(64 * MIB);
    for (unsigned i = 0; i < 2; i++)
        stream[i] = model_stream();
    block[0] = take(8 * MIB, stream[0]);
    block[2] = take(3 * MIB, stream[0]);
    block[1] = take(BYTES, stream[1]);
    give(block[0], stream[0]);
    model_finish(stream[0]);
    model_finish(stream[1]);
    prepared();
}

/* There is free what lies beside a live block, and so is lent and not moved. */
static void prepare_lending(void)
{
    gpu = model_fresh(64 * MIB);
    for (unsigned i = 0; i < 2; i++)
        stream[i] = model_stream();
    give(take(8 * MIB, stream[0]), stream[0]);
    block[2] = take(3 * MIB, stream[0]);
    block[1] = take(BYTES, stream[1]);
    model_finish(stream[0]);
    model_finish(stream[1]);
    prepared();
}

static void use_much_and_free(void *arg)
{
    (void)arg;
    give(take(2 * MIB, stream[0]), stream[0]);
}

static void borrow_much(void *arg)
{
    (void)arg;
    take(2 * MIB, stream[1]);
}

static void start_lending(void)
{
    engine_task(use_much_and_free, NULL);
    engine_task(borrow_much, NULL);
}

/* What was used is under way when it is freed. */
static void use_and_free(void *arg)
{
    (void)arg;
    give(take(MIB, stream[0]), stream[0]);
    take(32 * MIB, stream[0]); /* all caches are emptied for it */
}

static void take_elsewhere(void *arg)
{
    (void)arg;
    take(MIB, stream[1]);
}

static void start_borrowing(void)
{
    engine_task(use_and_free, NULL);
    engine_task(take_elsewhere, NULL);
}

/* --- streams begin, are met, and end
 * ---------------------------------------------------------------------- */

static void end_first(void *arg)
{
    (void)arg;
    model_finish(stream[0]);
    model_destroy_stream(stream[0]);
}

static void start_ending(void)
{
    engine_task(end_first, NULL);
    engine_task(free_elsewhere, (void *)0);
}

static void prepare_meeting(void)
{
    gpu = model_fresh(64 * MIB);
    for (unsigned i = 0; i < 2; i++)
        stream[i] = model_stream();
    prepared();
}

static void meet_stream(unsigned me, uint64_t handle)
{
    met[me] = ms_stream_of(gpu, handle);
    if (met[me] && (ms_stream_device(met[me]) != 0 || !ms_stream_context(met[me])))
        engine_fail("a stream is of no context");
}

static void meet(void *arg)
{
    meet_stream((unsigned)(size_t)arg, stream[0]);
}

static void meet_legacy(void *arg)
{
    meet_stream((unsigned)(size_t)arg, 0);
}

static void start_meeting_legacy(void)
{
    engine_task(meet_legacy, (void *)0);
    engine_task(meet_legacy, (void *)1);
}

static void start_meeting(void)
{
    engine_task(meet, (void *)0);
    engine_task(meet, (void *)1);
}

static void check_met(void)
{
    if (!met[0] || met[0] != met[1])
        engine_fail("a stream has two records");
    check();
}

/* Its handle and its record may be the next stream's. */
static void begin_and_meet(void *arg)
{
    (void)arg;
    stream[2] = model_stream();
    met[0] = ms_stream_of(gpu, stream[2]);
}

static void start_beginning(void)
{
    engine_task(end_first, NULL);
    engine_task(begin_and_meet, NULL);
}

static void check_begun(void)
{
    if (!met[0] || ms_stream_of(gpu, stream[2]) != met[0])
        engine_fail("a stream that has begun is not known, or has two records");
    check();
}

/* --- the end of a pool
 * ------------------------------------------------------------------------------------ */

static void prepare_gone(void)
{
    gpu = model_fresh(64 * MIB);
    for (unsigned i = 0; i < 2; i++)
        stream[i] = model_stream();
    pool = model_pool();
    block[0] = model_take(gpu, pool, BYTES, stream[0]);
    model_issue(stream[0]);
    model_used(stream[0], block[0], BYTES);
    model_destroy_pool(pool);
    prepared();
}

static void free_the_last(void *arg)
{
    (void)arg;
    give(block[0], stream[0]);
}

static void trim(void *arg)
{
    (void)arg;
    ms_stream_trim(0);
}

static void start_gone(void)
{
    engine_task(free_the_last, NULL);
    engine_task(trim, NULL);
}

/* The last two blocks of a pool that ends meanwhile, or has. */
static void prepare_leaving(void)
{
    gpu = model_fresh(64 * MIB);
    for (unsigned i = 0; i < 2; i++)
        stream[i] = model_stream();
    pool = model_pool();
    for (unsigned i = 0; i < 2; i++)
        block[i] = model_take(gpu, pool, BYTES, stream[i]);
    model_issue(stream[0]);
    prepared();
}

static void free_one(void *arg)
{
    size_t which = (size_t)arg;
    give(block[which], stream[which]);
}

static void destroy(void *arg)
{
    (void)arg;
    model_destroy_pool(pool);
}

static void start_leaving(void)
{
    engine_task(free_one, (void *)0);
    engine_task(destroy, NULL);
}

static void prepare_left(void)
{
    prepare_leaving();
    model_destroy_pool(pool);
}

/* Both are of one stream. */
static void prepare_one_left(void)
{
    gpu = model_fresh(64 * MIB);
    stream[0] = stream[1] = model_stream();
    pool = model_pool();
    for (unsigned i = 0; i < 2; i++)
        block[i] = model_take(gpu, pool, BYTES, stream[0]);
    model_finish(stream[0]);
    model_destroy_pool(pool);
    prepared();
}

static void start_left(void)
{
    engine_task(free_one, (void *)0);
    engine_task(free_one, (void *)1);
}

/* --- memory is short while it goes back
 * ------------------------------------------------------------------- */

enum { SHORT_MIB = 8, HELD_MIB = 5 };

/* One stream has most of the device free, of which another wants as much. */
static void prepare_short(void)
{
    gpu = model_fresh(SHORT_MIB * MIB);
    for (unsigned i = 0; i < 2; i++)
        stream[i] = model_stream();
    give(take(HELD_MIB * MIB, stream[0]), stream[0]);
    model_finish(stream[0]);
    prepared();
}

static void need_it(void *arg)
{
    (void)arg;
    block[1] = take(HELD_MIB * MIB, stream[1]);
}

static void start_short(void)
{
    engine_task(trim, NULL);
    engine_task(need_it, NULL);
}

static void check_served(void)
{
    check();
    if (!block[1])
        engine_fail("a request is refused, for which there is memory");
}

/* --- memory is short, and what another stream freed is in use yet
 * ------------------------------------------ */

enum { WANTED_MIB = 7, SCARCE_MIB = WANTED_MIB + 5 };

/* A stream has freed most of the device behind its work, and the pool knows that memory is short. The others
 * have a little each. */
static void prepare_behind_users(void)
{
    gpu = model_fresh(SCARCE_MIB * MIB);
    for (unsigned i = 0; i < 3; i++) {
        stream[i] = model_stream();
        block[i] = i ? take(BYTES, stream[i]) : 0;
    }
    if (take(2 * SCARCE_MIB * MIB, stream[1]))
        engine_fail("there is more memory than there should be");
    uint64_t used = take(WANTED_MIB * MIB, stream[0]);
    model_issue(stream[0]);
    model_used(stream[0], used, WANTED_MIB * MIB);
    give(used, stream[0]);
    prepared();
}

static void take_behind(void *arg)
{
    size_t which = (size_t)arg;
    block[which] = take(WANTED_MIB * MIB, stream[which]);
}

static void start_behind_users(void)
{
    engine_task(take_behind, (void *)1);
    engine_task(take_behind, (void *)2);
}

static void check_behind_users(void)
{
    check();
    if (!block[1] == !block[2])
        engine_fail("%s has what another stream freed", block[1] ? "more than one" : "nobody");
}

/* --- what goes back to the driver
 * ------------------------------------------------------------------------- */

static void prepare_returns(void)
{
    gpu = model_fresh(64 * MIB);
    model.unit = 2 * MIB;
    for (unsigned i = 0; i < 2; i++)
        stream[i] = model_stream();
    for (unsigned i = 0; i < 2; i++)
        give(take(3 * MIB, stream[i]), stream[i]);
    model_finish(stream[0]);
    model_finish(stream[1]);
    prepared();
}

static void settle(void *arg)
{
    (void)arg;
    ms_driver_frees_settle(0);
}

static void start_returns(void)
{
    engine_task(trim, NULL);
    engine_task(settle, NULL);
}

static void start_both(void)
{
    engine_task(trim, NULL);
    engine_task(trim, NULL);
}

/* Everything is over: so it is the device's. */
static void check_returned(void)
{
    check();
    model_finish(stream[0]);
    model_finish(stream[1]);
    ms_driver_frees_settle(0);
    if (ms_driver_frees_pending(0))
        engine_fail("%llu bytes are on their way for ever", (unsigned long long)ms_driver_frees_pending(0));
    if (!gpu->mem_pool_trim_to((CUmemoryPool)FIRST_POOL, 0) && model_reserved(FIRST_POOL) > model.used)
        engine_fail("%llu bytes were freed, and the host has not waited for them",
                    (unsigned long long)(model_reserved(FIRST_POOL) - model.used));
}

const struct program small_streams_programs[] = {
    {"small-freed-across", "a block is freed on another stream while its own takes one", prepare,
     start_across, check, RIGHT},
    {"small-freed-both-ways", "two streams free each other's blocks", prepare, start_both_across, check,
     RIGHT},
    {"small-comes-home", "a stream takes what comes home while another of its blocks is freed elsewhere",
     prepare_home, start_home, check, RIGHT},
    {"small-borrowed", "a stream takes what another has free, and uses and frees meanwhile",
     prepare_borrowing, start_borrowing, check, RIGHT},
    {"small-lent", "a stream borrows what another has free beside a live block, and uses and frees meanwhile",
     prepare_lending, start_lending, check, RIGHT},
    {"small-stream-ends", "a stream ends while its block is freed on another", prepare, start_ending, check,
     RIGHT},
    {"small-stream-met", "two meet a stream", prepare_meeting, start_meeting, check_met, RIGHT},
    {"small-legacy-met", "two meet the legacy stream", prepare_meeting, start_meeting_legacy, check_met,
     RIGHT},
    {"small-stream-begins", "a stream begins while another ends", prepare_meeting, start_beginning,
     check_begun, RIGHT},
    {"small-pool-gone", "the last block of a pool that is gone is freed while what is idle goes back",
     prepare_gone, start_gone, check, RIGHT},
    {"small-pool-ends", "a pool is destroyed while one of its blocks is freed", prepare_leaving,
     start_leaving, check, RIGHT},
    {"pool-left", "the last two blocks of a pool that is gone are freed", prepare_left, start_left, check,
     RIGHT},
    {"small-pool-left", "the last two blocks of a pool that is gone are freed on one stream",
     prepare_one_left, start_left, check, RIGHT},
    {"small-flow-goes-back", "a stream's memory is short while what another has free goes back",
     prepare_short, start_short, check_served, RIGHT},
    {"small-behind-users", "two streams want what a third has freed behind its work", prepare_behind_users,
     start_behind_users, check_behind_users, RIGHT},
    {"small-returns", "memory goes back while it is looked what has gone back", prepare_returns,
     start_returns, check_returned, RIGHT},
    {"small-returns-twice", "two give back what is idle", prepare_returns, start_both, check_returned, RIGHT},
    {NULL, NULL, NULL, NULL, NULL, RIGHT},
};
