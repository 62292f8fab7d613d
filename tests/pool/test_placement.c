/* test_placement.c - where blocks go: what is vacant is split while the device has plenty, kept whole near
 * its end, put together where the budget has the calls; what goes back again and again is split instead; and
 * every address in a large block leads to it. */
#include "config.h"

#include "one_context.h"

/* A program that is not small: what it has in use is more than what is vacant here. */
static void fresh_and_large(void)
{
    fresh(64 * GIB);
    take(GIB);
}

static void test_splitting(void)
{
    fresh_and_large();
    uint64_t a = take(100 * MIB + 1);
    ok(latest.whole && latest.segment_bytes == 102 * MIB,
       "a large block that is new has an allocation of its own");
    give(a);
    uint64_t b = take(40 * MIB), calls = fake.calls[FAKE_ALLOC];
    ok(b == a && !latest.whole && latest.granted == 40 * MIB, "then a smaller one comes out of it");
    uint64_t c = take(30 * MIB), d = take(31 * MIB);
    ok(c == a + 40 * MIB && d == a + 70 * MIB && c % (2 * MIB) == 0 && d % (2 * MIB) == 0,
       "and others out of the rest, on pages of 2 MiB");
    is_u64(fake.calls[FAKE_ALLOC], calls, "which costs no call of the driver's");
    sound("splitting");
    give(b);
    give(c);
    give(d);
    ok(take(101 * MIB) == a && latest.whole, "all of it together is whole again");
    is_u64(figures().reserved_bytes, GIB + 102 * MIB, "and nothing else was reserved");
    give(a);
    give(take(5 * MIB));
    ok(take(97 * MIB) == a, "what is small in comparison does not stay in the way");
    sound("whole again");
}

/* So much was reserved once: up to there nothing goes back for what comes later. */
static void reserve_once(uint64_t bytes)
{
    give(take(bytes));
    ms_pool_trim(0, 0);
}

/* What is left of a workspace that comes again is no use to it. */
static void test_not_worth_splitting(void)
{
    fresh(64 * GIB);
    take(20 * MIB);
    reserve_once(90 * MIB);
    uint64_t frees = figures().vendor_frees;
    uint64_t a = take(60 * MIB);
    give(a);
    take(4 * MIB);
    ok(take(60 * MIB) == a, "what is vacant is not split for much less than what is in use");
    is_u64(figures().vendor_frees, frees, "as long as as much was reserved before nothing goes back");
    sound("not worth splitting");
    fresh(64 * GIB);
    give(take(256 * MIB));
    take(64 * KIB);
    ok(latest.segment_bytes == 2 * MIB, "nor for a small block where nothing else is in use");
    sound("still not worth splitting");
}

/* What is vacant goes back before more is reserved than ever was; chunks are small where little is live. */
static void test_small_program(void)
{
    fresh(64 * GIB);
    uint64_t most = 0, live = 0;
    for (int i = 0; i < 6; i++) {
        uint64_t old = live ? latest.address : 0, bytes = (8 * MIB) << i;
        take(bytes);
        live = bytes + bytes / 2;
        if (old)
            give(old);
        uint64_t over = 100 * figures().reserved_bytes / live;
        most = live <= 128 * MIB && over > most ? over : most;
    }
    ok(most >= 100 && most <= 110,
       "buffers that double reserve at most %" PRIu64 " parts of a hundred of what is live", most);
    sound("a small program");
}

static void test_near_the_end(void)
{
    fresh(256 * MIB);
    uint64_t a = take(128 * MIB);
    give(a);
    take(40 * MIB);
    ok(latest.whole,
       "near the end of the device's memory a large block is whole, and what is vacant stays so");
    ok(take(128 * MIB) == a && latest.whole, "for the next of its size");
    ok(take(90 * MIB) == 0, "what there is not room for is refused");
    sound("near the end");
}

static void test_in_between(void)
{
    fresh(760 * MIB);
    take(240 * MIB);
    reserve_once(200 * MIB);
    uint64_t a = take(120 * MIB);
    give(a);
    ok(take(60 * MIB) != a && latest.whole,
       "where the device has less than plenty, a large block is not split for what takes half of it");
    ok(take(100 * MIB) == a && latest.whole, "and what takes most of it has all");
    sound("in between");
}

static uint64_t next(uint64_t *seed)
{
    *seed ^= *seed << 13;
    *seed ^= *seed >> 7;
    *seed ^= *seed << 17;
    return *seed;
}

/* At most 16 GiB of blocks of up to 4 GiB, in random order. Returns the driver's calls. */
static uint64_t few_of_any_size(uint64_t capacity, uint64_t seed, int operations)
{
    uint64_t blocks[64], bytes[64], count = 0, live = 0;
    fresh(capacity);
    for (int i = 0; i < operations; i++) {
        uint64_t size = 1 + next(&seed) % (4 * GIB);
        if (count == 64 || live + size > 16 * GIB || (count && next(&seed) % 4 == 0)) {
            uint64_t which = next(&seed) % count;
            give(blocks[which]);
            live -= bytes[which];
            blocks[which] = blocks[--count];
            bytes[which] = bytes[count];
            continue;
        }
        blocks[count] = take(size);
        if (!blocks[count])
            return UINT64_MAX;
        bytes[count++] = size;
        live += size;
    }
    return fake.calls[FAKE_ALLOC] + fake.calls[FAKE_FREE];
}

/* Few large blocks of any size do not reserve twice what is live, though that takes calls; and on a smaller
 * device none is refused. */
static void test_in_vain(void)
{
    for (uint64_t seed = 1; seed <= 3; seed++) {
        uint64_t calls = few_of_any_size(48 * GIB, 0x2545f4914f6cdd1du * seed, 10000);
        ok(calls < 5000 && figures().peak_reserved_bytes <= 16 * GIB / 5 * 7,
           "few blocks of any size, seed %" PRIu64 ": %" PRIu64 " calls of the driver's in 10000 operations, "
           "%" PRIu64 " MiB reserved",
           seed, calls, figures().peak_reserved_bytes / MIB);
        sound("what went back in vain is split");
        calls = few_of_any_size(34 * GIB, 0x2545f4914f6cdd1du * seed, 20000);
        ok(calls < UINT64_MAX,
           "and none is refused on a device of twice as much, which takes %" PRIu64 " calls", calls);
    }
}

/* What a request for more middling blocks reserves; each is 5 MiB. */
static uint64_t next_growth(void)
{
    uint64_t reserved = figures().reserved_bytes;
    while (figures().reserved_bytes == reserved)
        take(5 * MIB);
    return figures().reserved_bytes - reserved;
}

static void test_chunks(void)
{
    fresh_and_large();
    take(MIB);
    is_u64(next_growth(), 6 * MIB, "a heap's first chunks are of a block's pages");
    for (int i = 0; i < 40; i++)
        next_growth();
    uint64_t carved = figures().reserved_bytes - GIB, chunk = next_growth();
    uint64_t eighth = carved / 8 < 64 * MIB ? carved / 8 : 64 * MIB;
    ok(chunk % (6 * MIB) == 0 && chunk + 3 * MIB >= eighth && chunk <= eighth + 3 * MIB,
       "and grow with what is carved, in whole blocks: %" PRIu64 " beside %" PRIu64, chunk, carved);
    sound("chunks");
}

static void test_whole_ones(void)
{
    fresh_and_large();
    give(take(100 * MIB));
    uint64_t packed = take(40 * MIB);
    give(packed);
    fake_policy.large_whole = true;
    ok(take(40 * MIB) != packed && latest.whole,
       "where large blocks have to be whole, none comes out of another, also none that did before");
    fake_policy.large_whole = false;
    ok(take(100 * MIB) != 0 && latest.whole, "a vacant one of the size is taken whole");
    sound("whole ones");
}

static void test_merging(void)
{
    uint64_t parts[3];
    fresh_and_large();
    for (int i = 0; i < 3; i++)
        parts[i] = take(64 * MIB);
    for (int i = 0; i < 3; i++)
        give(parts[i]);
    uint64_t reserved = figures().reserved_bytes, frees = figures().vendor_frees;
    take(90 * MIB);
    ok(latest.whole && figures().reserved_bytes <= reserved,
       "several that are vacant make room for a larger one");
    is_u64(figures().vendor_frees - frees, 2, "and go back for it, no more than it takes");
    sound("merging");
}

/* Tries out one size after the other, on an otherwise empty heap. */
static void test_autotuner(void)
{
    static const uint64_t sizes[] = {12 * MIB, 18 * MIB, 10 * MIB};
    fresh_and_large();
    for (int i = 0; i < 30; i++) {
        give(take(sizes[i % 3]));
        uint64_t mark = ms_pool_sync_begin((uintptr_t)context);
        fake_finish(context);
        ms_pool_sync_end((uintptr_t)context, mark, 0);
    }
    uint64_t calls = figures().vendor_allocs + figures().vendor_frees;
    ok(calls <= 4, "an autotuner's loop keeps what it has: %" PRIu64 " calls of the driver's in 30 rounds",
       calls);
    sound("autotuner");
}

/* Each unit of large blocks, and of small ones between them, on whatever unit they begin. */
static void test_addresses(uint64_t first, enum ms_pool_pack pack)
{
    static const uint64_t sizes[] = {70 * MIB,       3 * MIB + 512, 66 * MIB + 7 * 512,
                                     65 * KIB + 512, 129 * MIB,     2 * MIB};
    uint64_t addresses[6], wrong = 0;
    fresh(64 * GIB);
    fake_policy.pack = pack;
    give(take(400 * MIB));
    take(first);
    for (int i = 0; i < 6; i++)
        addresses[i] = take(sizes[i]);
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < 6; i++) {
            for (uint64_t offset = 0; offset < sizes[i]; offset += 64 * KIB - 512) {
                bool found = ms_pool_find(addresses[i] + offset, &latest) && latest.address == addresses[i];
                wrong += found != (round == 0 || i % 2 == 0);
            }
            wrong += round == 0 &&
                     !(ms_pool_find(addresses[i] + sizes[i] - 1, &latest) && latest.address == addresses[i]);
        }
        for (int i = 1; i < 6; i += 2)
            if (round == 0)
                give(addresses[i]);
    }
    is_u64(wrong, 0,
           "behind %" PRIu64 " bytes: every address leads to its block, and to none when it is freed", first);
    sound("addresses");
}

int main(void)
{
    plan(0);
    test_splitting();
    test_not_worth_splitting();
    test_small_program();
    test_near_the_end();
    test_in_between();
    test_in_vain();
    test_chunks();
    test_whole_ones();
    test_merging();
    test_autotuner();
    test_addresses(512 * KIB, MS_POOL_PACK_ALL);
    test_addresses(67 * KIB, MS_POOL_PACK_ALL);
    test_addresses(64 * MIB, MS_POOL_PACK_ALL);
    test_addresses(3 * MIB, MS_POOL_PACK_SMALL);
    return done();
}
