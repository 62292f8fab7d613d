/*
 * Streams: handles over queues, and the three that need no handle (legacy, per-thread, and NULL for one of
 * them).
 */
#include <stdlib.h>

#include "sim/cuda/graph/graph.h"

static void dispose_stream(void *object)
{
    struct CUstream_st *stream = object;

    sim_queue_put(stream->queue);
}

/** A stream of a context, or of a green one, where it is blocking only towards that one's own default
 * stream. */
CUresult sim_stream_make(struct CUctx_st *ctx, struct CUctx_st *green, CUstream *stream_p, unsigned flags,
                         int priority)
{
    if (!stream_p || (flags & ~(unsigned)CU_STREAM_NON_BLOCKING))
        return CUDA_ERROR_INVALID_VALUE;
    struct CUstream_st *stream = sim_object_new(sizeof *stream, SIM_STREAM, dispose_stream);
    if (!stream)
        return CUDA_ERROR_OUT_OF_MEMORY;
    stream->queue = green ? sim_queue_new_green(green, false)
                          : sim_queue_new(ctx, !(flags & CU_STREAM_NON_BLOCKING), false);
    if (!stream->queue) {
        free(stream);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    stream->flags = flags;
    stream->priority = priority > SIM_PRIORITY_LOWEST     ? SIM_PRIORITY_LOWEST
                       : priority < SIM_PRIORITY_GREATEST ? SIM_PRIORITY_GREATEST
                                                          : priority;
    if (green)
        stream->queue->joins_legacy = !(flags & CU_STREAM_NON_BLOCKING);
    sim_object_publish(stream);
    *stream_p = stream;
    return CUDA_SUCCESS;
}

static CUresult create(CUstream *stream_p, unsigned flags, int priority)
{
    struct CUctx_st *ctx;
    CUresult status = sim_context_current(&ctx);

    return status == CUDA_SUCCESS ? sim_stream_make(ctx, sim_context_green(), stream_p, flags, priority)
                                  : status;
}

/* Work that was enqueued still runs; the handle ends at once. */
static CUresult destroy(CUstream handle)
{
    struct CUstream_st *stream = sim_object_get(handle, SIM_STREAM);
    struct sim_thread *thread = sim_thread();

    if (!stream)
        return CUDA_ERROR_INVALID_HANDLE;
    const struct CUctx_st *green = stream->queue->green;
    CUresult status = thread && thread->in_host_function     ? CUDA_ERROR_NOT_PERMITTED
                      : green && !atomic_load(&green->alive) ? CUDA_ERROR_CONTEXT_IS_DESTROYED
                                                             : CUDA_SUCCESS;
    if (status == CUDA_SUCCESS && sim_object_retire(stream)) {
        sim_capture_forget(stream->queue);
        sim_queue_close(stream->queue);
        sim_object_put(stream);
    }
    sim_object_put(stream);
    return status;
}

/* The calling thread's own default stream in a context: blocking, made on first use, closed when the thread
 * ends. */
static struct sim_queue *thread_queue(struct CUctx_st *ctx)
{
    struct sim_thread *thread = sim_thread();
    struct sim_thread_queue **link = &thread->queues, *entry;

    while ((entry = *link)) {
        if (entry->ctx_id == ctx->id)
            return entry->queue;
        if (entry->queue->ctx->alive) {
            link = &entry->next;
        } else {
            *link = entry->next;
            sim_queue_put(entry->queue);
            free(entry);
        }
    }
    entry = calloc(1, sizeof *entry);
    if (!entry || !(entry->queue = sim_queue_new(ctx, true, false))) {
        free(entry);
        return NULL;
    }
    entry->ctx_id = ctx->id;
    *link = entry;
    return entry->queue;
}

static CUresult find_created(CUstream handle, struct sim_queue **queue_p)
{
    struct CUstream_st *stream = sim_object_get(handle, SIM_STREAM);

    if (!stream)
        return CUDA_ERROR_INVALID_HANDLE;
    *queue_p = sim_queue_ref(stream->queue);
    sim_object_put(stream);
    const struct CUctx_st *own = (*queue_p)->green;
    if (atomic_load(&(*queue_p)->ctx->alive) && (!own || atomic_load(&own->alive)))
        return CUDA_SUCCESS;
    sim_queue_put(*queue_p);
    return CUDA_ERROR_CONTEXT_IS_DESTROYED;
}

CUresult sim_stream_find(CUstream handle, bool per_thread, struct sim_queue **queue_p)
{
    struct CUctx_st *ctx;
    CUresult status = sim_context_peek(&ctx);

    if (status != CUDA_SUCCESS)
        return status;
    struct CUctx_st *green = sim_context_green();
    if (handle == CU_STREAM_PER_THREAD || (!handle && per_thread)) {
        if (green)
            return CUDA_ERROR_INVALID_HANDLE;
        struct sim_queue *own = thread_queue(ctx);
        *queue_p = own ? sim_queue_ref(own) : NULL;
        return own ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
    }
    if (!handle || handle == CU_STREAM_LEGACY) {
        *queue_p = sim_queue_ref(green ? green->legacy : ctx->legacy);
        return CUDA_SUCCESS;
    }
    return find_created(handle, queue_p);
}

static CUresult check_work(struct sim_queue *queue)
{
    CUresult status = sim_context_error(queue->ctx);

    if (status == CUDA_SUCCESS)
        status = sim_capture_check_work(queue);
    if (status != CUDA_SUCCESS)
        sim_queue_put(queue);
    return status;
}

CUresult sim_stream_queue(CUstream handle, bool per_thread, struct sim_queue **queue_p)
{
    CUresult status = sim_stream_find(handle, per_thread, queue_p);

    return status == CUDA_SUCCESS ? check_work(*queue_p) : status;
}

/** As sim_stream_queue, for memory in stream order, for which a context has to be current only with a default
 * stream: so says cuda.h (13.0) of CUDA_ERROR_INVALID_CONTEXT, at cuMemAllocAsync, cuMemAllocFromPoolAsync
 * and cuMemFreeAsync. */
CUresult sim_stream_memory_queue(CUstream handle, bool per_thread, struct sim_queue **queue_p)
{
    const struct sim_thread *thread = sim_thread();

    if (!handle || handle == CU_STREAM_LEGACY || handle == CU_STREAM_PER_THREAD)
        return sim_stream_queue(handle, per_thread, queue_p);
    if (thread && thread->in_host_function)
        return CUDA_ERROR_NOT_PERMITTED;
    CUresult status = find_created(handle, queue_p);
    return status == CUDA_SUCCESS ? check_work(*queue_p) : status;
}

CUresult sim_stream_idle_queue(CUstream handle, bool per_thread, struct sim_queue **queue_p)
{
    CUresult status = sim_stream_queue(handle, per_thread, queue_p);

    if (status == CUDA_SUCCESS && (status = sim_capture_check_idle(*queue_p)) != CUDA_SUCCESS)
        sim_queue_put(*queue_p);
    return status;
}

/** CUDA_SUCCESS if a stream argument is good. */
CUresult sim_stream_check(CUstream handle, bool per_thread)
{
    struct sim_queue *queue;
    CUresult status = sim_stream_queue(handle, per_thread, &queue);

    if (status == CUDA_SUCCESS)
        sim_queue_put(queue);
    return status;
}

/** Enqueues work on a queue, or adds it to the graph that the queue is captured into. Takes op in every
 * case. */
CUresult sim_stream_submit(struct sim_queue *queue, struct sim_op *op)
{
    if (atomic_load(&queue->captured))
        return sim_capture_add(queue, op);
    sim_queue_push(queue, op);
    return CUDA_SUCCESS;
}

/** As sim_stream_submit, but on a stream, for work that may be NULL when memory ran out. */
CUresult sim_stream_enqueue(CUstream handle, bool per_thread, struct sim_op *op)
{
    struct sim_queue *queue;

    if (!op)
        return CUDA_ERROR_OUT_OF_MEMORY;
    CUresult status = sim_stream_queue(handle, per_thread, &queue);
    if (status != CUDA_SUCCESS) {
        sim_op_drop(op);
        return status;
    }
    status = sim_stream_submit(queue, op);
    sim_queue_put(queue);
    return status;
}

SIM_API(cuStreamCreate)(CUstream *stream_p, unsigned flags)
{
    SIM_ENTER(cuStreamCreate);
    return create(stream_p, flags, 0);
}

SIM_API(cuStreamCreateWithPriority)(CUstream *stream_p, unsigned flags, int priority)
{
    SIM_ENTER(cuStreamCreateWithPriority);
    return create(stream_p, flags, priority);
}

SIM_API(cuStreamDestroy_v2)(CUstream stream)
{
    SIM_ENTER(cuStreamDestroy_v2);
    return destroy(stream);
}

SIM_API(cuStreamDestroy)(CUstream stream)
{
    SIM_ENTER(cuStreamDestroy);
    return destroy(stream);
}

SIM_API(cuCtxGetStreamPriorityRange)(int *least_p, int *greatest_p)
{
    SIM_ENTER_CTX(cuCtxGetStreamPriorityRange);
    (void)ctx;
    if (least_p)
        *least_p = SIM_PRIORITY_LOWEST;
    if (greatest_p)
        *greatest_p = SIM_PRIORITY_GREATEST;
    return CUDA_SUCCESS;
}

static CUresult query(CUstream handle, bool per_thread)
{
    struct sim_queue *queue;
    CUresult status = sim_unsafe();

    if (status == CUDA_SUCCESS)
        status = sim_stream_idle_queue(handle, per_thread, &queue);
    if (status != CUDA_SUCCESS)
        return status;
    if (!sim_queue_over(queue, sim_queue_position(queue)))
        status = CUDA_ERROR_NOT_READY;
    else
        status = sim_context_error(queue->ctx);
    sim_queue_put(queue);
    return status;
}

static CUresult synchronize(CUstream handle, bool per_thread)
{
    struct sim_queue *queue;
    CUresult status = sim_unsafe();

    if (status == CUDA_SUCCESS)
        status = sim_stream_idle_queue(handle, per_thread, &queue);
    if (status != CUDA_SUCCESS)
        return status;
    struct sim_op *op = queue->is_legacy ? sim_op_new(sizeof *op, NULL) : NULL;
    uint64_t last = sim_queue_position(queue);
    if (op) /* the legacy stream is over when all that it waits for is */
        sim_queue_push_wait(queue, op);
    else
        sim_queue_wait(queue, last);
    sim_queue_see(queue, last);
    status = sim_context_error(queue->ctx);
    sim_pool_settle(queue->ctx->device);
    sim_queue_put(queue);
    return status;
}

SIM_PAIR(cuStreamQuery, ptsz, (CUstream stream), query(stream, per_thread))
SIM_PAIR(cuStreamSynchronize, ptsz, (CUstream stream), synchronize(stream, per_thread))

enum question { ASK_FLAGS, ASK_PRIORITY, ASK_ID, ASK_CTX, ASK_DEVICE };

/* One answer of a stream: which of the pointers is filled depends on the question. */
static CUresult ask(CUstream handle, bool per_thread, enum question question, void *answer)
{
    struct CUstream_st *stream = (uintptr_t)handle > 2 ? sim_object_get(handle, SIM_STREAM) : NULL;
    struct sim_queue *queue = NULL;
    CUresult status = answer ? sim_stream_find(handle, per_thread, &queue) : CUDA_ERROR_INVALID_VALUE;

    if (status == CUDA_SUCCESS && question == ASK_ID &&
        (status = sim_capture_check_idle(queue)) != CUDA_SUCCESS)
        sim_queue_put(queue);
    if (status == CUDA_SUCCESS) {
        if (question == ASK_FLAGS)
            *(unsigned *)answer = stream ? stream->flags : CU_STREAM_DEFAULT;
        else if (question == ASK_PRIORITY)
            *(int *)answer = stream ? stream->priority : 0;
        else if (question == ASK_ID)
            *(unsigned long long *)answer = queue->id;
        else if (question == ASK_CTX)
            *(CUcontext *)answer = queue->green ? queue->green : queue->ctx;
        else
            *(CUdevice *)answer = queue->ctx->device->ordinal;
        sim_queue_put(queue);
    }
    if (stream)
        sim_object_put(stream);
    return status;
}

static CUresult ask_ctx_v2(CUstream handle, bool per_thread, CUcontext *ctx_p, CUgreenCtx *green_p)
{
    CUcontext ctx;
    CUresult status = ctx_p && green_p ? ask(handle, per_thread, ASK_CTX, &ctx) : CUDA_ERROR_INVALID_VALUE;

    if (status != CUDA_SUCCESS)
        return status;
    *green_p = ctx->home ? sim_green_of(ctx) : NULL;
    *ctx_p = sim_context_home(ctx);
    return CUDA_SUCCESS;
}

SIM_PAIR(cuStreamGetFlags, ptsz, (CUstream stream, unsigned *flags_p),
         ask(stream, per_thread, ASK_FLAGS, flags_p))
SIM_PAIR(cuStreamGetPriority, ptsz, (CUstream stream, int *priority_p),
         ask(stream, per_thread, ASK_PRIORITY, priority_p))
SIM_PAIR(cuStreamGetId, ptsz, (CUstream stream, unsigned long long *id_p),
         ask(stream, per_thread, ASK_ID, id_p))
SIM_PAIR(cuStreamGetCtx, ptsz, (CUstream stream, CUcontext *ctx_p), ask(stream, per_thread, ASK_CTX, ctx_p))
SIM_PAIR(cuStreamGetCtx_v2, ptsz, (CUstream stream, CUcontext *ctx_p, CUgreenCtx *green_p),
         ask_ctx_v2(stream, per_thread, ctx_p, green_p))
SIM_PAIR(cuStreamGetDevice, ptsz, (CUstream stream, CUdevice *device_p),
         ask(stream, per_thread, ASK_DEVICE, device_p))
