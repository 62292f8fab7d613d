/* programs_share.c - processes that share a device: what they have together is never more than there is, what
 * is kept for one is its own, and of those that want the same memory one gets it.
 *
 * A task stands for a process, with a row of its own on the page. That a process has ended is what the
 * kernel's locks say; here it is a flag, which one process at a time may take. */
#include <stddef.h>

#include "engine.h"
#include "programs.h"
#include "share/asks.h"

enum { PROCESSES = 3, CAPACITY = 10, DEAD = 2 };

static struct ms_share_page page;
static struct ms_admission processes[PROCESSES];
static _Atomic unsigned has_ended[PROCESSES]; /* 1: it has; 2: and another has its row now */
static _Atomic uint64_t at_vendor;            /* what the vendor has given to all */
static _Atomic bool got[PROCESSES];
static _Atomic unsigned asked; /* how many have asked, and have their answer */
static uint64_t brought;

/* --- the kernel's locks --- */

static bool row_has_ended(struct ms_admission *self, unsigned row)
{
    unsigned ended = 1;
    (void)self;
    return atomic_compare_exchange_strong(&has_ended[row], &ended, 2);
}

static void row_left(struct ms_admission *self, unsigned row)
{
    (void)self;
    atomic_store(&has_ended[row], 1);
}

/* --- a process --- */

static void prepare_share(void)
{
    page.head.total_bytes = CAPACITY;
    for (unsigned i = 0; i < PROCESSES; i++) {
        processes[i] = (struct ms_admission){
            .page = &page, .lock = MS_LOCK_INIT(MS_RANK_SHARE), .has_ended = row_has_ended, .left = row_left};
        ms_admission_join(&processes[i], i);
    }
}

static bool take(unsigned i, uint64_t bytes)
{
    uint64_t missing;
    if (!ms_admission_take(&processes[i], bytes, &missing))
        return false;
    engine_point(__builtin_return_address(0));
    uint64_t given = atomic_fetch_add(&at_vendor, bytes) + bytes;
    if (given > CAPACITY)
        engine_fail("processes have %u of %u", (unsigned)given, CAPACITY);
    return true;
}

static void give(unsigned i, uint64_t bytes)
{
    atomic_fetch_sub(&at_vendor, bytes);
    engine_point(__builtin_return_address(0));
    ms_admission_give(&processes[i], bytes);
}

static void take_6(void *arg)
{
    got[(size_t)arg] = take((unsigned)(size_t)arg, 6);
}

static void take_3(void *arg)
{
    got[(size_t)arg] = take((unsigned)(size_t)arg, 3);
}

static void take_6_and_give(void *arg)
{
    take_6(arg);
    if (got[(size_t)arg])
        give((unsigned)(size_t)arg, 6);
}

static unsigned how_many_got(void)
{
    return (unsigned)got[0] + got[1] + got[2];
}

/* The page says what the vendor gave, and nobody is left undecided. */
static void check_page(void)
{
    uint64_t used = 0;
    for (unsigned i = 0; i < PROCESSES; i++) {
        used += atomic_load(&page.rows[i].used_bytes);
        if (atomic_load(&page.rows[i].turn) & 1)
            engine_fail("process %u is undecided at the end", i);
    }
    if (used != at_vendor)
        engine_fail("the page says %u, and the vendor %u", (unsigned)used, (unsigned)at_vendor);
}

static void check_one(void)
{
    check_page();
    if (how_many_got() != 1)
        engine_fail("%u have memory that is there for one", how_many_got());
}

static void check_all(void)
{
    check_page();
    if (how_many_got() != PROCESSES)
        engine_fail("%u of %u have memory that is there for all", how_many_got(), PROCESSES);
}

/* --- the programs --- */

static void start_two(void)
{
    engine_task(take_6, (void *)0);
    engine_task(take_6, (void *)1);
}

static void start_three(void)
{
    start_two();
    engine_task(take_6, (void *)2);
}

static void start_all_fit(void)
{
    engine_task(take_3, (void *)0);
    engine_task(take_3, (void *)1);
    engine_task(take_3, (void *)2);
}

static void prepare_kept(void)
{
    prepare_share();
    page.rows[1].guarantee_bytes = 6;
}

static void check_kept(void)
{
    check_page();
    if (got[0])
        engine_fail("what is kept for another was given away");
    if (!got[1])
        engine_fail("a request within the guarantee is refused");
}

/* The first process is in the middle of asking for what is kept for the second, and was stopped there. */
static void prepare_kept_full(void)
{
    prepare_kept();
    page.rows[0].turn++;
    page.rows[0].used_bytes = 6;
    page.rows[0].undecided_bytes = 6;
}

static void start_kept_full(void)
{
    engine_task(take_6, (void *)1);
}

static void check_kept_full(void)
{
    if (!got[1])
        engine_fail("a request within the guarantee is refused");
}

/* One asks for more than there is left, and is in nobody's way. */
static void prepare_too_much(void)
{
    prepare_share();
    got[DEAD] = take(DEAD, 3);
}

/* Twice, so that the second request may begin while another looks what the first one did. */
static void take_8(void *arg)
{
    got[(size_t)arg] = take((unsigned)(size_t)arg, 8) || take((unsigned)(size_t)arg, 8);
}

static void start_too_much(void)
{
    engine_task(take_8, (void *)0);
    engine_task(take_6, (void *)1);
}

static void start_too_much_after(void)
{
    engine_task(take_6, (void *)0);
    engine_task(take_8, (void *)1);
}

static void check_too_much(void)
{
    check_page();
    if (how_many_got() != 2)
        engine_fail("a request that fits is refused beside one that does not");
}

/* Both have a guarantee; the third has none, and takes what is in nobody's. */
static void prepare_both_kept(void)
{
    prepare_share();
    page.rows[0].guarantee_bytes = 3;
    page.rows[1].guarantee_bytes = 3;
}

static void start_given(void)
{
    engine_task(take_6_and_give, (void *)0);
    engine_task(take_6, (void *)1);
}

/* A guarantee that is full asks for more, while what it needs is given back. */
static void check_given(void)
{
    check_page();
    if (!got[0] && !got[1])
        engine_fail("nobody has memory that is there for one");
}

/* The third process was killed in the middle of asking. */
static void prepare_killed(void)
{
    prepare_share();
    page.rows[DEAD].used_bytes = 6;
    page.rows[DEAD].turn++;
    has_ended[DEAD] = 1;
}

/* Or in the middle of taking back what it had asked for: the same, but for what is in use. */
static void prepare_killed_early(void)
{
    prepare_share();
    page.rows[DEAD].turn++;
    page.rows[DEAD].guarantee_bytes = CAPACITY;
    has_ended[DEAD] = 1;
}

/* One that was stopped there keeps what it has announced, and delays nobody for long. */
static void prepare_stopped(void)
{
    prepare_killed();
    has_ended[DEAD] = 0;
}

static void check_stopped(void)
{
    if (how_many_got())
        engine_fail("what a process that was stopped has asked for was given away");
    if (atomic_load(&page.rows[0].used_bytes) || atomic_load(&page.rows[1].used_bytes))
        engine_fail("a request that was refused is counted");
}

/* --- asking each other --- */

static void prepare_asked(void)
{
    prepare_share();
    got[0] = true;
    take(0, 8);
    page.rows[0].cached_bytes = 8;
}

static void ask(void *arg)
{
    (void)arg;
    brought = ms_asks_make(&processes[1], 4, false, 1000000000).brought_bytes;
    got[1] = take(1, 4);
}

static void hear(void)
{
    uint32_t asks;
    uint64_t wanted = ms_asks_hear(&processes[0], &asks);
    if (wanted > 8)
        engine_fail("more is asked for than there is");
    if (wanted)
        give(0, wanted);
    atomic_fetch_sub(&page.rows[0].cached_bytes, wanted);
    ms_asks_answered(&processes[0], asks, wanted);
}

static void hear_until_got(void *arg)
{
    (void)arg;
    while (!ms_asks_wait_here(&processes[0]))
        ms_asks_await(&processes[0], 1000000);
    hear();
}

static void start_asked(void)
{
    engine_task(ask, NULL);
    engine_task(hear_until_got, NULL);
}

static void check_asked(void)
{
    check_page();
    if (!got[1])
        engine_fail("what was given back for a process is not there for it");
    if (brought != 4)
        engine_fail("%u of 4 were brought", (unsigned)brought);
    if (ms_asks_wait_here(&processes[0]))
        engine_fail("an ask that was answered still waits");
}

/* Two ask the same process, which hears until both have what it had. */
static void ask_2(void *arg)
{
    unsigned i = (unsigned)(size_t)arg;
    ms_asks_make(&processes[i], 2, false, 1000000000);
    got[i] = take(i, 2);
    atomic_fetch_add(&asked, 1);
}

static void hear_twice(void *arg)
{
    (void)arg;
    while (asked < 2) {
        while (!ms_asks_wait_here(&processes[0]) && asked < 2)
            ms_asks_await(&processes[0], 1000000);
        hear();
    }
}

static void start_asked_twice(void)
{
    engine_task(ask_2, (void *)1);
    engine_task(ask_2, (void *)2);
    engine_task(hear_twice, NULL);
}

static void prepare_asked_twice(void)
{
    prepare_asked();
    take(0, 2);
    page.rows[0].cached_bytes = CAPACITY;
}

static void check_asked_twice(void)
{
    check_page();
    if (!got[1] || !got[2])
        engine_fail("what was given back for a process is not there for it");
}

const struct program share_programs[] = {
    {"small-share-two", "two processes ask for more than half of a device each", prepare_share, start_two,
     check_one, RIGHT},
    {"small-share-three", "three processes ask for more than half of a device each", prepare_share,
     start_three, check_one, RIGHT},
    {"small-share-all-fit", "three processes ask for what fits", prepare_share, start_all_fit, check_all,
     RIGHT},
    {"small-share-too-much", "one asks for more than there is, the next for what fits", prepare_too_much,
     start_too_much, check_too_much, RIGHT},
    {"small-share-too-much-after", "one asks for what fits, the next for more than there is",
     prepare_too_much, start_too_much_after, check_too_much, RIGHT},
    {"small-share-kept", "one asks for what is kept for the other, who asks for it too", prepare_kept,
     start_two, check_kept, RIGHT},
    {"small-share-kept-full", "one was stopped while it asks for what is kept for the other",
     prepare_kept_full, start_kept_full, check_kept_full, RIGHT},
    {"small-share-both-kept", "two ask within their guarantees, a third for the rest", prepare_both_kept,
     start_all_fit, check_all, RIGHT},
    {"small-share-given", "one gives back what the other asks for", prepare_share, start_given, check_given,
     RIGHT},
    {"small-share-killed", "two ask for what a killed process had asked for", prepare_killed, start_two,
     check_one, RIGHT},
    {"small-share-killed-early", "two ask for what was kept for a killed process", prepare_killed_early,
     start_two, check_one, RIGHT},
    {"small-share-stopped", "two ask for what a stopped process has asked for", prepare_stopped, start_two,
     check_stopped, RIGHT},
    {"small-share-asked", "one gives back what is free in it because another asks", prepare_asked,
     start_asked, check_asked, RIGHT},
    {"small-share-asked-twice", "two ask a third for what is free in it", prepare_asked_twice,
     start_asked_twice, check_asked_twice, RIGHT},
    {NULL, NULL, NULL, NULL, NULL, RIGHT}};
