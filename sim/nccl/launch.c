/*
 * Operations on streams: a copy of what the rank gives into pinned memory, the exchange as a host function, a
 * copy of what it gets back, and a last host function, after which the pinned memory serves another
 * operation. Those of one communicator run one after another, whatever their streams. A list of pinned pieces
 * belongs to the communicator; they are freed with it.
 */
#include <stdlib.h>

#include "sim/nccl/nccl.h"

/* A piece of pinned memory. */
struct sim_stage {
    struct sim_stage *next;
    char *memory;
    size_t bytes;
    _Atomic bool busy;
};

static CUresult pin(size_t bytes, void **memory_p)
{
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
    CUresult status;

    SIM_DRV(cuThreadExchangeStreamCaptureMode, &mode);
    status = SIM_DRV(cuMemHostAlloc, memory_p, bytes, CU_MEMHOSTALLOC_PORTABLE);
    SIM_DRV(cuThreadExchangeStreamCaptureMode, &mode);
    return status;
}

static struct sim_stage *take_stage(struct ncclComm *comm, size_t bytes)
{
    struct sim_stage *stage;
    void *memory = NULL;

    for (stage = atomic_load(&comm->stages); stage; stage = stage->next) {
        bool idle = false;

        if (stage->bytes >= bytes && atomic_compare_exchange_strong(&stage->busy, &idle, true))
            return stage;
    }
    stage = calloc(1, sizeof(*stage));
    if (!stage || pin(bytes, &memory) != CUDA_SUCCESS) {
        free(stage);
        return NULL;
    }
    stage->memory = memory;
    stage->bytes = bytes;
    atomic_store(&stage->busy, true);
    stage->next = atomic_load(&comm->stages);
    atomic_store(&comm->stages, stage);
    return stage;
}

void sim_stages_free(struct ncclComm *comm)
{
    struct sim_stage *stage = atomic_load(&comm->stages);

    while (stage) {
        struct sim_stage *next = stage->next;

        SIM_DRV(cuMemFreeHost, stage->memory);
        free(stage);
        stage = next;
    }
    atomic_store(&comm->stages, NULL);
}

static bool is_mail(const struct sim_operation *operation)
{
    return operation->kind == SIM_SEND || operation->kind == SIM_RECEIVE;
}

static bool is_one_sided(const struct sim_operation *operation)
{
    return operation->kind == SIM_PUT || operation->kind == SIM_SIGNAL || operation->kind == SIM_AWAIT;
}

void sim_operation_free(struct sim_operation *operation)
{
    if (operation)
        free(operation->targets);
    free(operation);
}

static void exchange(void *data)
{
    struct sim_operation *operation = data;
    ncclResult_t result;

    if (is_one_sided(operation))
        result = sim_onesided_run(operation);
    else
        result = is_mail(operation) ? sim_mail_run(operation) : sim_collective_run(operation);
    sim_comm_note(operation->comm, result);
}

static void finish(void *data)
{
    struct sim_operation *operation = data;

    while (operation) {
        struct sim_operation *next = operation->batch;

        atomic_store(&operation->stage->busy, false);
        sim_operation_free(operation);
        operation = next;
    }
}

static ncclResult_t order(struct ncclComm *comm, CUstream stream)
{
    if (!comm->busy || comm->stream == stream)
        return ncclSuccess;
    return sim_cuda(SIM_DRV(cuStreamWaitEvent, stream, comm->done, 0));
}

static size_t bytes_of(const struct sim_operation *operation)
{
    return operation->count * sim_type_bytes(operation->type);
}

static ncclResult_t enqueue(struct sim_operation *batch)
{
    struct ncclComm *comm = batch->comm;
    CUstream stream = batch->stream;

    SIM_TRY(order(comm, stream));
    for (struct sim_operation *o = batch; o; o = o->batch)
        if (o->from_bytes)
            SIM_TRY(sim_cuda(SIM_DRV(cuMemcpyDtoHAsync_v2, o->in, o->from, o->from_bytes, stream)));
    if (batch->kind == SIM_PUT)
        SIM_TRY(sim_cuda(SIM_DRV(cuMemcpyDtoDAsync_v2, batch->to, batch->from, bytes_of(batch), stream)));
    SIM_TRY(sim_cuda(SIM_DRV(cuLaunchHostFunc, stream, exchange, batch)));
    for (struct sim_operation *o = batch; o; o = o->batch)
        if (o->to_bytes)
            SIM_TRY(sim_cuda(SIM_DRV(cuMemcpyHtoDAsync_v2, o->to, o->out, o->to_bytes, stream)));
    SIM_TRY(sim_cuda(SIM_DRV(cuLaunchHostFunc, stream, finish, batch)));
    SIM_TRY(sim_cuda(SIM_DRV(cuEventRecord, comm->done, stream)));
    comm->busy = true;
    comm->stream = stream;
    return ncclSuccess;
}

/* Pinned memory for each, and the batch on its stream. What fails on the way is left to the stream, whose
 * context is lost. */
static ncclResult_t launch(struct sim_operation *batch)
{
    ncclResult_t result = ncclSuccess;
    CUcontext ours;

    SIM_TRY(sim_cuda(SIM_DRV(cuCtxPushCurrent_v2, batch->comm->context)));
    for (struct sim_operation *o = batch; o && result == ncclSuccess; o = o->batch) {
        o->stage = take_stage(o->comm, o->from_bytes + o->to_bytes + 1);
        if (!o->stage)
            result = sim_fail(ncclUnhandledCudaError, "no pinned memory");
        else
            o->out = (o->in = o->stage->memory) + o->from_bytes;
    }
    if (result == ncclSuccess)
        result = enqueue(batch);
    SIM_DRV(cuCtxPopCurrent_v2, &ours);
    return result;
}

/* Take out of the list what goes with `first`: everything that its communicator sends or receives on the same
 * stream. */
static void gather_batch(struct sim_operation *first, struct sim_operation **rest)
{
    struct sim_operation *last = first;

    while (is_mail(first) && *rest) {
        struct sim_operation *o = *rest;

        if (!is_mail(o) || o->comm != first->comm || o->stream != first->stream) {
            rest = &o->next;
            continue;
        }
        *rest = o->next;
        o->next = NULL;
        last->batch = o;
        last = o;
    }
}

ncclResult_t sim_launch_all(struct sim_operation *operations)
{
    ncclResult_t result = ncclSuccess, one;

    while (operations) {
        struct sim_operation *first = operations;

        operations = first->next;
        first->next = NULL;
        gather_batch(first, &operations);
        one = launch(first);
        if (result == ncclSuccess)
            result = one;
    }
    return result;
}

static ncclResult_t check(const struct sim_operation *o)
{
    bool rooted =
        o->kind == SIM_BROADCAST || o->kind == SIM_REDUCE || o->kind == SIM_GATHER || o->kind == SIM_SCATTER;
    bool reduces = o->kind == SIM_ALL_REDUCE || o->kind == SIM_REDUCE || o->kind == SIM_REDUCE_SCATTER;

    if (!sim_type_bytes(o->type) || (reduces && !sim_type_reduces(o->type)))
        return sim_fail(ncclInvalidArgument, "invalid type %d", (int)o->type);
    if (reduces && ((int)o->op < 0 || o->op >= ncclNumOps))
        return sim_fail(ncclInvalidArgument, "invalid reduction operation %d", (int)o->op);
    if ((rooted || is_mail(o) || o->kind == SIM_PUT || o->kind == SIM_SIGNAL) &&
        (o->root < 0 || o->root >= o->comm->ranks))
        return sim_fail(ncclInvalidArgument, "invalid root or peer %d", o->root);
    if ((o->from_bytes && !o->from) || (o->to_bytes && !o->to))
        return sim_fail(ncclInvalidArgument, "a buffer is NULL");
    return ncclSuccess;
}

ncclResult_t sim_launch(const struct sim_operation *operation)
{
    CUstreamCaptureStatus capturing = CU_STREAM_CAPTURE_STATUS_NONE;
    static unsigned long long captured;
    struct sim_operation *only;
    CUcontext ours;

    SIM_TRY(check(operation));
    if (operation->comm->suspended)
        return sim_fail(ncclInvalidUsage, "the communicator is suspended");
    if (SIM_DRV(cuCtxPushCurrent_v2, operation->comm->context) == CUDA_SUCCESS) {
        SIM_DRV(cuStreamIsCapturing, operation->stream, &capturing);
        SIM_DRV(cuCtxPopCurrent_v2, &ours);
    }
    if (capturing != CU_STREAM_CAPTURE_STATUS_NONE)
        return sim_unsupported("an operation of NCCL in a capture", &captured);
    if (!operation->count)
        return ncclSuccess;
    if (sim_group_open())
        return sim_group_keep_operation(operation);
    only = malloc(sizeof(*only));
    if (!only)
        return sim_fail(ncclSystemError, "out of memory");
    *only = *operation;
    return sim_launch_all(only);
}
