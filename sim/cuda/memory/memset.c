/*
 * Fills of 8, 16 and 32 bits, in one and two dimensions. Even those without a stream do not wait, as on
 * hardware, unless they fill host memory.
 */
#include <string.h>

#include "sim/cuda/graph/graph.h"

#define PIECE (1UL << 20)

struct fill_op {
    struct sim_op op;
    CUdeviceptr address;
    size_t pitch, width, height; /* in bytes, bytes and rows */
    unsigned element, value;
};

static void fill(char *to, const struct fill_op *op, size_t bytes)
{
    uint16_t half = (uint16_t)op->value;

    if (op->element == 1) {
        memset(to, (int)op->value, bytes);
        return;
    }
    for (size_t i = 0; i < bytes; i += op->element)
        memcpy(to + i, op->element == 2 ? (const void *)&half : (const void *)&op->value, op->element);
}

static CUresult fill_row(const struct fill_op *op, CUdeviceptr row, unsigned devices)
{
    sim_arena_expect(row, op->width);
    for (size_t done = 0; done < op->width; done += PIECE) {
        size_t bytes = op->width - done < PIECE ? op->width - done : PIECE;

        sim_memory_read_lock();
        bool good = sim_block_covers(row + done, bytes, devices, true);
        if (good)
            fill((char *)(uintptr_t)(row + done), op, bytes);
        sim_memory_unlock();
        if (!good)
            return CUDA_ERROR_ILLEGAL_ADDRESS;
    }
    return CUDA_SUCCESS;
}

static CUresult run_fill(struct sim_op *op, struct sim_queue *queue)
{
    struct fill_op *fill_op = (struct fill_op *)op;
    CUresult status = sim_fault_work(SIM_FN_MEMSET);
    uint64_t cost = sim_fault_cost(SIM_FN_MEMSET);

    if (cost)
        sim_spend(cost);
    for (size_t y = 0; y < fill_op->height && status == CUDA_SUCCESS; y++)
        status = fill_row(fill_op, fill_op->address + y * fill_op->pitch, 1U << queue->ctx->device->ordinal);
    return status;
}

static CUresult check(const struct fill_op *op, bool *host_p)
{
    size_t bytes;

    if (op->address % op->element || (op->height > 1 && (op->pitch % op->element || op->pitch < op->width)))
        return CUDA_ERROR_INVALID_VALUE;
    if (__builtin_mul_overflow(op->height - 1, op->pitch, &bytes) ||
        __builtin_add_overflow(bytes, op->width, &bytes))
        return CUDA_ERROR_INVALID_VALUE;
    sim_memory_read_lock();
    struct sim_block *block = sim_block_at(op->address);
    bool good = block && sim_block_covers(op->address, bytes, 0, true);
    *host_p = good && block->device == SIM_HOST;
    sim_memory_unlock();
    return good ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

static CUresult make(const struct fill_op *plan, struct sim_op **work_p)
{
    struct fill_op *op = sim_op_new(sizeof *op, run_fill);

    if (!op)
        return CUDA_ERROR_OUT_OF_MEMORY;
    struct sim_op head = op->op;
    *op = *plan;
    op->op = head;
    op->op.node = CU_GRAPH_NODE_TYPE_MEMSET;
    *work_p = &op->op;
    return CUDA_SUCCESS;
}

/* Without a stream it goes into the legacy one; into host memory it is then waited for. */
static CUresult enqueue(struct sim_queue *queue, const struct fill_op *plan, bool host, bool streamless)
{
    struct sim_op *work = NULL;
    CUresult status = streamless ? sim_capture_check_idle(queue) : CUDA_SUCCESS;

    if (status == CUDA_SUCCESS)
        status = make(plan, &work);
    if (status != CUDA_SUCCESS)
        return status;
    return host && streamless ? sim_queue_push_wait(queue, work) : sim_stream_submit(queue, work);
}

static CUresult submit(CUdeviceptr address, size_t pitch, unsigned element, unsigned value, size_t width,
                       size_t height, CUstream stream, bool per_thread, bool streamless)
{
    struct fill_op plan = {
        .address = address, .pitch = pitch, .height = height, .element = element, .value = value};
    struct sim_queue *queue;
    bool host = false;
    CUresult status = sim_stream_queue(stream, per_thread, &queue);

    if (status != CUDA_SUCCESS)
        return status;
    if (__builtin_mul_overflow(width, element, &plan.width))
        status = CUDA_ERROR_INVALID_VALUE;
    else if (plan.width && height)
        status = check(&plan, &host);
    if (status == CUDA_SUCCESS && plan.width && height)
        status = enqueue(queue, &plan, host, streamless);
    sim_queue_put(queue);
    return status;
}

CUresult sim_fill_work(const CUDA_MEMSET_NODE_PARAMS *params, struct CUctx_st *ctx, struct sim_op **work_p)
{
    struct fill_op plan = {.address = params->dst,
                           .pitch = params->pitch,
                           .height = params->height,
                           .element = params->elementSize,
                           .value = params->value};
    bool host;

    (void)ctx;
    if ((plan.element != 1 && plan.element != 2 && plan.element != 4) || !params->width || !plan.height ||
        __builtin_mul_overflow(params->width, plan.element, &plan.width))
        return CUDA_ERROR_INVALID_VALUE;
    CUresult status = check(&plan, &host);
    return status == CUDA_SUCCESS ? make(&plan, work_p) : status;
}

void sim_fill_params(const struct sim_op *work, CUDA_MEMSET_NODE_PARAMS *params)
{
    const struct fill_op *fill_op = (const struct fill_op *)work;

    *params = (CUDA_MEMSET_NODE_PARAMS){
        fill_op->address, fill_op->pitch, fill_op->value, fill_op->element, fill_op->width / fill_op->element,
        fill_op->height};
}

/* One width of element in all its forms: with and without rows, without a stream, with one, and the 32-bit
 * entry. */
#define SIM_FILL(bits, type)                                                                                 \
    SIM_PAIR(cuMemsetD##bits##_v2, ptds, (CUdeviceptr to, type value, size_t n),                             \
             submit(to, 0, bits / 8, value, n, 1, NULL, per_thread, true))                                   \
    SIM_PAIR(cuMemsetD##bits##Async, ptsz, (CUdeviceptr to, type value, size_t n, CUstream stream),          \
             submit(to, 0, bits / 8, value, n, 1, stream, per_thread, false))                                \
    SIM_PAIR(cuMemsetD2D##bits##_v2, ptds, (CUdeviceptr to, size_t pitch, type value, size_t w, size_t h),   \
             submit(to, pitch, bits / 8, value, w, h, NULL, per_thread, true))                               \
    SIM_PAIR(cuMemsetD2D##bits##Async, ptsz,                                                                 \
             (CUdeviceptr to, size_t pitch, type value, size_t w, size_t h, CUstream stream),                \
             submit(to, pitch, bits / 8, value, w, h, stream, per_thread, false))                            \
    SIM_API(cuMemsetD##bits)(CUdeviceptr_v1 to, type value, unsigned n)                                      \
    {                                                                                                        \
        SIM_ENTER(cuMemsetD##bits);                                                                          \
        return submit(to, 0, bits / 8, value, n, 1, NULL, false, true);                                      \
    }                                                                                                        \
    SIM_API(cuMemsetD2D##bits)(CUdeviceptr_v1 to, unsigned pitch, type value, unsigned w, unsigned h)        \
    {                                                                                                        \
        SIM_ENTER(cuMemsetD2D##bits);                                                                        \
        return submit(to, pitch, bits / 8, value, w, h, NULL, false, true);                                  \
    }

SIM_FILL(8, unsigned char)
SIM_FILL(16, unsigned short)
SIM_FILL(32, unsigned int)
