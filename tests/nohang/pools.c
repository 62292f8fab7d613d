/*
 * pools.c - memory in the order of streams that wait for each other, for the host or for another thread, when
 * there is plenty and when there is none.
 */
#include "nohang.h"

#define SMALL "MEMSIM_MEMORY=128M"
enum { SEVERAL = 4, PIECES = 24 };

static cudaMemPool_t new_pool(void)
{
    struct cudaMemPoolProps props = {.allocType = cudaMemAllocationTypePinned,
                                     .location = {cudaMemLocationTypeDevice, 0}};
    cudaMemPool_t pool = NULL;

    if (cudaMemPoolCreate(&pool, &props))
        say("there is no pool");
    return pool;
}

static void order(cudaStream_t from, cudaStream_t to)
{
    cudaEvent_t event;

    cudaEventCreateWithFlags(&event, cudaEventDisableTiming);
    cudaEventRecord(event, from);
    cudaStreamWaitEvent(to, event, 0);
    cudaEventDestroy(event);
}

/* Whether there was memory depends on who had how much; that there was an answer does not. */
static void *ask(size_t bytes, cudaStream_t stream)
{
    void *p = NULL;
    int status = (int)cudaMallocAsync(&p, bytes, stream);

    if (status != 0 && status != cudaErrorMemoryAllocation)
        say("an answer of another kind: %d", status);
    cudaGetLastError();
    if (status == 0)
        cudaMemsetAsync(p, 1, bytes, stream);
    return status == 0 ? p : NULL;
}

static int in_order(void **blocks, int most, size_t bytes, cudaMemPool_t pool, cudaStream_t stream)
{
    int count = 0;

    while (count < most && (pool ? cudaMallocFromPoolAsync(&blocks[count], bytes, pool, stream)
                                 : cudaMallocAsync(&blocks[count], bytes, stream)) == cudaSuccess)
        count++;
    cudaGetLastError();
    return count;
}

/* On a stream that comes behind the block's own. */
static void free_behind(void *block, cudaStream_t own, cudaStream_t stream)
{
    if (!block)
        return;
    order(own, stream);
    if (cudaFreeAsync(block, stream))
        say("a free was refused");
}

static void free_in_order(void **blocks, int count, cudaStream_t stream)
{
    int wrong = 0;

    for (int i = 0; i < count; i++)
        wrong += cudaFreeAsync(blocks[i], stream) != cudaSuccess;
    say("frees that were refused: %d", wrong);
}

/* On a machine that has much to do what was given back may take a while to arrive. */
static void *at_last(cudaStream_t stream)
{
    int status = cudaErrorMemoryAllocation;
    void *p = NULL;

    for (int i = 0; i < 50 && status == cudaErrorMemoryAllocation; i++) {
        if (i)
            pause_ms(20);
        status = (int)(stream ? cudaMallocAsync(&p, 90 * MIB, stream) : cudaMalloc(&p, 90 * MIB));
    }
    say("then there is: %d", status);
    return p;
}

static void afterwards(cudaStream_t stream)
{
    say("device %d", cudaDeviceSynchronize());
    say("free: %d", cudaFreeAsync(at_last(stream), stream));
    say("device %d", cudaDeviceSynchronize());
    say("free: %d", cudaFree(at_last(NULL)));
}

static void pause_in_stream(void *unused)
{
    (void)unused;
    pause_ms(30);
}

/* The first stream frees what the second is given, and is then held until the second writes: whoever makes
 * the second wait may do so for what came before the free, and no further. */
static void cycle_of(size_t kept, bool opportunistic)
{
    cudaStream_t first = new_stream(), second = new_stream();
    void *p = NULL, *rest = NULL, *q;
    struct hold hold;
    cudaMemPool_t pool;
    int rule = opportunistic;

    hold_prepare(&hold);
    cudaDeviceGetDefaultMemPool(&pool, 0);
    cudaMemPoolSetAttribute(pool, cudaMemPoolReuseAllowOpportunistic, &rule);
    for (int round = 0; round < 3; round++) {
        say("block %d", cudaMallocAsync(&p, 80 * MIB, first));
        cudaLaunchHostFunc(first, pause_in_stream, NULL);
        say("free %d", cudaFreeAsync(p, first));
        hold_begin(&hold, first, 0);
        if (kept)
            rest = ask(kept, first);
        q = ask(60 * MIB - kept, second);
        say("write %d", cuStreamWriteValue32_v2(second, hold.device_flag, 1, 0));
        say("first %d", cudaStreamSynchronize(first));
        say("second %d", cudaStreamSynchronize(second));
        if (q)
            cudaFreeAsync(q, second);
        if (rest)
            cudaFreeAsync(rest, first);
        rest = NULL;
        hold_end(&hold);
        say("device %d", cudaDeviceSynchronize());
    }
    afterwards(second);
}

static void cycle(void)
{
    cycle_of(0, true);
}
static void cycle_and_part_of_it_in_use(void)
{
    cycle_of(20 * MIB, true);
}
static void cycle_without_chance(void)
{
    cycle_of(0, false);
}

/* A ring: each stream frees its own, takes what it can get, and waits for the one behind. */
static void ring(void)
{
    cudaStream_t streams[SEVERAL];
    void *blocks[SEVERAL], *more[SEVERAL];
    struct hold hold;

    hold_prepare(&hold);
    for (int i = 0; i < SEVERAL; i++)
        streams[i] = new_stream();
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < SEVERAL; i++)
            blocks[i] = ask(28 * MIB, streams[i]);
        for (int i = 0; i < SEVERAL; i++)
            free_behind(blocks[i], streams[i], streams[(i + round) % SEVERAL]);
        hold_begin(&hold, streams[0], 0);
        for (int i = 1; i < SEVERAL; i++)
            order(streams[i - 1], streams[i]);
        for (int i = SEVERAL - 1; i >= 0; i--)
            more[i] = ask((size_t)(10 + 5 * i) * MIB, streams[i]);
        for (int i = 0; i < SEVERAL; i++)
            free_behind(more[i], streams[i], streams[(i + 2) % SEVERAL]);
        hold_end(&hold);
        say("device %d", cudaDeviceSynchronize());
    }
    afterwards(streams[1]);
}

/* All memory is in two pools, freed on streams that wait for the one that is held. */
static void full_of_pools(void)
{
    cudaStream_t held = new_stream(), behind = new_stream(), other = new_stream();
    cudaMemPool_t pools[2] = {new_pool(), new_pool()};
    void *blocks[2][PIECES], *p = NULL;
    struct hold hold;
    int counts[2];

    hold_prepare(&hold);
    for (int round = 0; round < 2; round++) {
        counts[0] = in_order(blocks[0], PIECES / 2, 5 * MIB, pools[0], held);
        counts[1] = in_order(blocks[1], PIECES, 3 * MIB, pools[1], other);
        say("blocks: %d", counts[0] > 0 && counts[1] > 0);
        hold_begin(&hold, held, 0);
        order(held, behind);
        order(other, behind);
        free_in_order(blocks[0], counts[0], round ? behind : held);
        free_in_order(blocks[1], counts[1], behind);
        p = ask(60 * MIB, other);
        say("stream %d", cudaStreamSynchronize(other));
        say("info %d", cudaMemGetInfo(&(size_t){0}, &(size_t){0}));
        say("trim %d %d", cudaMemPoolTrimTo(pools[0], 0), cudaMemPoolTrimTo(pools[1], 0));
        if (round)
            say("destroy %d", cudaMemPoolDestroy(pools[0]));
        void *q = NULL;
        cudaMalloc(&q, 40 * MIB);
        say("answered");
        hold_end(&hold);
        say("device %d", cudaDeviceSynchronize());
        if (p)
            cudaFreeAsync(p, other);
        cudaFree(q);
        cudaGetLastError();
    }
    say("destroy %d", cudaMemPoolDestroy(pools[1]));
    afterwards(other);
}

/* The legacy stream is held, and so are those that wait for it; nobody waits in a call. */
static void legacy_is_held(void)
{
    cudaStream_t blocking = NULL, other = new_stream();
    void *p = NULL, *own = NULL, *left = NULL;
    struct hold hold;

    hold_prepare(&hold);
    cudaStreamCreate(&blocking);
    for (int round = 0; round < 2; round++) {
        say("blocks %d %d", cudaMallocAsync(&p, 30 * MIB, NULL),
            cudaMallocAsync(&own, 30 * MIB, cudaStreamPerThread));
        cudaDeviceSynchronize();
        hold_begin(&hold, NULL, 0);
        say("frees %d %d", cudaFreeAsync(p, NULL), cudaFreeAsync(own, blocking));
        left = ask(50 * MIB, blocking);
        p = ask(60 * MIB, other);
        say("other %d", cudaStreamSynchronize(other));
        free_behind(left, blocking, cudaStreamPerThread);
        if (p)
            cudaFreeAsync(p, other);
        hold_end(&hold);
        say("device %d", cudaDeviceSynchronize());
    }
    afterwards(blocking);
}

/* One thread waits for the stream that is held, in whichever call; another has to get through, and ends
 * it. */
struct waiter {
    cudaStream_t stream;
    cudaEvent_t event;
    int how, status;
    atomic_int begun;
};

static void wait_somehow(void *argument)
{
    struct waiter *waiter = argument;

    atomic_store(&waiter->begun, 1);
    if (waiter->how == 0)
        waiter->status = (int)cudaStreamSynchronize(waiter->stream);
    else if (waiter->how == 1)
        waiter->status = (int)cudaEventSynchronize(waiter->event);
    else
        waiter->status = (int)cudaDeviceSynchronize();
}

static void waits_for_another_thread(void)
{
    cudaStream_t held = new_stream(), other = new_stream();
    void *blocks[PIECES], *p = NULL;
    struct hold hold;

    hold_prepare(&hold);
    for (int how = 0; how < 3; how++) {
        struct waiter waiter = {.stream = held, .how = how};
        struct helper *helper;
        int count = in_order(blocks, PIECES, 4 * MIB, NULL, held);

        cudaDeviceSynchronize();
        hold_begin(&hold, held, 0);
        free_in_order(blocks, count, held);
        cudaEventCreateWithFlags(&waiter.event, cudaEventDisableTiming);
        cudaEventRecord(waiter.event, held);
        helper = start(wait_somehow, &waiter);
        while (!atomic_load(&waiter.begun))
            pause_ms(1);
        pause_ms(10);
        for (int i = 0; i < 10; i++)
            if ((p = ask((size_t)(i + 1) * 6 * MIB, other)) != NULL)
                cudaFreeAsync(p, other);
        cudaStream_t third = new_stream();
        say("destroy %d", cudaStreamDestroy(third));
        if (!how)
            say("stream %d", cudaStreamSynchronize(other));
        hold_end(&hold);
        finish(helper);
        say("waited %d", waiter.status);
        cudaEventDestroy(waiter.event);
    }
    afterwards(other);
}

/* A thread ends while its own stream is held, with blocks in it. */
struct ending {
    struct hold *hold;
    void *kept;
};

static void end_held(void *argument)
{
    struct ending *ending = argument;
    void *p = NULL;

    cudaMallocAsync(&ending->kept, 10 * MIB, cudaStreamPerThread);
    cudaMallocAsync(&p, 60 * MIB, cudaStreamPerThread);
    hold_begin(ending->hold, cudaStreamPerThread, 0);
    cudaFreeAsync(p, cudaStreamPerThread);
}

static void thread_ends_while_held(void)
{
    cudaStream_t other = new_stream();
    struct hold hold;
    void *p;

    hold_prepare(&hold);
    for (int round = 0; round < 2; round++) {
        struct ending ending = {.hold = &hold};

        finish(start(end_held, &ending));
        p = ask(80 * MIB, other);
        say("other %d", cudaStreamSynchronize(other));
        if (p)
            cudaFreeAsync(p, other);
        if (ending.kept)
            cudaFreeAsync(ending.kept, other);
        hold_end(&hold);
        say("device %d", cudaDeviceSynchronize());
    }
    afterwards(other);
}

/* A graph that allocates, captured and launched while memory is short and its stream's is held. */
static void graph_when_full(void)
{
    cudaStream_t held = new_stream(), other = new_stream();
    cudaGraph_t graph = NULL;
    cudaGraphExec_t exec = NULL;
    void *p = NULL, *q = NULL;
    struct hold hold;

    hold_prepare(&hold);
    say("block %d", cudaMallocAsync(&q, 80 * MIB, held));
    cudaStreamSynchronize(held);
    hold_begin(&hold, held, 0);
    say("free %d", cudaFreeAsync(q, held));
    say("begin %d", cudaStreamBeginCapture(other, cudaStreamCaptureModeThreadLocal));
    say("alloc %d", cudaMallocAsync(&p, 60 * MIB, other));
    say("free %d", cudaFreeAsync(p, other));
    say("end %d", cudaStreamEndCapture(other, &graph));
    say("instantiate %d", cudaGraphInstantiateWithFlags(&exec, graph, 0));
    cudaGraphLaunch(exec, other);
    cudaGetLastError();
    say("answered");
    hold_end(&hold);
    say("device %d", cudaDeviceSynchronize());
    cudaGraphLaunch(exec, held); /* docs/internals/pool.md says why there may be no memory */
    cudaGetLastError();
    say("answered");
    say("device %d", cudaDeviceSynchronize());
    say("destroy %d %d", cudaGraphExecDestroy(exec), cudaGraphDestroy(graph));
    say("trim %d", cudaDeviceGraphMemTrim(0));
    afterwards(other);
}

/* cudaMalloc's memory and the streams' change places while one is held. */
static void both_kinds(void)
{
    cudaStream_t held = new_stream(), other = new_stream();
    void *blocks[PIECES], *p = NULL, *q;
    struct hold hold;

    hold_prepare(&hold);
    for (int round = 0; round < 2; round++) {
        int count = round ? take_all(blocks, PIECES, 5 * MIB) : in_order(blocks, PIECES, 5 * MIB, NULL, held);

        cudaDeviceSynchronize();
        hold_begin(&hold, held, 0);
        free_in_order(blocks, count, held); /* of cudaMalloc's, too */
        cudaMalloc(&p, 50 * MIB);
        cudaGetLastError();
        q = ask(50 * MIB, other);
        say("other %d", cudaStreamSynchronize(other));
        hold_end(&hold);
        say("device %d", cudaDeviceSynchronize());
        say("free %d %d", cudaFreeAsync(p, held), cudaFreeAsync(q, held));
        p = NULL;
    }
    afterwards(other);
}

const struct program programs_pools[] = {
    {"pools-cycle", cycle, SMALL},
    {"pools-cycle-and-part-in-use", cycle_and_part_of_it_in_use, SMALL},
    {"pools-cycle-without-chance", cycle_without_chance, SMALL},
    {"pools-ring", ring, SMALL},
    {"pools-ring-with-plenty", ring, NULL},
    {"pools-full", full_of_pools, SMALL},
    {"pools-legacy-is-held", legacy_is_held, SMALL},
    {"pools-waits-for-another-thread", waits_for_another_thread, SMALL},
    {"pools-thread-ends-while-held", thread_ends_while_held, SMALL},
    {"pools-graph-when-full", graph_when_full, SMALL},
    {"pools-both-kinds", both_kinds, SMALL},
    {NULL, NULL, NULL},
};
