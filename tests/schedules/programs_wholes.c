/* programs_wholes.c - memory by handle that is recycled whole: hooks/serve/serve_handles.c itself, over the
 * driver of tests/pool/fake.h, whose allocations stand for handles. */
#include <stdatomic.h>
#include <stdlib.h>

#include "base/thread/bias.h"
#include "calls.h"
#include "engine.h"
#include "fake.h"
#include "hooks/serve/serve.h"
#include "hooks/serve/serve_handles.h"
#include "programs.h"

enum { DEVICE_MIB = 24, IDLE_MIB = 20, WANTED_MIB = 12 };
#define MIB ((uint64_t)1 << 20)

static struct ms_gpu_vendor vendor;
static struct ms_gpu gpu;
static struct fake_context *context;

/* --- of other hooks, for calls that no program makes
 * ------------------------------------------------------ */

_Atomic bool ms_serve_on;
_Atomic uint32_t ms_serve_due;

void ms_serve_see_to_due(void)
{
    abort();
}

bool ms_handle_recycle(struct ms_call *call, struct ms_recycled_key *key_p)
{
    (void)call, (void)key_p;
    abort();
}

#define OF_A_CALL(name, ...)                                                                                 \
    void name(__VA_ARGS__)                                                                                   \
    {                                                                                                        \
        abort();                                                                                             \
    }
OF_A_CALL(ms_handle_created, struct ms_call *call __attribute__((unused)))
OF_A_CALL(ms_handle_pin, struct ms_call *call __attribute__((unused)))
OF_A_CALL(ms_handle_release_begin, struct ms_call *call __attribute__((unused)))
OF_A_CALL(ms_handle_release_end, struct ms_call *call __attribute__((unused)),
          int status __attribute__((unused)))
OF_A_CALL(ms_handle_release_refused, const struct ms_call *call __attribute__((unused)))
OF_A_CALL(ms_handle_map_begin, struct ms_call *call __attribute__((unused)))
OF_A_CALL(ms_handle_map_end, struct ms_call *call __attribute__((unused)), int status __attribute__((unused)))

/* --- memory is wanted while what waits goes back
 * ---------------------------------------------------------- */

static int free_handle(const struct ms_gpu *of, uint64_t handle)
{
    return (int)of->mem_free(handle);
}

static void put_one(void)
{
    CUdeviceptr handle = 0;
    struct ms_recycled whole = {.key = {.gpu = &gpu, .what = 1, .bytes = IDLE_MIB * MIB}};
    gpu.mem_alloc(&handle, whole.key.bytes);
    whole.thing = handle;
    whole.place = ms_recycled_place(whole.key.bytes);
    if (!handle || !ms_recycled_put(&whole))
        abort();
}

static void prepare(void)
{
    gpu = *fake_fresh(DEVICE_MIB * MIB);
    vendor = *gpu.vendor;
    vendor.handle_free = free_handle;
    gpu.vendor = &vendor;
    context = fake_context(0);
    fake_set_current(context);
    put_one();
    ms_bias_start();
}

static void give_back(void *arg)
{
    (void)arg;
    fake_set_current(context);
    ms_recycled_give_back(0);
}

/* As ms_serve_make_room has it. */
static void ask(void *arg)
{
    struct ms_room room = {0};
    CUdeviceptr got;
    (void)arg;
    fake_set_current(context);
    while (gpu.mem_alloc(&got, WANTED_MIB * MIB) != CUDA_SUCCESS) {
        bool made = ms_recycled_give_back(0) > 0;
        if (!ms_room_make(0, !made, &room) && !made)
            engine_fail("memory is refused, for which there is room");
    }
}

static void start(void)
{
    engine_task(give_back, NULL);
    engine_task(ask, NULL);
}

static void check(void)
{
    calls_check();
    if (ms_recycled_bytes(0) || !ms_recycled_check())
        engine_fail("what has gone back waits still");
}

const struct program wholes_programs[] = {
    {"small-whole-goes-back", "memory is wanted while handles that wait go back", prepare, start, check,
     RIGHT},
    {NULL, NULL, NULL, NULL, NULL, RIGHT},
};
