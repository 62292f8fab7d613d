/*
 * ends.c - contexts that come and go, a device that is reset, and threads that end, with live blocks, freed
 * blocks and pending work in them, while other workers go on elsewhere.
 */
#include "hazards.h"

#include <pthread.h>

#define INSIDE  24
#define BROUGHT 6 /* blocks that a thread leaves behind, and is given to free */

static void check_inside(struct worker *worker, const struct block *block)
{
    worker->checks++;
    for (uint32_t i = 0; i < WORDS; i++)
        worker->seen[i] = 0;
    unsafe_begin();
    bool read = worked(cuMemcpyDtoH_v2(worker->seen, block->address, 256), "cuMemcpyDtoH");
    unsafe_end();
    if (!read)
        return;
    for (uint32_t i = 0; i < WORDS; i++)
        if (worker->seen[i] != block->tag) {
            atomic_fetch_add(&wrong_blocks, 1);
            break;
        }
}

static bool allocate_inside(struct block *block, CUstream stream)
{
    CUdeviceptr address = 0;
    bool good;

    if (block->ordered) {
        good = worked(RELAXED(cuMemAllocAsync(&address, block->bytes, stream)), "cuMemAllocAsync");
    } else {
        unsafe_begin();
        good = worked(cuMemAlloc_v2(&address, block->bytes), "cuMemAlloc");
        unsafe_end();
    }
    block->address = address;
    return good;
}

static void free_inside(const struct block *block, CUstream stream)
{
    if (block->ordered) {
        worked(RELAXED(cuMemFreeAsync(block->address, stream)), "cuMemFreeAsync");
        return;
    }
    free_begin();
    worked(cuMemFree_v2(block->address), "cuMemFree");
    free_end();
}

/* Allocations, delayed writes, frees and checks in the current context; what is live at the end stays. */
static void churn(struct worker *worker, CUstream stream)
{
    struct block blocks[INSIDE];
    int count = 0;

    for (int i = 0; i < INSIDE; i++) {
        struct block *block = &blocks[count];

        block->bytes = 256 + pick_size(worker) / 4;
        block->tag = worker->next_tag++;
        block->ordered = settings.streams && pick(worker, 2);
        worker->operations++;
        if (!allocate_inside(block, stream))
            break;
        if (i % 6 == 0)
            delay(worker, stream, 100);
        write_tag(block, stream);
        count++;
        if (pick(worker, 2)) {
            worker->operations++;
            free_inside(&blocks[--count], stream);
        }
    }
    if (pick(worker, 2) && worked(RELAXED(cuStreamSynchronize(stream)), "cuStreamSynchronize"))
        for (int i = 0; i < count; i++)
            check_inside(worker, &blocks[i]);
    for (int i = 0; i < count; i++) /* the pool outlives the context */
        if (blocks[i].ordered)
            free_inside(&blocks[i], stream);
}

#ifdef TEST_HIP
void context_comes_and_goes(struct worker *worker)
{
    (void)worker;
}
#else
/** A context of the worker's own. What is current before is current afterwards. */
void context_comes_and_goes(struct worker *worker)
{
    CUcontext ctx = NULL, current = NULL;
    CUstream stream = NULL;

    if (!worked(cuCtxCreate_v2(&ctx, 0, (CUdevice)pick(worker, (uint32_t)settings.devices)), "cuCtxCreate"))
        return;
    worker->contexts++;
    if (worked(cuStreamCreate(&stream, pick(worker, 2) ? CU_STREAM_NON_BLOCKING : 0), "cuStreamCreate"))
        churn(worker, stream);
    if (pick(worker, 2))
        worked(cuCtxPopCurrent_v2(&current), "cuCtxPopCurrent");
    worked(cuCtxDestroy_v2(ctx), "cuCtxDestroy");
    worker->device = -1;
    use_device(worker, worker->index % settings.devices);
}

#endif

/** A device that nobody else uses. */
void device_is_reset(struct worker *worker, int device)
{
    cudaStream_t stream = NULL;

    use_device(worker, device);
    worker->resets++;
    if (worked(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "cudaStreamCreateWithFlags"))
        churn(worker, stream);
    worked(cudaDeviceReset(), "cudaDeviceReset");
    worker->device = -1;
    use_device(worker, worker->index % settings.devices);
}

/* What a thread does in the stream that ends with it; who waits for the thread lends it the rest. */
struct visit {
    struct worker *worker;
    int device;
    struct block blocks[BROUGHT], given[BROUGHT];
    cudaEvent_t before, after;
};

static void *visit_of_a_thread(void *argument)
{
    struct visit *visit = argument;
    cudaStream_t own = cudaStreamPerThread;

    worked(cudaSetDevice(visit->device), "cudaSetDevice");
    worked(cudaStreamWaitEvent(own, visit->before, 0), "cudaStreamWaitEvent");
    if (pick(visit->worker, 4) == 0)
        delay(visit->worker, own, 300);
    for (int i = 0; i < BROUGHT; i++) {
        struct block *block = &visit->blocks[i];

        block->bytes = pick_size(visit->worker);
        block->tag = visit->worker->next_tag++;
        block->device = visit->device;
        if (allocate_ordered(visit->worker, block, block->bytes, own, visit->device))
            write_tag(block, own);
        if (visit->given[i].address)
            worked(RELAXED(cudaFreeAsync((void *)(uintptr_t)visit->given[i].address, own)), "cudaFreeAsync");
        if (block->address && i % 2) {
            worked(RELAXED(cudaFreeAsync((void *)(uintptr_t)block->address, own)), "cudaFreeAsync");
            block->address = 0;
        }
    }
    worked(cudaEventRecord(visit->after, own), "cudaEventRecord");
    return NULL;
}

/* Blocks of the worker's are for the thread to free, behind what was done to them. */
static void give(struct worker *worker, struct visit *visit, enum stream_kind kind)
{
    for (int i = 0; i < BROUGHT; i++) {
        struct block *block = &worker->slots[pick(worker, SLOTS)];

        if (!block->address || !block->ordered || block->device != visit->device)
            continue;
        move_to_stream(worker, block, kind);
        visit->given[i] = *block;
        block->address = 0;
    }
    worked(cudaEventRecord(visit->before, stream_of(worker, visit->device, kind)), "cudaEventRecord");
}

/* What the thread has left is the worker's. */
static void take(struct worker *worker, struct visit *visit, enum stream_kind kind)
{
    int next = 0;

    worked(cudaStreamWaitEvent(stream_of(worker, visit->device, kind), visit->after, 0),
           "cudaStreamWaitEvent");
    for (int i = 0; i < BROUGHT; i++) {
        struct block *block = &visit->blocks[i];

        if (!block->address)
            continue;
        block->stream = kind;
        while (next < SLOTS && worker->slots[next].address)
            next++;
        if (next < SLOTS)
            worker->slots[next] = *block;
        else
            release_block(worker, block);
    }
}

/** A thread allocates, writes and frees in its own stream, and ends before that has happened. */
void a_thread_comes_and_goes(struct worker *worker, int device)
{
    struct visit visit = {.worker = worker, .device = device};
    enum stream_kind kind = pick_stream(worker);
    pthread_t thread;

    use_device(worker, device);
    if (!worked(cudaEventCreateWithFlags(&visit.before, cudaEventDisableTiming),
                "cudaEventCreateWithFlags") ||
        !worked(cudaEventCreateWithFlags(&visit.after, cudaEventDisableTiming), "cudaEventCreateWithFlags"))
        return;
    give(worker, &visit, kind);
    if (pthread_create(&thread, NULL, visit_of_a_thread, &visit))
        visit_of_a_thread(&visit);
    else
        pthread_join(thread, NULL);
    worker->visitors++;
    worker->operations += BROUGHT;
    take(worker, &visit, kind);
    worked(cudaEventDestroy(visit.before), "cudaEventDestroy");
    worked(cudaEventDestroy(visit.after), "cudaEventDestroy");
}
