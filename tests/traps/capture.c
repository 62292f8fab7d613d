/*
 * capture.c - traps of captures and graphs: what a capture allows, that nobody else's calls end it, and that
 * a graph keeps the addresses it has seen.
 */
#include "traps.h"

#include <pthread.h>

static cudaStream_t stream;

/* Ends the program where nothing can be captured. */
static void prepare(void)
{
    CUgraph graph = NULL;
    cudaError_t status;

    cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
    status = cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed);
    if (status == cudaErrorNotSupported) {
        say("skip: the simulated GPU cannot capture");
        exit(0);
    }
    say("first capture %d", status);
    say("its end %d", cudaStreamEndCapture(stream, &graph));
    cuGraphDestroy(graph);
}

static void begin(enum cudaStreamCaptureMode mode)
{
    say("begin %d", cudaStreamBeginCapture(stream, mode));
}

/* The end of a capture; a graph if it is still valid. */
static CUgraph end(void)
{
    CUgraph graph = NULL;
    cudaError_t status = cudaStreamEndCapture(stream, &graph), last = cudaGetLastError();

    say("end %d, %s, last %d", status, graph ? "a graph" : "no graph", last);
    return graph;
}

static void launch(CUgraph graph, int times)
{
    CUgraphExec exec = NULL;

    if (!graph)
        return;
    say("instantiate %d", cuGraphInstantiateWithFlags(&exec, graph, 0));
    for (int i = 0; i < times; i++)
        if (cuGraphLaunch(exec, stream))
            say("launch %d failed", i);
    say("synchronize %d", cudaStreamSynchronize(stream));
    say("destroy %d", cuGraphExecDestroy(exec));
}

/* --- allocations and frees inside a capture ------------------------------------------------------------- */

/* With something at hand that could be handed out without asking the driver. */
static void malloc_inside(enum cudaStreamCaptureMode mode)
{
    prepare();
    for (int i = 0; i < 3; i++) {
        void *p = NULL;
        CUgraph graph;

        cudaFree(take(trap_sizes[i]));
        cudaDeviceSynchronize();
        begin(mode);
        say("%s: cudaMalloc %d", trap_size_names[i], cudaMalloc(&p, trap_sizes[i]));
        graph = end();
        say("destroy %d", cuGraphDestroy(graph));
        say("free %d", cudaFree(p));
    }
}

static void malloc_global(void)
{
    malloc_inside(cudaStreamCaptureModeGlobal);
}
static void malloc_thread_local(void)
{
    malloc_inside(cudaStreamCaptureModeThreadLocal);
}
static void malloc_relaxed(void)
{
    malloc_inside(cudaStreamCaptureModeRelaxed);
}

/* With nothing at hand: the driver must be asked. */
static void malloc_new_memory(void)
{
    static const enum cudaStreamCaptureMode modes[] = {
        cudaStreamCaptureModeGlobal, cudaStreamCaptureModeThreadLocal, cudaStreamCaptureModeRelaxed};

    prepare();
    for (int i = 0; i < 3; i++) {
        void *p = NULL;

        begin(modes[i]);
        say("more than there is: %d", cudaMalloc(&p, (size_t)1 << 50));
        say("captures still: %d", cudaStreamIsCapturing(stream, &(enum cudaStreamCaptureStatus){0}));
        cuGraphDestroy(end());
    }
}

static void free_inside(enum cudaStreamCaptureMode mode)
{
    prepare();
    for (int i = 0; i < 3; i++) {
        void *p = take(trap_sizes[i]);
        CUgraph graph;

        begin(mode);
        say("%s: cudaFree %d", trap_size_names[i], cudaFree(p));
        say("of NULL %d", cudaFree(NULL));
        graph = end();
        say("destroy %d", cuGraphDestroy(graph));
        say("free %d", cudaFree(p));
        say("last %d", cudaGetLastError());
    }
}

static void free_global(void)
{
    free_inside(cudaStreamCaptureModeGlobal);
}
static void free_relaxed(void)
{
    free_inside(cudaStreamCaptureModeRelaxed);
}

static void in_other_thread(void *argument)
{
    void *p = NULL;

    say("the other thread: %d", cudaMalloc(&p, *(size_t *)argument));
    say("free %d", cudaFree(p));
    say("last %d", cudaGetLastError());
}

/* A capture that is thread-local or relaxed is no business of other threads. */
static void other_thread(enum cudaStreamCaptureMode mode)
{
    prepare();
    for (int i = 0; i < 3; i++) {
        size_t bytes = trap_sizes[i];

        cudaFree(take(bytes)); /* so that there is something at hand */
        cudaDeviceSynchronize();
        begin(mode);
        elsewhere(in_other_thread, &bytes);
        cuGraphDestroy(end());
    }
}

static void other_thread_local(void)
{
    other_thread(cudaStreamCaptureModeThreadLocal);
}
static void other_thread_relaxed(void)
{
    other_thread(cudaStreamCaptureModeRelaxed);
}
static void other_thread_global(void)
{
    other_thread(cudaStreamCaptureModeGlobal);
}

/* --- a capture survives --------------------------------------------------------------------------------- */

/* Enough to need new memory, to use it again, and to wait for what was freed. */
static void churn(void *argument)
{
    int *failed = argument;
    void *blocks[24] = {NULL};

    for (int i = 0; i < 600; i++) {
        void **p = &blocks[i * 7 % 24];

        if (*p && cudaFree(*p))
            ++*failed;
        *p = NULL;
        if (cudaMalloc(p, i % 50 == 0 ? 20 * MIB : i % 7 == 0 ? 3 * MIB : (size_t)(i % 20 + 1) * 5000))
            ++*failed;
    }
    for (int i = 0; i < 24; i++)
        if (blocks[i] && cudaFree(blocks[i]))
            ++*failed;
}

static void survives(bool in_this_thread)
{
    void *p;

    prepare();
    p = take(5000);
    for (int round = 0; round < 3; round++) {
        int failed = 0;
        CUgraph graph;

        begin(in_this_thread ? cudaStreamCaptureModeRelaxed : cudaStreamCaptureModeThreadLocal);
        say("record %d", cudaMemsetAsync(p, 0x40 + round, 5000, stream));
        if (in_this_thread)
            churn(&failed);
        else
            elsewhere(churn, &failed);
        say("failed: %d", failed);
        graph = end();
        launch(graph, 2);
        cuGraphDestroy(graph);
        say("%d bytes differ", differing(p, 5000, 0x40 + round));
        failed = 0;
        churn(&failed);
        say("failed afterwards: %d", failed);
    }
}

static void survives_relaxed(void)
{
    survives(true);
}
static void survives_other_thread(void)
{
    survives(false);
}

static atomic_bool over;

static void *churn_until_over(void *argument)
{
    while (!atomic_load(&over))
        churn(argument);
    return NULL;
}

/* Captures begin and end while other threads allocate and free without a pause. */
static void among_threads(void)
{
    int failed[3] = {0}, broken = 0;
    pthread_t threads[3];
    void *p;

    prepare();
    p = take(4096);
    for (int i = 0; i < 3; i++)
        pthread_create(&threads[i], NULL, churn_until_over, &failed[i]);
    for (int i = 0; i < 60; i++) {
        CUgraph graph = NULL;

        if (cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal) ||
            cudaMemsetAsync(p, i, 4096, stream))
            broken++;
        pause_ms(1);
        if (cudaStreamEndCapture(stream, &graph) || !graph || cuGraphDestroy(graph))
            broken++;
    }
    atomic_store(&over, true);
    for (int i = 0; i < 3; i++)
        pthread_join(threads[i], NULL);
    say("captures that broke: %d, calls that failed: %d", broken, failed[0] + failed[1] + failed[2]);
}

/* While a capture is open for long, memory that is freed must come back all the same. */
static void open_for_long(void)
{
    int failed = 0;

    prepare();
    begin(cudaStreamCaptureModeRelaxed);
    for (int i = 0; i < 60; i++) {
        void *p = NULL;

        failed += cudaMalloc(&p, 20 * MIB) != cudaSuccess;
        failed += cudaFree(p) != cudaSuccess;
    }
    say("failed: %d", failed);
    cuGraphDestroy(end());
}

/* A capture that ends badly, or with its stream, is over. */
static void ends_badly(void)
{
    prepare();
    for (int round = 0; round < 2; round++) {
        int failed = 0;

        begin(cudaStreamCaptureModeRelaxed);
        if (round == 0) {
            say("destroy %d", cudaStreamDestroy(stream));
            cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
        } else {
            say("a wait that is not allowed %d", cudaStreamSynchronize(stream));
            cuGraphDestroy(end());
        }
        for (int i = 0; i < 60; i++) {
            void *p = NULL;

            failed += cudaMalloc(&p, 20 * MIB) != cudaSuccess;
            failed += cudaFree(p) != cudaSuccess;
        }
        say("failed: %d", failed);
        cudaGetLastError();
    }
}

/* --- graphs --------------------------------------------------------------------------------------------- */

/* A graph writes where it was told to, whatever was freed and given back meanwhile. */
static void baked_addresses(void)
{
    void *before, *inside = NULL, *company[8];
    CUgraphExec exec = NULL;
    CUgraph graph;
    int failed = 0;

    prepare();
    before = take(3 * MIB);
    for (int i = 0; i < 8; i++)
        company[i] = take(3 * MIB);
    begin(cudaStreamCaptureModeRelaxed);
    say("inside %d", cudaMalloc(&inside, 20000));
    cudaMemsetAsync(before, 0x61, 3 * MIB, stream);
    cudaMemsetAsync(inside, 0x62, 20000, stream);
    graph = end();
    say("instantiate %d", cuGraphInstantiateWithFlags(&exec, graph, 0));
    say("destroy the graph %d", cuGraphDestroy(graph));
    for (int i = 0; i < 8; i++)
        cudaFree(company[i]);
    for (int round = 0; round < 3; round++) {
        churn(&failed);
        cudaDeviceSynchronize();
        cudaMemset(before, 0, 3 * MIB);
        cudaMemset(inside, 0, 20000);
        cudaDeviceSynchronize();
        say("launch %d", cuGraphLaunch(exec, stream));
        say("synchronize %d", cudaStreamSynchronize(stream));
        say("%d and %d bytes differ", differing(before, 3 * MIB, 0x61), differing(inside, 20000, 0x62));
    }
    say("destroy %d", cuGraphExecDestroy(exec));
    say("free %d", cudaFree(before));
    say("free %d", cudaFree(inside));
    say("failed: %d", failed);
}

/* A launch is work like any other: what it writes to is not handed out before it is over. */
static void reuse_after_launch(void)
{
    prepare();
    for (int i = 0; i < 3; i++) {
        void *p = take(trap_sizes[i]), *next;
        CUgraphExec exec = NULL;
        struct gate gate;
        cudaStream_t other;
        CUgraph graph;

        cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking);
        begin(cudaStreamCaptureModeRelaxed);
        cudaMemsetAsync(p, 0x71, trap_sizes[i], stream);
        graph = end();
        say("instantiate %d", cuGraphInstantiateWithFlags(&exec, graph, 0));
        gate_close(&gate, 60, stream);
        say("launch %d", cuGraphLaunch(exec, stream));
        say("free %d", cudaFree(p));
        next = take(trap_sizes[i]);
        cudaMemsetAsync(next, 0x72, trap_sizes[i], other);
        cudaStreamSynchronize(other);
        say("synchronize %d", cudaDeviceSynchronize());
        say("%s: %d bytes differ", trap_size_names[i], differing(next, trap_sizes[i], 0x72));
        cuGraphExecDestroy(exec);
        cuGraphDestroy(graph);
        cudaFree(next);
        cudaStreamDestroy(other);
    }
}

/* A free waits for the device, also while a stream captures that has nothing to do with it. */
static void free_waits_beside_a_capture(void)
{
    struct gate gate;
    cudaStream_t busy;
    void *p = take(4096), *q = take(4096);
    CUgraph graph;

    prepare();
    cudaStreamCreateWithFlags(&busy, cudaStreamNonBlocking);
    begin(cudaStreamCaptureModeRelaxed);
    cudaMemsetAsync(q, 1, 4096, stream);
    gate_close(&gate, 200, busy);
    say("free %d", cudaFree(p));
    say("the other stream is %s", cudaStreamQuery(busy) ? "busy" : "ready");
    cudaGetLastError();
    graph = end();
    gate_open(&gate);
    launch(graph, 1);
    say("destroy %d", cuGraphDestroy(graph));
}

/* The first memory that another context is asked for, by another thread, in the order of a stream: no capture
 * forbids that. */
static void first_of_a_context(void *argument)
{
    CUcontext *ctx = argument;
    CUdeviceptr p = 0;
    CUstream own = NULL;

    say("current %d", cuCtxSetCurrent(*ctx));
    say("stream %d", cuStreamCreate(&own, CU_STREAM_NON_BLOCKING));
    say("alloc %d", cuMemAllocAsync(&p, 4096, own));
    say("free %d", cuMemFreeAsync(p, own));
    say("stream %d", cuStreamSynchronize(own));
    say("destroy %d", cuStreamDestroy_v2(own));
}

static void beside_a_new_context(void)
{
    static const enum cudaStreamCaptureMode modes[] = {
        cudaStreamCaptureModeGlobal, cudaStreamCaptureModeThreadLocal, cudaStreamCaptureModeRelaxed};
    void *p = take(4096);

    prepare();
    for (int i = 0; i < 3; i++) {
        CUcontext ctx = NULL, current = NULL;
        CUgraph graph;

        say("context %d", cuCtxCreate_v2(&ctx, 0, 0));
        cuCtxPopCurrent_v2(&current);
        begin(modes[i]);
        cudaMemsetAsync(p, i, 4096, stream);
        elsewhere(first_of_a_context, &ctx);
        if ((graph = end()) != NULL)
            cuGraphDestroy(graph);
        say("destroy %d", cuCtxDestroy_v2(ctx));
    }
}

const struct trap traps_capture[] = {
    {"capture-malloc-global", malloc_global, NULL},
    {"capture-malloc-thread-local", malloc_thread_local, NULL},
    {"capture-malloc-relaxed", malloc_relaxed, NULL},
    {"capture-malloc-new-memory", malloc_new_memory, NULL},
    {"capture-free-global", free_global, NULL},
    {"capture-free-relaxed", free_relaxed, NULL},
    {"capture-free-waits", free_waits_beside_a_capture, NULL},
    {"capture-and-other-thread-global", other_thread_global, NULL},
    {"capture-and-other-thread-local", other_thread_local, NULL},
    {"capture-and-other-thread-relaxed", other_thread_relaxed, NULL},
    {"capture-survives-relaxed", survives_relaxed, NULL},
    {"capture-survives-other-thread", survives_other_thread, NULL},
    {"capture-beside-a-new-context", beside_a_new_context, NULL},
    {"capture-among-threads", among_threads, NULL},
    {"capture-open-for-long", open_for_long, "MEMSIM_MEMORY=256M"},
    {"capture-ends-badly", ends_badly, "MEMSIM_MEMORY=256M"},
    {"graph-bakes-addresses", baked_addresses, NULL},
    {"graph-launch-and-reuse", reuse_after_launch, NULL},
    {NULL, NULL, NULL},
};
