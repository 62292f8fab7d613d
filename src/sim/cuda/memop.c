/*
 * Stream memory operations: a stream that waits for a word in memory, or writes one. A wait ends when the host, another
 * stream or another process has written what it waits for, and not before: a program can hang itself with it, as on
 * hardware. The word is looked at under the memory lock, a moment at a time.
 */
#include <string.h>

#include "sim.h"

#define FIRST_PAUSE_NS 2000
#define LAST_PAUSE_NS  400000

struct mem_op {
    struct sim_op op;
    bool write;
    CUdeviceptr address;
    unsigned bytes, compare;
    uint64_t value;
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
        return (op->bytes == 4 ? (uint32_t)~(seen | op->value) : ~(seen | op->value)) != 0;
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

static CUresult run_mem_op(struct sim_op *base, struct sim_queue *queue)
{
    struct mem_op *op = (struct mem_op *)base;
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

static CUresult check(const struct mem_op *op, unsigned flags)
{
    unsigned known = op->write ? CU_STREAM_WRITE_VALUE_NO_MEMORY_BARRIER : CU_STREAM_WAIT_VALUE_NOR;

    if (op->address % op->bytes || (flags & ~known))
        return (flags & ~known) == CU_STREAM_WAIT_VALUE_FLUSH && !op->write ? CUDA_ERROR_NOT_SUPPORTED
                                                                            : CUDA_ERROR_INVALID_VALUE;
    sim_memory_read_lock();
    bool good = sim_block_at(op->address) && sim_block_covers(op->address, op->bytes, 0, op->write);
    sim_memory_unlock();
    return good ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

static CUresult submit(CUstream stream, bool per_thread, bool write, CUdeviceptr address, unsigned bytes, uint64_t value,
                       unsigned flags)
{
    struct mem_op plan = {.write = write, .address = address, .bytes = bytes, .value = value, .compare = flags};
    CUresult status = sim_stream_check(stream, per_thread);

    if (status == CUDA_SUCCESS)
        status = check(&plan, flags);
    if (status != CUDA_SUCCESS)
        return status;
    struct mem_op *op = sim_op_new(sizeof *op, run_mem_op);
    if (op) {
        plan.op = op->op;
        *op = plan;
    }
    return sim_stream_enqueue(stream, per_thread, (struct sim_op *)op);
}

#define SIM_MEM_OP(fn, type, write)                                                                         \
    SIM_PAIR(fn, ptsz, (CUstream stream, CUdeviceptr address, type value, unsigned flags),                  \
             submit(stream, per_thread, write, address, sizeof value, value, flags))

SIM_MEM_OP(cuStreamWaitValue32, cuuint32_t, false)
SIM_MEM_OP(cuStreamWaitValue32_v2, cuuint32_t, false)
SIM_MEM_OP(cuStreamWaitValue64, cuuint64_t, false)
SIM_MEM_OP(cuStreamWaitValue64_v2, cuuint64_t, false)
SIM_MEM_OP(cuStreamWriteValue32, cuuint32_t, true)
SIM_MEM_OP(cuStreamWriteValue32_v2, cuuint32_t, true)
SIM_MEM_OP(cuStreamWriteValue64, cuuint64_t, true)
SIM_MEM_OP(cuStreamWriteValue64_v2, cuuint64_t, true)

static CUresult one_of_batch(CUstream stream, bool per_thread, const CUstreamBatchMemOpParams *params)
{
    switch ((int)params->operation) {
    case CU_STREAM_MEM_OP_WAIT_VALUE_32:
        return submit(stream, per_thread, false, params->waitValue.address, 4, params->waitValue.value,
                      params->waitValue.flags);
    case CU_STREAM_MEM_OP_WAIT_VALUE_64:
        return submit(stream, per_thread, false, params->waitValue.address, 8, params->waitValue.value64,
                      params->waitValue.flags);
    case CU_STREAM_MEM_OP_WRITE_VALUE_32:
        return submit(stream, per_thread, true, params->writeValue.address, 4, params->writeValue.value,
                      params->writeValue.flags);
    case CU_STREAM_MEM_OP_WRITE_VALUE_64:
        return submit(stream, per_thread, true, params->writeValue.address, 8, params->writeValue.value64,
                      params->writeValue.flags);
    case CU_STREAM_MEM_OP_BARRIER:
        return CUDA_SUCCESS; /* work of a stream is ordered anyway */
    case CU_STREAM_MEM_OP_FLUSH_REMOTE_WRITES:
        return CUDA_ERROR_NOT_SUPPORTED;
    default:
        return CUDA_ERROR_INVALID_VALUE;
    }
}

static CUresult batch(CUstream stream, bool per_thread, unsigned count, const CUstreamBatchMemOpParams *params,
                      unsigned flags)
{
    CUresult status = sim_stream_check(stream, per_thread);

    if (status == CUDA_SUCCESS && (!params || !count || count > 256 || flags))
        status = CUDA_ERROR_INVALID_VALUE;
    for (unsigned i = 0; i < count && status == CUDA_SUCCESS; i++)
        status = one_of_batch(stream, per_thread, &params[i]);
    return status;
}

SIM_PAIR(cuStreamBatchMemOp, ptsz,
         (CUstream stream, unsigned count, CUstreamBatchMemOpParams *params, unsigned flags),
         batch(stream, per_thread, count, params, flags))
SIM_PAIR(cuStreamBatchMemOp_v2, ptsz,
         (CUstream stream, unsigned count, CUstreamBatchMemOpParams *params, unsigned flags),
         batch(stream, per_thread, count, params, flags))
