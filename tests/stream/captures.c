/*
 * captures.c - stream-ordered memory and captures: in every mode, inside and outside, beside other threads,
 * and in graphs that run again and again on many streams. Prints "what value" lines for captures.py, which
 * wants the same natively and under memshim. The one argument is how often each graph is launched.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/hip/as_cuda.h"
#include "vendor/abi/cuda_driver.h"
#include "vendor/abi/cuda_driver_fn.h"
#include "vendor/abi/cuda_runtime.h"
#include "vendor/abi/cuda_runtime_fn.h"

enum { STREAMS = 8, WORDS = 1024 };

static const enum cudaStreamCaptureMode modes[] = {
    cudaStreamCaptureModeGlobal, cudaStreamCaptureModeThreadLocal, cudaStreamCaptureModeRelaxed};
static const char *const mode_names[] = {"global", "thread_local", "relaxed"};
static cudaStream_t streams[STREAMS];
static int launches;
static char where[64];

static void say(const char *what, long value)
{
    printf("%s.%s %ld\n", where, what, value);
}

static long sum_of(const unsigned *words)
{
    long sum = 0;

    for (int i = 0; i < WORDS; i++)
        sum += words[i];
    return sum;
}

/* What the graph did to the block, seen from the host. */
static long content(void *p)
{
    static unsigned words[WORDS];

    if (cudaMemcpy(words, p, sizeof words, cudaMemcpyDeviceToHost) != cudaSuccess)
        return -1;
    return sum_of(words);
}

/* On all streams in turn, each behind the one before. */
static void run(cudaGraph_t graph, const char *what)
{
    cudaGraphExec_t exec = NULL;
    int good = 0, status = (int)cudaGraphInstantiateWithFlags(&exec, graph, 0);
    char line[64];

    snprintf(line, sizeof line, "%s.instantiate", what);
    say(line, status);
    if (status)
        return;
    for (int i = 0; i < launches; i++) {
        good += cudaGraphLaunch(exec, streams[i % STREAMS]) == cudaSuccess;
        if (i % 5 == 0) /* memory comes and goes between the launches */
            good += cudaStreamSynchronize(streams[i % STREAMS]) != cudaSuccess;
        void *p = NULL;
        if (cudaMallocAsync(&p, 100000 + (size_t)i * 512, streams[(i + 1) % STREAMS]) == cudaSuccess) {
            cudaMemsetAsync(p, i, 100000, streams[(i + 1) % STREAMS]);
            cudaFreeAsync(p, streams[(i + 1) % STREAMS]);
        }
    }
    snprintf(line, sizeof line, "%s.launches", what);
    say(line, good);
    say("synchronize", cudaDeviceSynchronize());
    say("exec_destroy", cudaGraphExecDestroy(exec));
}

static cudaGraph_t end(cudaStream_t stream, const char *what)
{
    cudaGraph_t graph = NULL;
    size_t nodes = 0;
    char line[64];

    snprintf(line, sizeof line, "%s.end", what);
    say(line, cudaStreamEndCapture(stream, &graph));
    snprintf(line, sizeof line, "%s.nodes", what);
    if (graph && cudaGraphGetNodes(graph, NULL, &nodes) == cudaSuccess)
        say(line, (long)nodes);
    return graph;
}

/* Memory of the graph's own, and a block from outside that it writes. */
static void inside(enum cudaStreamCaptureMode mode)
{
    cudaStream_t stream = streams[0];
    void *block = NULL, *p = NULL;

    say("inside.block", cudaMallocAsync(&block, WORDS * 4, stream));
    say("inside.begin", cudaStreamBeginCapture(stream, mode));
    say("inside.alloc", cudaMallocAsync(&p, 1 << 20, stream));
    say("inside.alloc_is_there", p != NULL);
    say("inside.set", cudaMemsetAsync(p, 2, WORDS * 4, stream));
    say("inside.copy", cudaMemcpyAsync(block, p, WORDS * 4, cudaMemcpyDeviceToDevice, stream));
    say("inside.free", cudaFreeAsync(p, stream));
    cudaGraph_t graph = end(stream, "inside");
    if (graph) {
        run(graph, "inside");
        say("inside.content", content(block));
        say("inside.destroy", cudaGraphDestroy(graph));
    }
    say("inside.free_block", cudaFreeAsync(block, stream));
}

/* A block from outside cannot be freed in a capture; what becomes of the capture then is the driver's. */
static void free_inside(enum cudaStreamCaptureMode mode)
{
    cudaStream_t stream = streams[1];
    void *block = NULL;

    say("free_inside.block", cudaMallocAsync(&block, 5000, stream));
    say("free_inside.begin", cudaStreamBeginCapture(stream, mode));
    say("free_inside.free", cudaFreeAsync(block, stream));
    say("free_inside.set", cudaMemsetAsync(block, 1, 5000, stream));
    cudaGraph_t graph = end(stream, "free_inside");
    if (graph)
        cudaGraphDestroy(graph);
    say("free_inside.free_again", cudaFreeAsync(block, stream));
}

/* What the graph allocates and does not free is freed outside. */
static void free_outside(enum cudaStreamCaptureMode mode)
{
    cudaStream_t stream = streams[2];
    cudaGraphExec_t exec = NULL;
    void *p = NULL;

    say("free_outside.begin", cudaStreamBeginCapture(stream, mode));
    say("free_outside.alloc", cudaMallocAsync(&p, WORDS * 4, stream));
    say("free_outside.set", cudaMemsetAsync(p, 3, WORDS * 4, stream));
    cudaGraph_t graph = end(stream, "free_outside");
    if (!graph)
        return;
    say("free_outside.instantiate", cudaGraphInstantiateWithFlags(&exec, graph, 0));
    for (int i = 0; i < 3; i++) {
        say("free_outside.launch", cudaGraphLaunch(exec, stream));
        if (i == 1) /* before another stream frees what this one uses */
            say("free_outside.wait", cudaStreamSynchronize(stream));
        say("free_outside.free", cudaFreeAsync(p, i == 1 ? streams[3] : stream));
        say("free_outside.synchronize", cudaDeviceSynchronize());
    }
    cudaGraphExecDestroy(exec);
    cudaGraphDestroy(graph);
}

/* Another stream's requests are served meanwhile, and blocks that were given before are freed: the thread's
 * mode is relaxed for them, as the driver forbids them else. */
static void beside(enum cudaStreamCaptureMode mode)
{
    cudaStream_t stream = streams[4], other = streams[5];
    void *block = NULL, *p = NULL, *before = NULL;

    cudaMallocAsync(&block, WORDS * 4, stream);
    cudaMallocAsync(&before, 3 << 20, other);
    enum cudaStreamCaptureMode own = cudaStreamCaptureModeRelaxed;
    say("beside.begin", cudaStreamBeginCapture(stream, mode));
    cudaThreadExchangeStreamCaptureMode(&own);
    say("beside.alloc", cudaMallocAsync(&p, 2 << 20, other));
    say("beside.set", cudaMemsetAsync(p, 1, 2 << 20, other));
    say("beside.free", cudaFreeAsync(p, other));
    say("beside.free_before", cudaFreeAsync(before, other));
    cudaThreadExchangeStreamCaptureMode(&own);
    say("beside.free_of_the_capturing", cudaMemsetAsync(block, 5, WORDS * 4, stream));
    cudaGraph_t graph = end(stream, "beside");
    if (graph) {
        run(graph, "beside");
        say("beside.content", content(block));
        cudaGraphDestroy(graph);
    }
    cudaFreeAsync(block, stream);
}

/* A stream that joins the capture by an event captures too, and so do its requests. */
static void joined(enum cudaStreamCaptureMode mode)
{
    cudaStream_t stream = streams[6], other = streams[7];
    cudaEvent_t fork = NULL, join = NULL;
    enum cudaStreamCaptureStatus status = cudaStreamCaptureStatusNone;
    void *block = NULL, *p = NULL;

    cudaEventCreateWithFlags(&fork, cudaEventDisableTiming);
    cudaEventCreateWithFlags(&join, cudaEventDisableTiming);
    cudaMallocAsync(&block, WORDS * 4, other);
    say("joined.begin", cudaStreamBeginCapture(stream, mode));
    cudaEventRecord(fork, stream);
    say("joined.wait", cudaStreamWaitEvent(other, fork, 0));
    say("joined.alloc", cudaMallocAsync(&p, 4096, other));
    cudaStreamIsCapturing(other, &status);
    say("joined.captures", status);
    say("joined.set", cudaMemsetAsync(p, 4, 4096, other));
    say("joined.copy", cudaMemcpyAsync(block, p, WORDS * 4, cudaMemcpyDeviceToDevice, other));
    say("joined.free", cudaFreeAsync(p, other));
    cudaEventRecord(join, other);
    say("joined.join", cudaStreamWaitEvent(stream, join, 0));
    cudaGraph_t graph = end(stream, "joined");
    if (graph) {
        run(graph, "joined");
        say("joined.content", content(block));
        cudaGraphDestroy(graph);
    }
    say("joined.free_block", cudaFreeAsync(block, other));
    cudaEventDestroy(fork);
    cudaEventDestroy(join);
}

struct visitor {
    atomic_bool stop;
    long wrong, done;
};

/* Meanwhile: memory in the order of a stream of its own, and of the thread's own. */
static void *visit(void *arg)
{
    struct visitor *visitor = arg;
    enum cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;
    cudaStream_t mine = NULL;

    cudaSetDevice(0);
    cudaThreadExchangeStreamCaptureMode(&mode); /* beside a global capture the driver forbids the rest else */
    visitor->wrong += cudaStreamCreateWithFlags(&mine, cudaStreamNonBlocking) != cudaSuccess;
    do {
        for (int i = 0; i < 2; i++) {
            cudaStream_t stream = i ? cudaStreamPerThread : mine;
            void *p = NULL, *q = NULL;
            visitor->wrong +=
                cudaMallocAsync(&p, 4096 + (size_t)(visitor->done % 64) * 4096, stream) != cudaSuccess;
            visitor->wrong += cudaMallocAsync(&q, 100, stream) != cudaSuccess;
            visitor->wrong += cudaMemsetAsync(p, 1, 4096, stream) != cudaSuccess;
            visitor->wrong += cudaFreeAsync(p, stream) != cudaSuccess;
            visitor->wrong += cudaFreeAsync(q, stream) != cudaSuccess;
        }
        visitor->done++;
    } while (!atomic_load(&visitor->stop));
    visitor->wrong += cudaStreamDestroy(mine) != cudaSuccess;
    return NULL;
}

static void others_meanwhile(enum cudaStreamCaptureMode mode)
{
    struct visitor visitors[2] = {{0}};
    pthread_t threads[2];

    for (int i = 0; i < 2; i++)
        pthread_create(&threads[i], NULL, visit, &visitors[i]);
    for (int i = 0; i < 5; i++) {
        void *p = NULL;
        cudaGraph_t graph = NULL;
        say("others.begin", cudaStreamBeginCapture(streams[0], mode));
        for (int k = 0; k < 20; k++) {
            cudaMallocAsync(&p, 10000, streams[0]);
            cudaMemsetAsync(p, k, 10000, streams[0]);
            cudaFreeAsync(p, streams[0]);
        }
        say("others.end", cudaStreamEndCapture(streams[0], &graph));
        if (graph)
            cudaGraphDestroy(graph);
    }
    long wrong = 0, done = 0;
    for (int i = 0; i < 2; i++) {
        atomic_store(&visitors[i].stop, true);
        pthread_join(threads[i], NULL);
        wrong += visitors[i].wrong;
        done += visitors[i].done;
    }
    say("others.wrong", wrong);
    say("others.went_on", done > 0);
}

int main(int argc, char **argv)
{
    launches = argc > 1 ? atoi(argv[1]) : 300;
    for (int i = 0; i < STREAMS; i++)
        cudaStreamCreateWithFlags(&streams[i], i == 3 ? cudaStreamDefault : cudaStreamNonBlocking);
    for (int i = 0; i < 3; i++) {
        snprintf(where, sizeof where, "%s", mode_names[i]);
        inside(modes[i]);
        free_inside(modes[i]);
        free_outside(modes[i]);
        beside(modes[i]);
        joined(modes[i]);
        others_meanwhile(modes[i]);
    }
    return 0;
}
