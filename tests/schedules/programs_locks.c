/* programs_locks.c - the locks of src/base: one at a time inside, and everybody comes in. */
#include <sched.h>
#include <stdatomic.h>
#include <stddef.h>

#include "base/thread/bias.h"
#include "base/lock.h"
#include "engine.h"
#include "programs.h"

enum { TIMES = 3, STREAK = 40 /* longer than it takes to own a lock */, PAIRS = 64, TURNS = 2 };

static struct ms_lock lock = MS_LOCK_INIT(MS_RANK_POOL_TCACHE);
static struct ms_bias bias, shard, second;
static _Atomic int turns;
static int inside, total, inside_shard, total_shard, inside_second, total_second;

static void nothing(void)
{
}

/* The point lies between, so that others may come in if they can. */
static void work(void)
{
    if (inside++)
        engine_fail("two are inside");
    engine_point(__builtin_return_address(0));
    total++;
    if (--inside)
        engine_fail("two were inside");
}

static void lock_some(void *arg)
{
    (void)arg;
    for (int i = 0; i < TIMES; i++) {
        ms_lock(&lock);
        work();
        ms_unlock(&lock);
    }
}

static void lock_once(void *arg)
{
    (void)arg;
    ms_lock(&lock);
    work();
    ms_unlock(&lock);
}

static void lock_within(void *arg)
{
    (void)arg;
    for (int i = 0; i < TIMES; i++) {
        if (ms_lock_within(&lock, 1)) {
            work();
            ms_unlock(&lock);
        } else {
            total++; /* a time-out is an answer */
        }
    }
}

static void start_lock(void)
{
    engine_task(lock_some, NULL);
    engine_task(lock_some, NULL);
    engine_task(lock_within, NULL);
}

static void start_lock_once(void)
{
    engine_task(lock_once, NULL);
    engine_task(lock_once, NULL);
}

static void check_lock_once(void)
{
    if (total != 2)
        engine_fail("%d of 2 came in", total);
}

static void check_lock(void)
{
    if (total != 3 * TIMES)
        engine_fail("%d of %d came in", total, 3 * TIMES);
}

static void prepare_bias(void)
{
    bias.lock = (struct ms_lock)MS_LOCK_INIT(MS_RANK_POOL_TCACHE);
    ms_bias_start();
}

/* Often enough to own it. */
static void own(void *arg)
{
    (void)arg;
    for (int i = 0; i < STREAK; i++) {
        ms_bias_lock(&bias, MS_BIAS_TCACHE);
        work();
        ms_bias_unlock(&bias, MS_BIAS_TCACHE);
    }
}

static void take_away(void *arg)
{
    (void)arg;
    for (int i = 0; i < TIMES; i++) {
        ms_bias_lock_plainly(&bias, MS_BIAS_TCACHE);
        work();
        ms_bias_unlock_plainly(&bias);
    }
}

static void start_bias(void)
{
    engine_task(own, NULL);
    engine_task(take_away, NULL);
    engine_task(own, NULL);
}

/* Only if it is nobody's. */
static void try_some(void *arg)
{
    (void)arg;
    for (int i = 0; i < TIMES; i++) {
        if (!ms_bias_try(&bias, MS_BIAS_TCACHE))
            continue;
        work();
        ms_bias_unlock(&bias, MS_BIAS_TCACHE);
    }
}

static void start_tries(void)
{
    engine_task(own, NULL);
    engine_task(try_some, NULL);
}

static void prepare_pair(void)
{
    shard.lock = (struct ms_lock)MS_LOCK_INIT(MS_RANK_SITE);
    second.lock = (struct ms_lock)MS_LOCK_INIT(MS_RANK_POOL_TCACHE);
    prepare_bias();
}

static void work_in_shard(void)
{
    if (inside_shard++)
        engine_fail("two are inside the second lock");
    engine_point(__builtin_return_address(0));
    total_shard++;
    if (--inside_shard)
        engine_fail("two were inside the second lock");
}

static void work_in_both(void)
{
    work();
    work_in_shard();
}

/* Long enough to own both, to lose them and to own them again. */
static void own_pair(void *arg)
{
    struct ms_bias_thread *me = NULL;
    bool others_are_void;
    (void)arg;
    for (int i = 0; i < PAIRS; i++) {
        if (me && ms_bias_enter_both(me)) {
            work_in_both();
            ms_bias_leave_both(me);
            continue;
        }
        ms_bias_lock(&bias, MS_BIAS_TCACHE);
        ms_bias_lock(&shard, MS_BIAS_SHARD);
        work_in_both();
        ms_bias_unlock(&shard, MS_BIAS_SHARD);
        ms_bias_unlock(&bias, MS_BIAS_TCACHE);
        me = ms_bias_pair(&bias, &shard, &others_are_void);
    }
}

static void take_shard_away(void *arg)
{
    (void)arg;
    ms_bias_lock_plainly(&shard, MS_BIAS_SHARD);
    work_in_shard();
    ms_bias_unlock_plainly(&shard);
}

static void take_one_away(void *arg)
{
    (void)arg;
    ms_bias_lock_plainly(&bias, MS_BIAS_TCACHE);
    work();
    ms_bias_unlock_plainly(&bias);
}

static void start_pair(void)
{
    engine_task(own_pair, NULL);
    engine_task(take_one_away, NULL);
    engine_task(take_shard_away, NULL);
}

/* It owns both before others come, and asks again and again whether it does. */
static void ask_for_pair(void *arg)
{
    bool others_are_void;
    (void)arg;
    for (int i = 0; i < STREAK / 2; i++) {
        ms_bias_lock(&bias, MS_BIAS_TCACHE);
        ms_bias_unlock(&bias, MS_BIAS_TCACHE);
        ms_bias_lock(&shard, MS_BIAS_SHARD);
        ms_bias_unlock(&shard, MS_BIAS_SHARD);
    }
    engine_new_thread(take_one_away, NULL);
    for (int i = 0; i < TIMES; i++) {
        struct ms_bias_thread *me = ms_bias_pair(&bias, &shard, &others_are_void);
        if (me && ms_bias_enter_both(me)) {
            work_in_both();
            ms_bias_leave_both(me);
        }
    }
}

static void start_pair_asked(void)
{
    engine_task(ask_for_pair, NULL);
}

static void work_in_second_alone(void)
{
    if (inside_second++)
        engine_fail("two are inside the other lock");
    engine_point(__builtin_return_address(0));
    total_second++;
    if (--inside_second)
        engine_fail("two were inside the other lock");
}

static void work_in_second(void)
{
    work_in_second_alone();
    work_in_shard();
}

/* One of two pairs that have the shard in common, as long as it may be, or each of its locks. `known`: of
 * which it was told that both are its own. */
static void take_of_two(struct ms_bias_thread **me, bool known[2], int which)
{
    struct ms_bias *tcache = which ? &second : &bias;
    bool others_are_void = false;
    if (known[which]) {
        ms_bias_choose_both(*me, tcache, &shard);
        if (ms_bias_enter_both(*me)) {
            which ? work_in_second() : work_in_both();
            ms_bias_leave_both(*me);
            return;
        }
        known[0] = known[1] = false;
    }
    ms_bias_lock(tcache, MS_BIAS_TCACHE);
    ms_bias_lock(&shard, MS_BIAS_SHARD);
    which ? work_in_second() : work_in_both();
    ms_bias_unlock(&shard, MS_BIAS_SHARD);
    ms_bias_unlock(tcache, MS_BIAS_TCACHE);
    struct ms_bias_thread *told = ms_bias_pair(tcache, &shard, &others_are_void);
    if (others_are_void)
        known[0] = known[1] = false;
    known[which] = told != NULL;
    if (told)
        *me = told;
}

static void own_two_pairs(void *arg)
{
    struct ms_bias_thread *me = NULL;
    bool known[2] = {false, false};
    (void)arg;
    for (int i = 0; i < STREAK; i++)
        take_of_two(&me, known, 0);
    for (int i = 0; i < 2 * PAIRS - STREAK; i++)
        take_of_two(&me, known, i < STREAK ? 1 : i & 1);
}

static void take_second_away(void *arg)
{
    (void)arg;
    ms_bias_lock_plainly(&second, MS_BIAS_TCACHE);
    work_in_second_alone();
    ms_bias_unlock_plainly(&second);
}

static void start_two_pairs(void)
{
    engine_task(own_two_pairs, NULL);
    engine_task(take_one_away, NULL);
    engine_task(take_second_away, NULL);
}

static void check_two_pairs(void)
{
    if (total + total_second != 2 * PAIRS + 2 || total_shard != 2 * PAIRS)
        engine_fail("%d and %d of %d came in", total + total_second, total_shard, 2 * PAIRS + 2);
}

static void check_pair(void)
{
    if (total != PAIRS + 1 || total_shard != PAIRS + 1)
        engine_fail("%d and %d of %d came in", total, total_shard, PAIRS + 1);
}

static void check_bias(void)
{
    if (total != 2 * STREAK + TIMES)
        engine_fail("%d of %d came in", total, 2 * STREAK + TIMES);
}

/* Two who stand before the third in every list, and let others go on until it has been here twice. */
static void yield_for(void *arg)
{
    (void)arg;
    while (atomic_load_explicit(&turns, memory_order_acquire) < TURNS)
        sched_yield();
}

static void yield_between(void *arg)
{
    (void)arg;
    for (int i = 0; i < TURNS; i++) {
        sched_yield();
        atomic_fetch_add_explicit(&turns, 1, memory_order_release);
    }
}

static void start_yielders(void)
{
    engine_task(yield_for, NULL);
    engine_task(yield_for, NULL);
    engine_task(yield_between, NULL);
}

const struct program locks_programs[] = {
    {"lock", "two take a lock, a third for a millisecond at most", nothing, start_lock, check_lock, false},
    {"lock-once", "two take a lock, once each", nothing, start_lock_once, check_lock_once, false},
    {"bias", "two come to own a lock, which a third takes away", prepare_bias, start_bias, check_bias, false},
    {"bias-tries", "one comes to own a lock, which another takes while it is nobody's", prepare_bias,
     start_tries, nothing, false},
    {"bias-pair", "one comes to own two locks and takes them together; others take one of them away each",
     prepare_pair, start_pair, check_pair, false},
    {"bias-pair-asked", "one owns two locks and asks for both, while another takes one away", prepare_pair,
     start_pair_asked, nothing, false},
    {"bias-two-pairs", "one takes one of two pairs that it owns, in turn; others take a lock of each away",
     prepare_pair, start_two_pairs, check_two_pairs, false},
    {"yielders", "two let others go on until a third, which does too, has got through", nothing,
     start_yielders, nothing, false},
    {NULL, NULL, NULL, NULL, NULL, false},
};
