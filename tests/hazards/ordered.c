/*
 * ordered.c - memory in the order of streams: from pools that come and go, freed in stream order or when the
 * stream was waited for, and used by graphs that were captured beside all that.
 */
#include "hazards.h"

#include <pthread.h>
#include <stdlib.h>

/* Captures hold it for reading, who waits for a whole context for writing: that breaks a capture in it. */
static pthread_rwlock_t captures = PTHREAD_RWLOCK_INITIALIZER;

bool wait_for_device(void)
{
    pthread_rwlock_wrlock(&captures);
    bool good = worked(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
    pthread_rwlock_unlock(&captures);
    return good;
}

static cudaMemPool_t new_pool(struct worker *worker, int device)
{
    struct cudaMemPoolProps props = {.allocType = cudaMemAllocationTypePinned,
                                     .location = {cudaMemLocationTypeDevice, device}};
    uint64_t threshold = pick(worker, 2) ? UINT64_MAX : 0;
    cudaMemPool_t pool = NULL;

    if (worked(cudaMemPoolCreate(&pool, &props), "cudaMemPoolCreate"))
        worked(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &threshold), "cudaMemPoolSetAttribute");
    return pool;
}

/* The device's own pool, or one of the worker's, which is destroyed now and then with all that lives in it. */
static cudaMemPool_t pick_pool(struct worker *worker, int device)
{
    cudaMemPool_t *pool = &worker->pools[device];

    if (settings.pure || pick(worker, 3))
        return NULL;
    if (*pool && pick(worker, 400) == 0) {
        worked(cudaMemPoolDestroy(*pool), "cudaMemPoolDestroy");
        *pool = NULL;
    }
    if (*pool && pick(worker, 200) == 0)
        worked(cudaMemPoolTrimTo(*pool, pick(worker, 2) ? 0 : 1 << 20), "cudaMemPoolTrimTo");
    if (!*pool)
        *pool = new_pool(worker, device);
    return *pool;
}

bool allocate_ordered(struct worker *worker, struct block *block, size_t bytes, cudaStream_t stream, int device)
{
    cudaMemPool_t pool = pick_pool(worker, device);
    void *p = NULL;
    int status = pool ? cudaMallocFromPoolAsync(&p, bytes, pool, stream) : cudaMallocAsync(&p, bytes, stream);

    block->address = (uintptr_t)p;
    block->ordered = true;
    return worked(status, "cudaMallocAsync");
}

/* Memory from cudaMalloc may be freed so as well. */
void free_ordered(struct worker *worker, struct block *block)
{
    cudaStream_t stream = stream_of(worker, block->device, block->stream);
    void *p = (void *)(uintptr_t)block->address;

    if (block->ordered && pick(worker, 24) == 0) {
        worked(cudaStreamSynchronize(stream), "cudaStreamSynchronize");
        worked(cudaFree(p), "cudaFree of stream-ordered memory");
    } else {
        worked(cudaFreeAsync(p, stream), "cudaFreeAsync");
    }
}

/* A block that others free has no stream of this worker's any more. */
void hand_over(struct worker *worker, struct block *block)
{
    move_to_stream(worker, block, LEGACY);
}

/* Memory of the graph's own, filled, and a block's tag, written anew: captured in one stream, run in others. */
static bool fill_in(struct worker *worker, cudaStream_t stream, const struct block *block)
{
    size_t bytes = 4096 + pick(worker, 1 << 20);
    void *p = NULL;

    if (!worked(cudaMallocAsync(&p, bytes, stream), "cudaMallocAsync in a capture"))
        return false;
    worked(cudaMemsetAsync(p, 1, bytes, stream), "cudaMemsetAsync in a capture");
    if (block)
        write_tag(block, stream);
    return worked(cudaFreeAsync(p, stream), "cudaFreeAsync in a capture");
}

static void run_graph(struct worker *worker, cudaGraph_t graph, struct block *block, int device)
{
    cudaGraphExec_t exec = NULL;
    enum stream_kind kind = block ? block->stream : pick_stream(worker);

    if (!worked(cudaGraphInstantiateWithFlags(&exec, graph, 0), "cudaGraphInstantiateWithFlags"))
        return;
    for (uint32_t launches = pick(worker, 5) + 1; launches; launches--) {
        if (block && pick(worker, 2)) {
            move_to_stream(worker, block, pick_stream(worker));
            kind = block->stream;
        }
        worked(cudaGraphLaunch(exec, stream_of(worker, device, kind)), "cudaGraphLaunch");
    }
    worked(cudaGraphExecDestroy(exec), "cudaGraphExecDestroy");
}

static cudaGraph_t capture(struct worker *worker, struct block *block, int device)
{
    cudaStream_t stream = stream_of(worker, device, NONBLOCKING);
    cudaGraph_t graph = NULL;

    if (!worked(cudaStreamBeginCapture(stream, pick(worker, 2) ? cudaStreamCaptureModeThreadLocal
                                                               : cudaStreamCaptureModeRelaxed),
                "cudaStreamBeginCapture"))
        return NULL;
    fill_in(worker, stream, block);
    if (pick(worker, 4) == 0) { /* other streams go on meanwhile */
        struct block other = {.device = device, .stream = NONBLOCKING_TOO, .bytes = 70000};
        cudaStream_t beside = stream_of(worker, device, NONBLOCKING_TOO);

        if (allocate_ordered(worker, &other, other.bytes, beside, device)) {
            write_tag(&other, beside);
            worked(cudaFreeAsync((void *)(uintptr_t)other.address, beside), "cudaFreeAsync beside a capture");
        }
        stream_of(worker, device, NONBLOCKING);
    }
    worked(cudaStreamEndCapture(stream, &graph), "cudaStreamEndCapture");
    return graph;
}

void capture_and_run(struct worker *worker, int device)
{
    struct block *block = &worker->slots[pick(worker, SLOTS)];
    cudaGraph_t graph;

    if (!block->address || block->device != device)
        block = NULL;
    pthread_rwlock_rdlock(&captures);
    graph = capture(worker, block, device);
    pthread_rwlock_unlock(&captures);
    if (graph) {
        run_graph(worker, graph, block, device);
        worked(cudaGraphDestroy(graph), "cudaGraphDestroy");
    }
    worker->graphs++;
}

void end_ordered(struct worker *worker)
{
    for (int device = 0; device < settings.devices; device++)
        if (worker->pools[device])
            worked(cudaMemPoolDestroy(worker->pools[device]), "cudaMemPoolDestroy");
}
