/* programs_fences_hip.c - fences of a vendor that has no event over a context, where any event and any wait
 * harms captures that are open (gpu.h: `streams_tell`, `captures_are_frail`, `free_is_sync`): over the driver
 * of tests/pool/streams.h.
 *
 * Work that was issued never ends by itself: only a wait for the device does that. So nobody may have what
 * was freed behind it before somebody has waited so. */
#include <stddef.h>
#include <stdlib.h>

#include "base/thread/bias.h"
#include "engine.h"
#include "locks.h"
#include "pool/api/internal.h"
#include "pool/stream/stream_arena.h"
#include "programs.h"
#include "streams.h"

/* The largest of the classes: a span is one block, and the next request has what was freed, if it may. */
enum { BYTES = 1 << 16, LOOKS = 2 };
#define FIRST ((uint64_t)0x600000000000) /* where the streams' driver has nothing */
#define STEP  ((uint64_t)64 << 20)
#define MIB   ((uint64_t)1 << 20)

static struct ms_gpu *driver, plain; /* as it is, and with the model's own functions */
static uint64_t context, elsewhere, stream[3], next_address, block[2];
static bool has_no_more;
static unsigned captures, destroyed, syncs;

static void a_call(void)
{
    locks_at_vendor();
    engine_point(__builtin_return_address(0));
}

static MS_UNSYNCHRONIZED CUresult plain_alloc(CUdeviceptr *address_p, size_t bytes)
{
    (void)bytes;
    a_call();
    if (has_no_more)
        return CUDA_ERROR_OUT_OF_MEMORY;
    *address_p = next_address += STEP;
    return CUDA_SUCCESS;
}

static CUresult plain_free(CUdeviceptr page)
{
    (void)page;
    a_call();
    return CUDA_SUCCESS;
}

static MS_UNSYNCHRONIZED CUresult frail_record(CUevent event, CUstream in)
{
    destroyed += captures;
    return plain.event_record(event, in);
}

static MS_UNSYNCHRONIZED CUresult frail_query(CUevent event)
{
    destroyed += captures;
    return plain.event_query(event);
}

static MS_UNSYNCHRONIZED CUresult frail_stream_query(CUstream in)
{
    destroyed += captures;
    a_call();
    return in && !model_is_done((uintptr_t)in) ? CUDA_ERROR_NOT_READY : CUDA_SUCCESS;
}

/* It harms captures where it enters the driver. */
static MS_UNSYNCHRONIZED CUresult synchronize(void)
{
    a_call();
    destroyed += captures;
    syncs++;
    model_finish(MODEL_ALL);
    a_call();
    return CUDA_SUCCESS;
}

static uint64_t plain_block(void)
{
    struct ms_pool_block given;
    int status = 0;
    if (ms_pool_alloc(driver, context, 0, BYTES, MS_POOL_ANYHOW, &given, &status) != MS_POOL_SERVED)
        abort();
    return given.address;
}

static uint64_t ordered_block(uint64_t handle)
{
    struct ms_pool_block given;
    struct ms_stream *of = ms_stream_of(driver, handle);
    return of && ms_stream_alloc(of, MS_MEMPOOL_CURRENT, BYTES, MS_POOL_ANYHOW, &given) == MS_POOL_SERVED
               ? given.address
               : 0;
}

static void prepare_driver(void)
{
    CUcontext current = NULL;
    driver = model_fresh(64 * MIB);
    plain = *driver;
    driver->ctx_record_event = NULL;
    driver->mem_alloc = plain_alloc;
    driver->mem_free = plain_free;
    driver->event_record = frail_record;
    driver->event_query = frail_query;
    driver->stream_query = frail_stream_query;
    driver->ctx_synchronize = synchronize;
    driver->streams_tell = driver->captures_are_frail = driver->free_is_sync = true;
    next_address = FIRST;
    captures = destroyed = syncs = 0;
    has_no_more = false;
    driver->ctx_get_current(&current);
    context = (uintptr_t)current;
    elsewhere = context + 1;
    ms_heap_known(elsewhere);
    for (unsigned i = 0; i < 3; i++) {
        stream[i] = model_stream();
        ms_stream_of(driver, stream[i]);
    }
    block[0] = plain_block();
    ms_bias_start();
    model.on_call = a_call;
}

static void prepare_work(void)
{
    prepare_driver();
    model_issue(stream[0]);
}

static void prepare_unseen(void)
{
    prepare_driver();
    block[1] = plain_block();
    ms_pool_unreachable(context);
}

/* A block of the first stream's, in which the second one works. */
static void prepare_ordered(void)
{
    prepare_driver();
    model.on_call = NULL;
    block[0] = ordered_block(stream[0]);
    if (!block[0])
        abort();
    model_used(stream[1], block[0], BYTES);
    model.on_call = a_call;
}

static void free_block(uint64_t address)
{
    struct ms_pool_block dying;
    int status = 0;
    if (ms_pool_free_begin(address, MS_POOL_ANYHOW, &dying, &status) != MS_POOL_SERVED)
        engine_fail("a live block cannot be freed");
    else
        ms_pool_free_end(&dying);
}

/* As the hooks do it. */
static MS_UNSYNCHRONIZED void capture(uint64_t of, uint64_t handle, bool begins)
{
    ms_pool_capture_enter(of);
    if (begins)
        ms_pool_capture_begins();
    captures += begins ? 1 : -1u;
    a_call();
    ms_pool_capture_leave(of, handle, begins);
}

static MS_UNSYNCHRONIZED void close_and_take(uint64_t freed, uint64_t used_by)
{
    struct ms_pool_block other;
    int status;
    for (unsigned i = 0; i < LOOKS; i++)
        ms_pool_epoch_done(context, UINT64_MAX - 1, true);
    if (ms_pool_alloc(NULL, context, 0, BYTES, MS_POOL_AT_HAND, &other, &status) == MS_POOL_SERVED &&
        other.address == freed && !syncs && used_by)
        engine_fail("work is still at the memory at %#llx", (unsigned long long)freed);
}

/* --- a stream ends, and an epoch closes ----------------------------------------------------------------- */

static void end_worker(void *arg)
{
    (void)arg;
    model_destroy_stream(stream[0]);
}

static void free_and_take(void *arg)
{
    (void)arg;
    free_block(block[0]);
    close_and_take(block[0], stream[0]);
}

static void start_ends(void)
{
    engine_task(end_worker, NULL);
    engine_new_thread(free_and_take, NULL);
}

/* --- a capture begins, and an epoch closes -------------------------------------------------------------- */

/* On another device, so that the lock of this one's fence is no help. */
static void capture_once(void *arg)
{
    (void)arg;
    capture(elsewhere, stream[1], true);
    capture(elsewhere, stream[1], false);
}

static void start_capture(void)
{
    engine_task(capture_once, NULL);
    engine_new_thread(free_and_take, NULL);
}

/* --- a stream ends in whose hands a block of another's is, and that is freed for everybody ---------------
 */

static void end_other(void *arg)
{
    (void)arg;
    model_destroy_stream(stream[1]);
}

static void free_in_capture(void *arg)
{
    (void)arg;
    capture(context, stream[2], true);
    free_block(block[0]);
    capture(context, stream[2], false);
    for (unsigned i = 0; i < LOOKS; i++) {
        uint64_t address;
        ms_cross_free_collect();
        address = ordered_block(stream[0]);
        if (address)
            model_given(stream[0], address, BYTES);
    }
}

static void start_left(void)
{
    engine_task(end_other, NULL);
    engine_new_thread(free_in_capture, NULL);
}

/* --- a free waits for the device ------------------------------------------------------------------------ */

static void free_one(void *arg)
{
    (void)arg;
    free_block(block[0]);
}

static void start_wait(void)
{
    engine_task(capture_once, NULL);
    engine_new_thread(free_one, NULL);
}

/* Whoever uses a block and frees it, while another's wait is under way. */
static void use_and_free(void *arg)
{
    (void)arg;
    model_issue(stream[0]);
    free_block(block[1]);
}

static MS_UNSYNCHRONIZED void free_and_look(void *arg)
{
    struct ms_pool_block other;
    int status;
    (void)arg;
    free_block(block[0]);
    has_no_more = true;
    while (ms_pool_alloc(driver, context, 0, BYTES, MS_POOL_ANYHOW, &other, &status) == MS_POOL_SERVED) {
        if (other.address == block[1] && !model_is_done(stream[0]))
            engine_fail("work is still at the memory at %#llx", (unsigned long long)block[1]);
    }
}

static void start_waits(void)
{
    engine_task(use_and_free, NULL);
    engine_new_thread(free_and_look, NULL);
}

static void check(void)
{
    const char *wrong = ms_pool_check();
    if (wrong)
        engine_fail("%s", wrong);
    if (destroyed)
        engine_fail("a capture was destroyed");
    if (model.hazards)
        engine_fail("memory was given too early");
    if (model.wrong_context + model.stale_handles)
        engine_fail("a call was wrong");
}

const struct program fences_hip_programs[] = {
    {"small-hip-stream-ends", "a stream ends while an event is recorded in each", prepare_work, start_ends,
     check, RIGHT},
    {"small-hip-capture", "a capture begins while events are recorded and asked", prepare_work, start_capture,
     check, RIGHT},
    {"small-hip-left", "a stream ends that works in what is freed beside a capture, for whoever comes",
     prepare_ordered, start_left, check, RIGHT},
    {"small-hip-waits", "a capture begins while a free waits for the device", prepare_unseen, start_wait,
     check, RIGHT},
    {"small-hip-waited", "a block is used and freed while another's free waits for the device",
     prepare_unseen, start_waits, check, RIGHT},
    {NULL, NULL, NULL, NULL, NULL, RIGHT},
};
