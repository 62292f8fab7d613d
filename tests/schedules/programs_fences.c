/* programs_fences.c - fences that are an event in each stream (pool/fence/fence_streams.c), while streams
 * begin and end: over the driver of tests/pool/streams.h, with memory of a context beside it.
 *
 * The work that was issued before the block was freed never ends, so nobody may have the block again. */
#include <stddef.h>
#include <stdlib.h>

#include "base/thread/bias.h"
#include "engine.h"
#include "locks.h"
#include "pool/stream/stream_arena.h"
#include "programs.h"
#include "streams.h"

/* The largest of the classes: a span is one block, and the next request has what was freed, if it may. */
enum { BYTES = 1 << 16, LOOKS = 2 };
#define FIRST ((uint64_t)0x600000000000) /* where the streams' driver has nothing */
#define STEP  ((uint64_t)64 << 20)
#define MIB   ((uint64_t)1 << 20)

static struct ms_gpu driver;
static uint64_t context, stream[2], next_address, address;

static void a_call(void)
{
    locks_at_vendor();
    engine_point(__builtin_return_address(0));
}

static CUresult plain_alloc(CUdeviceptr *address_p, size_t bytes)
{
    (void)bytes;
    a_call();
    *address_p = next_address += STEP;
    return CUDA_SUCCESS;
}

static CUresult plain_free(CUdeviceptr page)
{
    (void)page;
    a_call();
    return CUDA_SUCCESS;
}

static void take_block(void)
{
    struct ms_pool_block block;
    int status = 0;
    if (ms_pool_alloc(&driver, context, 0, BYTES, MS_POOL_ANYHOW, &block, &status) != MS_POOL_SERVED)
        abort();
    address = block.address;
}

static void prepare_fences(bool unseen)
{
    driver = *model_fresh(64 * MIB);
    driver.mem_alloc = plain_alloc;
    driver.mem_free = plain_free;
    next_address = FIRST;
    CUcontext current = NULL;
    driver.ctx_get_current(&current);
    context = (uintptr_t)current;
    stream[0] = model_stream();
    take_block();
    ms_stream_of(&driver, stream[0]);
    atomic_store(&ms_captures_unseen, unseen);
    ms_bias_start();
    model.on_call = a_call;
}

static void prepare_by_streams(void)
{
    prepare_fences(true);
    model_issue(stream[0]);
}

static void prepare_over_context(void)
{
    prepare_fences(false);
    model_issue(stream[0]);
}

static void prepare_idle(void)
{
    prepare_fences(true);
}

static void free_block(void)
{
    struct ms_pool_block block;
    int status = 0;
    if (ms_pool_free_begin(address, MS_POOL_ANYHOW, &block, &status) != MS_POOL_SERVED)
        engine_fail("a live block cannot be freed");
    else
        ms_pool_free_end(&block);
}

static void close_and_take(void *arg)
{
    struct ms_pool_block other;
    int status;
    (void)arg;
    for (unsigned i = 0; i < LOOKS; i++)
        ms_pool_epoch_done(context, UINT64_MAX - 1, true);
    if (ms_pool_alloc(NULL, context, 0, BYTES, MS_POOL_AT_HAND, &other, &status) == MS_POOL_SERVED &&
        other.address == address)
        engine_fail("work is still at the memory at %#llx", (unsigned long long)address);
}

static void free_and_take(void *arg)
{
    free_block();
    close_and_take(arg);
}

static void end_stream(void *arg)
{
    (void)arg;
    model_destroy_stream(stream[0]);
}

/* A function is called that may begin captures of which nobody tells. */
static void end_and_turn(void *arg)
{
    end_stream(arg);
    atomic_store(&ms_captures_unseen, 1);
}

static void use_and_free(void *arg)
{
    (void)arg;
    stream[1] = model_stream();
    model_issue(stream[1]);
    free_block();
}

static void start_end(void)
{
    engine_task(end_stream, NULL);
    engine_task(free_and_take, NULL);
}

static void start_turn(void)
{
    engine_task(end_and_turn, NULL);
    engine_task(free_and_take, NULL);
}

static void start_begin(void)
{
    engine_task(use_and_free, NULL);
    engine_task(close_and_take, NULL);
}

static void check(void)
{
    const char *wrong = ms_pool_check();
    if (wrong)
        engine_fail("%s", wrong);
    if (model.destroyed_captures + model.wrong_context + model.stale_handles)
        engine_fail("a capture was destroyed, or a call was wrong");
}

const struct program fences_programs[] = {
    {"small-fence-stream-ends", "a stream ends while an event is recorded in each", prepare_by_streams,
     start_end, check, RIGHT},
    {"small-fence-turns", "a stream ends, and events over the context are no more, while one is recorded",
     prepare_over_context, start_turn, check, RIGHT},
    {"small-fence-stream-begins", "a stream begins while an event is recorded in each", prepare_idle,
     start_begin, check, RIGHT},
    {NULL, NULL, NULL, NULL, NULL, RIGHT},
};
