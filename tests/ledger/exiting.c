/*
 * Exits while its other threads allocate and free: device memory of all sizes, memory in the order of
 * streams, host memory and blocks that the vendor makes itself, so that figures of every kind change while
 * the report is written.
 *
 * Usage: exiting THREADS MICROSECONDS [fork|signal]: with `fork` a child is made first, while the threads
 * allocate, and must end as well; with `signal` the first thread leaves from a handler that interrupts its
 * allocations.
 */
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "vendor/abi/cuda_driver.h"
#include "vendor/abi/cuda_driver_fn.h"

enum { HELD = 24, MOST_THREADS = 32 };

struct holding {
    CUdeviceptr address;
    void *host;
    bool in_order;
};

static CUcontext context;

static size_t size_of(unsigned random)
{
    static const size_t most[] = {512, 65536, 3 << 20, 40 << 20};

    return 1 + (random >> 4) % most[random % 4];
}

static void drop(struct holding *h, CUstream stream)
{
    if (h->host)
        cuMemFreeHost(h->host);
    else if (h->in_order)
        cuMemFreeAsync(h->address, stream);
    else if (h->address)
        cuMemFree_v2(h->address);
    *h = (struct holding){.host = NULL};
}

static void take(struct holding *h, CUstream stream, unsigned random)
{
    size_t pitch, bytes = size_of(random >> 3);

    switch (random % 8) {
    case 0:
        h->in_order = cuMemAllocAsync(&h->address, bytes, stream) == CUDA_SUCCESS;
        break;
    case 1:
        if (cuMemAllocHost_v2(&h->host, bytes) != CUDA_SUCCESS)
            h->host = NULL;
        break;
    case 2:
        cuMemAllocPitch_v2(&h->address, &pitch, 1 + bytes % 1000, 1 + bytes % 7, 4);
        break;
    case 3:
        cuMemAllocManaged(&h->address, bytes, CU_MEM_ATTACH_GLOBAL);
        break;
    default:
        cuMemAlloc_v2(&h->address, bytes);
    }
}

static void turn(struct holding *h, CUstream stream, unsigned random)
{
    if (h->address || h->host)
        drop(h, stream);
    else
        take(h, stream, random);
    if (random % 64 == 5)
        cuCtxSynchronize();
}

static void *work(void *arg)
{
    unsigned random = (unsigned)((uintptr_t)arg * 7919 + (uint64_t)getpid());
    struct holding held[HELD];
    CUstream stream = NULL;

    memset(held, 0, sizeof(held));
    cuCtxSetCurrent(context);
    cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING);
    for (;;) {
        random = random * 1664525 + 1013904223;
        turn(&held[(random >> 16) % HELD], stream, random >> 3);
    }
    return NULL;
}

static void start(long threads)
{
    pthread_t thread;

    for (long i = 1; i <= threads; i++)
        pthread_create(&thread, NULL, work, (void *)i);
}

static void leave(int signal)
{
    (void)signal;
    exit(3);
}

/* A child, made while the threads of this process allocate, that asks for memory and leaves: the driver
 * refuses it, for it was begun before the fork. */
static int in_child(void)
{
    CUdeviceptr address;
    int status = 0;
    pid_t child = fork();

    if (child == 0)
        exit(cuInit(0) != CUDA_SUCCESS || cuMemAlloc_v2(&address, 1 << 20) != CUDA_SUCCESS ? 3 : 1);
    waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

static void leave_from_signal(useconds_t pause)
{
    const struct itimerval timer = {.it_value = {pause / 1000000, pause % 1000000 + 1}};

    signal(SIGALRM, leave);
    setitimer(ITIMER_REAL, &timer, NULL);
    work(NULL);
}

int main(int argc, char **argv)
{
    long threads = argc >= 3 ? atol(argv[1]) : 0;
    const char *how = argc == 4 ? argv[3] : "";
    useconds_t pause = argc >= 3 ? (useconds_t)atol(argv[2]) : 0;

    if (threads < 1 || threads > MOST_THREADS) {
        fprintf(stderr, "usage: exiting THREADS MICROSECONDS [fork|signal]\n");
        return 2;
    }
    if (cuInit(0) != CUDA_SUCCESS || cuDevicePrimaryCtxRetain(&context, 0) != CUDA_SUCCESS)
        return 1;
    start(threads);
    if (strcmp(how, "signal") == 0)
        leave_from_signal(pause);
    usleep(pause);
    exit(strcmp(how, "fork") == 0 ? in_child() : 3);
}
