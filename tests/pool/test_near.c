/* test_near.c - the short way from an address to its slot: it finds most, forgets some, and is believed in
 * nothing. */
#include "config.h"

#include <pthread.h>
#include <stdlib.h>

#include "fake.h"
#include "pool/space/address_cache.h"
#include "pool/api/pool.h"
#include "tests/tap.h"

enum { THREADS = 4, ROUNDS = 200000, PER_THREAD = 500, BLOCKS = 2000 };

static uint64_t random_of(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

/* A slot that is known by its address alone; nobody reads it. */
static const struct ms_slot *slot_of(uint64_t number)
{
    return (const struct ms_slot *)(uintptr_t)((number + 1) * 32);
}

static uint64_t address_of(uint64_t number)
{
    return ((uint64_t)1 << 46) + number * 6 * 512;
}

struct count {
    unsigned found, wrong;
};

static struct count look(const uint64_t *live, unsigned count)
{
    struct count result = {0, 0};
    for (unsigned i = 0; i < count; i++) {
        unsigned way;
        struct ms_address_cache_set *set;
        const struct ms_slot *slot = ms_address_cache_find(address_of(live[i]), &set, &way);
        result.found += slot == slot_of(live[i]);
        result.wrong += slot && atomic_load(&set->tickets[way]) != (uint32_t)live[i];
    }
    return result;
}

static void forget(uint64_t address)
{
    unsigned way = 0;
    struct ms_address_cache_set *set = NULL;
    if (ms_address_cache_find(address, &set, &way))
        ms_address_cache_drop(set, way);
}

static bool free_hit(uint64_t address, struct ms_pool_block *block_p)
{
    int status;
    return ms_pool_free_begin(address, MS_POOL_AT_HAND, block_p, &status) == MS_POOL_SERVED;
}

/* So many are live; one goes, one comes, for long enough that the table has found its size. */
static void test_most_are_found(unsigned count)
{
    uint64_t *live = calloc(count, sizeof *live), state = 88172645463325252u, next = 0;
    for (unsigned i = 0; i < count; i++) {
        live[i] = next++;
        ms_address_cache_note(address_of(live[i]), slot_of(live[i]), (uint32_t)live[i]);
    }
    for (unsigned i = 0; i < 6 * count; i++) {
        unsigned place = (unsigned)(random_of(&state) % count);
        forget(address_of(live[place]));
        live[place] = next++;
        ms_address_cache_note(address_of(live[place]), slot_of(live[place]), (uint32_t)live[place]);
    }
    struct count seen = look(live, count);
    ok(seen.found >= count / 10 * 8, "of %u blocks most are found: %u", count, seen.found);
    ok(seen.wrong <= count / 100, "another's tag is met rarely: %u", seen.wrong);
    for (unsigned i = 0; i < count; i++)
        forget(address_of(live[i]));
    ok(look(live, count).found <= count / 100, "and none when they have gone");
    free(live);
}

/* Threads write the same lines. */
static void *churn(void *arg)
{
    uint64_t own = *(uint64_t *)arg, state = own * 7919 + 1, wrong = 0;
    for (unsigned i = 0; i < ROUNDS; i++) {
        uint64_t number = own + THREADS * (random_of(&state) % PER_THREAD);
        unsigned way;
        ms_address_cache_note(address_of(number), slot_of(number), (uint32_t)number);
        struct ms_address_cache_set *set;
        wrong += (uintptr_t)ms_address_cache_find(address_of(number), &set, &way) % 32 != 0;
        forget(address_of(number));
    }
    *(uint64_t *)arg = wrong;
    return NULL;
}

static void test_threads(void)
{
    pthread_t threads[THREADS];
    uint64_t own[THREADS], wrong = 0;
    for (unsigned i = 0; i < THREADS; i++) {
        own[i] = i;
        pthread_create(&threads[i], NULL, churn, &own[i]);
    }
    for (unsigned i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
        wrong += own[i];
    }
    is_u64(wrong, 0, "no entry is half of one and half of another");
}

static void take(const struct ms_gpu *gpu, struct fake_context *context, struct ms_pool_block *block)
{
    int status;
    fake_set_current(context);
    if (ms_pool_alloc(gpu, (uintptr_t)context, 0, 3000, MS_POOL_ANYHOW, block, &status) != MS_POOL_SERVED)
        bail("a block is not served");
    ms_pool_set_record_id(block, 77);
}

/* What the table still says of blocks that died with their context, and of addresses inside others. */
static void test_not_believed(void)
{
    const struct ms_gpu *gpu = fake_fresh((uint64_t)16 << 30);
    struct fake_context *first = fake_context(0);
    static struct ms_pool_block blocks[BLOCKS];
    struct ms_pool_block block;
    unsigned hits = 0, dead = 0, twice = 0;
    int status;
    for (unsigned i = 0; i < BLOCKS; i++)
        take(gpu, first, &blocks[i]);
    for (unsigned i = 0; i < BLOCKS / 2; i++) {
        struct ms_pool_block freed;
        hits += free_hit(blocks[i].address, &freed) && freed.record_id == 77 &&
                freed.address == blocks[i].address;
        twice += free_hit(blocks[i].address, &block);
        ms_pool_free_end(&freed);
    }
    is_u64(hits, BLOCKS / 2, "live blocks are freed");
    is_u64(twice, 0, "none of them twice");
    ms_address_cache_note(blocks[0].address, (const struct ms_slot *)(uintptr_t)blocks[BLOCKS - 1].own_item,
                          1);
    ok(!free_hit(blocks[0].address, &block), "nor by another's slot");
    ms_pool_context_ending((uintptr_t)first);
    fake_kill(first);
    ms_pool_context_ended((uintptr_t)first, true);
    for (unsigned i = BLOCKS / 2; i < BLOCKS; i++)
        dead += free_hit(blocks[i].address, &block) ||
                ms_pool_free_begin(blocks[i].address, MS_POOL_ANYHOW, &block, &status) != MS_POOL_PASSED;
    is_u64(dead, 0, "nor what died with its context");
}

int main(void)
{
    test_most_are_found(100);
    test_most_are_found(10000);
    test_most_are_found(300000);
    test_threads();
    test_not_believed();
    return done();
}
