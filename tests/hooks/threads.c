/*
 * threads.c - what threads, forks, signals and cancellation do to the code that runs inside a hook.
 *
 * usage: threads SCENARIO. Linked with a driver that has no lock of its own (plain_driver.c), so nothing can
 * stick but memshim; the test's watchdog ends what does. Each scenario prints facts that are the same
 * natively and under memshim.
 */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "vendor/abi/cuda_driver_fn.h"

int plain_driver_live(void);

/* What the driver has given and not taken back: with a pool before it, not what the program has. */
static int live(void)
{
    return getenv("WITH_POOL") ? 0 : plain_driver_live();
}

static atomic_bool stop;
static atomic_int failures;
static atomic_int handled;

static void pair(size_t bytes)
{
    CUdeviceptr p = 0;

    if (cuMemAlloc_v2(&p, bytes) != CUDA_SUCCESS || cuMemFree_v2(p) != CUDA_SUCCESS)
        failures++;
}

/* A program large enough to have more call sites than anything that remembers them. */
#define SITE(n)                                                                                              \
    static void site_##n(size_t bytes)                                                                       \
    {                                                                                                        \
        CUdeviceptr p = 0;                                                                                   \
                                                                                                             \
        if (cuMemAlloc_v2(&p, bytes) != CUDA_SUCCESS || cuMemFree_v2(p) != CUDA_SUCCESS)                     \
            failures++;                                                                                      \
    }
#define EACH4(x, n)    x(n##0) x(n##1) x(n##2) x(n##3)
#define EACH16(x, n)   EACH4(x, n##0) EACH4(x, n##1) EACH4(x, n##2) EACH4(x, n##3)
#define EACH64(x, n)   EACH16(x, n##0) EACH16(x, n##1) EACH16(x, n##2) EACH16(x, n##3)
#define EACH256(x, n)  EACH64(x, n##0) EACH64(x, n##1) EACH64(x, n##2) EACH64(x, n##3)
#define EACH1024(x, n) EACH256(x, n##0) EACH256(x, n##1) EACH256(x, n##2) EACH256(x, n##3)
#define ADDRESS(n)     site_##n,
EACH1024(SITE, 1)
static void (*const sites[])(size_t) = {EACH1024(ADDRESS, 1)};

static void *pair_until_stopped(void *argument)
{
    size_t count = sizeof(sites) / sizeof(sites[0]);

    for (size_t i = (size_t)(uintptr_t)argument * 97; !stop; i++)
        sites[i * 7 % count]((i % 64 + 1) << 9);
    return NULL;
}

static void *one_pair(void *unused)
{
    (void)unused;
    pair(4096);
    return NULL;
}

static int child(void)
{
    CUdeviceptr p = 0;

    alarm(20);
    for (int i = 0; i < 20; i++)
        sites[i * 50](512);
    if (cuMemAlloc_v2(&p, 7 << 10) != CUDA_SUCCESS)
        return 1;
    return failures ? 2 : 0;
}

/* Children leave by exit, through every destructor, with the parent's other threads gone in the middle of a
 * hook. */
static int fork_storm(void)
{
    pthread_t threads[4];
    CUdeviceptr kept;
    int bad = 0;

    cuMemAlloc_v2(&kept, 9 << 10);
    for (int i = 0; i < 4; i++)
        pthread_create(&threads[i], NULL, pair_until_stopped, (void *)(intptr_t)i);
    for (int i = 0; i < 60; i++) {
        pid_t pid = fork();
        int status;

        if (pid == 0)
            exit(child());
        if (pid < 0 || waitpid(pid, &status, 0) != pid || status != 0)
            bad++;
    }
    stop = true;
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    printf("children that failed: %d, failures: %d\n", bad, failures);
    return 0;
}

/* The child of a process that has not touched the GPU yet is the first to do so. */
static int fork_first(void)
{
    pid_t pid = fork();
    int status;

    if (pid == 0)
        exit(child());
    waitpid(pid, &status, 0);
    printf("child: %d\n", status);
    return 0;
}

/* 10,000 threads in a row, or as many as are asked for, a hundred at a time; every one calls a hook once. */
static int many_threads(const char *count)
{
    pthread_t threads[100];

    for (int round = count ? atoi(count) / 100 : 100; round; round--) {
        for (int i = 0; i < 100; i++)
            if (pthread_create(&threads[i], NULL, one_pair, NULL))
                failures++;
        for (int i = 0; i < 100; i++)
            pthread_join(threads[i], NULL);
    }
    printf("failures: %d, live in the driver: %d\n", failures, live());
    return 0;
}

static void *pair_until_cancelled(void *kind)
{
    pthread_setcanceltype(kind ? PTHREAD_CANCEL_ASYNCHRONOUS : PTHREAD_CANCEL_DEFERRED, NULL);
    for (size_t i = 1;; i++) {
        sites[i * 7 % (sizeof(sites) / sizeof(sites[0]))]((i % 64 + 1) << 9);
        pthread_testcancel();
    }
    return NULL;
}

/* Threads are cancelled in the middle; whoever comes after must still get through. */
static int cancel(bool asynchronous)
{
    struct timespec nap = {0, 300000};
    int cancelled = 0;

    for (int i = 0; i < 300; i++) {
        pthread_t threads[2];
        void *result;

        for (int k = 0; k < 2; k++)
            pthread_create(&threads[k], NULL, pair_until_cancelled, asynchronous ? &stop : NULL);
        nanosleep(&nap, NULL);
        for (int k = 0; k < 2; k++) {
            pthread_cancel(threads[k]);
            pthread_join(threads[k], &result);
            cancelled += result == PTHREAD_CANCELED;
        }
        pair(4096);
    }
    printf("cancelled: %d\n", cancelled);
    return 0;
}

#if defined(__SANITIZE_ADDRESS__)
#define WATCHED_STACK 1
#elif defined(__clang__)
#if __has_feature(address_sanitizer)
#define WATCHED_STACK 1
#endif
#endif

/* AddressSanitizer does not hear that a cancelled thread's frames are gone, and takes variables of later ones
 * for theirs. */
static void forget_unwound_frames(void)
{
#ifdef WATCHED_STACK
    enum { DEEP = 64 << 10 };
    void __asan_unpoison_memory_region(const volatile void *address, size_t bytes);
    char *here = __builtin_frame_address(0);

    __asan_unpoison_memory_region(here - DEEP, DEEP);
#endif
}

/* What ends a thread may use the GPU, from less deep in the stack and from deeper. */
static void allocate_at_end(void *bytes)
{
    CUdeviceptr p = 0;

    forget_unwound_frames();
    if (cuMemAlloc_v2(&p, (size_t)(uintptr_t)bytes) != CUDA_SUCCESS)
        failures++;
}

static void allocate_deep(void *bytes)
{
    char room[8192];

    memset(room, 1, sizeof(room));
    __asm__ volatile("" ::"r"(room) : "memory");
    allocate_at_end(bytes);
}

static pthread_key_t at_end;

static void *cancelled_inside(void *unused)
{
    CUdeviceptr p = 0;

    (void)unused;
    pthread_setspecific(at_end, (void *)(uintptr_t)2048);
    pthread_cleanup_push(allocate_at_end, (void *)(uintptr_t)1024);
    pthread_cancel(pthread_self());
    cuMemAlloc_v2(&p, 0xcace1);
    failures++; /* it is a cancellation point of the driver's */
    pthread_cleanup_pop(0);
    return NULL;
}

static int cancel_inside(void)
{
    int cancelled = 0;

    pthread_key_create(&at_end, allocate_deep);
    for (int i = 0; i < 10; i++) {
        pthread_t thread;
        void *result = NULL;

        pthread_create(&thread, NULL, cancelled_inside, NULL);
        pthread_join(thread, &result);
        cancelled += result == PTHREAD_CANCELED;
    }
    pair(4096);
    printf("cancelled: %d, failures: %d, live: %d\n", cancelled, failures, live());
    return 0;
}

/* A program that switched cancellation off, or its type, finds it so after a call. */
static int cancel_state(void)
{
    int state = -1, type = -1;

    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
    pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, NULL);
    pair(4096);
    pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, &state);
    pthread_setcanceltype(PTHREAD_CANCEL_DEFERRED, &type);
    printf("kept: %d %d\n", state == PTHREAD_CANCEL_DISABLE, type == PTHREAD_CANCEL_ASYNCHRONOUS);
    pair(4096);
    pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, &state);
    printf("enabled: %d\n", state == PTHREAD_CANCEL_ENABLE);
    return 0;
}

static void allocate_in_handler(int number)
{
    int saved = errno;

    (void)number;
    sites[handled++ * 11 % (sizeof(sites) / sizeof(sites[0]))](1024);
    errno = saved;
}

/* A profiler's signal arrives anywhere, also inside a hook, and its handler allocates. */
static int signals(void)
{
    struct sigaction action = {.sa_handler = allocate_in_handler, .sa_flags = SA_RESTART}, now;
    struct itimerval every = {{0, 200}, {0, 200}};
    struct timespec begin, end;
    pthread_t threads[2];
    size_t next = 0;

    sigaction(SIGPROF, &action, NULL);
    setitimer(ITIMER_PROF, &every, NULL);
    for (int i = 0; i < 2; i++)
        pthread_create(&threads[i], NULL, pair_until_stopped, (void *)(intptr_t)i);
    clock_gettime(CLOCK_MONOTONIC, &begin);
    do {
        sites[next++ % (sizeof(sites) / sizeof(sites[0]))](2048);
        clock_gettime(CLOCK_MONOTONIC, &end);
    } while (end.tv_sec - begin.tv_sec < 10 && handled < 200);
    stop = true;
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    setitimer(ITIMER_PROF, &(struct itimerval){{0, 0}, {0, 0}}, NULL);
    sigaction(SIGPROF, NULL, &now);
    printf("failures: %d, live: %d, handler kept: %d, signals came: %d\n", failures, live(),
           now.sa_handler == allocate_in_handler, handled > 0);
    return 0;
}

/* errno belongs to the program and to the driver, whichever way the call ends. */
static int keeps_errno(void)
{
    CUdeviceptr p = 0;
    int after[6];

    errno = 1234;
    cuMemAlloc_v2(&p, 4096);
    after[0] = errno;
    cuMemFree_v2(p);
    after[1] = errno;
    cuMemAlloc_v2(NULL, 4096);
    after[2] = errno;
    cuMemAlloc_v2(&p, (size_t)1 << 41);
    after[3] = errno;
    cuMemFree_v2(0);
    after[4] = errno;
    cuMemFree_v2(1);
    after[5] = errno == EXDEV;
    printf("errno %d %d %d %d %d, the driver's own: %d\n", after[0], after[1], after[2], after[3], after[4],
           after[5]);
    return 0;
}

/* A thread with a small stack must not run out of it in a hook. */
static int small_stack(void)
{
    pthread_attr_t attributes;
    pthread_t thread;

    pthread_attr_init(&attributes);
    printf("size %d\n", pthread_attr_setstacksize(&attributes, 32768));
    printf("create %d\n", pthread_create(&thread, &attributes, one_pair, NULL));
    pthread_join(thread, NULL);
    printf("failures %d\n", failures);
    return 0;
}

int main(int argc, char **argv)
{
    const char *what = argc > 1 ? argv[1] : "";

    cuInit(0);
    if (strcmp(what, "fork-storm") == 0)
        return fork_storm();
    if (strcmp(what, "fork-first") == 0)
        return fork_first();
    if (strcmp(what, "many-threads") == 0)
        return many_threads(argc > 2 ? argv[2] : NULL);
    if (strcmp(what, "cancel-deferred") == 0)
        return cancel(false);
    if (strcmp(what, "cancel-asynchronous") == 0)
        return cancel(true);
    if (strcmp(what, "cancel-inside") == 0)
        return cancel_inside();
    if (strcmp(what, "cancel-state") == 0)
        return cancel_state();
    if (strcmp(what, "signals") == 0)
        return signals();
    if (strcmp(what, "errno") == 0)
        return keeps_errno();
    if (strcmp(what, "small-stack") == 0)
        return small_stack();
    fprintf(stderr, "threads: no scenario '%s'\n", what);
    return 2;
}
