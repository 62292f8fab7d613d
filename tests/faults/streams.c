/*
 * streams.c - as consistent.c, with memory in the order of streams: from pools, freed on whichever stream,
 * while work is late, in graphs, and of streams and pools that end.
 *
 * Where streams cannot be ordered by an event since that is refused, the host waits, and where that is
 * refused as well a block stays where it is. Nothing that was refused is used. Nothing here knows of
 * memshim. */
#include "tell.h"

#include <time.h>

enum { STREAMS = 5, OWN = 3, LEGACY = 4, BLOCKS = 40, LOOKED = 512, ROUNDS = 5, COPIES = 1024 };

static struct block {
    void *p;
    size_t bytes;
    int value, stream;  /* what it holds, -1: unknown; where its work is */
    cudaMemPool_t pool; /* of the program's */
    bool plain;         /* from cudaMalloc */
} blocks[BLOCKS];

static cudaStream_t streams[STREAMS];
static cudaMemPool_t pool;
static cudaEvent_t event;
static unsigned char *copies; /* pinned, COPIES of LOOKED bytes */
static int copy;              /* where the next one goes: not to where one may still arrive */

static void make_stream(int i)
{
    streams[i] = NULL;
    other("cudaStreamCreateWithFlags",
          cudaStreamCreateWithFlags(&streams[i], i == 2 ? 0 : cudaStreamNonBlocking));
}

static void make_pool(void)
{
    struct cudaMemPoolProps props = {.allocType = cudaMemAllocationTypePinned,
                                     .location = {cudaMemLocationTypeDevice, 0}};
    uint64_t threshold = 64 * MIB;

    pool = NULL;
    if (other("cudaMemPoolCreate", cudaMemPoolCreate(&pool, &props)))
        other("cudaMemPoolSetAttribute",
              cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &threshold));
    else
        pool = NULL;
}

static void sleep_a_little(void *unused)
{
    const struct timespec rest = {0, 300000};

    (void)unused;
    nanosleep(&rest, NULL);
}

static void late(int stream)
{
    other("cudaLaunchHostFunc", cudaLaunchHostFunc(streams[stream], sleep_a_little, NULL));
}

/* What `to` is given from now on comes behind what `from` has. */
static bool order(int from, int to)
{
    if (from == to)
        return true;
    if (event && other("cudaEventRecord", cudaEventRecord(event, streams[from])) &&
        other("cudaStreamWaitEvent", cudaStreamWaitEvent(streams[to], event, 0)))
        return true;
    return other("cudaStreamSynchronize", cudaStreamSynchronize(streams[from]));
}

static bool fill(struct block *b, int value)
{
    size_t bytes = b->bytes < LOOKED ? b->bytes : LOOKED;

    b->value = -1;
    if (!other("cudaMemsetAsync", cudaMemsetAsync(b->p, value, bytes, streams[b->stream])) ||
        !other("cudaMemsetAsync",
               cudaMemsetAsync((char *)b->p + b->bytes - bytes, value, bytes, streams[b->stream])))
        return false;
    b->value = value;
    return true;
}

static size_t size_of(int i)
{
    static const size_t sizes[] = {600, 5000, 70000, MIB, 3 * MIB, 512, 5 * MIB + 11, 20 * MIB};

    return sizes[(i + round_number) % 8];
}

static bool ask(struct block *b, int kind)
{
    if (kind == 6) {
        b->plain = true;
        return done("cudaMalloc", cudaMalloc(&b->p, b->bytes));
    }
    if ((kind == 4 || kind == 5) && pool) {
        b->pool = pool;
        return done("cudaMallocFromPoolAsync",
                    cudaMallocFromPoolAsync(&b->p, b->bytes, pool, streams[b->stream]));
    }
    return done("cudaMallocAsync", cudaMallocAsync(&b->p, b->bytes, streams[b->stream]));
}

static void allocate(int i)
{
    struct block fresh = {.bytes = size_of(i), .stream = i % STREAMS};

    if (!ask(&fresh, i % 8))
        return;
    live += fresh.bytes;
    for (int k = 0; k < BLOCKS; k++) /* nobody else has this place */
        if (blocks[k].p && (char *)fresh.p < (char *)blocks[k].p + blocks[k].bytes &&
            (char *)blocks[k].p < (char *)fresh.p + fresh.bytes) {
            printf("round %d: blocks overlap\n", round_number);
            wrong++;
        }
    if (i % 7 == 3)
        late(fresh.stream);
    fill(&fresh, (i * 5 + round_number * 3) & 0xff);
    blocks[i] = fresh;
}

static void look_at(const struct block *b, size_t from, size_t bytes)
{
    const unsigned char *seen = copies + (size_t)copy * LOOKED;

    if (!other("cudaMemcpyAsync", cudaMemcpyAsync(copies + (size_t)copy * LOOKED, (char *)b->p + from, bytes,
                                                  cudaMemcpyDeviceToHost, streams[b->stream])))
        return;
    if (!other("cudaStreamSynchronize", cudaStreamSynchronize(streams[b->stream]))) {
        copy = (copy + 1) % COPIES;
        return;
    }
    for (size_t i = 0; i < bytes; i++)
        if (seen[i] != b->value) {
            printf("round %d: a block of %zu bytes holds %d instead of %d\n", round_number, b->bytes, seen[i],
                   b->value);
            wrong++;
            return;
        }
}

static void check(const struct block *b)
{
    size_t bytes = b->bytes < LOOKED ? b->bytes : LOOKED;

    if (b->value < 0)
        return;
    look_at(b, 0, bytes);
    look_at(b, b->bytes - bytes, bytes);
}

static void gone(struct block *b, bool freed)
{
    if (freed)
        live -= b->bytes;
    b->p = NULL; /* one that was refused is lost: it stays live */
}

/* With late work on it, which nobody may see who has its place afterwards. */
static void release(int i)
{
    struct block *b = &blocks[i];
    int how = (i + round_number) % 6, to = (b->stream + 1 + i % 3) % STREAMS;

    if (how == 2 && !b->plain && other("cudaStreamSynchronize", cudaStreamSynchronize(streams[b->stream]))) {
        gone(b, done("cudaFree", cudaFree(b->p)));
        return;
    }
    if (how == 3 || how == 4) {
        late(b->stream);
        fill(b, 0xee);
    }
    if ((how == 1 || how == 4) && order(b->stream, to))
        b->stream = to;
    if (b->plain && how == 5)
        gone(b, done("cudaFree", cudaFree(b->p)));
    else
        gone(b, done("cudaFreeAsync", cudaFreeAsync(b->p, streams[b->stream])));
}

/* Until it is ended nothing else works. */
static cudaGraph_t end_capture(void)
{
    cudaGraph_t graph = NULL;

    for (int i = 0; i < 40; i++)
        if (other("cudaStreamEndCapture", cudaStreamEndCapture(streams[0], &graph)))
            break;
    return graph;
}

/* Memory of the graph's own, from which it copies into a block. Whether all of it is in the graph. */
static bool record(const struct block *b, int value)
{
    void *p = NULL;
    bool good;

    if (!done("cudaMallocAsync", cudaMallocAsync(&p, LOOKED, streams[0])))
        return false;
    live += LOOKED;
    good = other("cudaMemsetAsync", cudaMemsetAsync(p, value, LOOKED, streams[0])) &&
           other("cudaMemcpyAsync", cudaMemcpyAsync(b->p, p, 512, cudaMemcpyDeviceToDevice, streams[0])) &&
           other("cudaMemcpyAsync", cudaMemcpyAsync((char *)b->p + b->bytes - 512, p, 512,
                                                    cudaMemcpyDeviceToDevice, streams[0]));
    for (int i = 0; i < 40; i++) /* a node that nobody frees is nobody's when its graph is gone */
        if (done("cudaFreeAsync", cudaFreeAsync(p, streams[0])))
            return live -= LOOKED, good;
    return false;
}

static void launch(cudaGraph_t graph, struct block *b, int value)
{
    cudaGraphExec_t exec = NULL;

    if (!other("cudaGraphInstantiateWithFlags", cudaGraphInstantiateWithFlags(&exec, graph, 0)))
        return;
    for (int i = 0; i < 3; i++) {
        int to = (b->stream + i) % STREAMS;

        if (order(b->stream, to))
            b->stream = to;
        late(b->stream);
        fill(b, 0x77);
        if (other("cudaGraphLaunch", cudaGraphLaunch(exec, streams[b->stream])))
            b->value = value;
        check(b);
    }
    other("cudaGraphExecDestroy", cudaGraphExecDestroy(exec));
}

static void use_graph(int i)
{
    struct block *b = &blocks[i];
    cudaGraph_t graph;

    if (!streams[0] || !b->p || b->bytes < 512 || !order(b->stream, 0))
        return;
    b->stream = 0;
    if (!other("cudaStreamSynchronize", cudaStreamSynchronize(streams[0])) ||
        !other("cudaStreamBeginCapture", cudaStreamBeginCapture(streams[0], cudaStreamCaptureModeRelaxed)))
        return;
    bool good = record(b, 0x50 + round_number);
    if ((graph = end_capture()) == NULL)
        return;
    if (good)
        launch(graph, b, 0x50 + round_number);
    other("cudaGraphDestroy", cudaGraphDestroy(graph));
}

/* What is in use of the pool is what the program has of it, once all is quiet. */
static void ask_pool(void)
{
    uint64_t used = 0, own = 0;

    if (!pool || !other("cudaDeviceSynchronize", cudaDeviceSynchronize()) ||
        !other("cudaMemPoolGetAttribute",
               cudaMemPoolGetAttribute(pool, cudaMemPoolAttrUsedMemCurrent, &used)))
        return;
    for (int i = 0; i < BLOCKS; i++)
        if (blocks[i].p && blocks[i].pool == pool)
            own += (blocks[i].bytes + 511) / 512 * 512;
    if (used != own && !refusals) {
        printf("round %d: %llu bytes of the pool are in use instead of %llu\n", round_number,
               (unsigned long long)used, (unsigned long long)own);
        wrong++;
    }
    other("cudaMemPoolTrimTo", cudaMemPoolTrimTo(pool, round_number * MIB));
}

/* A pool ends with blocks that live on, and a stream whose blocks do. */
static void end_something(void)
{
    bool ordered = true;

    if (round_number == 1 && pool)
        other("cudaDeviceSetMemPool", cudaDeviceSetMemPool(0, pool));
    if (round_number == 2 && pool && other("cudaMemPoolDestroy", cudaMemPoolDestroy(pool)))
        make_pool();
    if (round_number != 3)
        return;
    for (int i = 0; i < BLOCKS; i++)
        if (blocks[i].p && blocks[i].stream == 1) {
            bool moved = order(1, 0);
            blocks[i].stream = moved ? 0 : 1;
            ordered = ordered && moved;
        }
    if (ordered && streams[1] && other("cudaStreamDestroy", cudaStreamDestroy(streams[1])))
        make_stream(1);
}

static void one_round(void)
{
    size_t available = 0, total = 0;

    for (int i = 0; i < BLOCKS; i++)
        if (!blocks[i].p)
            allocate(i);
    use_graph(3 + round_number);
    for (int i = 0; i < BLOCKS; i++)
        if (blocks[i].p)
            check(&blocks[i]);
    end_something();
    for (int i = round_number % 3; i < BLOCKS; i += 2)
        if (blocks[i].p)
            release(i);
    if (round_number % 2)
        ask_pool();
    other("cudaMemGetInfo", cudaMemGetInfo(&available, &total));
}

int main(void)
{
    static unsigned char pageable[COPIES * LOOKED];

    setvbuf(stdout, NULL, _IOLBF, 0);
    for (int i = 0; i < OWN; i++)
        make_stream(i);
    streams[OWN] = cudaStreamPerThread;
    streams[LEGACY] = NULL;
    if (!other("cudaEventCreateWithFlags", cudaEventCreateWithFlags(&event, cudaEventDisableTiming)))
        event = NULL;
    if (!other("cudaHostAlloc", cudaHostAlloc((void **)&copies, sizeof pageable, 0)))
        copies = pageable;
    make_pool();
    for (round_number = 0; round_number < ROUNDS; round_number++)
        one_round();
    for (int i = 0; i < BLOCKS; i++)
        if (blocks[i].p)
            release(i);
    other("cudaDeviceSynchronize", cudaDeviceSynchronize());
    return tell();
}
