/* test_epochs.c - how often an event is recorded, and what an allocation waits for.
 *
 * Few events for many frees, without more memory than what is live takes; an allocation waits for the epoch
 * that it closed itself, and for memory that is being given back, but grows for neither. That nothing is used
 * again too early is test_model's business. */
#include "config.h"

#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

#include "pool/api/internal.h" /* before it, whose names are others' parameters */

#include "one_context.h"

enum { SIZES = 20, LIVE_MOST = 1000, WARM_PAIRS = 20000, PAIRS = 20000 };

static uint64_t next(uint64_t *seed)
{
    *seed ^= *seed << 13;
    *seed ^= *seed >> 7;
    *seed ^= *seed << 17;
    return *seed;
}

/* From 512 bytes to 64 MiB, in steps of nearly equal ratio. */
static uint64_t some_size(uint64_t *seed)
{
    uint64_t step = next(seed) % SIZES, doublings = step * 17 / (SIZES - 1), rest = step * 17 % (SIZES - 1);
    return (((uint64_t)512 << doublings) * (SIZES - 1 + rest) / (SIZES - 1) + 511) / 512 * 512;
}

struct mix {
    uint64_t blocks[LIVE_MOST], bytes[LIVE_MOST], live, peak;
    uint32_t count;
    uint64_t seed;
};

static void put(struct mix *mix, uint32_t i)
{
    mix->bytes[i] = some_size(&mix->seed);
    mix->blocks[i] = take(mix->bytes[i]);
    mix->live += mix->bytes[i];
    mix->peak = mix->live > mix->peak ? mix->live : mix->peak;
}

static void exchange(struct mix *mix)
{
    uint32_t i = (uint32_t)(next(&mix->seed) % mix->count);
    give(mix->blocks[i]);
    mix->live -= mix->bytes[i];
    put(mix, i);
}

/* So many blocks are alive, and one after the other is replaced by one of any size. */
static void test_steady(uint32_t count, uint64_t seed)
{
    struct mix mix = {.count = count, .seed = 0x2545f4914f6cdd1du * seed};
    fresh(512 * GIB);
    for (uint32_t i = 0; i < count; i++)
        put(&mix, i);
    for (uint32_t i = 0; i < WARM_PAIRS; i++)
        exchange(&mix);
    uint64_t events = fake.calls[FAKE_CTX_RECORD];
    for (uint32_t i = 0; i < PAIRS; i++)
        exchange(&mix);
    events = fake.calls[FAKE_CTX_RECORD] - events;
    ok(events * 1000 < 40 * (uint64_t)PAIRS, "%u blocks, seed %" PRIu64 ": %" PRIu64 " events for %d frees",
       count, seed, events, PAIRS);
    ok(events > 0 && figures().parts.requested == mix.live,
       "seed %" PRIu64 ": what is live is counted, and some epochs closed", seed);
    ok(figures().peak_reserved_bytes < mix.peak * 8 / 5,
       "seed %" PRIu64 ": %" PRIu64 " MiB were reserved for %" PRIu64, seed,
       figures().peak_reserved_bytes / MIB, mix.peak / MIB);
    is_u64(fake.calls[FAKE_SYNC] + fake.blocking_frees, 0, "nothing waited for the device");
    sound("steady");
}

/* The smallest program, with one block of a size: an epoch for each magazine full. */
static void test_one_block(void)
{
    fresh(GIB);
    for (int i = 0; i < 61000; i++)
        give(take(4096));
    ok(fake.calls[FAKE_CTX_RECORD] <= 1002,
       "one small block again and again: %" PRIu64 " events for 61000 frees", fake.calls[FAKE_CTX_RECORD]);
    is_u64(figures().reserved_bytes, 2 * MIB, "in the memory of the first chunk");
}

/* The host is ahead by many frees, each with work behind it. What the device has got to comes back, and no
 * later. */
static void test_far_ahead(void)
{
    enum { AHEAD = 1500, DONE = 1000 };
    fresh((uint64_t)1 << 44);
    fake_policy.large_whole = true;
    for (int i = 0; i < AHEAD; i++) {
        give(take(16 * MIB));
        fake_issue(context);
    }
    uint64_t allocs = figures().vendor_allocs;
    context->done = DONE;
    for (int i = 0; i < DONE - 1; i++)
        take(16 * MIB);
    is_u64(figures().vendor_allocs, allocs,
           "%d frees are under way: of these, the %d that are over are used again", AHEAD, DONE);
    take(16 * MIB);
    take(16 * MIB);
    ok(figures().vendor_allocs > allocs, "and no more");
    sound("far ahead");
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

/* The device has nothing to do, so an epoch that closes is over: nobody has anything to wait for, though
 * others go on freeing all the time. */
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

static pthread_t other;
static atomic_bool over;
static uint64_t block;

static void *exchanger(void *arg)
{
    (void)arg;
    fake_set_current(context);
    give(block);
    block = take(24 * MIB);
    atomic_store(&over, true);
    return NULL;
}

/* The driver is at it until another thread, which has only what is pending, has had all the time to give up
 * waiting. */
static void return_slowly(void)
{
    const struct timespec millisecond = {0, 1000000};
    fake_on_return = NULL;
    fake_issue(context);
    pthread_create(&other, NULL, exchanger, NULL);
    for (int i = 0; i < 20 && !atomic_load(&over); i++)
        nanosleep(&millisecond, NULL);
    fake_finish(context);
}

/* One thread gives back what is vacant, which takes the driver a while; all that the context is busy with
 * meanwhile is that. */
static void test_returning(void)
{
    uint64_t blocks[4];
    fresh(64 * GIB);
    /* so that what goes back are blocks of 64 MiB, wherever the other thread is */
    fake_sizes.keep = 88 * MIB;
    fake_policy.large_whole = true;
    block = take(24 * MIB);
    for (int i = 0; i < 4; i++)
        blocks[i] = take(64 * MIB);
    for (int i = 0; i < 4; i++)
        give(blocks[i]);
    fake_on_return = return_slowly;
    uint64_t mark = ms_pool_sync_begin((uintptr_t)context);
    ms_pool_sync_end((uintptr_t)context, mark, 0);
    pthread_join(other, NULL);
    is_u64(figures().vendor_frees, 3, "one thread gave back");
    ok(block && atomic_load(&over), "another one took a block meanwhile");
    is_u64(figures().vendor_allocs, 5,
           "which took no more memory, though the context was busy with giving back");
    sound("returning");
}

enum { CLASSED = 4 * MS_BATCH_ITEMS, CLASSED_BYTES = 4096 };

static unsigned shared(const uint64_t *these, const uint64_t *those)
{
    unsigned count = 0;
    for (int i = 0; i < CLASSED; i++) {
        for (int k = 0; k < CLASSED; k++)
            count += these[i] == those[k];
    }
    return count;
}

static void take_all(uint64_t *blocks)
{
    for (int i = 0; i < CLASSED; i++)
        blocks[i] = take(CLASSED_BYTES);
}

static void *give_all(void *blocks)
{
    fake_set_current(context);
    for (int i = 0; i < CLASSED; i++)
        give(((uint64_t *)blocks)[i]);
    return NULL;
}

/* More blocks of a class than a batch holds come back as they were freed, batch by batch: when their event is
 * done, and no sooner. What threads have freed that are gone comes back as well. */
static void test_bags(void)
{
    static uint64_t first[CLASSED], second[CLASSED], third[CLASSED];
    pthread_t thread;
    fresh(64 * GIB);
    take_all(first);
    context->issued++;
    give_all(first);
    struct ms_heap *heap = ms_heap_of((uintptr_t)context);
    ms_fence_close(heap);
    ms_fence_poll(heap);
    take_all(second);
    is_u64(shared(first, second), 0, "of blocks in limbo none is given again");
    uint64_t reserved = figures().reserved_bytes;
    context->done = context->issued;
    ms_fence_poll(heap);
    take_all(third);
    ok(shared(first, third) > CLASSED - MS_BATCH_ITEMS && !shared(second, third),
       "when their event is done they are, and no block that is live");
    is_u64(figures().reserved_bytes, reserved, "which takes no more memory");
    sound("bags of a class");
    pthread_create(&thread, NULL, give_all, second);
    pthread_join(thread, NULL);
    give_all(third);
    ms_pool_trim(0, 0);
    is_u64(figures().reserved_bytes, 0, "all of it can go back, whoever freed it");
    sound("no bags");
}

int main(void)
{
    plan(0);
    for (uint64_t seed = 1; seed <= 3; seed++) {
        test_steady(100, seed);
        test_steady(1000, seed);
    }
    test_one_block();
    test_far_ahead();
    test_own_epoch();
    test_returning();
    test_bags();
    return done();
}
