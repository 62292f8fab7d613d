/*
 * Events: a recording is a set of tickets and the time at which they were over. An event holds its latest recording; work
 * that waits for an earlier one keeps waiting for that. Lock: events, under which nothing else is taken.
 */
#include <stdlib.h>

#include "sim.h"

struct recording {
    atomic_uint refs;
    atomic_ullong ns; /* 0 until it happened */
    struct sim_ticket *tickets;
    size_t count;
};

struct CUevent_st {
    struct sim_object object;
    struct CUctx_st *ctx; /* referenced */
    unsigned flags;
    struct recording *last; /* under the lock */
};

struct record_op {
    struct sim_op op;
    struct recording *recording;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void put_recording(struct recording *recording)
{
    if (!recording || atomic_fetch_sub(&recording->refs, 1) != 1)
        return;
    sim_ticket_free(recording->tickets, recording->count);
    free(recording);
}

static struct recording *last_recording(struct CUevent_st *event)
{
    pthread_mutex_lock(&lock);
    struct recording *recording = event->last;
    if (recording)
        atomic_fetch_add(&recording->refs, 1);
    pthread_mutex_unlock(&lock);
    return recording;
}

static void replace_recording(struct CUevent_st *event, struct recording *recording)
{
    pthread_mutex_lock(&lock);
    struct recording *old = event->last;
    event->last = recording;
    pthread_mutex_unlock(&lock);
    put_recording(old);
}

static void dispose_event(void *object)
{
    struct CUevent_st *event = object;

    put_recording(event->last);
    sim_object_put(event->ctx);
}

static bool recording_over(const struct recording *recording)
{
    for (size_t i = 0; recording && i < recording->count; i++)
        if (!sim_queue_over(recording->tickets[i].queue, recording->tickets[i].seq))
            return false;
    return true;
}

SIM_API(cuEventCreate)(CUevent *event_p, unsigned flags)
{
    SIM_ENTER_CTX(cuEventCreate);
    const unsigned known = CU_EVENT_BLOCKING_SYNC | CU_EVENT_DISABLE_TIMING | CU_EVENT_INTERPROCESS;

    if (!event_p || (flags & ~known) || ((flags & CU_EVENT_INTERPROCESS) && !(flags & CU_EVENT_DISABLE_TIMING)))
        return CUDA_ERROR_INVALID_VALUE;
    struct CUevent_st *event = sim_object_new(sizeof *event, SIM_EVENT, dispose_event);
    if (!event)
        return CUDA_ERROR_OUT_OF_MEMORY;
    event->ctx = sim_object_ref(ctx);
    event->flags = flags;
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

static CUresult run_record(struct sim_op *op, struct sim_queue *queue)
{
    (void)queue;
    atomic_store(&((struct record_op *)op)->recording->ns, sim_now_ns());
    return CUDA_SUCCESS;
}

static void dispose_record(struct sim_op *op)
{
    put_recording(((struct record_op *)op)->recording);
}

/* A recording shared by the event and the work that stamps its time. */
static struct record_op *new_record_op(void)
{
    struct record_op *record = sim_op_new(sizeof *record, run_record);
    struct recording *recording = calloc(1, sizeof *recording);

    if (!record || !recording) {
        free(record);
        free(recording);
        return NULL;
    }
    atomic_init(&recording->refs, 2);
    record->recording = recording;
    record->op.dispose = dispose_record;
    record->op.always = true;
    return record;
}

static CUresult record_on(struct CUevent_st *event, struct sim_queue *queue)
{
    struct record_op *record = new_record_op();
    struct sim_ticket *ticket = malloc(sizeof *ticket);

    if (!record || !ticket) {
        if (record) {
            free(record->recording);
            free(record);
        }
        free(ticket);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    struct recording *recording = record->recording;
    *ticket = (struct sim_ticket){sim_queue_ref(queue), sim_queue_push(queue, &record->op)};
    recording->tickets = ticket;
    recording->count = 1;
    replace_recording(event, recording);
    return CUDA_SUCCESS;
}

static CUresult record(CUevent handle, CUstream stream, unsigned flags, bool per_thread)
{
    struct CUevent_st *event = sim_object_get(handle, SIM_EVENT);
    struct sim_queue *queue;

    if (!event)
        return CUDA_ERROR_INVALID_HANDLE;
    CUresult status = sim_stream_queue(stream, per_thread, &queue);
    if (status == CUDA_SUCCESS) {
        if (flags & ~(unsigned)CU_EVENT_RECORD_EXTERNAL)
            status = CUDA_ERROR_INVALID_VALUE;
        else if (event->ctx != queue->ctx)
            status = CUDA_ERROR_INVALID_HANDLE;
        else
            status = record_on(event, queue);
        sim_queue_put(queue);
    }
    sim_object_put(event);
    return status;
}

SIM_PAIR(cuEventRecord, ptsz, (CUevent event, CUstream stream), record(event, stream, 0, per_thread))
SIM_PAIR(cuEventRecordWithFlags, ptsz, (CUevent event, CUstream stream, unsigned flags),
         record(event, stream, flags, per_thread))

SIM_API(cuCtxRecordEvent)(CUcontext ctx_handle, CUevent handle)
{
    SIM_ENTER(cuCtxRecordEvent);
    struct CUctx_st *ctx = sim_object_get(ctx_handle, SIM_CONTEXT);
    struct CUevent_st *event = sim_object_get(handle, SIM_EVENT);
    struct recording *recording = calloc(1, sizeof *recording);
    CUresult status = CUDA_SUCCESS;

    if (!ctx || !event || event->ctx != ctx)
        status = ctx ? CUDA_ERROR_INVALID_HANDLE : CUDA_ERROR_INVALID_CONTEXT;
    else if (!recording)
        status = CUDA_ERROR_OUT_OF_MEMORY;
    if (status == CUDA_SUCCESS) {
        atomic_init(&recording->refs, 1);
        recording->count = sim_queue_tickets(ctx, &recording->tickets);
        atomic_store(&recording->ns, sim_now_ns());
        replace_recording(event, recording);
        recording = NULL;
    }
    free(recording);
    if (event)
        sim_object_put(event);
    if (ctx)
        sim_object_put(ctx);
    return status;
}

/* An operation that waits for a recording and does nothing. */
static CUresult wait_on(CUevent handle, struct sim_queue *queue)
{
    struct CUevent_st *event = sim_object_get(handle, SIM_EVENT);

    if (!event)
        return CUDA_ERROR_INVALID_HANDLE;
    struct recording *recording = last_recording(event);
    sim_object_put(event);
    if (recording_over(recording)) {
        put_recording(recording);
        return CUDA_SUCCESS;
    }
    struct sim_op *op = sim_op_new(sizeof *op, NULL);
    for (size_t i = 0; op && i < recording->count; i++)
        sim_op_after(op, recording->tickets[i].queue, recording->tickets[i].seq);
    put_recording(recording);
    if (!op)
        return CUDA_ERROR_OUT_OF_MEMORY;
    sim_queue_push(queue, op);
    return CUDA_SUCCESS;
}

static CUresult stream_wait(CUstream stream, CUevent event, unsigned flags, bool per_thread)
{
    struct sim_queue *queue;
    CUresult status = sim_stream_queue(stream, per_thread, &queue);

    if (status != CUDA_SUCCESS)
        return status;
    status = flags & ~(unsigned)CU_EVENT_WAIT_EXTERNAL ? CUDA_ERROR_INVALID_VALUE : wait_on(event, queue);
    sim_queue_put(queue);
    return status;
}

SIM_PAIR(cuStreamWaitEvent, ptsz, (CUstream stream, CUevent event, unsigned flags),
         stream_wait(stream, event, flags, per_thread))

SIM_API(cuEventQuery)(CUevent handle)
{
    SIM_ENTER(cuEventQuery);
    struct CUevent_st *event = sim_object_get(handle, SIM_EVENT);

    if (!event)
        return CUDA_ERROR_INVALID_HANDLE;
    struct recording *recording = last_recording(event);
    CUresult status = recording_over(recording) ? sim_context_error(event->ctx) : CUDA_ERROR_NOT_READY;
    put_recording(recording);
    sim_object_put(event);
    return status;
}

SIM_API(cuEventSynchronize)(CUevent handle)
{
    SIM_ENTER(cuEventSynchronize);
    struct CUevent_st *event = sim_object_get(handle, SIM_EVENT);

    if (!event)
        return CUDA_ERROR_INVALID_HANDLE;
    struct recording *recording = last_recording(event);
    for (size_t i = 0; recording && i < recording->count; i++)
        sim_queue_wait(recording->tickets[i].queue, recording->tickets[i].seq);
    put_recording(recording);
    sim_pool_settle(event->ctx->device);
    CUresult status = sim_context_error(event->ctx);
    sim_object_put(event);
    return status;
}

static CUresult elapsed(float *ms_p, struct CUevent_st *start, struct CUevent_st *end)
{
    struct recording *first = last_recording(start), *second = last_recording(end);
    CUresult status = CUDA_SUCCESS;

    if (!first || !second || ((start->flags | end->flags) & CU_EVENT_DISABLE_TIMING))
        status = CUDA_ERROR_INVALID_HANDLE;
    else if (!recording_over(first) || !recording_over(second))
        status = CUDA_ERROR_NOT_READY;
    else
        *ms_p = (float)((double)(int64_t)(atomic_load(&second->ns) - atomic_load(&first->ns)) / 1e6);
    put_recording(first);
    put_recording(second);
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
