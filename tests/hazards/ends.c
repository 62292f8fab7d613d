/*
 * ends.c - contexts that come and go, and a device that is reset, with live blocks, freed blocks and pending
 * work in them, while other workers go on elsewhere.
 */
#include "hazards.h"

#define INSIDE 24

static void check_inside(struct worker *worker, const struct block *block)
{
    worker->checks++;
    for (uint32_t i = 0; i < WORDS; i++)
        worker->seen[i] = 0;
    if (!worked(cuMemcpyDtoH_v2(worker->seen, block->address, 256), "cuMemcpyDtoH"))
        return;
    for (uint32_t i = 0; i < WORDS; i++)
        if (worker->seen[i] != block->tag) {
            atomic_fetch_add(&wrong_blocks, 1);
            break;
        }
}

/* Allocations, delayed writes, frees and checks in the current context; what is live at the end stays. */
static void churn(struct worker *worker, CUstream stream)
{
    struct block blocks[INSIDE];
    int count = 0;

    for (int i = 0; i < INSIDE; i++) {
        struct block *block = &blocks[count];
        CUdeviceptr address = 0;

        block->bytes = 256 + pick_size(worker) / 4;
        block->tag = worker->next_tag++;
        worker->operations++;
        if (!worked(cuMemAlloc_v2(&address, block->bytes), "cuMemAlloc"))
            return;
        block->address = address;
        if (i % 6 == 0)
            delay(worker, stream, 100);
        write_tag(block, stream);
        count++;
        if (pick(worker, 2)) {
            worker->operations++;
            if (worked(cuMemFree_v2(blocks[--count].address), "cuMemFree"))
                continue;
        }
    }
    if (pick(worker, 2) && worked(cuStreamSynchronize(stream), "cuStreamSynchronize"))
        for (int i = 0; i < count; i++)
            check_inside(worker, &blocks[i]);
}

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
