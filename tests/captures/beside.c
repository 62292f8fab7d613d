/*
 * beside.c - captures that begin and end in some threads while another one makes calls that allocate, free,
 * wait or ask.
 *
 * beside CALLS MODE RUNS: how many captures of that mode there were beside RUNS calls, and how many were
 * destroyed, as "captures N destroyed M". The thread that makes
 * the calls has asked for relaxed mode where the captures are global, as PyTorch does beside them; so
 * natively none is destroyed, whatever it calls. The device is kept busy all the while. Knows nothing of
 * memshim.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "vendor/abi/cuda_driver.h"
#include "vendor/abi/cuda_driver_fn.h"
#include "vendor/abi/cuda_runtime.h"
#include "vendor/abi/cuda_runtime_fn.h"

#define MIB ((size_t)1 << 20)
enum { CAPTURERS = 2, SPIN = 4000, BLOCKS = 24, ROWS = 512, BACKLOG = 4 };

static enum cudaStreamCaptureMode mode;
static int runs;
static atomic_bool done;
static atomic_int captured, destroyed, working, called;
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

static cudaStream_t own, other;
static cudaEvent_t behind;
static void *blocks[BLOCKS];

/* Sizes of every tier, and work on each block before it is freed. */
static void allocate(void)
{
    static const size_t sizes[] = {100, 5000, 70000, 3 * MIB, 20 * MIB};
    unsigned i = next() % BLOCKS;

    if (blocks[i])
        cudaFree(blocks[i]);
    blocks[i] = NULL;
    if (cudaMalloc(&blocks[i], sizes[next() % 5] + next() % 500) == cudaSuccess)
        cudaMemsetAsync(blocks[i], 1, 100, own);
}

static void free_all(void)
{
    for (int i = 0; i < BLOCKS; i++) {
        cudaFree(blocks[i]);
        blocks[i] = NULL;
    }
}

/* Freed seldom: where the driver has given it, a free waits, and few calls would be made beside the
 * captures. */
static void *rows[ROWS];
static unsigned row_count;

static void free_rows(void)
{
    while (row_count)
        cudaFree(rows[--row_count]);
}

static void keep_row(void *p)
{
    if (row_count == ROWS)
        free_rows();
    rows[row_count++] = p;
}

static void pitched(void)
{
    size_t pitch;
    void *p = NULL;

    cudaMallocPitch(&p, &pitch, 1 + next() % 3000, 1 + next() % 20);
    keep_row(p);
}

static void three(void)
{
    struct cudaPitchedPtr p = {0};
    struct cudaExtent extent = {1 + next() % 3000, 1 + next() % 20, 2};

    cudaMalloc3D(&p, extent);
    keep_row(p.ptr);
}

/* The first requests of a context, and its end. */
static void contexts(void)
{
    CUcontext context = NULL, before = NULL;
    CUdeviceptr p = 0, q = 0;
    size_t pitch;

    cuCtxCreate_v2(&context, 0, 0);
    cuMemAlloc_v2(&p, 1000 + next() % 5000000);
    cuMemAllocPitch_v2(&q, &pitch, 100, 100, 4);
    cuMemFree_v2(q);
    cuMemFree_v2(p);
    cuCtxPopCurrent_v2(&before);
    cuCtxDestroy_v2(context);
}

/* A block may be freed on the other stream than its own, behind what its own has to do. */
static void in_order(void)
{
    static cudaStream_t homes[BLOCKS];
    cudaStream_t streams[2] = {own, other}, freeing = streams[next() % 2];
    unsigned i = next() % BLOCKS;

    if (blocks[i] && homes[i] != freeing) {
        cudaEventRecord(behind, homes[i]);
        cudaStreamWaitEvent(freeing, behind, 0);
    }
    if (blocks[i])
        cudaFreeAsync(blocks[i], freeing);
    homes[i] = streams[next() % 2];
    if (cudaMallocAsync(&blocks[i], 1 + next() % (4 * MIB), homes[i]) != cudaSuccess)
        blocks[i] = NULL;
}

static void free_in_order(void)
{
    void *p = NULL;

    if (cudaMalloc(&p, 1 + next() % (4 * MIB)) == cudaSuccess)
        cudaFreeAsync(p, next() % 2 ? own : other);
}

static void wait(void)
{
    void *p = NULL;

    in_order();
    cudaMalloc(&p, 1 + next() % (4 * MIB));
    cudaFree(p);
    cudaStreamSynchronize(next() % 2 ? own : other);
}

static void trim(void)
{
    cudaMemPool_t pool = NULL;

    in_order();
    if (cudaDeviceGetDefaultMemPool(&pool, 0) == cudaSuccess)
        cudaMemPoolTrimTo(pool, 0);
}

static void pools(void)
{
    struct cudaMemPoolProps props = {.allocType = cudaMemAllocationTypePinned,
                                     .location = {cudaMemLocationTypeDevice, 0}};
    cudaMemPool_t pool = NULL;
    void *p = NULL;

    if (cudaMemPoolCreate(&pool, &props) != cudaSuccess)
        return;
    if (cudaMallocFromPoolAsync(&p, 1 + next() % MIB, pool, own) == cudaSuccess)
        cudaFreeAsync(p, next() % 2 ? own : other);
    cudaMemPoolDestroy(pool);
}

static void ask(void)
{
    struct cudaPointerAttributes attributes;
    unsigned long long id;
    CUdeviceptr base;
    size_t size, total;

    allocate();
    for (int i = 0; i < BLOCKS; i++) {
        cudaPointerGetAttributes(&attributes, blocks[i]);
        cuPointerGetAttribute(&id, CU_POINTER_ATTRIBUTE_BUFFER_ID, (CUdeviceptr)(uintptr_t)blocks[i]);
        cuMemGetAddressRange_v2(&base, &size, (CUdeviceptr)(uintptr_t)blocks[i]);
    }
    cudaMemGetInfo(&size, &total);
}

static void export(void)
{
    cudaIpcMemHandle_t handle;

    allocate();
    for (int i = 0; i < BLOCKS; i++) {
        if (blocks[i])
            cudaIpcGetMemHandle(&handle, blocks[i]);
    }
}

static void followed(void)
{
    cudaArray_t array = NULL;
    struct cudaChannelFormatDesc desc = {8, 0, 0, 0, cudaChannelFormatKindUnsigned};
    void *p = NULL;

    if (cudaMallocHost(&p, 1000) == cudaSuccess)
        cudaFreeHost(p);
    if (cudaMallocManaged(&p, 1000, cudaMemAttachGlobal) == cudaSuccess)
        cudaFree(p);
    if (cudaMallocArray(&array, &desc, 100, 100, 0) == cudaSuccess)
        cudaFreeArray(array);
}

static void streams(void)
{
    cudaStream_t fresh = NULL;
    void *p = NULL, *q = NULL;

    cudaStreamCreateWithFlags(&fresh, cudaStreamNonBlocking);
    cudaMallocAsync(&p, 100000, fresh);
    cudaMalloc(&q, 100000);
    cudaMemsetAsync(q, 1, 100, fresh);
    cudaFreeAsync(p, own);
    cudaFreeAsync(q, fresh);
    cudaStreamDestroy(fresh);
}

/* More than the device has: whoever runs this says how much that is. */
static void full(void)
{
    void *p[8];
    int count = 0;

    while (count < 8 && cudaMalloc(&p[count], 48 * MIB + next() % (48 * MIB)) == cudaSuccess)
        count++;
    in_order();
    while (count)
        cudaFree(p[--count]);
    cudaGetLastError();
}

static void nccl(void)
{
    static int (*make)(void **, size_t), (*unmake)(void *);
    static void *buffers[4];
    unsigned i = next() % 4;

    if (!make) {
        void *library = dlopen("libnccl.so.2", RTLD_NOW);
        *(void **)&make = library ? dlsym(library, "ncclMemAlloc") : NULL;
        *(void **)&unmake = library ? dlsym(library, "ncclMemFree") : NULL;
        if (!make || !unmake)
            exit(77);
    }
    if (buffers[i])
        unmake(buffers[i]);
    buffers[i] = NULL;
    if (make(&buffers[i], (1 + next() % 4) * 2 * MIB) != 0)
        buffers[i] = NULL;
    cudaStreamSynchronize(own);
}

static const struct {
    const char *name;
    void (*call)(void);
} calls[] = {{"allocate", allocate}, {"pitched", pitched},   {"three", three},
             {"contexts", contexts}, {"in_order", in_order}, {"free_in_order", free_in_order},
             {"wait", wait},         {"trim", trim},         {"pools", pools},
             {"ask", ask},           {"export", export},     {"followed", followed},
             {"streams", streams},   {"full", full},         {"nccl", nccl}};

/* --- the threads --- */

/* Two streams, one of which always has something to do: what it has is waited for while the other is at
 * work. */
static void *keep_busy(void *unused)
{
    enum cudaStreamCaptureMode relaxed = cudaStreamCaptureModeRelaxed;
    cudaStream_t busy[2] = {NULL, NULL};
    void *p = NULL;

    (void)unused;
    cudaThreadExchangeStreamCaptureMode(&relaxed);
    cudaMalloc(&p, 2 * 4096);
    for (int k = 0; k < 2; k++)
        cudaStreamCreateWithFlags(&busy[k], cudaStreamNonBlocking);
    for (int k = 0; !atomic_load(&done); k = !k) {
        for (int i = 0; i < BACKLOG; i++)
            cudaMemsetAsync((char *)p + k * 4096, i, 4096, busy[k]);
        cudaStreamSynchronize(busy[!k]);
        atomic_store(&working, 1);
    }
    return NULL;
}

static void *capture(void *argument)
{
    cudaGraph_t graph = NULL;
    cudaStream_t stream = NULL;
    void *p = argument;

    seed = (unsigned)(uintptr_t)argument;
    cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
    while (!atomic_load(&called))
        sched_yield();
    while (!atomic_load(&done)) {
        atomic_fetch_add(&captured, 1);
        int begin = (int)cudaStreamBeginCapture(stream, mode), work = 0, end;
        for (unsigned i = next() % 4 + 1; i; i--) {
            spin();
            work |= (int)cudaMemsetAsync(p, 1, 64, stream);
        }
        end = (int)cudaStreamEndCapture(stream, &graph);
        if (begin || work || end) {
            atomic_fetch_add(&destroyed, 1);
            fprintf(stderr, "begin %d, work %d, end %d\n", begin, work, end);
        } else {
            cudaGraphDestroy(graph);
        }
        cudaGetLastError();
        spin(); /* so that calls fall into the moment in which a capture begins, too */
        spin();
    }
    return NULL;
}

int main(int argc, char **argv)
{
    enum cudaStreamCaptureMode relaxed = cudaStreamCaptureModeRelaxed;
    pthread_t threads[CAPTURERS + 1];
    void (*call)(void) = NULL;
    void *p = NULL;

    for (unsigned i = 0; argc == 4 && i < sizeof calls / sizeof *calls; i++)
        call = strcmp(calls[i].name, argv[1]) == 0 ? calls[i].call : call;
    if (!call)
        return 2;
    mode = argv[2][0] == 'g' ? cudaStreamCaptureModeGlobal : cudaStreamCaptureModeThreadLocal;
    runs = atoi(argv[3]);
    seed = 1;
    if (mode == cudaStreamCaptureModeGlobal)
        cudaThreadExchangeStreamCaptureMode(&relaxed);
    cudaStreamCreateWithFlags(&own, cudaStreamNonBlocking);
    cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking);
    cudaEventCreateWithFlags(&behind, cudaEventDisableTiming);
    cudaMalloc(&p, 4096);
    pthread_create(&threads[CAPTURERS], NULL, keep_busy, NULL);
    for (int i = 0; i < CAPTURERS; i++)
        pthread_create(&threads[i], NULL, capture, (char *)p + 64 * i);
    while (!atomic_load(&working))
        sched_yield();
    for (int i = 0; i < runs || atomic_load(&captured) < runs; i++) {
        call();
        atomic_store(&called, 1);
    }
    atomic_store(&done, true);
    for (int i = 0; i <= CAPTURERS; i++)
        pthread_join(threads[i], NULL);
    free_all();
    free_rows();
    printf("captures %d destroyed %d\n", atomic_load(&captured), atomic_load(&destroyed));
    return 0;
}
