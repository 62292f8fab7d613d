/* programs_streams.c - memory in the order of streams, over the driver of tests/pool/streams.h: every call of
 * it is a point, and memory that is given away too early is a hazard. */
#include <stddef.h>

#include "base/thread/bias.h"
#include "calls.h"
#include "engine.h"
#include "locks.h"
#include "programs.h"
#include "streams_calls.h"

#define MIB ((uint64_t)1 << 20)

static const struct ms_gpu *gpu;
static uint64_t stream[3], pool, other, block[4];

static void a_call(void)
{
    locks_at_vendor();
    engine_point(__builtin_return_address(0));
}

/* From here on the driver's calls are points, and locks have owners. */
static void prepared(void)
{
    ms_bias_start();
    model.on_call = a_call;
}

static uint64_t take(uint64_t from, uint64_t bytes, uint64_t to)
{
    return model_take(gpu, from, bytes, to);
}

static void give(uint64_t address, uint64_t on)
{
    if (address)
        model_give(gpu, address, on);
}

static void check(void)
{
    const char *wrong = ms_pool_check();
    if (wrong)
        engine_fail("%s", wrong);
    if (model.hazards)
        engine_fail("%llu times memory was given away too early", (unsigned long long)model.hazards);
    if (model.destroyed_captures + model.wrong_context + model.unknown_frees + model.stale_handles)
        engine_fail("a capture was destroyed, or a call was wrong");
}

/* --- a pool that is gone, whose last block is freed while another stream asks another pool ----------------
 */

static void prepare_gone(void)
{
    gpu = model_fresh(512 * MIB);
    for (unsigned i = 0; i < 2; i++)
        stream[i] = model_stream();
    pool = model_pool();
    other = model_pool();
    block[0] = take(pool, MIB, stream[0]);
    model_issue(stream[0]);
    model_used(stream[0], block[0], MIB);
    model_destroy_pool(pool);
    prepared();
}

static void free_the_last(void *arg)
{
    (void)arg;
    give(block[0], stream[0]);
}

static void ask_the_other(void *arg)
{
    (void)arg;
    give(take(other, MIB, stream[1]), stream[1]);
    take(other, 2 * MIB, stream[1]);
}

static void start_gone(void)
{
    engine_task(free_the_last, NULL);
    engine_task(ask_the_other, NULL);
}

/* --- blocks that are freed on another stream than theirs, and come home ------------------------------------
 */

static void prepare_cross(void)
{
    gpu = model_fresh(64 * MIB);
    for (unsigned i = 0; i < 3; i++)
        stream[i] = model_stream();
    for (unsigned i = 0; i < 4; i++)
        block[i] = take(MS_MEMPOOL_CURRENT, 4096 << i, stream[i % 2]);
    model_issue(stream[0]);
    model_issue(stream[1]);
    prepared();
}

static void free_elsewhere(void *arg)
{
    size_t which = (size_t)arg;
    give(block[which], stream[2]);
    give(take(MS_MEMPOOL_CURRENT, 4096, stream[2]), stream[2]);
    give(block[which + 2], stream[2]);
}

static void finish_work(void *arg)
{
    (void)arg;
    for (unsigned i = 0; i < 3; i++) {
        engine_point(__builtin_return_address(0));
        model_finish(stream[i]);
        take(MS_MEMPOOL_CURRENT, 4096, stream[i]);
    }
}

static void start_cross(void)
{
    engine_task(free_elsewhere, (void *)0);
    engine_task(free_elsewhere, (void *)1);
    engine_task(finish_work, NULL);
}

/* --- a stream ends while others free on it and take from it ------------------------------------------------
 */

static void prepare_ending(void)
{
    prepare_cross();
}

static void end_stream(void *arg)
{
    (void)arg;
    model_finish(stream[0]);
    model_destroy_stream(stream[0]);
}

static void start_ending(void)
{
    engine_task(free_elsewhere, (void *)0);
    engine_task(end_stream, NULL);
    engine_task(free_elsewhere, (void *)1);
}

/* --- a block that one stream has freed for another is wanted by itself, while the pool is stopped ---------
 */

static void prepare_home(void)
{
    gpu = model_fresh(64 * MIB);
    for (unsigned i = 0; i < 3; i++)
        stream[i] = model_stream();
    block[0] = take(MS_MEMPOOL_CURRENT, MIB, stream[0]);
    model_issue(stream[2]);
    prepared();
}

static void take_what_was_freed(void *arg)
{
    (void)arg;
    give(block[0], stream[2]);
    take(MS_MEMPOOL_CURRENT, MIB, stream[2]);
}

static void stop_once(void *arg)
{
    (void)arg;
    calls_stop();
}

static void start_home(void)
{
    engine_task(take_what_was_freed, NULL);
    engine_task(stop_once, NULL);
}

/* --- streams ask for their first memory while it is looked for what may go back ----------------------------
 */

static void prepare_first(void)
{
    gpu = model_fresh(64 * MIB);
    for (unsigned i = 0; i < 2; i++)
        stream[i] = model_stream();
    prepared();
}

static void ask_first(void *arg)
{
    size_t me = (size_t)arg;
    give(take(MS_MEMPOOL_CURRENT, MIB, stream[me]), stream[me]);
}

static void trim_twice(void *arg)
{
    (void)arg;
    for (unsigned i = 0; i < 2; i++) {
        ms_stream_trim(0);
        ms_stream_reclaimable(0);
    }
}

static void start_first(void)
{
    engine_task(ask_first, (void *)0);
    engine_task(ask_first, (void *)1);
    engine_task(trim_twice, NULL);
}

/* --- memory runs out for two at once -----------------------------------------------------------------------
 */

static void prepare_scarce(void)
{
    gpu = model_fresh(8 * MIB);
    for (unsigned i = 0; i < 2; i++)
        stream[i] = model_stream();
    block[0] = take(MS_MEMPOOL_CURRENT, 3 * MIB, stream[0]);
    block[1] = take(MS_MEMPOOL_CURRENT, 3 * MIB, stream[1]);
    prepared();
}

static void need_much(void *arg)
{
    size_t me = (size_t)arg;
    give(block[me], stream[me]);
    give(take(MS_MEMPOOL_CURRENT, 5 * MIB, stream[me]), stream[me]);
}

static void start_scarce(void)
{
    engine_task(need_much, (void *)0);
    engine_task(need_much, (void *)1);
}

/* --- memory that one stream has vacant becomes another's, which gives it back -----------------------------
 */

static void prepare_moves(void)
{
    gpu = model_fresh(512 * MIB);
    for (unsigned i = 0; i < 2; i++)
        stream[i] = model_stream();
    give(take(MS_MEMPOOL_CURRENT, 3 * MIB, stream[0]), stream[0]);
    take(MS_MEMPOOL_CURRENT, 4096, stream[1]);
    model_finish(stream[0]);
    prepared();
}

static void ask_for_much(void *arg)
{
    (void)arg;
    take(MS_MEMPOOL_CURRENT, 3 * MIB, stream[1]);
}

static void ask_and_trim(void *arg)
{
    (void)arg;
    give(take(MS_MEMPOOL_CURRENT, 2 * MIB, stream[1]), stream[1]);
    model_finish(stream[1]);
    ms_stream_trim(0);
    take(MS_MEMPOOL_CURRENT, 5 * MIB, stream[0]);
}

static void start_moves(void)
{
    engine_task(ask_for_much, NULL);
    engine_task(ask_and_trim, NULL);
}

const struct program streams_programs[] = {
    {"pool-gone", "the last block of a pool that is gone is freed, another stream asks another pool",
     prepare_gone, start_gone, check, false},
    {"freed-across", "blocks are freed on another stream than theirs while work ends", prepare_cross,
     start_cross, check, false},
    {"stream-ends", "a stream ends while its blocks are freed on another", prepare_ending, start_ending,
     check, false},
    {"taken-home", "a stream takes what it has freed for another, while the pool is stopped", prepare_home,
     start_home, check, false},
    {"streams-first", "two streams ask for their first memory, while a third task trims", prepare_first,
     start_first, check, false},
    {"moves", "vacant memory of one stream becomes another's", prepare_moves, start_moves, check, false},
    {"scarce", "two need more than there is at once", prepare_scarce, start_scarce, check, false},
    {NULL, NULL, NULL, NULL, NULL, false},
};
