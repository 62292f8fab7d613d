/*
 * limbo.c - programs whose free has to wait since more is pending than MEMSHIM_LIMBO allows: the pending list
 * NAME [MS]. Natively most of them hang, for what holds the device ends only by what comes after the free;
 * under memshim each of them ends, and prints the same on every run. With MS it ends by itself after so many
 * milliseconds, and then each ends natively, too.
 */
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "vendor/abi/cuda_driver.h"
#include "vendor/abi/cuda_driver_fn.h"
#include "vendor/abi/cuda_runtime.h"
#include "vendor/abi/cuda_runtime_fn.h"
#include "tests/program.h"

#define MIB ((size_t)1 << 20)

enum { BLOCKS = 8, BLOCK_MIB = 16 }; /* twice as much as may be pending */

static atomic_int released;
static unsigned held_ms; /* 0: until it is released */
static void *blocks[BLOCKS];

static void must(int status, const char *what)
{
    if (status) {
        say("%s: %d", what, status);
        exit(3);
    }
}

static void wait_until_released(void *unused)
{
    (void)unused;
    for (unsigned ms = 0; !atomic_load(&released) && (!held_ms || ms < held_ms); ms++)
        pause_ms(1);
}

/* A stream that gets nowhere until `released` is set. */
static cudaStream_t held_stream(void)
{
    cudaStream_t stream = NULL;

    must(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "cudaStreamCreateWithFlags");
    must(cudaLaunchHostFunc(stream, wait_until_released, NULL), "cudaLaunchHostFunc");
    return stream;
}

static void take_blocks(void)
{
    for (int i = 0; i < BLOCKS; i++)
        must(cudaMalloc(&blocks[i], BLOCK_MIB * MIB), "cudaMalloc");
}

static int free_blocks(void)
{
    int refused = 0;

    for (int i = 0; i < BLOCKS; i++)
        refused += cudaFree(blocks[i]) != cudaSuccess;
    return refused;
}

/* The pool answers: a thread's first call goes the whole way, the others may not. */
static void warm_up(void)
{
    void *p = NULL;

    for (int i = 0; i < 3; i++) {
        must(cudaMalloc(&p, 2 * MIB), "cudaMalloc");
        must(cudaFree(p), "cudaFree");
    }
}

static void in_a_thread(void *(*function)(void *), pthread_t *thread)
{
    must(pthread_create(thread, NULL, function, NULL), "pthread_create");
}

static void end(void)
{
    atomic_store(&released, 1);
    say("device %d", cudaDeviceSynchronize());
}

/* What holds the device is released after the frees. */
static void vain(void)
{
    take_blocks();
    held_stream();
    say("refused %d", free_blocks());
    take_blocks();
    say("refused again %d", free_blocks());
    end();
    for (int i = 0; i < 3; i++) { /* the bound holds again, and nothing stands in its way */
        take_blocks();
        say("refused %d", free_blocks());
    }
}

static void vain_driver(void)
{
    CUdeviceptr p[BLOCKS];
    int refused = 0;

    held_stream();
    for (int i = 0; i < BLOCKS; i++)
        must(cuMemAlloc_v2(&p[i], BLOCK_MIB * MIB), "cuMemAlloc");
    for (int i = 0; i < BLOCKS; i++)
        refused += cuMemFree_v2(p[i]) != CUDA_SUCCESS;
    say("refused %d", refused);
    end();
}

/* The host function whose end the free waits for is the one that frees. */
static void free_all(void *unused)
{
    (void)unused;
    say("refused in a host function: %d", free_blocks());
}

static void function(void)
{
    cudaStream_t stream = NULL;

    take_blocks();
    must(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "cudaStreamCreateWithFlags");
    must(cudaLaunchHostFunc(stream, free_all, NULL), "cudaLaunchHostFunc");
    end();
}

/* A handler frees while the thread that it interrupts waits in a free. */
static void *in_the_handler;
static volatile sig_atomic_t handled;

static void on_signal(int number)
{
    (void)number;
    handled = cudaFree(in_the_handler) == cudaSuccess ? 1 : 2;
}

static void *signal_later(void *main_thread)
{
    pause_ms(300);
    pthread_kill(*(pthread_t *)main_thread, SIGUSR1);
    return NULL;
}

static void handler(void)
{
    pthread_t self = pthread_self(), other;

    signal(SIGUSR1, on_signal);
    take_blocks();
    must(cudaMalloc(&in_the_handler, 20 * MIB), "cudaMalloc");
    held_stream();
    must(pthread_create(&other, NULL, signal_later, &self), "pthread_create");
    say("refused %d", free_blocks());
    pthread_join(other, NULL);
    say("handled %d", (int)handled);
    end();
}

/* A handler forks there: the child comes back into the wait, and has no GPU. */
static void fork_there(int number)
{
    (void)number;
    handled = fork() == 0 ? 2 : 1;
}

static void forking(void)
{
    pthread_t self = pthread_self(), other;
    int status = 0;

    signal(SIGUSR1, fork_there);
    take_blocks();
    held_stream();
    must(pthread_create(&other, NULL, signal_later, &self), "pthread_create");
    int refused = free_blocks();
    while (!handled)
        pause_ms(1);
    if (handled == 2)
        _exit(7);
    pthread_join(other, NULL);
    say("refused %d", refused);
    wait(&status);
    say("the child ended with %d", WEXITSTATUS(status));
    end();
}

/* Another thread gives work without an end, which the free does not wait for. */
static atomic_int freed;

static void *issue(void *stream)
{
    static char host[64];
    void *p = NULL;

    cudaMalloc(&p, 4096);
    while (!atomic_load(&freed))
        cudaMemcpyAsync(p, host, sizeof host, cudaMemcpyHostToDevice, stream);
    return NULL;
}

static void endless(void)
{
    cudaStream_t stream = NULL;
    pthread_t other;

    must(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "cudaStreamCreateWithFlags");
    take_blocks();
    must(pthread_create(&other, NULL, issue, stream), "pthread_create");
    for (int i = 0; i < 4; i++) {
        say("refused %d", free_blocks());
        take_blocks();
    }
    atomic_store(&freed, 1);
    pthread_join(other, NULL);
    end();
}

/* A thread waits in its free; captures begin and end elsewhere, and are whole. */
static void *free_there(void *unused)
{
    (void)unused;
    cudaSetDevice(0);
    warm_up();
    say("refused %d", free_blocks());
    atomic_store(&freed, 1);
    return NULL;
}

static void capture(void)
{
    /* A global one forbids the vendor's frees in other threads. */
    enum cudaStreamCaptureMode mode =
        held_ms ? cudaStreamCaptureModeThreadLocal : cudaStreamCaptureModeGlobal;
    cudaStream_t stream = NULL;
    cudaGraph_t graph = NULL;
    pthread_t other;
    int broken = 0;
    void *p = NULL;

    take_blocks();
    must(cudaMalloc(&p, 2 * MIB), "cudaMalloc");
    must(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "cudaStreamCreateWithFlags");
    held_stream();
    in_a_thread(free_there, &other);
    for (int i = 0; !atomic_load(&freed); i++) {
        if (i == 200)
            atomic_store(&released, 1);
        broken += cudaStreamBeginCapture(stream, mode) != cudaSuccess;
        broken += cudaMemsetAsync(p, 1, 64, stream) != cudaSuccess;
        pause_ms(1);
        broken +=
            cudaStreamEndCapture(stream, &graph) != cudaSuccess || cudaGraphDestroy(graph) != cudaSuccess;
    }
    pthread_join(other, NULL);
    say("broken captures %d", broken);
    end();
}

/* The context ends while a free in it waits. */
static CUcontext doomed;
static atomic_int freeing;

static void *free_in_the_doomed(void *unused)
{
    CUdeviceptr p[BLOCKS];
    CUcontext before;

    (void)unused;
    cuCtxSetCurrent(doomed);
    for (int i = 0; i < BLOCKS; i++)
        must(cuMemAlloc_v2(&p[i], BLOCK_MIB * MIB), "cuMemAlloc");
    cuCtxPopCurrent_v2(&before);
    atomic_store(&freeing, 1);
    for (int i = 0; i < BLOCKS - 1; i++)
        cuMemFree_v2(p[i]);
    atomic_store(&freed, 1);
    return NULL;
}

static void destroyed(void)
{
    CUcontext before;
    CUstream stream;
    pthread_t other;

    must(cuInit(0), "cuInit");
    must(cuCtxCreate_v2(&doomed, 0, 0), "cuCtxCreate");
    must(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), "cuStreamCreate");
    must(cuLaunchHostFunc(stream, wait_until_released, NULL), "cuLaunchHostFunc");
    cuCtxPopCurrent_v2(&before);
    in_a_thread(free_in_the_doomed, &other);
    while (!atomic_load(&freeing))
        pause_ms(1);
    pause_ms(100);
    atomic_store(&released, 1);
    say("destroyed %d", cuCtxDestroy_v2(doomed));
    pthread_join(other, NULL);
    must(cudaSetDevice(0), "cudaSetDevice");
    take_blocks();
    say("refused %d", free_blocks());
    end();
}

/* A green context shares the primary context's memory: there no free waits, in another context of the device
 * one does. */
static void split_device(void)
{
    CUdevResource all, part;
    CUdevResourceDesc desc;
    CUgreenCtx green;
    unsigned parts = 1;
    CUstream stream;

    must(cuDeviceGetDevResource(0, &all, CU_DEV_RESOURCE_TYPE_SM), "cuDeviceGetDevResource");
    must(cuDevSmResourceSplitByCount(&part, &parts, &all, NULL, 0, 8), "cuDevSmResourceSplitByCount");
    must(cuDevResourceGenerateDesc(&desc, &part, 1), "cuDevResourceGenerateDesc");
    must(cuGreenCtxCreate(&green, desc, 0, CU_GREEN_CTX_DEFAULT_STREAM), "cuGreenCtxCreate");
    must(cuGreenCtxStreamCreate(&stream, green, CU_STREAM_NON_BLOCKING, 0), "cuGreenCtxStreamCreate");
}

static void green(void)
{
    split_device();
    vain_driver();
}

static void green_elsewhere(void)
{
    CUcontext own;

    split_device();
    must(cuCtxCreate_v2(&own, 0, 0), "cuCtxCreate");
    vain_driver();
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*run)(void);
    } programs[] = {{"vain", vain},         {"vain-driver", vain_driver},
                    {"function", function}, {"handler", handler},
                    {"fork", forking},      {"endless", endless},
                    {"capture", capture},   {"destroyed", destroyed},
                    {"green", green},       {"green-elsewhere", green_elsewhere}};

    held_ms = argc == 3 ? (unsigned)atoi(argv[2]) : 0;
    for (size_t i = 0; argc >= 2 && i < sizeof programs / sizeof *programs; i++) {
        if (strcmp(programs[i].name, argv[1]) != 0)
            continue;
        if (programs[i].run != destroyed) {
            must(cudaSetDevice(0), "cudaSetDevice");
            warm_up();
        }
        programs[i].run();
        say("the end");
        return 0;
    }
    return 2;
}
