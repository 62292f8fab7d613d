/*
 * streams.c - memory in the order of streams, while one of them is held: the others go on.
 */
#include "nohang.h"

enum { ROUNDS = 40, BLOCKS = 12 };

/* Requests of all sizes on a stream that is not held, and their work gets done. */
static int go_on(cudaStream_t stream)
{
    static const size_t sizes[] = {700, 50000, MIB, 3 * MIB, 9 * MIB, 20 * MIB};
    int wrong = 0;

    for (int round = 0; round < ROUNDS; round++) {
        size_t bytes = sizes[round % 6];
        void *p = NULL;

        wrong += cudaMallocAsync(&p, bytes, stream) != cudaSuccess;
        wrong += cudaMemsetAsync(p, round, bytes, stream) != cudaSuccess;
        wrong += cudaFreeAsync(p, stream) != cudaSuccess;
    }
    return wrong + (cudaStreamSynchronize(stream) != cudaSuccess);
}

static void freed_while_held(void)
{
    struct hold hold;
    cudaStream_t held = new_stream(), other = new_stream();
    void *own[BLOCKS], *others[BLOCKS];
    int wrong = 0;

    hold_prepare(&hold);
    for (int i = 0; i < BLOCKS; i++) {
        wrong += cudaMallocAsync(&own[i], (size_t)(i + 1) << 18, held) != cudaSuccess;
        wrong += cudaMallocAsync(&others[i], (size_t)(i + 1) << 18, other) != cudaSuccess;
    }
    cudaStreamSynchronize(other);
    hold_begin(&hold, held, 0);
    for (int i = 0; i < BLOCKS; i++) { /* what is the held stream's own, and what is not */
        wrong += cudaFreeAsync(own[i], held) != cudaSuccess;
        wrong += cudaFreeAsync(others[i], held) != cudaSuccess;
    }
    say("others go on: %d", go_on(other));
    say("the thread's own stream goes on: %d", go_on(cudaStreamPerThread));
    for (int i = 0; i < BLOCKS; i++) /* behind what holds it */
        wrong += cudaMallocAsync(&own[i], (size_t)(i + 1) << 18, held) != cudaSuccess;
    for (int i = 0; i < BLOCKS; i++) /* freed where they were not asked for */
        wrong += cudaFreeAsync(own[i], held) != cudaSuccess;
    hold_end(&hold);
    say("released: %d %d", cudaDeviceSynchronize(), wrong);
    say("and go on: %d", go_on(other));
}

static void pool_ends_while_held(void)
{
    struct cudaMemPoolProps props = {.allocType = cudaMemAllocationTypePinned,
                                     .location = {cudaMemLocationTypeDevice, 0}};
    struct hold hold;
    cudaStream_t held = new_stream(), other = new_stream();
    cudaMemPool_t pool = NULL, first = NULL;
    void *p = NULL, *q = NULL;

    hold_prepare(&hold);
    cudaMemPoolCreate(&pool, &props);
    cudaDeviceGetDefaultMemPool(&first, 0);
    say("blocks: %d %d", cudaMallocFromPoolAsync(&p, 3 * MIB, pool, held),
        cudaMallocFromPoolAsync(&q, MIB, pool, other));
    cudaStreamSynchronize(other);
    hold_begin(&hold, held, 0);
    say("frees: %d %d", cudaFreeAsync(p, held), cudaFreeAsync(q, held));
    say("trims: %d %d", cudaMemPoolTrimTo(pool, 0), cudaMemPoolTrimTo(first, 0));
    say("others go on: %d", go_on(other));
    say("destroy: %d", cudaMemPoolDestroy(pool));
    say("others go on: %d", go_on(other));
    hold_end(&hold);
    say("released: %d", cudaDeviceSynchronize());
}

static void stream_ends_while_held(void)
{
    struct hold hold;
    cudaStream_t held = new_stream(), other;
    void *p = NULL, *kept = NULL;

    hold_prepare(&hold);
    say("blocks: %d %d", cudaMallocAsync(&p, 5 * MIB, held), cudaMallocAsync(&kept, MIB, held));
    cudaStreamSynchronize(held);
    hold_begin(&hold, held, 0);
    say("free: %d", cudaFreeAsync(p, held));
    say("destroy: %d", cudaStreamDestroy(held));
    other = new_stream();
    say("another goes on: %d", go_on(other));
    say("free of what lives on: %d", cudaFreeAsync(kept, other));
    say("another goes on: %d", go_on(other));
    hold_end(&hold);
    say("released: %d", cudaDeviceSynchronize());
    say("another goes on: %d", go_on(other));
}

static void capture_while_held(void)
{
    struct hold hold;
    cudaStream_t held = new_stream(), other = new_stream();
    cudaGraph_t graph = NULL;
    cudaGraphExec_t exec = NULL;
    enum cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;
    void *p = NULL, *q = NULL;

    hold_prepare(&hold);
    cudaMallocAsync(&q, MIB, held);
    cudaStreamSynchronize(held);
    hold_begin(&hold, held, 0);
    say("begin: %d", cudaStreamBeginCapture(other, cudaStreamCaptureModeThreadLocal));
    say("alloc: %d", cudaMallocAsync(&p, MIB, other));
    cudaThreadExchangeStreamCaptureMode(&mode); /* else the driver forbids it */
    say("beside: %d", cudaFreeAsync(q, held));
    cudaThreadExchangeStreamCaptureMode(&mode);
    say("free: %d", cudaFreeAsync(p, other));
    say("end: %d", cudaStreamEndCapture(other, &graph));
    say("instantiate: %d", cudaGraphInstantiateWithFlags(&exec, graph, 0));
    for (int i = 0; i < 5; i++)
        say("launch: %d %d", cudaGraphLaunch(exec, other), go_on(other));
    hold_end(&hold);
    say("released: %d", cudaDeviceSynchronize());
    cudaGraphExecDestroy(exec);
    cudaGraphDestroy(graph);
}

/* The memory is the held stream's: whoever gets it, or is refused, nobody waits for the host to let go. */
static void full_while_held(void)
{
    struct hold hold;
    cudaStream_t held = new_stream(), other = new_stream();
    void *p = NULL, *q = NULL;

    hold_prepare(&hold);
    say("block: %d", cudaMallocAsync(&p, 70 * MIB, held));
    cudaStreamSynchronize(held);
    hold_begin(&hold, held, 0);
    say("free: %d", cudaFreeAsync(p, held));
    int status = (int)cudaMallocAsync(&q, 70 * MIB, other);
    say("an answer: %d", status == 0 || status == cudaErrorMemoryAllocation);
    cudaGetLastError();
    hold_end(&hold);
    if (status == 0)
        cudaFreeAsync(q, other);
    say("released: %d", cudaDeviceSynchronize());
    say("then there is: %d", cudaMallocAsync(&q, 70 * MIB, other));
    say("free: %d", cudaFreeAsync(q, other));
}

/* What was freed is waited for; what the stream was given after that is not, and ends only when the one that
 * waits goes on. */
static void held_behind_the_free(void)
{
    struct hold first, second;
    cudaStream_t held = new_stream(), other = new_stream();
    void *p = NULL, *q = NULL;

    hold_prepare(&first);
    hold_prepare(&second);
    say("block: %d", cudaMallocAsync(&p, 70 * MIB, held));
    hold_begin(&first, held, 60); /* ends by itself */
    say("free: %d", cudaFreeAsync(p, held));
    hold_begin(&second, held, 0);
    say("block: %d", cudaMallocAsync(&q, 70 * MIB, other));
    say("fill: %d", cudaMemsetAsync(q, 1, 70 * MIB, other));
    say("the other stream gets there: %d", cudaStreamSynchronize(other));
    say("free: %d", cudaFreeAsync(q, other));
    hold_end(&second);
    hold_end(&first);
    say("released: %d", cudaDeviceSynchronize());
}

/* The same of what a third stream freed. */
static void held_behind_a_free_elsewhere(void)
{
    struct hold first, second;
    cudaStream_t owner = new_stream(), held = new_stream(), other = new_stream();
    void *p = NULL, *q = NULL;

    hold_prepare(&first);
    hold_prepare(&second);
    say("block: %d", cudaMallocAsync(&p, 70 * MIB, owner));
    cudaStreamSynchronize(owner);
    hold_begin(&first, held, 60);
    say("free: %d", cudaFreeAsync(p, held));
    hold_begin(&second, held, 0);
    say("block: %d", cudaMallocAsync(&q, 70 * MIB, other));
    say("fill: %d", cudaMemsetAsync(q, 1, 70 * MIB, other));
    say("the other stream gets there: %d", cudaStreamSynchronize(other));
    say("free: %d", cudaFreeAsync(q, owner));
    say("block: %d", cudaMallocAsync(&p, 70 * MIB, owner));
    say("the owner gets there: %d", cudaStreamSynchronize(owner));
    say("free: %d", cudaFreeAsync(p, owner));
    hold_end(&second);
    hold_end(&first);
    say("released: %d", cudaDeviceSynchronize());
}

const struct program programs_streams[] = {
    {"streams-freed-while-held", freed_while_held, NULL},
    {"streams-pool-ends-while-held", pool_ends_while_held, NULL},
    {"streams-end-while-held", stream_ends_while_held, NULL},
    {"streams-capture-while-held", capture_while_held, NULL},
    {"streams-full-while-held", full_while_held, "MEMSIM_MEMORY=128M"},
    {"streams-held-behind-the-free", held_behind_the_free, "MEMSIM_MEMORY=128M"},
    {"streams-held-behind-a-free-elsewhere", held_behind_a_free_elsewhere, "MEMSIM_MEMORY=128M"},
    {NULL, NULL, NULL},
};
