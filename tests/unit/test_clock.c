/* test_clock.c - the clock keeps time with the system's; a nap keeps errno and is no place where a thread is
 * cancelled. */
#include "config.h"

#include <errno.h>
#include <pthread.h>
#include <time.h>

#include "base/clock.h"
#include "tests/tap.h"

enum { NAP_NS = 2000000, READS = 100000, APART_NS = 1000000 };

static uint64_t system_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* The system's clock is read before and after, so that a reading has to lie between the two; a millisecond
 * apart is wrong on any machine. */
static bool keeps_time(void)
{
    for (int i = 0; i < READS; i++) {
        uint64_t before = system_ns(), own = ms_clock_ns(), after = system_ns();
        if (own + APART_NS < before || own > after + APART_NS) {
            diag("read %" PRIu64 " between %" PRIu64 " and %" PRIu64, own, before, after);
            return false;
        }
    }
    return true;
}

static void *nap_with_a_request(void *arg)
{
    bool *went_on = arg;

    pthread_cancel(pthread_self()); /* deferred: it comes at the next place where it may */
    ms_clock_sleep(NAP_NS);
    *went_on = true;
    pthread_testcancel();
    return NULL;
}

int main(void)
{
    bool went_on = false;
    pthread_t thread;
    void *result = NULL;

    plan(6);
    ok(keeps_time(), "before it knows the counter, it says what the system says");
    ms_clock_start();
    ok(keeps_time(), "and afterwards");
    uint64_t begun = system_ns();
    errno = EDOM;
    ms_clock_sleep(NAP_NS);
    is_int(errno, EDOM, "a nap keeps errno");
    ok(system_ns() - begun >= NAP_NS, "and takes the time that it is given");
    if (pthread_create(&thread, NULL, nap_with_a_request, &went_on) || pthread_join(thread, &result))
        bail("no thread");
    ok(went_on, "a thread that is to be cancelled goes on behind a nap");
    ok(result == PTHREAD_CANCELED, "and ends at the next place for it");
    return done();
}
