/*
 * capture_ends.c - captures that end in other ways than by their end: made invalid, ended in another thread,
 * with a stream that is destroyed, with their context; or whose end, or question, the driver refuses
 * (MEMSIM_FAIL). Prints "what value" lines for capture_ends.py. Afterwards memory comes and goes as if there
 * had been none: `churn` says whether.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "vendor/abi/cuda_driver.h"
#include "vendor/abi/cuda_driver_fn.h"
#include "vendor/abi/cuda_runtime.h"
#include "vendor/abi/cuda_runtime_fn.h"

#define MIB            ((size_t)1 << 20)
#define SAY(name, ...) printf("%s %d\n", name, (int)(__VA_ARGS__))

static cudaStream_t stream, other;

static void make_streams(void)
{
    cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
    cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking);
}

/* The graph is not kept: what is open is the capture's doing. */
static int end(cudaStream_t one)
{
    cudaGraph_t graph = NULL;
    int status = (int)cudaStreamEndCapture(one, &graph);

    if (graph)
        cudaGraphDestroy(graph);
    return status;
}

static int begin(cudaStream_t one)
{
    return (int)cudaStreamBeginCapture(one, cudaStreamCaptureModeRelaxed);
}

static void *end_here(void *status)
{
    cudaSetDevice(0);
    *(int *)status = end(stream);
    return NULL;
}

static void wrong_thread(void)
{
    pthread_t thread;
    int status = -1;

    SAY("wrong_thread.begin", cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    pthread_create(&thread, NULL, end_here, &status);
    pthread_join(thread, NULL);
    SAY("wrong_thread.end_there", status);
    SAY("wrong_thread.end", end(stream));
}

/* It waits for an event from outside. */
static void invalid(void)
{
    cudaEvent_t event = NULL;

    cudaEventCreateWithFlags(&event, cudaEventDisableTiming);
    cudaEventRecord(event, other);
    SAY("invalid.begin", begin(stream));
    SAY("invalid.query", cudaStreamQuery(stream));
    SAY("invalid.begin_again", begin(stream) != 0);
    SAY("invalid.end", end(stream));
    SAY("invalid.end_again", end(stream) != 0);
    cudaEventDestroy(event);
}

/* A stream that joined a capture goes, while another capture is open: that one must not be broken by what is
 * freed meanwhile. */
static void joined(void)
{
    cudaStream_t third = NULL;
    cudaEvent_t event = NULL;
    void *p = NULL;

    cudaStreamCreateWithFlags(&third, cudaStreamNonBlocking);
    cudaEventCreateWithFlags(&event, cudaEventDisableTiming);
    SAY("joined.begin_other", begin(other));
    SAY("joined.begin", begin(stream));
    cudaEventRecord(event, stream);
    SAY("joined.joins", cudaStreamWaitEvent(third, event, 0));
    SAY("joined.destroy", cudaStreamDestroy(third));
    SAY("joined.end", end(stream) != 0);
    for (int i = 0; i < 40; i++) {
        SAY("joined.alloc", cudaMalloc(&p, 5 * MIB));
        SAY("joined.free", cudaFree(p));
    }
    SAY("joined.end_other", end(other));
    cudaEventDestroy(event);
}

/* Its stream goes, and with it the capture. */
static void destroyed(void)
{
    SAY("destroyed.begin", begin(stream));
    SAY("destroyed.destroy", cudaStreamDestroy(stream));
    cudaDeviceSynchronize();
    cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
}

/* Its context goes, with a graph that nobody destroyed. */
static void reset(void)
{
    cudaGraph_t graph = NULL;

    SAY("reset.begin", begin(stream));
    SAY("reset.end", cudaStreamEndCapture(stream, &graph));
    SAY("reset.begin_again", begin(other));
    SAY("reset", cudaDeviceReset());
    make_streams();
}

static void refused(void)
{
    for (int i = 0; i < 6; i++) {
        int began = begin(stream), ended = end(stream);
        SAY("refused.begin", began);
        /* the driver's refusal was our doing: it is asked again */
        SAY("refused.end", ended == 0 || end(stream) != 999);
    }
    SAY("refused.is_over", cudaStreamSynchronize(stream));
}

/* Freed here, used again there, by events alone: nobody waits. */
static void churn(void)
{
    cudaMemPool_t pool = NULL;
    cuuint64_t most = 0;
    int wrong = 0;
    void *p = NULL;

    cudaDeviceGetDefaultMemPool(&pool, 0);
    for (int i = 0; i < 24; i++) {
        wrong += cudaMalloc(&p, 8 * MIB) != cudaSuccess;
        wrong += cudaMemsetAsync(p, i, 4096, stream) != cudaSuccess;
        wrong += cudaFree(p) != cudaSuccess;
        while (cudaStreamQuery(stream) == cudaErrorNotReady)
            ;
        wrong += cudaMallocAsync(&p, 3 * MIB, stream) != cudaSuccess;
        wrong += cudaMemsetAsync(p, i, 4096, stream) != cudaSuccess;
        while (cudaStreamQuery(stream) == cudaErrorNotReady)
            ;
        wrong += cudaFreeAsync(p, other) != cudaSuccess;
        while (cudaStreamQuery(other) == cudaErrorNotReady)
            ;
    }
    cudaMemPoolGetAttribute(pool, cudaMemPoolAttrReservedMemHigh, &most);
    SAY("churn.wrong", wrong);
    SAY("churn.pool_is_small", most <= 128 * MIB);
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*play)(void);
    } scenes[] = {{"wrong_thread", wrong_thread}, {"invalid", invalid}, {"joined", joined},
                  {"destroyed", destroyed},       {"reset", reset},     {"refused", refused}};
    void *p = NULL;

    make_streams();
    cudaMalloc(&p, MIB); /* served from here on */
    for (size_t i = 0; i < sizeof scenes / sizeof scenes[0]; i++) {
        if (argc > 1 && !strcmp(argv[1], scenes[i].name))
            scenes[i].play();
    }
    churn();
    return 0;
}
