/* test_lock.c - the lock excludes, wakes its waiters, gives up in time, and leaves errno alone. */
#include "config.h"

#include <errno.h>
#include <pthread.h>
#include <time.h>
#include <unistd.h>

#include "base/lock.h"
#include "tests/tap.h"

enum { THREADS = 8, ROUNDS = 50000 };

static struct ms_lock lock = MS_LOCK_INIT(MS_RANK_BLOCKS);
static long counter; /* not atomic: the lock is what makes the sum right */
static atomic_int errno_changed;

static void *count_up(void *arg)
{
    (void)arg;
    for (int i = 0; i < ROUNDS; i++) {
        errno = 77;
        ms_lock(&lock);
        counter++;
        if (i % 1000 == 0)
            usleep(1); /* so that others come to wait in the kernel */
        ms_unlock(&lock);
        errno_changed += errno != 77 && i % 1000 != 0;
    }
    return NULL;
}

static void *try_briefly(void *arg)
{
    *(bool *)arg = ms_lock_within(&lock, 30);
    return NULL;
}

static void *try_long(void *arg)
{
    *(bool *)arg = ms_lock_within(&lock, 20000);
    if (*(bool *)arg)
        ms_unlock(&lock);
    return NULL;
}

static bool run(void *(*body)(void *arg), unsigned held_us)
{
    bool got = false;
    pthread_t thread;
    ms_lock(&lock);
    pthread_create(&thread, NULL, body, &got);
    usleep(held_us);
    if (body == try_briefly)
        pthread_join(thread, NULL);
    ms_unlock(&lock);
    if (body != try_briefly)
        pthread_join(thread, NULL);
    return got;
}

int main(void)
{
    pthread_t threads[THREADS];
    plan(7);
    for (int i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, count_up, NULL);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    is_int(counter, (long)THREADS * ROUNDS, "no increment is lost");
    is_int(errno_changed, 0, "errno is left alone");
    is_u64(lock.state, 0, "it is free at the end");
    ok(!run(try_briefly, 1000), "waiting ends when the time is over");
    ok(run(try_long, 30000), "and succeeds when the holder lets go in time");
    is_u64(lock.state, 0, "both leave it free");
    ms_lock(&lock);
    ms_lock_reset(&lock);
    ok(ms_lock_within(&lock, 0), "a reset lock is nobody's");
    return done();
}
