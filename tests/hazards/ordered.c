/*
 * ordered.c - memory in the order of streams: from the device's pool, from pools that come and go, and freed
 * by every way: on its stream, on another, on another device's, or without an order when its stream was
 * waited for.
 */
#include "hazards.h"

static cudaMemPool_t currents[MAX_DEVICES]; /* in the place of the device's own pool; the first worker's */

static cudaMemPool_t new_pool(struct worker *worker, int device)
{
    struct cudaMemPoolProps props = {.allocType = cudaMemAllocationTypePinned,
                                     .location = {cudaMemLocationTypeDevice, device}};
    uint64_t threshold = pick(worker, 2) ? UINT64_MAX : 0;
    cudaMemPool_t pool = NULL;
    int rule = 0;

    worker->pools_made++;
    if (!worked(cudaMemPoolCreate(&pool, &props), "cudaMemPoolCreate"))
        return NULL;
    worked(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &threshold),
           "cudaMemPoolSetAttribute");
    if (pick(worker, 4) == 0)
        worked(cudaMemPoolSetAttribute(pool, cudaMemPoolReuseAllowOpportunistic, &rule),
               "cudaMemPoolSetAttribute");
    if (pick(worker, 4) == 0)
        worked(cudaMemPoolSetAttribute(pool, cudaMemPoolReuseAllowInternalDependencies, &rule),
               "cudaMemPoolSetAttribute");
    return pool;
}

/* The device's own pool, or one of the worker's, which is destroyed now and then with all that lives in
 * it. */
static cudaMemPool_t pick_pool(struct worker *worker, int device)
{
    cudaMemPool_t *pool = &worker->pools[device][pick(worker, POOLS)];

    if (settings.pure || pick(worker, 3))
        return NULL;
    if (*pool && pick(worker, 200) == 0) {
        worked(cudaMemPoolDestroy(*pool), "cudaMemPoolDestroy");
        *pool = NULL;
    }
    if (*pool && pick(worker, 200) == 0)
        worked(RELAXED(cudaMemPoolTrimTo(*pool, pick(worker, 2) ? 0 : 1 << 20)), "cudaMemPoolTrimTo");
    if (!*pool)
        *pool = new_pool(worker, device);
    return *pool;
}

/** Others ask for memory of whatever pool is current while it changes, and while that one is destroyed. */
void change_current_pool(struct worker *worker, int device)
{
    cudaMemPool_t *pool = &currents[device], own = NULL;

    if (!*pool) {
        *pool = new_pool(worker, device);
        worked(cudaDeviceSetMemPool(device, *pool), "cudaDeviceSetMemPool");
        return;
    }
    if (pick(worker, 2) && worked(cudaDeviceGetDefaultMemPool(&own, device), "cudaDeviceGetDefaultMemPool"))
        worked(cudaDeviceSetMemPool(device, own), "cudaDeviceSetMemPool");
    worked(cudaMemPoolDestroy(*pool), "cudaMemPoolDestroy");
    *pool = NULL;
}

bool allocate_ordered(struct worker *worker, struct block *block, size_t bytes, cudaStream_t stream,
                      int device)
{
    cudaMemPool_t pool = pick_pool(worker, device);
    void *p = NULL;
    int status =
        RELAXED(pool ? cudaMallocFromPoolAsync(&p, bytes, pool, stream) : cudaMallocAsync(&p, bytes, stream));

    block->address = (uintptr_t)p;
    block->ordered = true;
    return worked(status, "cudaMallocAsync");
}

/* Behind all that was done to the block, on a stream of another device. */
static void free_on_another_device(struct worker *worker, struct block *block)
{
    int device = (block->device + 1) % settings.devices;
    cudaEvent_t *event = &worker->events[block->device];
    cudaStream_t stream;

    move_to_stream(worker, block, pick_stream(worker)); /* makes the event, too */
    worked(cudaEventRecord(*event, stream_of(worker, block->device, block->stream)), "cudaEventRecord");
    stream = stream_of(worker, device, pick_stream(worker));
    worked(cudaStreamWaitEvent(stream, *event, 0), "cudaStreamWaitEvent");
    worked(RELAXED(cudaFreeAsync((void *)(uintptr_t)block->address, stream)),
           "cudaFreeAsync on another device");
}

/** Memory from cudaMalloc may be freed so as well. */
void free_ordered(struct worker *worker, struct block *block)
{
    void *p = (void *)(uintptr_t)block->address;
    uint32_t how = pick(worker, 24);

    if (how == 0 && block->ordered) {
        cudaStream_t stream = stream_of(worker, block->device, block->stream);

        worked(RELAXED(cudaStreamSynchronize(stream)), "cudaStreamSynchronize");
        free_begin();
        worked(cudaFree(p), "cudaFree of stream-ordered memory");
        free_end();
        return;
    }
    if (how == 1 && settings.devices > 1 && block->ordered) {
        free_on_another_device(worker, block);
        return;
    }
    if (how < 8)
        move_to_stream(worker, block, pick_stream(worker));
    worked(RELAXED(cudaFreeAsync(p, stream_of(worker, block->device, block->stream))), "cudaFreeAsync");
}

void end_ordered(struct worker *worker)
{
    for (int device = 0; device < settings.devices; device++) {
        for (int i = 0; i < POOLS; i++)
            if (worker->pools[device][i])
                worked(cudaMemPoolDestroy(worker->pools[device][i]), "cudaMemPoolDestroy");
        if (worker->index == 0 && currents[device])
            change_current_pool(worker, device);
    }
}
