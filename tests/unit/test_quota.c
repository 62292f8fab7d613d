/* test_quota.c - the quota: all or nothing under a limit, the purse of a call, threads at the limit, and what
 * a call leaves that never ended. */
#include <pthread.h>
#include <stdlib.h>

#include "base/at_fork.h"
#include "quota/quota.h"
#include "tests/tap.h"

enum { DEVICE = 3, OTHER = 4, THREADS = 4, ROUNDS = 50000, TIGHT_ROUNDS = 3000000, LIMIT = 1000 };

static void anew(uint64_t limit)
{
    ms_at_fork_run(MS_FORK_POOL);
    ms_quota_allow(DEVICE, limit);
}

static void test_limit(void)
{
    ms_at_fork_run(MS_FORK_POOL);
    ok(!ms_quota_is_known(DEVICE), "at first no limit is known");
    is_u64(ms_quota_room(DEVICE), UINT64_MAX, "so there is room for anything");
    ok(ms_quota_reserve(DEVICE, UINT64_C(1) << 40), "and it is counted");
    is_u64(ms_quota_taken(DEVICE), UINT64_C(1) << 40, "as much as was asked for");
    anew(LIMIT);
    ms_quota_allow(DEVICE, 2 * LIMIT);
    is_u64(ms_quota_limit(DEVICE), LIMIT, "the first word about a limit counts");
    ok(ms_quota_reserve(DEVICE, LIMIT), "the limit itself is within it");
    ok(!ms_quota_reserve(DEVICE, 1), "a byte more is not");
    is_u64(ms_quota_taken(DEVICE), LIMIT, "and what is refused is not counted");
    ms_quota_give_back(DEVICE, 400);
    ok(!ms_quota_reserve(DEVICE, 401), "no more than was given back");
    ok(!ms_quota_reserve(DEVICE, UINT64_MAX - 100), "nor what would wrap");
    ok(ms_quota_reserve(DEVICE, 400), "but all of that");
    ok(ms_quota_reserve(OTHER, LIMIT + 1), "another device has a limit of its own, or none");
    ms_quota_came(DEVICE, 50);
    is_u64(ms_quota_room(DEVICE), 0, "what came uninvited is counted beyond the limit");
    ms_quota_went(DEVICE, 100);
    is_u64(ms_quota_room(DEVICE), 50, "and there is room again below it");
    ok(ms_quota_reserve(MS_DEVICE_NONE, 1) && ms_quota_taken(MS_DEVICE_NONE) == 0, "no device has no limit");
    anew(UINT64_MAX);
    ok(ms_quota_is_known(DEVICE) && ms_quota_limit(DEVICE) == UINT64_MAX, "that there is none is known, too");
    anew(0);
    ok(!ms_quota_reserve(DEVICE, 1) && ms_quota_reserve(DEVICE, 0), "of a limit of 0 there is nothing");
}

/* --- others who have a say --- */

static uint64_t left[MS_QUOTA_BOUNDS], there[MS_QUOTA_BOUNDS], on_the_way[MS_QUOTA_BOUNDS];

static bool take_of(int who, uint64_t bytes)
{
    if (bytes > left[who])
        return false;
    left[who] -= bytes;
    there[who] += bytes;
    on_the_way[who] += bytes;
    return true;
}

static bool others_take(int device, uint64_t bytes, uint64_t taken_bytes)
{
    return device == DEVICE && taken_bytes == there[MS_QUOTA_OTHERS] && take_of(MS_QUOTA_OTHERS, bytes);
}

static void others_note(int device, uint64_t bytes)
{
    (void)device;
    there[MS_QUOTA_OTHERS] += bytes;
}

static void others_give_back(int device, uint64_t bytes)
{
    (void)device;
    left[MS_QUOTA_OTHERS] += bytes;
    there[MS_QUOTA_OTHERS] -= bytes;
}

static uint64_t others_room(int device)
{
    return device == DEVICE ? left[MS_QUOTA_OTHERS] : 0;
}

static bool host_take(int device, uint64_t bytes, uint64_t taken_bytes)
{
    (void)taken_bytes;
    return device == DEVICE && take_of(MS_QUOTA_HOST, bytes);
}

static void host_answered(int device, uint64_t bytes)
{
    (void)device;
    on_the_way[MS_QUOTA_HOST] -= bytes;
}

static uint64_t host_room(int device)
{
    return device == DEVICE ? left[MS_QUOTA_HOST] : 0;
}

static void test_bounds(void)
{
    static const struct ms_quota_bound others = {
        .take = others_take, .note = others_note, .give_back = others_give_back, .room = others_room};
    static const struct ms_quota_bound host = {
        .take = host_take, .answered = host_answered, .room = host_room};
    anew(LIMIT);
    left[MS_QUOTA_OTHERS] = 500;
    left[MS_QUOTA_HOST] = 300;
    ms_quota_ask(DEVICE, MS_QUOTA_OTHERS, &others);
    ms_quota_ask(DEVICE, MS_QUOTA_HOST, &host);
    is_u64(ms_quota_room(DEVICE), 300, "the tightest of all who have a say");
    is_u64(ms_quota_room_of(DEVICE, MS_QUOTA_OTHERS), 500, "each by itself");
    is_u64(ms_quota_room_of(OTHER, MS_QUOTA_HOST), UINT64_MAX, "who has no say leaves anything");
    ok(!ms_quota_reserve(DEVICE, 400), "one says no");
    ok(ms_quota_taken(DEVICE) == 0 && there[MS_QUOTA_OTHERS] == 0 && left[MS_QUOTA_OTHERS] == 500,
       "and who said yes before has it back");
    ok(ms_quota_reserve(DEVICE, 200) && on_the_way[MS_QUOTA_HOST] == 200, "all say yes");
    ms_quota_settle(DEVICE, 200, 150);
    ok(on_the_way[MS_QUOTA_HOST] == 0 && there[MS_QUOTA_OTHERS] == 150 && ms_quota_taken(DEVICE) == 150,
       "the vendor gave less: all of it is answered, and the rest is back");
    ms_quota_settle(DEVICE, 0, 50);
    ok(there[MS_QUOTA_OTHERS] == 200 && ms_quota_taken(DEVICE) == 200, "more than it was asked for is noted");
    ms_quota_call_begins();
    ok(ms_quota_call_reserve(DEVICE, 100) && on_the_way[MS_QUOTA_HOST] == 100, "a call asks as well");
    ms_quota_came(DEVICE, 60);
    ms_quota_call_ends();
    ok(on_the_way[MS_QUOTA_HOST] == 0 && there[MS_QUOTA_OTHERS] == 260 && ms_quota_taken(DEVICE) == 260,
       "and is answered when it ends, with what came");
    ms_quota_call_begins();
    ok(ms_quota_call_reserve(MS_DEVICE_NONE, 100), "of no device there is anything");
    ms_quota_call_ends();
    is_u64(ms_quota_taken(DEVICE), 260, "and nothing is answered");
}

static void test_purse(void)
{
    anew(LIMIT);
    ms_quota_call_begins();
    ok(ms_quota_call_reserve(DEVICE, 600), "a call reserves");
    ms_quota_came(DEVICE, 600);
    is_u64(ms_quota_taken(DEVICE), 600, "its block takes what was reserved");
    ms_quota_call_ends();
    is_u64(ms_quota_taken(DEVICE), 600, "and nothing is left to give back");
    ms_quota_call_begins();
    ms_quota_went(DEVICE, 600);
    is_u64(ms_quota_taken(DEVICE), 600, "while a block is being freed it counts");
    ms_quota_came(DEVICE, 600);
    ms_quota_call_ends();
    is_u64(ms_quota_taken(DEVICE), 600, "and for good if the vendor refuses");
    ms_quota_call_begins();
    ms_quota_went(DEVICE, 600);
    ms_quota_call_ends();
    is_u64(ms_quota_taken(DEVICE), 0, "it goes when the call is over");
    ms_quota_call_begins();
    ms_quota_call_reserve(DEVICE, 700);
    ms_quota_call_ends();
    is_u64(ms_quota_taken(DEVICE), 0, "what the vendor refused is given back");
    ms_quota_call_begins();
    ms_quota_call_reserve(DEVICE, 700);
    ms_quota_came(DEVICE, 900);
    is_u64(ms_quota_taken(DEVICE), 900, "rows that are padded are more than was asked for");
    ms_quota_call_ends();
    ms_quota_call_begins();
    ms_quota_call_reserve(DEVICE, 100);
    ms_quota_came(OTHER, 100);
    is_u64(ms_quota_taken(OTHER), 100, "a block of another device is that one's");
    ms_quota_went(OTHER, 100);
    is_u64(ms_quota_taken(OTHER), 0, "and goes at once, as the purse is the first one's");
    ms_quota_call_ends();
    is_u64(ms_quota_taken(DEVICE), 900, "which has its own back");
    ms_quota_call_begins();
    ms_quota_call_reserve(DEVICE, 100);
    ms_quota_call_begins();
    is_u64(ms_quota_taken(DEVICE), 900, "what a call left that never ended goes with the next one");
    ms_quota_call_ends();
    ms_quota_went(DEVICE, 900);
    is_u64(ms_quota_taken(DEVICE), 0, "outside a call a block goes at once");
}

static _Atomic int beyond, refused;

static void *work(void *arg)
{
    unsigned seed = (unsigned)(uintptr_t)arg;
    uint64_t held = 0;

    for (int i = 0; i < ROUNDS; i++) {
        uint64_t bytes = 1 + rand_r(&seed) % 400;
        ms_quota_call_begins();
        bool have = ms_quota_call_reserve(DEVICE, bytes);
        if (have && rand_r(&seed) % 4)
            ms_quota_came(DEVICE, bytes);
        else
            bytes = 0;
        if (ms_quota_taken(DEVICE) > LIMIT)
            atomic_fetch_add(&beyond, 1);
        atomic_fetch_add(&refused, !have);
        ms_quota_call_ends();
        held += bytes;
        ms_quota_call_begins();
        ms_quota_went(DEVICE, held);
        held = 0;
        ms_quota_call_ends();
    }
    return NULL;
}

static pthread_barrier_t start;
static _Atomic int holders;

/* Of two that have more than half of the limit each, one has passed it. */
static void *more_than_half(void *arg)
{
    (void)arg;
    pthread_barrier_wait(&start);
    for (int i = 0; i < TIGHT_ROUNDS; i++) {
        if (!ms_quota_reserve(DEVICE, LIMIT / 2 + 1))
            continue;
        if (atomic_fetch_add_explicit(&holders, 1, memory_order_relaxed) > 0)
            atomic_fetch_add(&beyond, 1);
        atomic_fetch_sub_explicit(&holders, 1, memory_order_relaxed);
        ms_quota_give_back(DEVICE, LIMIT / 2 + 1);
    }
    return NULL;
}

static void *too_much(void *arg)
{
    (void)arg;
    pthread_barrier_wait(&start);
    for (int i = 0; i < TIGHT_ROUNDS; i++)
        if (ms_quota_reserve(DEVICE, LIMIT + 1))
            atomic_fetch_add(&beyond, 1);
    return NULL;
}

static void *within(void *arg)
{
    (void)arg;
    pthread_barrier_wait(&start);
    for (int i = 0; i < TIGHT_ROUNDS; i++) {
        if (ms_quota_reserve(DEVICE, LIMIT))
            ms_quota_give_back(DEVICE, LIMIT);
        else
            atomic_fetch_add(&refused, 1);
    }
    return NULL;
}

static void test_threads(void)
{
    pthread_t threads[THREADS];

    anew(LIMIT);
    for (uintptr_t i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, work, (void *)i);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    is_int(atomic_load(&beyond), 0, "threads never pass the limit together");
    is_u64(ms_quota_taken(DEVICE), 0, "and in the end nothing is taken");
    pthread_barrier_init(&start, NULL, 2);
    for (int i = 0; i < 2; i++)
        pthread_create(&threads[i], NULL, more_than_half, NULL);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    is_int(atomic_load(&beyond), 0, "nor do two that look at the same moment");
    atomic_store(&refused, 0);
    pthread_create(&threads[0], NULL, too_much, NULL);
    pthread_create(&threads[1], NULL, within, NULL);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    is_int(atomic_load(&beyond), 0, "who asks for too much never has it");
    is_int(atomic_load(&refused), 0, "and nobody is refused for that");
}

int main(void)
{
    plan(0);
    test_limit();
    test_bounds();
    test_purse();
    test_threads();
    return done();
}
