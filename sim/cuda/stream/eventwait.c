/*
 * Waiting for events: streams, contexts and the host.
 */
#include <stdlib.h>

#include "sim/cuda/stream/event.h"

static CUresult add_wait_node(struct CUgraph_st *graph, const CUgraphNode *after, size_t count,
                              struct sim_queue *queue, void *data, struct CUgraphNode_st **node_p)
{
    CUresult status = sim_node_add(graph, CU_GRAPH_NODE_TYPE_WAIT_EVENT, after, NULL, count, NULL, node_p);

    (void)queue;
    if (status == CUDA_SUCCESS)
        (*node_p)->event = sim_object_ref(data);
    return status;
}

/* Work that waits for a recording and does nothing, on a queue. */
static CUresult push_wait(const struct sim_recording *recording, struct sim_queue *queue)
{
    struct sim_op *op = sim_op_new(sizeof *op, NULL);

    if (op)
        op->quick = true;
    if (!op || !sim_recording_tickets(recording, op)) {
        sim_op_drop(op);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    sim_queue_push(queue, op);
    return CUDA_SUCCESS;
}

/* A recording that is over still tells in which order things are. */
static CUresult wait_plain(const struct sim_recording *recording, struct sim_queue *queue)
{
    for (size_t i = 0; i < recording->count; i++)
        sim_order_learn(queue, &recording->tickets[i], i ? NULL : recording->known,
                        i ? 0 : recording->known_count);
    return sim_recording_over(recording) ? CUDA_SUCCESS : push_wait(recording, queue);
}

static CUresult wait_in(struct CUevent_st *event, struct sim_queue *queue, bool external)
{
    bool captured = atomic_load(&queue->captured) != NULL;

    if (external)
        return captured ? sim_capture_append(queue, add_wait_node, event) : CUDA_ERROR_INVALID_VALUE;
    if (event->shared && !captured)
        return sim_shared_wait(event, queue);
    struct sim_recording *recording = sim_recording_of(event);
    CUresult status = CUDA_SUCCESS;
    if (recording && recording->captured.capture)
        status = sim_capture_join(queue, &recording->captured);
    else if (recording && captured)
        status = sim_capture_refuse(queue, CUDA_ERROR_STREAM_CAPTURE_ISOLATION);
    else if (recording)
        status = wait_plain(recording, queue);
    sim_recording_put(recording);
    return status;
}

static CUresult stream_wait(CUstream stream, CUevent handle, unsigned flags, bool per_thread)
{
    struct CUevent_st *event = sim_object_get(handle, SIM_EVENT);
    struct sim_queue *queue;

    if (!event)
        return CUDA_ERROR_INVALID_HANDLE;
    CUresult status = sim_stream_queue(stream, per_thread, &queue);
    if (status == CUDA_SUCCESS) {
        status = flags & ~(unsigned)CU_EVENT_WAIT_EXTERNAL
                     ? CUDA_ERROR_INVALID_VALUE
                     : wait_in(event, queue, flags & CU_EVENT_WAIT_EXTERNAL);
        sim_queue_put(queue);
    }
    sim_object_put(event);
    return status;
}

SIM_PAIR(cuStreamWaitEvent, ptsz, (CUstream stream, CUevent event, unsigned flags),
         stream_wait(stream, event, flags, per_thread))

/** Lets work wait for what an event was last recorded for. */
CUresult sim_event_add_wait(struct CUevent_st *event, struct sim_op *op)
{
    struct sim_recording *recording = sim_recording_of(event);
    bool done = sim_recording_tickets(recording, op);

    sim_recording_put(recording);
    return done ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

/* --- whole contexts ------------------------------------------------------------------------------------- */

/** All that a context, or a green one, has been given so far. */
CUresult sim_event_record_context(struct CUctx_st *ctx, struct CUevent_st *event)
{
    CUresult status = sim_capture_check_context(ctx);
    struct sim_recording *recording = status == CUDA_SUCCESS ? sim_recording_new(1) : NULL;

    if (!recording)
        return status == CUDA_SUCCESS ? CUDA_ERROR_OUT_OF_MEMORY : status;
    recording->count = sim_queue_tickets(ctx, &recording->tickets);
    atomic_store(&recording->ns, sim_now_ns());
    sim_recording_set(event, recording);
    return CUDA_SUCCESS;
}

SIM_API(cuCtxRecordEvent)(CUcontext ctx_handle, CUevent handle)
{
    SIM_ENTER(cuCtxRecordEvent);
    struct CUctx_st *ctx = sim_object_get(ctx_handle, SIM_CONTEXT);
    struct CUevent_st *event = sim_object_get(handle, SIM_EVENT);
    CUresult status = CUDA_SUCCESS;

    if (!ctx || !event || event->ctx != sim_context_home(ctx))
        status = ctx ? CUDA_ERROR_INVALID_HANDLE : CUDA_ERROR_INVALID_CONTEXT;
    else if (!atomic_load(&ctx->alive))
        status = CUDA_ERROR_CONTEXT_IS_DESTROYED;
    else
        status = sim_event_record_context(ctx, event);
    if (event)
        sim_object_put(event);
    if (ctx)
        sim_object_put(ctx);
    return status;
}

/* An event in an open capture cannot be waited for from outside; the capture is broken by the attempt. */
static CUresult refuse_captured(const struct sim_recording *recording, CUresult status)
{
    if (!recording || !recording->captured.capture)
        return CUDA_SUCCESS;
    sim_graph_lock();
    bool open = sim_capture_break(recording->captured.capture);
    sim_graph_unlock();
    return open ? status : CUDA_ERROR_INVALID_VALUE;
}

/** Makes all later work of a context, or of a green one, wait. */
CUresult sim_event_wait_context(struct CUctx_st *ctx, struct CUevent_st *event)
{
    struct sim_recording *recording = sim_recording_of(event);
    CUresult status = refuse_captured(recording, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);

    if (status == CUDA_SUCCESS)
        status = sim_capture_check_context(ctx);
    if (status == CUDA_SUCCESS && !sim_recording_over(recording)) {
        sim_queue_gate_prune(ctx, false);
        if (!sim_queue_gate(ctx, recording->tickets, recording->count))
            status = CUDA_ERROR_OUT_OF_MEMORY;
    }
    sim_recording_put(recording);
    return status;
}

SIM_API(cuCtxWaitEvent)(CUcontext ctx_handle, CUevent handle)
{
    SIM_ENTER(cuCtxWaitEvent);
    struct CUctx_st *ctx = sim_object_get(ctx_handle, SIM_CONTEXT);
    struct CUevent_st *event = sim_object_get(handle, SIM_EVENT);
    CUresult status = CUDA_SUCCESS;

    if (!ctx || !event)
        status = ctx ? CUDA_ERROR_INVALID_HANDLE : CUDA_ERROR_INVALID_CONTEXT;
    else if (!atomic_load(&ctx->alive))
        status = CUDA_ERROR_CONTEXT_IS_DESTROYED;
    else
        status = sim_event_wait_context(ctx, event);
    if (event)
        sim_object_put(event);
    if (ctx)
        sim_object_put(ctx);
    return status;
}

/* --- the host ------------------------------------------------------------------------------------------- */

/* Finds an event that the host may look at: none while a capture forbids it, and none that is in a
 * capture. */
static CUresult look_at(CUevent handle, struct CUevent_st **event_p, struct sim_recording **recording_p)
{
    struct CUevent_st *event = sim_object_get(handle, SIM_EVENT);

    if (!event)
        return CUDA_ERROR_INVALID_HANDLE;
    struct sim_recording *recording = sim_recording_of(event);
    CUresult status = refuse_captured(recording, CUDA_ERROR_CAPTURED_EVENT);
    if (status == CUDA_SUCCESS)
        status = sim_unsafe();
    if (status == CUDA_SUCCESS) {
        *event_p = event;
        *recording_p = recording;
        return CUDA_SUCCESS;
    }
    sim_recording_put(recording);
    sim_object_put(event);
    return status;
}

SIM_API(cuEventQuery)(CUevent handle)
{
    SIM_ENTER(cuEventQuery);
    struct sim_recording *recording;
    struct CUevent_st *event;
    CUresult status = look_at(handle, &event, &recording);

    if (status != CUDA_SUCCESS)
        return status;
    bool over = event->shared ? sim_shared_over(event->shared, sim_shared_latest(event->shared))
                              : sim_recording_over(recording);
    status = over ? sim_context_error(event->ctx) : CUDA_ERROR_NOT_READY;
    sim_recording_put(recording);
    sim_object_put(event);
    return status;
}

SIM_API(cuEventSynchronize)(CUevent handle)
{
    SIM_ENTER(cuEventSynchronize);
    struct sim_recording *recording;
    struct CUevent_st *event;
    CUresult status = look_at(handle, &event, &recording);

    if (status != CUDA_SUCCESS)
        return status;
    if (event->shared)
        for (uint64_t number = sim_shared_latest(event->shared); !sim_shared_over(event->shared, number);)
            sim_spend(20000);
    for (size_t i = 0; recording && i < recording->count; i++) {
        sim_queue_wait(recording->tickets[i].queue, recording->tickets[i].seq);
        sim_queue_see(recording->tickets[i].queue, recording->tickets[i].seq);
    }
    sim_recording_put(recording);
    sim_pool_settle(event->ctx->device);
    status = sim_context_error(event->ctx);
    sim_object_put(event);
    return status;
}

static CUresult elapsed(float *ms_p, struct CUevent_st *start, struct CUevent_st *end)
{
    struct sim_recording *first = sim_recording_of(start), *second = sim_recording_of(end);
    CUresult status = CUDA_SUCCESS;

    if (!first || !second || ((start->flags | end->flags) & CU_EVENT_DISABLE_TIMING))
        status = CUDA_ERROR_INVALID_HANDLE;
    else if (first->captured.capture || second->captured.capture)
        status = CUDA_ERROR_CAPTURED_EVENT;
    else if (!sim_recording_over(first) || !sim_recording_over(second))
        status = CUDA_ERROR_NOT_READY;
    else
        *ms_p = (float)((double)(int64_t)(atomic_load(&second->ns) - atomic_load(&first->ns)) / 1e6);
    sim_recording_put(first);
    sim_recording_put(second);
    return status;
}

static CUresult elapsed_time(float *ms_p, CUevent start, CUevent end)
{
    struct CUevent_st *first = sim_object_get(start, SIM_EVENT), *second = sim_object_get(end, SIM_EVENT);
    CUresult status = CUDA_ERROR_INVALID_VALUE;

    if (ms_p)
        status = first && second ? elapsed(ms_p, first, second) : CUDA_ERROR_INVALID_HANDLE;
    if (first)
        sim_object_put(first);
    if (second)
        sim_object_put(second);
    return status;
}

SIM_API(cuEventElapsedTime_v2)(float *ms_p, CUevent start, CUevent end)
{
    SIM_ENTER(cuEventElapsedTime_v2);
    return elapsed_time(ms_p, start, end);
}

SIM_API(cuEventElapsedTime)(float *ms_p, CUevent start, CUevent end)
{
    SIM_ENTER(cuEventElapsedTime);
    return elapsed_time(ms_p, start, end);
}
