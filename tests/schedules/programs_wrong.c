/* programs_wrong.c - programs with a mistake each, which the engine must find: else what it does not find
 * elsewhere says nothing.
 *
 * Their variables are atomic, so that each access is a point. */
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "base/lock.h"
#include "engine.h"
#include "locks.h"
#include "programs.h"

static _Atomic int count, flags[2], inside;
static uint32_t *_Atomic there;
static struct ms_lock locks[2] = {MS_LOCK_INIT(MS_RANK_ARENA), MS_LOCK_INIT(MS_RANK_LOG)};

static void nothing(void)
{
}

/* Two add one each, in two steps. */
static void add(void *arg)
{
    (void)arg;
    int old = atomic_load(&count);
    atomic_store(&count, old + 1);
}

static void start_lost(void)
{
    engine_task(add, NULL);
    engine_task(add, NULL);
}

static void check_lost(void)
{
    if (atomic_load(&count) != 2)
        engine_fail("one of two additions is lost");
}

/* Both look whether the other is inside before they say that they are. */
static void enter(void *arg)
{
    int me = (int)(size_t)arg;
    if (atomic_load(&flags[!me]))
        return;
    atomic_store(&flags[me], 1);
    if (atomic_fetch_add(&inside, 1))
        engine_fail("both are inside");
    atomic_fetch_sub(&inside, 1);
    atomic_store(&flags[me], 0);
}

static void start_both(void)
{
    engine_task(enter, (void *)0);
    engine_task(enter, (void *)1);
}

/* Two locks in both orders. */
static void cross(void *arg)
{
    size_t first = (size_t)arg;
    ms_lock(&locks[first]);
    ms_lock(&locks[!first]);
    ms_unlock(&locks[!first]);
    ms_unlock(&locks[first]);
}

static void start_crossed(void)
{
    engine_task(cross, (void *)0);
    engine_task(cross, (void *)1);
}

/* In words, two of which are the mistake. */
static void say(void *words)
{
    for (const char *word = words; *word; word++) {
        if (*word == 'x')
            atomic_fetch_add(&count, 1);
    }
}

static void start_words(void)
{
    static char left[2][16];
    for (unsigned i = 0; i < 2; i++) {
        program_leave_out(i ? "x c " : "a x b ", left[i], i);
        engine_task(say, left[i]);
    }
}

static void check_words(void)
{
    if (atomic_load(&count) == 2)
        engine_fail("both say x");
}

/* What one has seen is gone when it is used. */
static void use(void *arg)
{
    (void)arg;
    if (atomic_load(&there))
        *atomic_load(&there) = 1;
}

static void end(void *arg)
{
    (void)arg;
    atomic_store(&there, NULL);
}

static void start_death(void)
{
    static uint32_t number;
    atomic_store(&there, &number);
    engine_task(use, NULL);
    engine_task(end, NULL);
}

/* The vendor is called under a lock of which docs/internals/vendor-calls.md does not know. */
static struct ms_lock inner = MS_LOCK_INIT(MS_RANK_POOL_HEAP);

static void call_under_lock(void *arg)
{
    (void)arg;
    ms_lock(&inner);
    locks_at_vendor();
    ms_unlock(&inner);
}

static void start_under_lock(void)
{
    engine_task(call_under_lock, NULL);
}

const struct program wrong_programs[] = {
    {"wrong-lost", "two additions without a lock", nothing, start_lost, check_lost, true},
    {"wrong-both", "each looks before it says", nothing, start_both, nothing, true},
    {"wrong-crossed", "two locks, taken in both orders", nothing, start_crossed, nothing, true},
    {"wrong-death", "a pointer is used that another has taken away", nothing, start_death, nothing, true},
    {"wrong-under-lock", "the vendor is called under a lock", nothing, start_under_lock, nothing, true},
    {"wrong-words", "words of which not both may be said", nothing, start_words, check_words, true},
    {NULL, NULL, NULL, NULL, NULL, false},
};
