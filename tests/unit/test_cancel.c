/* test_cancel.c - a thread's type of cancellation is told by looking, in every thread, and looking for where
 * it is kept changes nothing. */
#include "config.h"

#include <pthread.h>

#include "base/thread/cancel.h"
#include "tests/tap.h"

enum { THREADS = 64 };

static bool looks(int type)
{
    pthread_setcanceltype(type, NULL);
    bool deferred = ms_cancel_is_deferred();
    pthread_setcanceltype(PTHREAD_CANCEL_DEFERRED, NULL);
    return deferred;
}

/* Cancellation is disabled, so that an asynchronous type ends nobody. */
static void *look_around(void *wrong)
{
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
    for (int i = 0; i < 100; i++) {
        if (looks(PTHREAD_CANCEL_ASYNCHRONOUS) || !looks(PTHREAD_CANCEL_DEFERRED))
            atomic_fetch_add((atomic_int *)wrong, 1);
    }
    return NULL;
}

static void *cancel_caller(void *thread)
{
    pthread_cancel(*(pthread_t *)thread);
    return NULL;
}

static int wrong_in_threads(void)
{
    static atomic_int wrong;
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, look_around, &wrong);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    return wrong;
}

static void *learn_when_cancelled(void *learned)
{
    pthread_t self = pthread_self(), other;
    int type;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
    pthread_create(&other, NULL, cancel_caller, &self);
    pthread_join(other, NULL);
    ms_cancel_learn();
    pthread_setcanceltype(PTHREAD_CANCEL_DEFERRED, &type);
    *(bool *)learned = type == PTHREAD_CANCEL_DEFERRED;
    return NULL; /* it was asked to end, and was not ended */
}

int main(void)
{
    pthread_t thread;
    void *result = &thread;
    bool learned = false;
    int type;
    plan(0);
    ok(!ms_cancel_is_deferred(), "nothing is said of a type before it was learned where it is");
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
    ms_cancel_learn();
    pthread_setcanceltype(PTHREAD_CANCEL_DEFERRED, &type);
    ok(type == PTHREAD_CANCEL_DEFERRED, "the type is what it was");
    ok(looks(PTHREAD_CANCEL_DEFERRED) && !looks(PTHREAD_CANCEL_ASYNCHRONOUS), "the type is seen");
    ok(wrong_in_threads() == 0, "in other threads too");
    pthread_create(&thread, NULL, learn_when_cancelled, &learned);
    pthread_join(thread, &result);
    ok(learned && !result, "a thread that was asked to end learns, and is not ended by it");
    return done();
}
