/* programs_parts.c - parts of the pool by themselves, where a whole program would rarely come to the one step
 * that matters. */
#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>

#include "base/thread/bias.h"
#include "calls.h"
#include "engine.h"
#include "fake.h"
#include "pool/external/external.h"
#include "pool/api/internal.h"
#include "programs.h"

/* --- what was freed by the end of an epoch, while a later one takes its place
 * ----------------------------- */

enum { OPENED = 3, BYTES_EACH = 100 };
static struct ms_heap heap;

static void open_epochs(void *count)
{
    for (size_t i = 0; i < (size_t)count; i++) {
        uint64_t epoch = atomic_load(&heap.fence.time.now);
        atomic_store(&heap.pending_sums.freed_bytes, epoch * BYTES_EACH);
        ms_pending_next_epoch(&heap);
    }
}

static void prepare_ends(void)
{
    atomic_store(&heap.fence.time.now, 1);
    open_epochs((void *)MS_PENDING_ENDS);
}

static void ask_for_old(void *arg)
{
    (void)arg;
    for (uint64_t epoch = 1; epoch <= OPENED; epoch++) {
        uint64_t freed = ms_pending_freed_by(&heap, epoch);
        if (freed && freed != epoch * BYTES_EACH)
            engine_fail("by the end of epoch %llu %llu bytes are said to be freed", (unsigned long long)epoch,
                        (unsigned long long)freed);
    }
}

static void start_ends(void)
{
    engine_task(open_epochs, (void *)OPENED);
    engine_task(ask_for_old, NULL);
    engine_task(ask_for_old, NULL);
}

/* --- work of the host's: a function in a stream, which writes what the block's next owner writes
 * ----------- */

static struct ms_gpu gpu;
static CUresult (*driver_query)(CUevent);
static struct fake_context *context;
static uint64_t address;
static _Atomic uint32_t over;
static int memory; /* what the program sees at `address` */

/* Who hears of the driver that it is over sees what was done. */
static CUresult query(CUevent event)
{
    CUresult status = driver_query(event);
    if (status == CUDA_SUCCESS)
        atomic_fetch_add_explicit(&over, 0, memory_order_acquire);
    return status;
}

static void give(uint64_t freed)
{
    struct ms_pool_block block;
    int status = 0;
    ms_pool_free_begin(freed, MS_POOL_ANYHOW, &block, &status);
    ms_pool_free_end(&block);
}

/* The largest of the classes: a span is one block, and the next request has what was freed, if it may. */
enum { BYTES = MS_SLAB_MAX_BYTES };

static void prepare_function(void)
{
    struct ms_pool_block block;
    int status = 0;
    gpu = *fake_fresh(256 * MS_MIB);
    driver_query = gpu.event_query;
    gpu.event_query = query;
    context = fake_context(0);
    fake_set_current(context);
    ms_pool_alloc(&gpu, (uintptr_t)context, 0, BYTES, MS_POOL_ANYHOW, &block, &status);
    address = block.address;
    fake_issue(context);
    give(address);
    ms_bias_start();
}

static void work(void *arg)
{
    (void)arg;
    memory = 1;
    atomic_fetch_add_explicit(&over, 1, memory_order_release);
    fake_finish(context);
}

static void trim(void *arg)
{
    (void)arg;
    fake_set_current(context);
    for (unsigned i = 0; i < 2; i++)
        ms_pool_epoch_done((uintptr_t)context, 1, true);
}

/* --- an event is recorded as a block is freed behind new work
 * ---------------------------------------------- */

static uint64_t late, late_work;

static void prepare_covered(void)
{
    struct ms_pool_block block, other;
    int status = 0;
    const struct ms_gpu *driver = fake_fresh(256 * MS_MIB);
    context = fake_context(0);
    fake_set_current(context);
    ms_pool_alloc(driver, (uintptr_t)context, 0, BYTES, MS_POOL_ANYHOW, &other, &status);
    ms_pool_alloc(driver, (uintptr_t)context, 0, BYTES, MS_POOL_ANYHOW, &block, &status);
    late = block.address;
    fake_issue(context);
    give(other.address);
    ms_bias_start();
}

static void free_late(void *arg)
{
    (void)arg;
    fake_issue(context);
    late_work = context->issued;
    give(late);
}

/* The work that was issued first is done, and what was freed by then is taken. */
static bool is_at_hand(struct ms_pool_block *block_p)
{
    int status;
    return ms_pool_alloc(NULL, (uintptr_t)context, 0, BYTES, MS_POOL_AT_HAND, block_p, &status) ==
           MS_POOL_SERVED;
}

static void cover(void *arg)
{
    struct ms_pool_block block;
    (void)arg;
    fake_set_current(context);
    ms_pool_epoch_done((uintptr_t)context, 1, true);
    context->done = 1;
    ms_pool_epoch_done((uintptr_t)context, UINT64_MAX, false);
    while (is_at_hand(&block)) {
        if (block.address == late && context->done < late_work)
            engine_fail("work is still at the memory at %#llx", (unsigned long long)late);
        if (block.address == late)
            return;
    }
}

static void start_covered(void)
{
    engine_task(cover, NULL);
    engine_task(free_late, NULL);
}

/* --- the host function's block is taken by another than who heard of the event
 * ---------------------------- */

static void take(void *arg)
{
    struct ms_pool_block block;
    (void)arg;
    fake_set_current(context);
    for (unsigned i = 0; i < 4; i++) {
        engine_point(__builtin_return_address(0));
        if (is_at_hand(&block) && block.address == address) {
            if (memory != 1)
                engine_fail("what the work has written is not there");
            memory = 2;
            return;
        }
    }
}

static void start_function(void)
{
    engine_task(work, NULL);
    engine_task(trim, NULL);
    engine_task(take, NULL);
}

/* --- blocks that were pending, and are over
 * -------------------------------------------------------------- */

/* Blocks of two classes are in batches of the heap's, which are over. */
static void prepare_retired(void)
{
    struct ms_pool_block block, small;
    int status = 0;
    const struct ms_gpu *driver = fake_fresh(256 * MS_MIB);
    context = fake_context(0);
    fake_set_current(context);
    ms_pool_alloc(driver, (uintptr_t)context, 0, BYTES, MS_POOL_ANYHOW, &block, &status);
    ms_pool_alloc(driver, (uintptr_t)context, 0, 1, MS_POOL_ANYHOW, &small, &status);
    fake_issue(context);
    give(block.address);
    give(small.address);
    struct ms_heap *of = ms_heap_of((uintptr_t)context);
    ms_fence_close(of);
    ms_tcache_flush(&of->cache);
    fake_finish(context);
    ms_fence_poll(of);
    address = block.address;
    ms_bias_start();
}

static void take_it(void *arg)
{
    struct ms_pool_block block;
    (void)arg;
    fake_set_current(context);
    if (!is_at_hand(&block) || block.address != address)
        engine_fail("a request has not what is over");
}

static void stop(void *arg)
{
    (void)arg;
    calls_stop();
}

static void start_on_its_way(void)
{
    engine_task(take_it, NULL);
    engine_task(stop, NULL);
}

static void empty_batches(void *arg)
{
    (void)arg;
    ms_tcache_flush(&ms_heap_of((uintptr_t)context)->cache);
}

static void start_retired(void)
{
    engine_task(empty_batches, NULL);
    engine_task(empty_batches, NULL);
}

/* --- memory goes back, which is all that the context is busy with, while what is pending is asked for
 * ----- */

enum { LOOKS = 40 }; /* longer than a request looks at a fence */
static _Atomic uint32_t looks;
static uint64_t allocs_before;

static void look(void)
{
    if (engine_current() == 1)
        atomic_fetch_add(&looks, 1);
}

/* A free in a stream is work as well: it takes until the other has looked for long, or needs no memory. */
static void take_long(void)
{
    uint32_t seen;
    fake_issue(context);
    while ((seen = atomic_load(&looks)) < LOOKS)
        engine_wait((const uint32_t *)&looks, seen, UINT64_MAX / 4, __builtin_return_address(0));
    fake_finish(context);
}

static void prepare_returning(void)
{
    struct ms_pool_block block, idle;
    int status = 0;
    const struct ms_gpu *driver = fake_fresh(256 * MS_MIB);
    context = fake_context(0);
    fake_set_current(context);
    ms_pool_alloc(driver, (uintptr_t)context, 0, 20 * MS_MIB, MS_POOL_ANYHOW, &idle, &status);
    ms_pool_alloc(driver, (uintptr_t)context, 0, 3 * MS_MIB, MS_POOL_ANYHOW, &block, &status);
    give(idle.address);
    ms_pool_epoch_done((uintptr_t)context, UINT64_MAX - 1, true);
    ms_tcache_flush(&ms_heap_of((uintptr_t)context)->cache);
    give(block.address);
    fake_on_return = take_long;
    fake_on_query = look;
    allocs_before = fake.calls[FAKE_ALLOC];
    address = (uintptr_t)driver;
    ms_bias_start();
}

static void return_idle(void *arg)
{
    (void)arg;
    fake_set_current(context);
    ms_keep_give_back(ms_heap_of((uintptr_t)context), 20 * MS_MIB, true);
}

static void ask_for_pending(void *arg)
{
    struct ms_pool_block block;
    int status = 0;
    (void)arg;
    fake_set_current(context);
    if (ms_pool_alloc((const struct ms_gpu *)(uintptr_t)address, (uintptr_t)context, 0, 3 * MS_MIB,
                      MS_POOL_ANYHOW, &block, &status) != MS_POOL_SERVED)
        engine_fail("a request is refused, for which there is memory");
    atomic_store(&looks, LOOKS);
}

static void start_returning(void)
{
    engine_task(return_idle, NULL);
    engine_task(ask_for_pending, NULL);
}

static void check_returning(void)
{
    calls_check();
    if (fake.calls[FAKE_ALLOC] != allocs_before)
        engine_fail("the driver is asked for more, where memory is only just going back");
}

/* --- a library's buffer is wanted while another one of its goes back
 * --------------------------------------- */

enum { IDLE_MIB = 20, WANTED_MIB = 12, DEVICE_MIB = 24 };
static struct ms_external_request wanted;

static int make_buffer(uint64_t bytes, uint64_t *address_p)
{
    CUdeviceptr made = 0;
    int status = (int)wanted.gpu->mem_alloc(&made, bytes);
    *address_p = made;
    return status;
}

static int unmake_buffer(uint64_t buffer)
{
    return (int)wanted.gpu->mem_free(buffer);
}

static const struct ms_external_source library = {make_buffer, unmake_buffer};

static void prepare_buffers(void)
{
    struct ms_external_block block;
    int status = 0;
    const struct ms_gpu *driver = fake_fresh(DEVICE_MIB * MS_MIB);
    context = fake_context(0);
    fake_set_current(context);
    wanted = (struct ms_external_request){&library,          driver,           (uintptr_t)context, 0,
                                          IDLE_MIB * MS_MIB, IDLE_MIB * MS_MIB};
    if (!ms_external_make(&wanted, &block, &status) ||
        ms_external_free_begin(block.address, &block) != MS_POOL_SERVED)
        abort();
    ms_external_free_end(&block, driver, wanted.context);
    ms_pool_epoch_done(wanted.context, UINT64_MAX - 1, true);
    if (ms_external_idle_bytes(0) != IDLE_MIB * MS_MIB)
        abort();
    wanted.requested = wanted.granted = WANTED_MIB * MS_MIB;
    ms_bias_start();
}

static void return_buffer(void *arg)
{
    (void)arg;
    fake_set_current(context);
    ms_external_trim(0, 0);
}

static void ask_for_buffer(void *arg)
{
    struct ms_external_block block;
    int status = 0;
    (void)arg;
    fake_set_current(context);
    if (!ms_external_make(&wanted, &block, &status))
        engine_fail("a buffer is refused, for which there is memory");
}

static void start_buffers(void)
{
    engine_task(return_buffer, NULL);
    engine_task(ask_for_buffer, NULL);
}

/* --- two make the heap of a context, and only one of them does
 * ---------------------------------------------- */

static struct ms_heap *made[2];

static void prepare_heap(void)
{
    address = (uintptr_t)fake_fresh(256 * MS_MIB);
    context = fake_context(0);
    ms_bias_start();
}

static void make_heap(void *arg)
{
    fake_set_current(context);
    made[(size_t)arg] = ms_heap_make((const struct ms_gpu *)(uintptr_t)address, (uintptr_t)context, 0);
    if (!made[(size_t)arg] || atomic_load(&made[(size_t)arg]->state) != MS_HEAP_SERVING)
        engine_fail("a heap that was made does not serve");
}

static void start_heap(void)
{
    engine_task(make_heap, (void *)0);
    engine_task(make_heap, (void *)1);
}

static void check_heap(void)
{
    if (made[0] != made[1])
        engine_fail("a context has two heaps");
    calls_check();
}

static void nothing(void)
{
}

const struct program parts_programs[] = {
    {"epoch-ends", "two ask what was freed by the end of epochs while others take their places", prepare_ends,
     start_ends, nothing, RIGHT},
    {"covered", "a block is freed behind new work as an event is recorded", prepare_covered, start_covered,
     calls_check, RIGHT},
    {"host-function", "memory that work of the host's has written is handed out when that is over",
     prepare_function, start_function, calls_check, RIGHT},
    {"on-its-way", "the pool is stopped while a freed block is on its way to who asked", prepare_retired,
     start_on_its_way, calls_check, RIGHT},
    {"retired", "two empty what came out of limbo", prepare_retired, start_retired, calls_check, RIGHT},
    {"returning", "what is in limbo is asked for while memory goes back", prepare_returning, start_returning,
     check_returning, RIGHT},
    {"small-first-heap", "two make the heap of a context", prepare_heap, start_heap, check_heap, RIGHT},
    {"small-buffer-goes-back", "a library's buffer is wanted while another one of its goes back",
     prepare_buffers, start_buffers, calls_check, RIGHT},
    {NULL, NULL, NULL, NULL, NULL, RIGHT},
};
