/* test_epochs.c - what an allocation waits for that finds only limbo: the epoch that it closed itself, and memory that is being
 * given back; it grows for neither. That nothing is used again too early is test_model's business. */
#include "config.h"

#include <pthread.h>
#include <stdatomic.h>

#include "fake.h"
#include "tap.h"

#define MIB ((uint64_t)1 << 20)
#define GIB ((uint64_t)1 << 30)
enum { SLOW = 1000 };

static const struct ms_gpu *gpu;
static struct fake_context *context;

static void fresh(uint64_t capacity)
{
    gpu = fake_fresh(capacity);
    context = fake_context(0);
    fake_set_current(context);
}

static uint64_t take(uint64_t bytes)
{
    struct ms_pool_block block;
    int status = 0;
    return ms_pool_alloc(gpu, (uintptr_t)context, 0, bytes, &block, &status) == MS_POOL_SERVED ? block.address
                                                                                               : 0;
}

static void give(uint64_t address)
{
    struct ms_pool_block block;
    int status = 0;
    if (ms_pool_free_begin(address, &block, &status) == MS_POOL_SERVED)
        ms_pool_free_end(&block);
}

static struct ms_pool_figures figures(void)
{
    struct ms_pool_figures f;
    ms_pool_figures(0, &f);
    return f;
}

static void sound(const char *what)
{
    const char *wrong = ms_pool_check();
    ok(!wrong, "%s: every invariant holds%s%s", what, wrong ? ", but " : "", wrong ? wrong : "");
}

/* --- with other threads */

/* Whenever an event is asked for, another thread frees something. */
static uint64_t shelf[64];
static uint32_t shelved;

static void free_another(void)
{
    if (shelved)
        give(shelf[--shelved]);
}

/* The device has nothing to do, so an epoch that closes is over: nobody has anything to wait for, though others go on
 * freeing all the time. */
static void test_own_epoch(void)
{
    fresh(64 * GIB);
    fake_policy.large_whole = true;
    for (shelved = 0; shelved < 64; shelved++)
        shelf[shelved] = take(512);
    give(take(24 * MIB));
    fake_on_query = free_another;
    ok(take(24 * MIB) && figures().vendor_allocs == 2, "a block comes out of limbo");
    fake_on_query = NULL;
    is_u64(figures().limbo_waits, 0, "which is not waited for, though others free all the time");
    ok(shelved > 60, "nor asked for again and again (%u times)", 64 - shelved);
    sound("own epoch");
}

static atomic_bool over;

static void *returner(void *arg)
{
    (void)arg;
    fake_set_current(context);
    uint64_t mark = ms_pool_sync_begin((uintptr_t)context);
    fake_finish(context);
    ms_pool_sync_end((uintptr_t)context, mark, 0);
    atomic_store(&over, true);
    return NULL;
}

/* One thread gives back what is vacant, which takes the driver a while; all that the context is busy with meanwhile is that. */
static void test_returning(void)
{
    pthread_t thread;
    uint64_t blocks[4], rounds = 0;
    fresh(64 * GIB);
    fake_sizes.keep = 88 * MIB; /* so that what goes back are blocks of 64 MiB, wherever the other thread is */
    fake_policy.large_whole = true;
    uint64_t block = take(24 * MIB);
    for (int i = 0; i < 4; i++)
        blocks[i] = take(64 * MIB);
    for (int i = 0; i < 4; i++)
        give(blocks[i]);
    fake.slow_return = SLOW;
    atomic_store(&over, false);
    pthread_create(&thread, NULL, returner, NULL);
    while (!atomic_load(&over)) {
        give(block);
        block = take(24 * MIB);
        rounds++;
    }
    pthread_join(thread, NULL);
    ok(figures().vendor_frees == 2 || figures().vendor_frees == 3, "one thread gave back");
    ok(block && rounds > 0, "another one took and gave a block meanwhile, %" PRIu64 " times", rounds);
    is_u64(figures().vendor_allocs, 5, "which took no more memory, though the context was busy with giving back");
    sound("returning");
}

int main(void)
{
    plan(0);
    test_own_epoch();
    test_returning();
    return done();
}
