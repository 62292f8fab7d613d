/*
 * Moving bytes in stream order. A copy is checked twice: when it is called for, where a bad argument is
 * refused, and piece by piece when its turn comes, where memory that went away meanwhile is an error that
 * sticks to the context.
 */
#include <stdlib.h>
#include <string.h>

#include "sim/cuda/graph/graph.h"

#define PIECE       (1UL << 20) /* moved under one hold of the memory lock */
#define STAGED_MOST (64UL << 10)

struct copy_op {
    struct sim_op op;
    struct sim_copy copy;
    char *staged;
};

/* Bytes from the first to the last that a side touches. */
static bool side_extent(const struct sim_side *side, const struct sim_copy *copy, size_t *bytes_p)
{
    size_t rows, planes, bytes;

    return !__builtin_mul_overflow(copy->height - 1, side->pitch, &rows) &&
           !__builtin_mul_overflow(copy->depth - 1, side->slice, &planes) &&
           !__builtin_add_overflow(rows, planes, &bytes) &&
           !__builtin_add_overflow(bytes, copy->width, bytes_p) && side->address + *bytes_p >= side->address;
}

/** Fills in one side of a copy whose extent is set; false if the driver can see that it is wrong. */
bool sim_copy_side(struct sim_side *side, CUdeviceptr address, size_t pitch, size_t slice,
                   const struct sim_copy *copy, bool write)
{
    size_t bytes;

    *side = (struct sim_side){.address = address, .pitch = pitch, .slice = slice};
    if (!address || !side_extent(side, copy, &bytes))
        return false;
    sim_memory_read_lock();
    bool known = sim_block_at(address) != NULL;
    bool good = known ? sim_block_covers(address, bytes, 0, write) : !sim_block_in_windows(address);
    sim_memory_unlock();
    side->pageable = !known;
    return good;
}

static bool reachable(const struct sim_side *side, CUdeviceptr address, size_t bytes, bool write)
{
    return side->pageable || sim_block_covers(address, bytes, side->devices, write);
}

static CUresult move_piece(const struct sim_copy *copy, CUdeviceptr to, CUdeviceptr from, size_t bytes)
{
    sim_memory_read_lock();
    bool good = reachable(&copy->to, to, bytes, true) && reachable(&copy->from, from, bytes, false);
    if (good)
        memmove((void *)(uintptr_t)to, (const void *)(uintptr_t)from, bytes);
    sim_memory_unlock();
    return good ? CUDA_SUCCESS : CUDA_ERROR_ILLEGAL_ADDRESS;
}

static CUresult move_row(const struct sim_copy *copy, CUdeviceptr to, CUdeviceptr from, size_t bytes)
{
    CUresult status = CUDA_SUCCESS;

    if (!copy->to.pageable)
        sim_arena_expect(to, bytes);
    for (size_t done = 0; done < bytes && status == CUDA_SUCCESS; done += PIECE)
        status = move_piece(copy, to + done, from + done, bytes - done < PIECE ? bytes - done : PIECE);
    return status;
}

static CUresult move_all(const struct sim_copy *copy)
{
    CUresult status = CUDA_SUCCESS;

    for (size_t z = 0; z < copy->depth && status == CUDA_SUCCESS; z++)
        for (size_t y = 0; y < copy->height && status == CUDA_SUCCESS; y++)
            status = move_row(copy, copy->to.address + z * copy->to.slice + y * copy->to.pitch,
                              copy->from.address + z * copy->from.slice + y * copy->from.pitch, copy->width);
    return status;
}

static CUresult run_copy(struct sim_op *op, struct sim_queue *queue)
{
    struct sim_copy *copy = &((struct copy_op *)op)->copy;
    uint64_t kib = (uint64_t)copy->width * copy->height * copy->depth >> 10;
    uint64_t cost = sim_fault_cost(SIM_FN_COPY) + kib * sim_fault_cost(SIM_FN_COPY_KIB);
    CUresult status = sim_fault_work(SIM_FN_COPY);

    (void)queue;
    if (cost)
        sim_spend(cost);
    return status == CUDA_SUCCESS ? move_all(copy) : status;
}

static void dispose_copy(struct sim_op *op)
{
    free(((struct copy_op *)op)->staged);
}

/* Takes a small pageable source along, so that the program may change it as soon as the call returns. */
static bool stage(struct copy_op *copy_op)
{
    struct sim_copy *copy = &copy_op->copy;
    size_t bytes = copy->width * copy->height * copy->depth;
    char *to = bytes <= STAGED_MOST ? malloc(bytes) : NULL;

    if (!to)
        return false;
    copy_op->staged = to;
    for (size_t z = 0; z < copy->depth; z++)
        for (size_t y = 0; y < copy->height; y++, to += copy->width)
            memcpy(to,
                   (const char *)(uintptr_t)copy->from.address + z * copy->from.slice + y * copy->from.pitch,
                   copy->width);
    copy->from.address = (CUdeviceptr)(uintptr_t)copy_op->staged;
    copy->from.pitch = copy->width;
    copy->from.slice = copy->width * copy->height;
    return true;
}

/* A copy as a piece of work. The devices of a side default to the stream's own. */
static struct copy_op *make(const struct sim_copy *copy, const struct CUctx_st *ctx, size_t bytes)
{
    struct copy_op *op = sim_op_new(bytes, run_copy);
    unsigned own = 1U << ctx->device->ordinal;

    if (!op)
        return NULL;
    op->op.dispose = dispose_copy;
    op->op.node = CU_GRAPH_NODE_TYPE_MEMCPY;
    op->copy = *copy;
    if (!op->copy.to.devices)
        op->copy.to.devices = own;
    if (!op->copy.from.devices)
        op->copy.from.devices = own;
    return op;
}

/* A copy that waits by its nature cannot be captured; beside a capture it may be made. */
static CUresult check_waiting(struct sim_queue *queue, enum sim_copy_kind kind)
{
    return kind == SIM_COPY_ASYNC ? CUDA_SUCCESS : sim_capture_check_idle(queue);
}

/**
 * Enqueues a copy whose sides are filled in. One that waits, or where pageable memory allows nothing else, is
 * over on return, unless it is captured.
 */
CUresult sim_copy_submit(CUstream stream, bool per_thread, const struct sim_copy *copy,
                         enum sim_copy_kind kind)
{
    struct sim_queue *queue;
    CUresult status = sim_stream_queue(stream, per_thread, &queue);

    if (status != CUDA_SUCCESS)
        return status;
    bool wait = kind == SIM_COPY_WAITS, captured = atomic_load(&queue->captured) != NULL;
    struct copy_op *op = NULL;
    status = check_waiting(queue, kind);
    if (status == CUDA_SUCCESS && !(op = make(copy, queue->ctx, sizeof *op)))
        status = CUDA_ERROR_OUT_OF_MEMORY;
    if (op && !captured && (copy->to.pageable || (copy->from.pageable && !wait && !stage(op))))
        wait = true;
    if (op)
        status = wait ? sim_queue_push_wait(queue, &op->op) : sim_stream_submit(queue, &op->op);
    sim_queue_put(queue);
    return status;
}

/* In a graph's node a copy keeps the description that it was made from. */
struct described_op {
    struct copy_op copy;
    CUDA_MEMCPY3D params;
};

/** A copy as a piece of work that says of itself what params says. */
CUresult sim_copy_described(const struct sim_copy *copy, const CUDA_MEMCPY3D *params,
                            const struct CUctx_st *ctx, struct sim_op **work_p)
{
    struct described_op *op = (struct described_op *)make(copy, ctx, sizeof *op);

    if (!op)
        return CUDA_ERROR_OUT_OF_MEMORY;
    op->params = *params;
    *work_p = &op->copy.op;
    return CUDA_SUCCESS;
}

/** The parameters of a copy: as it was described, or, if it was captured, by its addresses. */
void sim_copy_params(const struct sim_op *work, CUDA_MEMCPY3D *params)
{
    const struct sim_copy *copy = &((const struct copy_op *)work)->copy;

    if (work->bytes == sizeof(struct described_op)) {
        *params = ((const struct described_op *)work)->params;
        return;
    }
    *params = (CUDA_MEMCPY3D){
        .srcMemoryType = CU_MEMORYTYPE_UNIFIED,
        .srcDevice = copy->from.address,
        .srcPitch = copy->from.pitch,
        .srcHeight = copy->from.pitch ? copy->from.slice / copy->from.pitch : 0,
        .dstMemoryType = CU_MEMORYTYPE_UNIFIED,
        .dstDevice = copy->to.address,
        .dstPitch = copy->to.pitch,
        .dstHeight = copy->to.pitch ? copy->to.slice / copy->to.pitch : 0,
        .WidthInBytes = copy->width,
        .Height = copy->height,
        .Depth = copy->depth,
    };
}
