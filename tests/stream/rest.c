/*
 * rest.c - a program that works, rests for a second, and then calls one function or two: what does the device
 * have by then?
 *
 * Arguments: how it allocates, "plain" (cudaMalloc), "ordered" (cudaMallocAsync) or "pool" (from a pool of
 * its own); and what it calls after the rest: "alloc", "free", "device", "stream" or "event" (waits for
 * them); and how many MiB may stay besides a quarter more than what is live. Prints "live MIB" and "used
 * MIB", at the latest after PATIENCE_MS.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "vendor/abi/cuda_runtime.h"
#include "vendor/abi/cuda_runtime_fn.h"

#define MIB ((size_t)1 << 20)

enum { LIVE = 16, IDLE = 24, LIVE_MIB = 8, IDLE_MIB = 48, PATIENCE_MS = 5000 };

static cudaMemPool_t pool;
static cudaStream_t stream;
static cudaEvent_t event;
static const char *how;

static void must(cudaError_t status, const char *what)
{
    if (status == cudaSuccess)
        return;
    fprintf(stderr, "rest: %s: %d\n", what, (int)status);
    exit(1);
}

static void *take(size_t mib)
{
    void *p = NULL;

    if (!strcmp(how, "plain"))
        must(cudaMalloc(&p, mib * MIB), "cudaMalloc");
    else if (pool)
        must(cudaMallocFromPoolAsync(&p, mib * MIB, pool, stream), "cudaMallocFromPoolAsync");
    else
        must(cudaMallocAsync(&p, mib * MIB, stream), "cudaMallocAsync");
    must(cudaMemsetAsync(p, 1, 1024, stream), "cudaMemsetAsync");
    return p;
}

static void give(void *p)
{
    must(strcmp(how, "plain") ? cudaFreeAsync(p, stream) : cudaFree(p), "free");
}

static void nap(long ms)
{
    struct timespec left = {ms / 1000, ms % 1000 * 1000000};

    while (nanosleep(&left, &left) != 0)
        ;
}

int main(int argc, char **argv)
{
    struct cudaMemPoolProps props = {.allocType = cudaMemAllocationTypePinned,
                                     .location = {cudaMemLocationTypeDevice, 0}};
    void *live[LIVE], *idle[IDLE];
    size_t left, total, live_mib = LIVE * LIVE_MIB, spare_mib;

    if (argc < 4)
        return 2;
    how = argv[1];
    spare_mib = strtoul(argv[3], NULL, 10);
    must(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "cudaStreamCreate");
    must(cudaEventCreateWithFlags(&event, cudaEventDisableTiming), "cudaEventCreate");
    if (!strcmp(how, "pool"))
        must(cudaMemPoolCreate(&pool, &props), "cudaMemPoolCreate");
    for (int i = 0; i < LIVE; i++)
        live[i] = take(LIVE_MIB);
    for (int i = 0; i < IDLE; i++)
        idle[i] = take(IDLE_MIB);
    for (int i = 0; i < IDLE; i++)
        give(idle[i]);
    must(cudaEventRecord(event, stream), "cudaEventRecord");
    while (cudaEventQuery(event) == cudaErrorNotReady)
        nap(1);
    nap(1100);
    if (!strcmp(argv[2], "alloc")) {
        take(1);
        take(1);
        live_mib += 2;
    } else if (!strcmp(argv[2], "free")) {
        give(live[0]);
        live_mib -= LIVE_MIB;
    } else if (!strcmp(argv[2], "device")) {
        must(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
    } else if (!strcmp(argv[2], "stream")) {
        must(cudaStreamSynchronize(stream), "cudaStreamSynchronize");
    } else {
        must(cudaEventSynchronize(event), "cudaEventSynchronize");
    }
    must(cudaMemGetInfo(&left, &total), "cudaMemGetInfo");
    /* What goes back in the order of a stream is the device's when that has come to it. */
    for (int i = 0; i < PATIENCE_MS && (total - left) / MIB > live_mib + live_mib / 4 + spare_mib; i++) {
        nap(1);
        must(cudaMemGetInfo(&left, &total), "cudaMemGetInfo");
    }
    printf("live %zu\nused %zu\n", live_mib, (total - left) / MIB);
    return 0;
}
