/* test_bias.c - a lock with an owner excludes like any other, whoever takes it away and whenever; owners come
 * and go. */
#include "config.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/thread/bias.h"
#include "base/clock.h"
#include "tests/tap.h"

enum { OTHERS = 3, LOCKS = 4, MANY = 300, IN_A_ROW = 100, ROUNDS = 40, OFTEN = 2000, PAUSE = 2000 };
/* As src/base/thread/bias.c has them. */
enum { WORTH_NS = 200000, AT_ONCE = 5 };

static struct ms_bias locks[LOCKS] = {[0 ... LOCKS - 1] = MS_BIAS_INIT(MS_RANK_SITE)};
static long counters[LOCKS];        /* not atomic: the locks are what makes the sums right */
static int owner_rounds = 10000000; /* a tenth where a sanitizer watches each */
static atomic_int running;
static atomic_long taken;

static void once(unsigned which)
{
    ms_bias_lock(&locks[which], MS_BIAS_SHARD);
    counters[which]++;
    ms_bias_unlock(&locks[which], MS_BIAS_SHARD);
}

/* Nearly always the same lock, which becomes this thread's; now and then another, which may be another's. */
static void *own(void *arg)
{
    unsigned mine = *(unsigned *)arg;
    for (int i = 0; i < owner_rounds; i++)
        once(mine);
    atomic_fetch_add(&taken, owner_rounds);
    atomic_fetch_sub(&running, 1);
    return NULL;
}

static void *disturb(void *arg)
{
    (void)arg;
    for (unsigned i = 0; atomic_load(&running) > 0; i++) {
        once(i % LOCKS);
        if (ms_bias_try(&locks[i / 2 % LOCKS], MS_BIAS_SHARD)) {
            counters[i / 2 % LOCKS]++;
            ms_bias_unlock(&locks[i / 2 % LOCKS], MS_BIAS_SHARD);
            atomic_fetch_add(&taken, 1);
        }
        for (int k = 0; k < LOCKS; k++)
            ms_bias_lock_plainly(&locks[k], MS_BIAS_SHARD);
        for (int k = 0; k < LOCKS; k++) {
            counters[k]++;
            locks[k].worth_ns = 0; /* so that it is owned again at once */
            ms_bias_unlock_plainly(&locks[k]);
        }
        atomic_fetch_add(&taken, 1 + LOCKS);
        for (int pause = 0; pause < PAUSE; pause++)
            __asm__ volatile("");
    }
    return NULL;
}

static void test_excludes(void)
{
    pthread_t owners[LOCKS], others[OTHERS];
    unsigned numbers[LOCKS];
    long sum = 0;
    atomic_store(&running, LOCKS);
    for (unsigned i = 0; i < LOCKS; i++) {
        numbers[i] = i;
        pthread_create(&owners[i], NULL, own, &numbers[i]);
    }
    for (int i = 0; i < OTHERS; i++)
        pthread_create(&others[i], NULL, disturb, NULL);
    for (int i = 0; i < LOCKS; i++)
        pthread_join(owners[i], NULL);
    for (int i = 0; i < OTHERS; i++)
        pthread_join(others[i], NULL);
    for (int i = 0; i < LOCKS; i++)
        sum += counters[i];
    ok(sum == atomic_load(&taken), "whoever is inside is alone: %ld of %ld", sum, atomic_load(&taken));
}

static void take_in_a_row(struct ms_bias *lock)
{
    for (int i = 0; i < IN_A_ROW; i++) {
        ms_bias_lock(lock, MS_BIAS_TCACHE);
        ms_bias_unlock(lock, MS_BIAS_TCACHE);
    }
}

static bool is_owned(const struct ms_bias *lock)
{
    return atomic_load(&lock->owner) != NULL;
}

static struct ms_bias lone = MS_BIAS_INIT(MS_RANK_SITE), second = MS_BIAS_INIT(MS_RANK_SITE);

static void *hold_it(void *arg)
{
    take_in_a_row(&lone);
    ms_bias_lock(&lone, MS_BIAS_TCACHE);
    atomic_store(&running, 1);
    while (atomic_load(&running) == 1)
        usleep(1000);
    ms_bias_unlock(&lone, MS_BIAS_TCACHE);
    return arg;
}

static void test_timeout(bool has_owners)
{
    pthread_t thread;
    atomic_store(&running, 0);
    pthread_create(&thread, NULL, hold_it, NULL);
    while (atomic_load(&running) == 0)
        usleep(1000);
    ok(is_owned(&lone) == has_owners, "who takes a lock again and again owns it");
    ok(!ms_bias_lock_within(&lone, MS_BIAS_TCACHE, 30), "while its owner is inside nobody gets it in time");
    ok(!ms_bias_try(&lone, MS_BIAS_TCACHE), "nor by trying");
    ok(is_owned(&lone) == has_owners, "and the owner goes on as before");
    atomic_store(&running, 2);
    pthread_join(thread, NULL);
    errno = 77;
    bool got = ms_bias_lock_within(&lone, MS_BIAS_TCACHE, 20000);
    ok(got && errno == 77, "when it has left it is another's, and errno is as it was");
    if (got)
        ms_bias_unlock(&lone, MS_BIAS_TCACHE);
}

/* Both are this thread's; the second is taken while it is inside the first. */
static void test_nested(void)
{
    take_in_a_row(&lone);
    take_in_a_row(&second);
    ms_bias_lock(&lone, MS_BIAS_TCACHE);
    ms_bias_lock(&second, MS_BIAS_TCACHE);
    ok(!ms_bias_lock_within(&lone, MS_BIAS_TCACHE, 10), "inside two: the first is held");
    ms_bias_unlock(&second, MS_BIAS_TCACHE);
    ms_bias_unlock(&lone, MS_BIAS_TCACHE);
    ok(ms_bias_try(&second, MS_BIAS_TCACHE), "and both are free afterwards");
    ms_bias_unlock(&second, MS_BIAS_TCACHE);
}

static void *briefly(void *arg)
{
    take_in_a_row(arg);
    return NULL;
}

static void *take_away(void *arg)
{
    ms_bias_lock_plainly(arg, MS_BIAS_TCACHE);
    ms_bias_unlock_plainly(arg);
    return NULL;
}

static void visit(struct ms_bias *lock)
{
    pthread_t other;
    pthread_create(&other, NULL, take_away, lock);
    pthread_join(other, NULL);
}

static bool is_owned_when_taken(struct ms_bias *lock)
{
    ms_bias_lock(lock, MS_BIAS_TCACHE);
    ms_bias_unlock(lock, MS_BIAS_TCACHE);
    return is_owned(lock);
}

/* A lock that another thread takes now and then, as at the end of each stretch of a timeline, is its owner's
 * again at once, however often that was. */
static void test_worth(bool has_owners)
{
    struct ms_bias lock = MS_BIAS_INIT(MS_RANK_SITE);
    int owned = 0;
    take_in_a_row(&lock);
    for (int i = 0; i < ROUNDS; i++) {
        owned += is_owned_when_taken(&lock);
        usleep(1000);
        visit(&lock);
    }
    ok(owned == (has_owners ? ROUNDS : 0), "who owned it for long owns it again: %d of %d times", owned,
       ROUNDS);
}

/* ... but not one that is taken away again and again: a few times, and then as often as owners are worth. */
static void test_too_often(bool has_owners)
{
    struct ms_bias lock = MS_BIAS_INIT(MS_RANK_SITE);
    uint64_t begun_ns = ms_clock_ns();
    unsigned owned = 0;
    take_in_a_row(&lock);
    for (int i = 0; i < OFTEN; i++) {
        owned += is_owned_when_taken(&lock);
        visit(&lock);
    }
    uint64_t most = AT_ONCE + 1 + (ms_clock_ns() - begun_ns) / WORTH_NS;
    ok(owned <= most && (owned >= AT_ONCE || !has_owners),
       "who loses it again and again owns it %u times, and %u are worth it", owned, (unsigned)most);
}

/* Who comes to stay gets it. */
static void test_another(bool has_owners)
{
    struct ms_bias lock = MS_BIAS_INIT(MS_RANK_SITE);
    pthread_t other;
    take_in_a_row(&lock);
    pthread_create(&other, NULL, briefly, &lock);
    pthread_join(other, NULL);
    ok(is_owned(&lock) == has_owners && !ms_bias_try(&lock, MS_BIAS_TCACHE) == has_owners,
       "who takes it in a row is its owner from then on");
}

/* More threads than there are records for, one after the other. */
static void test_many(void)
{
    for (int i = 0; i < MANY; i++) {
        pthread_t thread;
        struct ms_bias lock = MS_BIAS_INIT(MS_RANK_SITE);
        pthread_create(&thread, NULL, briefly, i % 2 ? &lone : &lock);
        pthread_join(thread, NULL);
    }
    take_in_a_row(&lone);
    ok(ms_bias_try(&lone, MS_BIAS_TCACHE), "what belonged to threads that have ended can be had");
    ms_bias_unlock(&lone, MS_BIAS_TCACHE);
}

static void test_child(void)
{
    int status = -1;
    fflush(stdout); /* whose child would write it once more */
    pid_t child = fork();
    if (child == 0) {
        struct ms_bias fresh = MS_BIAS_INIT(MS_RANK_SITE);
        ms_bias_reset();
        ms_bias_start();
        take_in_a_row(&fresh);
        _exit(ms_bias_lock_within(&fresh, MS_BIAS_TCACHE, 1000) ? 0 : 1);
    }
    waitpid(child, &status, 0);
    ok(status == 0, "a fork child starts anew");
}

int main(void)
{
    const char *sanitizer = getenv("TEST_SANITIZE");

    if (sanitizer && *sanitizer)
        owner_rounds /= 10;
    struct ms_bias probe = MS_BIAS_INIT(MS_RANK_SITE);
    ms_bias_start();
    take_in_a_row(&probe);
    bool has_owners = is_owned(&probe);
    diag("%s", has_owners ? "locks have owners here" : "no lock has an owner here");
    test_excludes();
    test_timeout(has_owners);
    test_nested();
    test_worth(has_owners);
    test_too_often(has_owners);
    test_another(has_owners);
    test_many();
    test_child();
    return done();
}
