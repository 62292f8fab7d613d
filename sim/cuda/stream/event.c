/*
 * Events: their life, and recording them in streams. Lock: events, under which nothing else is taken.
 */
#include <stdlib.h>

#include "sim/cuda/stream/event.h"

struct record_op {
    struct sim_op op;
    struct CUevent_st *event; /* of a shared one; referenced */
    uint64_t number;
    struct sim_recording *recording;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

struct sim_recording *sim_recording_new(unsigned refs)
{
    struct sim_recording *recording = calloc(1, sizeof *recording);

    if (recording)
        atomic_init(&recording->refs, refs);
    return recording;
}

void sim_recording_put(struct sim_recording *recording)
{
    if (!recording || atomic_fetch_sub(&recording->refs, 1) != 1)
        return;
    sim_ticket_free(recording->tickets, recording->count);
    free(recording->captured.nodes);
    free(recording->known);
    free(recording);
}

struct sim_recording *sim_recording_of(struct CUevent_st *event)
{
    pthread_mutex_lock(&lock);
    struct sim_recording *recording = event->last;
    if (recording)
        atomic_fetch_add(&recording->refs, 1);
    pthread_mutex_unlock(&lock);
    return recording;
}

void sim_recording_set(struct CUevent_st *event, struct sim_recording *recording)
{
    pthread_mutex_lock(&lock);
    struct sim_recording *old = event->last;
    event->last = recording;
    pthread_mutex_unlock(&lock);
    sim_recording_put(old);
}

bool sim_recording_over(const struct sim_recording *recording)
{
    for (size_t i = 0; recording && i < recording->count; i++)
        if (!sim_queue_over(recording->tickets[i].queue, recording->tickets[i].seq))
            return false;
    return true;
}

bool sim_recording_tickets(const struct sim_recording *recording, struct sim_op *op)
{
    for (size_t i = 0; recording && i < recording->count; i++)
        if (!sim_op_after(op, recording->tickets[i].queue, recording->tickets[i].seq))
            return false;
    return true;
}

struct CUctx_st *sim_event_context(const struct CUevent_st *event)
{
    return event->ctx;
}

static void dispose_event(void *object)
{
    struct CUevent_st *event = object;

    sim_recording_put(event->last);
    if (event->shared)
        sim_shared_end(event->shared);
    sim_object_put(event->ctx);
}

struct CUevent_st *sim_event_new(struct CUctx_st *ctx, unsigned flags)
{
    struct CUevent_st *event = sim_object_new(sizeof *event, SIM_EVENT, dispose_event);

    if (event) {
        event->ctx = sim_object_ref(ctx);
        event->flags = flags;
    }
    return event;
}

SIM_API(cuEventCreate)(CUevent *event_p, unsigned flags)
{
    SIM_ENTER_CTX(cuEventCreate);
    const unsigned known = CU_EVENT_BLOCKING_SYNC | CU_EVENT_DISABLE_TIMING | CU_EVENT_INTERPROCESS;

    if (!event_p || (flags & ~known) ||
        ((flags & CU_EVENT_INTERPROCESS) && !(flags & CU_EVENT_DISABLE_TIMING)))
        return CUDA_ERROR_INVALID_VALUE;
    struct CUevent_st *event = sim_event_new(ctx, flags);
    if (!event)
        return CUDA_ERROR_OUT_OF_MEMORY;
    if ((flags & CU_EVENT_INTERPROCESS) && !(event->shared = sim_shared_new())) {
        sim_object_put(event);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    sim_object_publish(event);
    *event_p = event;
    return CUDA_SUCCESS;
}

static CUresult destroy(CUevent handle)
{
    struct CUevent_st *event = sim_object_get(handle, SIM_EVENT);

    if (!event)
        return CUDA_ERROR_INVALID_HANDLE;
    if (sim_object_retire(event))
        sim_object_put(event);
    sim_object_put(event);
    return CUDA_SUCCESS;
}

SIM_API(cuEventDestroy_v2)(CUevent event)
{
    SIM_ENTER(cuEventDestroy_v2);
    return destroy(event);
}

SIM_API(cuEventDestroy)(CUevent event)
{
    SIM_ENTER(cuEventDestroy);
    return destroy(event);
}

/* --- recording ------------------------------------------------------------------------------------------ */

static CUresult run_record(struct sim_op *op, struct sim_queue *queue)
{
    struct record_op *record = (struct record_op *)op;

    (void)queue;
    atomic_store(&record->recording->ns, sim_now_ns());
    if (record->event)
        sim_shared_done(record->event->shared, record->number);
    return CUDA_SUCCESS;
}

static void dispose_record(struct sim_op *op)
{
    struct record_op *record = (struct record_op *)op;

    sim_recording_put(record->recording);
    if (record->event)
        sim_object_put(record->event);
}

/**
 * Records an event in a queue, behind the tickets too, which it takes. The recording is shared by the event
 * and the work that stamps its time.
 */
CUresult sim_event_record(struct CUevent_st *event, struct sim_queue *queue, struct sim_ticket **tickets,
                          size_t count)
{
    struct record_op *record = sim_op_new(sizeof *record, run_record);
    struct sim_recording *recording = sim_recording_new(2);
    struct sim_ticket *ticket = malloc(sizeof *ticket);

    if (!record || !recording || !ticket) {
        free(record);
        free(recording);
        free(ticket);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    record->recording = recording;
    record->op.dispose = dispose_record;
    record->op.always = true;
    record->op.quick = true;
    if (event->shared) {
        record->event = sim_object_ref(event);
        record->number = sim_shared_begin(event->shared);
    }
    recording->known = sim_order_known(queue, &recording->known_count);
    if (tickets) {
        record->op.tickets = *tickets;
        record->op.ticket_count = count;
        *tickets = NULL;
    }
    *ticket = (struct sim_ticket){sim_queue_ref(queue), sim_queue_push(queue, &record->op)};
    recording->tickets = ticket;
    recording->count = 1;
    sim_recording_set(event, recording);
    return CUDA_SUCCESS;
}

static CUresult add_record_node(struct CUgraph_st *graph, const CUgraphNode *after, size_t count,
                                struct sim_queue *queue, void *data, struct CUgraphNode_st **node_p)
{
    CUresult status = sim_node_add(graph, CU_GRAPH_NODE_TYPE_EVENT_RECORD, after, NULL, count, NULL, node_p);

    (void)queue;
    if (status == CUDA_SUCCESS)
        (*node_p)->event = sim_object_ref(data);
    return status;
}

/* In a captured stream: the event stands for what was captured so far, or, from outside, for a node that
 * records it. */
static CUresult record_captured(struct CUevent_st *event, struct sim_queue *queue, bool external)
{
    if (external)
        return sim_capture_append(queue, add_record_node, event);
    struct sim_recording *recording = sim_recording_new(1);
    if (!recording)
        return CUDA_ERROR_OUT_OF_MEMORY;
    CUresult status = sim_capture_record(queue, &recording->captured);
    if (status == CUDA_SUCCESS)
        sim_recording_set(event, recording);
    else
        sim_recording_put(recording);
    return status;
}

static CUresult record_in(struct CUevent_st *event, struct sim_queue *queue, unsigned flags)
{
    bool external = flags & CU_EVENT_RECORD_EXTERNAL, captured = atomic_load(&queue->captured) != NULL;

    if ((flags & ~(unsigned)CU_EVENT_RECORD_EXTERNAL) || (external && !captured))
        return CUDA_ERROR_INVALID_VALUE;
    if (event->ctx != queue->ctx)
        return CUDA_ERROR_INVALID_HANDLE;
    return captured ? record_captured(event, queue, external) : sim_event_record(event, queue, NULL, 0);
}

static CUresult record(CUevent handle, CUstream stream, unsigned flags, bool per_thread)
{
    struct CUevent_st *event = sim_object_get(handle, SIM_EVENT);
    struct sim_queue *queue;

    if (!event)
        return CUDA_ERROR_INVALID_HANDLE;
    CUresult status = sim_stream_queue(stream, per_thread, &queue);
    if (status == CUDA_SUCCESS) {
        status = record_in(event, queue, flags);
        sim_queue_put(queue);
    }
    sim_object_put(event);
    return status;
}

SIM_PAIR(cuEventRecord, ptsz, (CUevent event, CUstream stream), record(event, stream, 0, per_thread))
SIM_PAIR(cuEventRecordWithFlags, ptsz, (CUevent event, CUstream stream, unsigned flags),
         record(event, stream, flags, per_thread))
