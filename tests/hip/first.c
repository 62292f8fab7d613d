/*
 * The first calls of two threads at once: the second one comes while the first is still making the library
 * ready, and finds it ready or waits. The library registers itself for fork() as the last thing before it is
 * ready; this program stands in front of that registration, sends the second thread off there, and gives it
 * time to come out too early.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <time.h>

#include "vendor/abi/hip.h"
#include "vendor/abi/hip_fn.h"
#include "tests/tap.h"

/* ThreadSanitizer registers itself before a program may stand in front of anything. */
#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define STANDS_ASIDE 1
#endif
#endif
#ifdef __SANITIZE_THREAD__
#define STANDS_ASIDE 1
#endif

#ifndef STANDS_ASIDE
int __register_atfork(void (*prepare)(void), void (*parent)(void), void (*child)(void), void *library);

static atomic_bool watching, answered;
static pthread_t second;

struct answer {
    int status, count;
};

static void *call_meanwhile(void *data)
{
    struct answer *answer = data;

    answer->status = hipGetDeviceCount(&answer->count);
    atomic_store(&answered, true);
    return NULL;
}

static struct answer meanwhile = {-1, -1};

/* What is too early is there at once; what waits would wait for this thread. */
static void send_second(void)
{
    pthread_create(&second, NULL, call_meanwhile, &meanwhile);
    for (int naps = 0; naps < 100 && !atomic_load(&answered); naps++)
        nanosleep(&(struct timespec){0, 1000000}, NULL);
}

int __register_atfork(void (*prepare)(void), void (*parent)(void), void (*child)(void), void *library)
{
    __typeof__(&__register_atfork) next = (__typeof__(next))dlsym(RTLD_NEXT, "__register_atfork");

    if (atomic_exchange(&watching, false))
        send_second();
    return next(prepare, parent, child, library);
}

int main(void)
{
    struct answer first = {-1, -1};

    plan(3);
    atomic_store(&watching, true);
    first.status = hipGetDeviceCount(&first.count);
    ok(!atomic_load(&watching), "a second thread came while the first made the library ready");
    if (!atomic_load(&watching))
        pthread_join(second, NULL);
    ok(first.status == hipSuccess && first.count == 1, "the first has its device");
    ok(meanwhile.status == hipSuccess && meanwhile.count == 1, "and so has the second (status %d)",
       meanwhile.status);
    return done();
}
#else
int main(void)
{
    skip_all("a sanitizer's own threads come first");
}
#endif
