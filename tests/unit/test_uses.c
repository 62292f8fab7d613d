/* test_uses.c - lives and their uses: numbers that come out of order, a process that was killed in between,
 * a free that the vendor refused. */
#include "config.h"

#include <pthread.h>
#include <stdatomic.h>

#include "base/options/options.h"
#include "record/live/uses.h"
#include "tests/unit/ledger_fixture.h"

enum { ADDRESS = 0x200000, BYTES = 4096 };

static void begin(void)
{
    struct ms_block block = make_block(ADDRESS, BYTES, 1, 0);
    start();
    ms_uses_start();
    ms_uses_open();
    ms_ledger_alloc(&block);
}

static struct ms_lifetime *life(unsigned number)
{
    return &MS_ROWS(LIVES, struct ms_lifetime)[number];
}

static const struct ms_lifetime *told(unsigned number)
{
    look();
    if (number >= snapshot.lives.count)
        bail("there is no life %u", number);
    return &snapshot.lives.lives[number];
}

static const struct ms_uses *told_counts(void)
{
    look();
    return &snapshot.lives.all;
}

static void test_order(void)
{
    begin();
    uint64_t one = ms_uses_number(), two = ms_uses_number(), three = ms_uses_number();
    ok(ms_uses_note(two, ADDRESS + 100, 28, 0), "a use is a block's");
    ok(ms_uses_note(three, ADDRESS, UINT64_MAX, 0) && ms_uses_note(one, ADDRESS, 1, 0),
       "threads tell in another order than they took their numbers");
    ok(told(0)->first == one && told(0)->last == three, "the first is the lowest, the last the highest");
    is_u64(told(0)->reach, BYTES, "all of it was used");
    ok(!ms_uses_note(ms_uses_number(), ADDRESS + BYTES, 1, 0), "behind it is nothing");
}

/* The numbers are written one after the other, the last one first. */
static void test_killed(void)
{
    begin();
    uint64_t number = ms_uses_number();
    life(0)->last = number;
    is_u64(told(0)->first, number, "a snapshot in the middle of a use has both its numbers");
    ms_uses_clean();
    ok(life(0)->state == 1 && life(0)->first == number, "nor is a life lost where the process was killed");
    life(0)->last = 0;
    ms_uses_clean();
    is_u64(life(0)->state, 0, "what cannot be is no life");
    is_u64(told_counts()->left_out, 1, "and is counted");
    ms_uses_clean();
    is_u64(told_counts()->left_out, 1, "once");
}

enum { COUNTERS = 4, LAUNCHES = 20000 };
static atomic_int running;

static void *launch(void *arg)
{
    (void)arg;
    atomic_fetch_add(&running, 1);
    for (uint64_t i = 1; i <= LAUNCHES; i++)
        ms_uses_launched(i, i & 1, i % 4 != 0);
    return NULL;
}

/* The ledger gets its file at the first event; others count launches by then. */
static void test_opened_meanwhile(void)
{
    pthread_t threads[COUNTERS];
    start();
    ms_uses_start();
    atomic_store(&running, 0);
    for (int i = 0; i < COUNTERS; i++)
        pthread_create(&threads[i], NULL, launch, NULL);
    while (atomic_load(&running) < COUNTERS)
        ;
    ms_uses_open();
    for (int i = 0; i < COUNTERS; i++)
        pthread_join(threads[i], NULL);
    is_u64(told_counts()->launches, COUNTERS * LAUNCHES / 2, "no launch is lost while the record opens");
    is_u64(told_counts()->graph_launches, COUNTERS * LAUNCHES / 2, "nor one of a graph");
    is_u64(told_counts()->unread, COUNTERS * LAUNCHES / 4, "nor one that could not be read");
    is_u64(told_counts()->last_launch, LAUNCHES, "the latest is the latest");
}

static void test_refused_free(void)
{
    struct ms_block block;
    begin();
    ms_uses_note(ms_uses_number(), ADDRESS, BYTES, 0);
    ok(ms_ledger_free_begin(MS_SPACE_ADDRESS, ADDRESS, &block), "a free begins");
    ok(!ms_uses_note(ms_uses_number(), ADDRESS, BYTES, 0), "what is used then is nobody's");
    ms_ledger_free_abort(&block);
    ok(told(0)->ended && !told(1)->ended, "the vendor refused: the block lives once more");
    ok(told(1)->flags & MS_LIFETIME_UNMAPPED, "of which nobody knows how it was used before");
    ok(!(told(0)->flags & MS_LIFETIME_UNMAPPED), "the other one is what it was");
    is_u64(device(0)->live_count, 1, "it is one block all the same");
    is_u64(site_of(1)->total_count, 1, "and was allocated once");
}

int main(void)
{
    plan(0);
    ms_options_load((char *[]){(char *)"MEMSHIM_USES=on", NULL}, NULL, NULL);
    test_order();
    test_killed();
    test_opened_meanwhile();
    test_refused_free();
    return done();
}
