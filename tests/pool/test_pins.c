/* test_pins.c - blocks that others know: not recycled while a pin holds, and a whole one never again. */
#include "config.h"

#include "fake.h"
#include "tests/tap.h"

#define MIB ((uint64_t)1 << 20)
enum { ROUNDS = 40, MANY = 3000 };

static const struct ms_gpu *gpu;
static struct fake_context *context;

static uint64_t take(uint64_t bytes)
{
    struct ms_pool_block block;
    int status;
    if (ms_pool_alloc(gpu, (uintptr_t)context, 0, bytes, MS_POOL_ANYHOW, &block, &status) != MS_POOL_SERVED)
        bail("%llu bytes are not served", (unsigned long long)bytes);
    return block.address;
}

/* As the hooks do it: pins that the free undoes lie between its halves. */
static void give(uint64_t address, unsigned unpins)
{
    struct ms_pool_block block;
    int status;
    if (ms_pool_free_begin(address, MS_POOL_ANYHOW, &block, &status) != MS_POOL_SERVED)
        bail("not freed");
    while (unpins--)
        ms_pool_unpin(address);
    ms_pool_free_end(&block);
    fake_finish(context);
    uint64_t mark = ms_pool_sync_begin((uintptr_t)context);
    ms_pool_sync_end((uintptr_t)context, mark, 0);
}

/* How many of the blocks that come after a block of this size was pinned, freed and unpinned lie at its
 * address. */
static unsigned comes_back(uint64_t bytes, unsigned pins, unsigned undone)
{
    uint64_t first = take(bytes), after[ROUNDS];
    unsigned again = 0;
    for (unsigned i = 0; i < pins; i++)
        ok(ms_pool_pin(first), "a live block is pinned");
    give(first, undone);
    for (unsigned i = 0; i < ROUNDS; i++) {
        after[i] = take(bytes);
        again += after[i] == first;
    }
    for (unsigned i = 0; i < ROUNDS; i++)
        give(after[i], 0);
    return again;
}

static void start(void)
{
    gpu = fake_fresh((uint64_t)16 << 30);
    context = fake_context(0);
    fake_set_current(context);
}

static void check(void)
{
    const char *wrong = ms_pool_check();
    is_str(wrong ? wrong : "", "", "the pool's invariants hold");
}

/* The vendor may give an address again, so what counts is that it was asked. */
static void test_whole(void)
{
    start();
    uint64_t before = fake.calls[FAKE_FREE];
    for (unsigned i = 0; i < ROUNDS; i++) {
        uint64_t address = take(20 * MIB);
        ms_pool_pin(address);
        give(address, 1);
    }
    is_u64(fake.calls[FAKE_ALLOC], ROUNDS, "a whole block that was pinned is never recycled");
    ok(fake.calls[FAKE_FREE] - before >= ROUNDS - 2, "but goes back to the vendor");
    check();
    start();
    for (unsigned i = 0; i < ROUNDS; i++)
        give(take(20 * MIB), 0);
    is_u64(fake.calls[FAKE_ALLOC], 1, "one that never was is");
    check();
}

/* Many at once, undone in another order than they were made; contexts that end with blocks pinned. */
static void test_many(void)
{
    static uint64_t addresses[MANY];
    struct ms_pool_block block;
    unsigned pinned = 0;
    start();
    for (unsigned i = 0; i < MANY; i++) {
        addresses[i] = take(512 + i % 3 * 1024);
        ms_pool_pin(addresses[i]);
    }
    for (unsigned i = 0; i < MANY; i++)
        pinned += ms_pool_find(addresses[i], &block) && block.pinned;
    is_u64(pinned, MANY, "many blocks are pinned");
    for (unsigned i = 0; i < MANY; i += 3)
        ms_pool_unpin(addresses[i * 7 % MANY / 3 * 3]);
    pinned = 0;
    for (unsigned i = 0; i < MANY; i++)
        pinned += ms_pool_find(addresses[i], &block) && block.pinned == (i % 3 != 0);
    is_u64(pinned, MANY, "those that were not undone still are, and no others");
    for (unsigned i = 0; i < MANY; i++)
        give(addresses[i], i % 3 != 0);
    check();
    struct ms_pool_figures figures;
    ms_pool_figures(0, &figures);
    is_u64(figures.parts.pinned, 0, "nothing is held for them after all");
    for (unsigned i = 0; i < MANY / 10; i++)
        ms_pool_pin(take(4096));
    ms_pool_context_ending((uintptr_t)context);
    fake_kill(context);
    ms_pool_context_ended((uintptr_t)context, true);
    ms_pool_figures(0, &figures);
    is_u64(figures.reserved_bytes, 0, "a context that dies takes its pinned blocks along");
    check();
}

int main(void)
{
    plan(0);
    start();
    is_u64(comes_back(5000, 1, 0), 0, "a packed block is not recycled while it is pinned");
    check();
    start();
    ok(comes_back(5000, 1, 1) > 0, "it is once the pin is undone");
    check();
    start();
    is_u64(comes_back(3 * MIB, 2, 1), 0, "two pins are undone twice");
    check();
    test_whole();
    test_many();
    start();
    uint64_t address = take(5000);
    ok(!ms_pool_pin(address + ((uint64_t)1 << 40)), "what is not ours cannot be pinned");
    ms_pool_pin(address + 100);
    give(address, 0);
    ok(!ms_pool_pin(address), "nor what was freed");
    ms_pool_unpin(address);
    check();
    return done();
}
