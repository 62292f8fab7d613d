/*
 * beside_hip.c - what beside.c does, with HIP's calls. A free waits for the device here, so the work that it
 * waits for is short.
 */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "vendor/abi/hip.h"
#include "vendor/abi/hip_fn.h"

#define MIB ((size_t)1 << 20)
enum { CAPTURERS = 2, SPIN = 4000, BLOCKS = 24 };

static hipStreamCaptureMode mode;
static int runs;
static atomic_bool done;
static atomic_int captured, destroyed, started;
static _Thread_local unsigned seed;

static unsigned next(void)
{
    seed = seed * 1103515245u + 12345u;
    return seed >> 8;
}

/* A moment, of any length up to some microseconds. */
static void spin(void)
{
    for (volatile unsigned i = next() % SPIN; i; i--)
        ;
}

/* --- what the captures are beside --- */

static hipStream_t own, other;
static void *blocks[BLOCKS];

static void allocate(void)
{
    static const size_t sizes[] = {100, 5000, 70000, 3 * MIB, 20 * MIB};
    unsigned i = next() % BLOCKS;

    if (blocks[i])
        hipFree(blocks[i]);
    blocks[i] = NULL;
    if (hipMalloc(&blocks[i], sizes[next() % 5] + next() % 500) == hipSuccess)
        hipMemsetAsync(blocks[i], 1, 100, own);
}

static void in_order(void)
{
    void *p = NULL, *q = NULL;

    if (hipMallocAsync(&p, 1 + next() % MIB, own) == hipSuccess)
        hipFreeAsync(p, own);
    if (hipMalloc(&q, 1 + next() % MIB) == hipSuccess)
        hipFreeAsync(q, other);
    hipStreamSynchronize(own);
}

static void ask(void)
{
    hipPointerAttribute_t attributes;
    hipIpcMemHandle_t handle;
    size_t free_bytes, total;

    allocate();
    for (int i = 0; i < BLOCKS; i++) {
        if (!blocks[i])
            continue;
        hipPointerGetAttributes(&attributes, blocks[i]);
        hipIpcGetMemHandle(&handle, blocks[i]);
    }
    hipMemGetInfo(&free_bytes, &total);
}

static void streams(void)
{
    hipStream_t fresh = NULL;

    hipStreamCreateWithFlags(&fresh, hipStreamNonBlocking);
    allocate();
    hipStreamDestroy(fresh);
}

static void full(void)
{
    void *p[8];
    int count = 0;

    while (count < 8 && hipMalloc(&p[count], 48 * MIB + next() % (48 * MIB)) == hipSuccess)
        count++;
    while (count)
        hipFree(p[--count]);
    (void)hipGetLastError();
}

static const struct {
    const char *name;
    void (*call)(void);
} calls[] = {
    {"allocate", allocate}, {"in_order", in_order}, {"ask", ask}, {"streams", streams}, {"full", full}};

/* --- the threads --- */

static void *capture(void *argument)
{
    hipStream_t stream = NULL;
    hipGraph_t graph = NULL;

    seed = (unsigned)(uintptr_t)argument;
    hipStreamCreateWithFlags(&stream, hipStreamNonBlocking);
    while (!atomic_load(&started))
        sched_yield();
    while (!atomic_load(&done)) {
        atomic_fetch_add(&captured, 1);
        int begin = (int)hipStreamBeginCapture(stream, mode), work = 0, end;
        for (unsigned i = next() % 4 + 1; i; i--) {
            spin();
            work |= (int)hipMemsetAsync(argument, 1, 64, stream);
        }
        end = (int)hipStreamEndCapture(stream, &graph);
        if (begin || work || end) {
            atomic_fetch_add(&destroyed, 1);
            fprintf(stderr, "begin %d, work %d, end %d\n", begin, work, end);
        }
        (void)hipGetLastError();
        spin(); /* so that calls fall into the moment in which a capture begins, too */
        spin();
    }
    return NULL;
}

int main(int argc, char **argv)
{
    hipStreamCaptureMode relaxed = hipStreamCaptureModeRelaxed;
    pthread_t threads[CAPTURERS];
    void (*call)(void) = NULL;
    void *p = NULL;

    for (unsigned i = 0; argc == 4 && i < sizeof calls / sizeof *calls; i++)
        call = strcmp(calls[i].name, argv[1]) == 0 ? calls[i].call : call;
    if (!call)
        return 2;
    mode = argv[2][0] == 'g' ? hipStreamCaptureModeGlobal : hipStreamCaptureModeThreadLocal;
    runs = atoi(argv[3]);
    seed = 1;
    if (mode == hipStreamCaptureModeGlobal)
        hipThreadExchangeStreamCaptureMode(&relaxed);
    hipStreamCreateWithFlags(&own, hipStreamNonBlocking);
    hipStreamCreateWithFlags(&other, hipStreamNonBlocking);
    hipMalloc(&p, 4096);
    for (int i = 0; i < CAPTURERS; i++)
        pthread_create(&threads[i], NULL, capture, (char *)p + 64 * (i + 1));
    for (int i = 0; i < runs || atomic_load(&captured) < runs; i++) {
        call();
        atomic_store(&started, 1);
    }
    atomic_store(&done, true);
    for (int i = 0; i < CAPTURERS; i++)
        pthread_join(threads[i], NULL);
    for (int i = 0; i < BLOCKS; i++)
        hipFree(blocks[i]);
    printf("captures %d destroyed %d\n", atomic_load(&captured), atomic_load(&destroyed));
    return 0;
}
