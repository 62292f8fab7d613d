/* test_keep.c - what stays in the pool when the program waits: MEMSHIM_KEEP, over all contexts of a device,
 * and what a loop asks for again and again. */
#include "config.h"

#include "pool/api/internal.h" /* before it, whose names are others' parameters */

#include "base/clock.h"
#include "one_context.h"

static void sync_context(void)
{
    uint64_t mark = ms_pool_sync_begin((uintptr_t)context);
    fake_finish(context);
    ms_pool_sync_end((uintptr_t)context, mark, 0);
}

/* One step of a loop that waits for its device at the end. */
static void take_and_give(uint64_t *blocks)
{
    for (int i = 0; i < 8; i++)
        blocks[i] = take(128 * MIB);
    for (int i = 0; i < 8; i++)
        give(blocks[i]);
    sync_context();
}

/* One block that is longer than MEMSHIM_KEEP goes back as several do, and so does what another context on the
 * device keeps. */
static void test_keep_whole(void)
{
    fresh((uint64_t)16 * GIB);
    uint64_t block = take(7000 * MIB);
    give(block);
    sync_context();
    is_u64(figures().reserved_bytes, 0, "a whole segment that is longer than MEMSHIM_KEEP goes back");
    fake_policy.keep_is_set = true; /* nothing is learned */
    struct fake_context *second = fake_context(0), *first = context;
    block = take(200 * MIB);
    give(block);
    context = second;
    fake_set_current(second);
    block = take(200 * MIB);
    is_u64(figures().peak_reserved_bytes, 7000 * MIB, "two contexts have a device");
    give(block);
    sync_context();
    is_u64(figures().reserved_bytes, 200 * MIB, "and MEMSHIM_KEEP is for both together");
    context = first;
    fake_set_current(first);
    sound("keep whole");
}

static void test_keep(void)
{
    uint64_t blocks[8];
    fresh((uint64_t)16 * GIB);
    for (int i = 0; i < 8; i++)
        blocks[i] = take(128 * MIB);
    for (int i = 0; i < 8; i++)
        give(blocks[i]);
    is_u64(figures().reserved_bytes, 1024 * MIB, "freed memory is kept");
    fake_issue(context);
    is_u64(ms_pool_trim(0, 0), 0, "nothing goes back while work is pending");
    sync_context();
    is_u64(figures().reserved_bytes, 256 * MIB, "at a synchronisation what is beyond MEMSHIM_KEEP goes back");
    is_u64(figures().parts.pending, 0, "and nothing is in limbo after it");
    for (int round = 0; round < 20; round++)
        take_and_give(blocks);
    ok(fake.calls[FAKE_ALLOC] <= 8 + 6 + 6,
       "a loop that wants it again gets to keep it (%" PRIu64 " allocations of the driver's)",
       fake.calls[FAKE_ALLOC]);
    is_u64(figures().reserved_bytes, 1024 * MIB, "as long as nobody else is on the device");
    fake.others = 100 * MIB;
    ms_clock_sleep(2 * MS_KEEP_ALONE_NS); /* it is not asked more often */
    take_and_give(blocks);
    is_u64(figures().reserved_bytes, 256 * MIB, "no more than MEMSHIM_KEEP once somebody is");
    fake.others = 0;
    take_and_give(blocks);
    fake_policy.keep_is_set = true;
    take_and_give(blocks);
    is_u64(figures().reserved_bytes, 256 * MIB, "nor where MEMSHIM_KEEP was set");
    ok(ms_pool_trim(0, 0) > 0 && figures().reserved_bytes == 0, "a trim gives back everything");
    is_u64(fake.used[0], 0, "and the driver has it all again");
    is_u64(fake.blocking_frees, 0, "without waiting for the device");
    sound("keep");
}

int main(void)
{
    test_keep();
    test_keep_whole();
    return done();
}
