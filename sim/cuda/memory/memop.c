/*
 * Stream memory operations: a stream that waits for a word in memory, or writes one. A wait ends when the
 * host, another stream or another process has written what it waits for, and not before: a program can hang
 * itself with it, as on hardware. The word is looked at under the memory lock, a moment at a time.
 */
#include <string.h>

#include "sim/cuda/graph/graph.h"

#define FIRST_PAUSE_NS 2000
#define LAST_PAUSE_NS  400000
#define MOST           256U /* in one batch */

struct mem_op {
    bool write;
    CUdeviceptr address;
    unsigned bytes, compare;
    uint64_t value;
};

/* Several in a row, as they were asked for. */
struct batch_op {
    struct sim_op op;
    unsigned count;
    CUstreamBatchMemOpParams params[];
};

static bool met(const struct mem_op *op, uint64_t seen)
{
    uint64_t difference = seen - op->value;

    switch (op->compare) {
    case CU_STREAM_WAIT_VALUE_GEQ: /* in a circle: the sign of the difference */
        return op->bytes == 4 ? (int32_t)(uint32_t)difference >= 0 : (int64_t)difference >= 0;
    case CU_STREAM_WAIT_VALUE_EQ:
        return seen == op->value;
    case CU_STREAM_WAIT_VALUE_AND:
        return (seen & op->value) != 0;
    default:
        return (op->bytes == 4 ? (uint32_t) ~(seen | op->value) : ~(seen | op->value)) != 0;
    }
}

/* Looks at the word, or writes it. False if it is no longer there. */
static bool touch(const struct mem_op *op, unsigned devices, uint64_t *seen_p)
{
    void *word = (void *)(uintptr_t)op->address;

    sim_memory_read_lock();
    bool there = sim_block_covers(op->address, op->bytes, devices, op->write);
    if (there && op->write && op->bytes == 4)
        __atomic_store_n((uint32_t *)word, (uint32_t)op->value, __ATOMIC_RELEASE);
    else if (there && op->write)
        __atomic_store_n((uint64_t *)word, op->value, __ATOMIC_RELEASE);
    else if (there)
        *seen_p = op->bytes == 4 ? __atomic_load_n((uint32_t *)word, __ATOMIC_ACQUIRE)
                                 : __atomic_load_n((uint64_t *)word, __ATOMIC_ACQUIRE);
    sim_memory_unlock();
    return there;
}

static CUresult run_one(const struct mem_op *op, struct sim_queue *queue)
{
    unsigned devices = 1U << queue->ctx->device->ordinal;
    uint64_t seen = 0, pause = FIRST_PAUSE_NS;

    for (;;) {
        if (!touch(op, devices, &seen))
            return CUDA_ERROR_ILLEGAL_ADDRESS;
        if (op->write || met(op, seen))
            return CUDA_SUCCESS;
        if (sim_context_error(queue->ctx) != CUDA_SUCCESS)
            return CUDA_SUCCESS; /* nothing moves in a broken context */
        sim_spend(pause);
        pause = pause < LAST_PAUSE_NS ? pause * 2 : LAST_PAUSE_NS;
    }
}

/* Reads one operation of a batch; false for a barrier, which does nothing: the work of a stream is ordered
 * anyway. */
static bool read_one(const CUstreamBatchMemOpParams *params, struct mem_op *op)
{
    switch ((int)params->operation) {
    case CU_STREAM_MEM_OP_WAIT_VALUE_32:
        *op = (struct mem_op){false, params->waitValue.address, 4, params->waitValue.flags,
                              params->waitValue.value};
        return true;
    case CU_STREAM_MEM_OP_WAIT_VALUE_64:
        *op = (struct mem_op){false, params->waitValue.address, 8, params->waitValue.flags,
                              params->waitValue.value64};
        return true;
    case CU_STREAM_MEM_OP_WRITE_VALUE_32:
        *op = (struct mem_op){true, params->writeValue.address, 4, params->writeValue.flags,
                              params->writeValue.value};
        return true;
    case CU_STREAM_MEM_OP_WRITE_VALUE_64:
        *op = (struct mem_op){true, params->writeValue.address, 8, params->writeValue.flags,
                              params->writeValue.value64};
        return true;
    default:
        return false;
    }
}

static CUresult run_batch(struct sim_op *base, struct sim_queue *queue)
{
    const struct batch_op *batch = (struct batch_op *)base;
    CUresult status = CUDA_SUCCESS;
    struct mem_op op;

    for (unsigned i = 0; i < batch->count && status == CUDA_SUCCESS; i++)
        if (read_one(&batch->params[i], &op))
            status = run_one(&op, queue);
    return status;
}

static CUresult check_one(const CUstreamBatchMemOpParams *params)
{
    struct mem_op op;

    if (params->operation == CU_STREAM_MEM_OP_FLUSH_REMOTE_WRITES)
        return CUDA_ERROR_NOT_SUPPORTED;
    if (!read_one(params, &op))
        return params->operation == CU_STREAM_MEM_OP_BARRIER ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    unsigned unknown =
        op.compare & ~(op.write ? CU_STREAM_WRITE_VALUE_NO_MEMORY_BARRIER : CU_STREAM_WAIT_VALUE_NOR);
    if (unknown)
        return unknown == CU_STREAM_WAIT_VALUE_FLUSH && !op.write ? CUDA_ERROR_NOT_SUPPORTED
                                                                  : CUDA_ERROR_INVALID_VALUE;
    if (op.address % op.bytes)
        return CUDA_ERROR_INVALID_VALUE;
    sim_memory_read_lock();
    bool good = sim_block_at(op.address) && sim_block_covers(op.address, op.bytes, 0, op.write);
    sim_memory_unlock();
    return good ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult sim_batch_work(const CUDA_BATCH_MEM_OP_NODE_PARAMS *params, struct sim_op **work_p)
{
    unsigned count = params->count;
    CUresult status = params->paramArray && count && count <= MOST && !params->flags
                          ? CUDA_SUCCESS
                          : CUDA_ERROR_INVALID_VALUE;

    for (unsigned i = 0; status == CUDA_SUCCESS && i < count; i++)
        status = check_one(&params->paramArray[i]);
    if (status != CUDA_SUCCESS)
        return status;
    struct batch_op *batch = sim_op_new(sizeof *batch + count * sizeof batch->params[0], run_batch);
    if (!batch)
        return CUDA_ERROR_OUT_OF_MEMORY;
    batch->op.node = CU_GRAPH_NODE_TYPE_BATCH_MEM_OP;
    batch->count = count;
    memcpy(batch->params, params->paramArray, count * sizeof batch->params[0]);
    *work_p = &batch->op;
    return CUDA_SUCCESS;
}

void sim_batch_params(const struct sim_op *work, CUDA_BATCH_MEM_OP_NODE_PARAMS *params)
{
    struct batch_op *batch = (struct batch_op *)(uintptr_t)work;

    *params = (CUDA_BATCH_MEM_OP_NODE_PARAMS){.count = batch->count, .paramArray = batch->params};
}

static CUresult submit(CUstream stream, bool per_thread, unsigned count, CUstreamBatchMemOpParams *params,
                       unsigned flags)
{
    struct sim_op *work;
    CUresult status = sim_stream_check(stream, per_thread);

    if (status == CUDA_SUCCESS)
        status = sim_batch_work(
            &(CUDA_BATCH_MEM_OP_NODE_PARAMS){.count = count, .paramArray = params, .flags = flags}, &work);
    return status == CUDA_SUCCESS ? sim_stream_enqueue(stream, per_thread, work) : status;
}

static CUresult submit_one(CUstream stream, bool per_thread, CUstreamBatchMemOpType operation,
                           CUdeviceptr address, uint64_t value, unsigned flags)
{
    CUstreamBatchMemOpParams params;

    memset(&params, 0, sizeof params);
    params.operation = operation;
    params.waitValue.address = address; /* both forms have one layout */
    params.waitValue.flags = flags;
    if (operation == CU_STREAM_MEM_OP_WAIT_VALUE_64 || operation == CU_STREAM_MEM_OP_WRITE_VALUE_64)
        params.waitValue.value64 = value;
    else
        params.waitValue.value = (cuuint32_t)value;
    return submit(stream, per_thread, 1, &params, 0);
}

#define SIM_MEM_OP(fn, type, operation)                                                                      \
    SIM_PAIR(fn, ptsz, (CUstream stream, CUdeviceptr address, type value, unsigned flags),                   \
             submit_one(stream, per_thread, operation, address, value, flags))

SIM_MEM_OP(cuStreamWaitValue32, cuuint32_t, CU_STREAM_MEM_OP_WAIT_VALUE_32)
SIM_MEM_OP(cuStreamWaitValue32_v2, cuuint32_t, CU_STREAM_MEM_OP_WAIT_VALUE_32)
SIM_MEM_OP(cuStreamWaitValue64, cuuint64_t, CU_STREAM_MEM_OP_WAIT_VALUE_64)
SIM_MEM_OP(cuStreamWaitValue64_v2, cuuint64_t, CU_STREAM_MEM_OP_WAIT_VALUE_64)
SIM_MEM_OP(cuStreamWriteValue32, cuuint32_t, CU_STREAM_MEM_OP_WRITE_VALUE_32)
SIM_MEM_OP(cuStreamWriteValue32_v2, cuuint32_t, CU_STREAM_MEM_OP_WRITE_VALUE_32)
SIM_MEM_OP(cuStreamWriteValue64, cuuint64_t, CU_STREAM_MEM_OP_WRITE_VALUE_64)
SIM_MEM_OP(cuStreamWriteValue64_v2, cuuint64_t, CU_STREAM_MEM_OP_WRITE_VALUE_64)

SIM_PAIR(cuStreamBatchMemOp, ptsz,
         (CUstream stream, unsigned count, CUstreamBatchMemOpParams *params, unsigned flags),
         submit(stream, per_thread, count, params, flags))
SIM_PAIR(cuStreamBatchMemOp_v2, ptsz,
         (CUstream stream, unsigned count, CUstreamBatchMemOpParams *params, unsigned flags),
         submit(stream, per_thread, count, params, flags))
