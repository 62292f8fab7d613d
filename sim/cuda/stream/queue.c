/*
 * Queues: the order of work, and the threads that do it.
 *
 * A queue is what a stream is made of. Work has a number in its queue and a list of tickets (other queues'
 * numbers) that must be over first; an event is a ticket, too. Tickets only name work that was enqueued
 * earlier, so no circle can form. Each queue with work is served by one thread: its own, made with the first
 * work and gone after a while without any, or the thread that waits for the result. One lock for all queues,
 * never held during work.
 */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <time.h>

#include "sim/cuda/sim.h"

#define IDLE_NS 200000000L

static pthread_mutex_t lock = PTHREAD_ADAPTIVE_MUTEX_INITIALIZER_NP;

void sim_queue_lock(void)
{
    pthread_mutex_lock(&lock);
}

void sim_queue_unlock(void)
{
    pthread_mutex_unlock(&lock);
}

/** A queue in the context's list, with one reference. */
struct sim_queue *sim_queue_new(struct CUctx_st *ctx, bool joins_legacy, bool is_legacy)
{
    struct sim_queue *queue = calloc(1, sizeof *queue);
    pthread_condattr_t clock;

    if (!queue)
        return NULL;
    pthread_condattr_init(&clock);
    pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
    pthread_cond_init(&queue->more, &clock);
    pthread_cond_init(&queue->done, &clock);
    pthread_condattr_destroy(&clock);
    atomic_init(&queue->refs, 1);
    queue->ctx = sim_object_ref(ctx);
    queue->attributes.domains.remote = 1; /* kernels' remote traffic has a domain of its own */
    queue->id = sim_next_id();
    queue->joins_legacy = joins_legacy;
    queue->is_legacy = is_legacy;
    pthread_mutex_lock(&lock);
    queue->next = ctx->queues;
    queue->link = &ctx->queues;
    if (queue->next)
        queue->next->link = &queue->next;
    ctx->queues = queue;
    pthread_mutex_unlock(&lock);
    return queue;
}

/** As sim_queue_new, but in a green context. */
struct sim_queue *sim_queue_new_green(struct CUctx_st *green, bool is_legacy)
{
    struct sim_queue *queue = sim_queue_new(green->home, false, is_legacy);

    if (queue)
        queue->green = sim_object_ref(green);
    return queue;
}

static void unlink_queue(struct sim_queue *queue)
{
    if (!queue->link)
        return;
    queue->gone = queue->ctx->waits + 1;
    *queue->link = queue->next;
    if (queue->next)
        queue->next->link = queue->link;
    queue->link = NULL;
}

struct sim_queue *sim_queue_ref(struct sim_queue *queue)
{
    atomic_fetch_add(&queue->refs, 1);
    return queue;
}

void sim_queue_put(struct sim_queue *queue)
{
    if (!queue || atomic_fetch_sub(&queue->refs, 1) != 1)
        return;
    pthread_mutex_lock(&lock);
    unlink_queue(queue);
    pthread_mutex_unlock(&lock);
    pthread_cond_destroy(&queue->more);
    pthread_cond_destroy(&queue->done);
    if (queue->green)
        sim_object_put(queue->green);
    sim_object_put(queue->ctx);
    free(queue);
}

static void close_locked(struct sim_queue *queue)
{
    queue->closed = true;
    if (queue->completed == queue->enqueued)
        unlink_queue(queue);
    pthread_cond_broadcast(&queue->more);
}

/** No work will follow. What there is gets done; until then the context still knows the queue. */
void sim_queue_close(struct sim_queue *queue)
{
    pthread_mutex_lock(&lock);
    close_locked(queue);
    pthread_mutex_unlock(&lock);
}

/** Closes every queue of a context whose work is over. */
void sim_queue_close_all(struct CUctx_st *ctx)
{
    pthread_mutex_lock(&lock);
    while (ctx->queues) {
        struct sim_queue *queue = ctx->queues;
        close_locked(queue);
        unlink_queue(queue);
        queue->seen = queue->enqueued;
    }
    ctx->waits++;
    pthread_mutex_unlock(&lock);
}

/* Lets go of all that the work holds. Before it counts as over: who waited for it may look. */
static void strip_op(struct sim_op *op)
{
    sim_ticket_free(op->tickets, op->ticket_count);
    if (op->dispose)
        op->dispose(op);
}

/* Two streams should not always meet in the same way: with a seed, work starts a little late, by a repeatable
 * amount. */
static void jitter(struct sim_queue *queue, struct sim_op *op)
{
    if (!sim_config.seed)
        return;
    uint64_t mixed = (sim_config.seed + queue->id * 0x9E3779B97F4A7C15U + op->seq) * 0xBF58476D1CE4E5B9U;
    sim_spend((mixed >> 40) % 20000);
}

/* Does the first piece of work. Called and returns with the lock held, which it drops meanwhile. */
static void serve_one(struct sim_queue *queue)
{
    struct sim_op *op = queue->head;

    for (size_t i = 0; i < op->ticket_count; i++)
        while (op->tickets[i].queue->completed < op->tickets[i].seq)
            pthread_cond_wait(&op->tickets[i].queue->done, &lock);
    pthread_mutex_unlock(&lock);
    jitter(queue, op);
    op->status = sim_context_error(queue->ctx);
    if (op->run && (op->always || op->status == CUDA_SUCCESS)) {
        CUresult status = op->run(op, queue);
        if (status != CUDA_SUCCESS) {
            sim_context_fail(queue->ctx, status);
            op->status = status;
        }
    }
    strip_op(op);
    pthread_mutex_lock(&lock);
    queue->head = op->next;
    if (!queue->head)
        queue->tail = NULL;
    queue->completed = op->seq;
    atomic_fetch_sub(&queue->ctx->pending, 1);
    pthread_cond_broadcast(&queue->done);
    free(op);
}

static void *serve(void *argument)
{
    struct sim_queue *queue = argument;
    struct timespec until;

    pthread_mutex_lock(&lock);
    for (;;) {
        while (queue->head)
            serve_one(queue);
        if (queue->closed)
            break;
        clock_gettime(CLOCK_MONOTONIC, &until);
        until.tv_nsec += IDLE_NS;
        until.tv_sec += until.tv_nsec / 1000000000L;
        until.tv_nsec %= 1000000000L;
        if (pthread_cond_timedwait(&queue->more, &lock, &until) == ETIMEDOUT && !queue->head)
            break;
    }
    queue->served = false;
    if (queue->closed)
        unlink_queue(queue);
    pthread_mutex_unlock(&lock);
    sim_queue_put(queue);
    return NULL;
}

/* Signals are the program's: none is ever handled on a thread of ours. */
static bool start_thread(struct sim_queue *queue)
{
    pthread_attr_t attr;
    sigset_t all, before;
    pthread_t thread;

    sigfillset(&all);
    pthread_attr_init(&attr);
    pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    sim_queue_ref(queue);
    bool started = !pthread_create(&thread, &attr, serve, queue);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attr);
    if (!started)
        sim_queue_put(queue);
    return started;
}

/* Lock held. With no thread to be had the caller does the work itself. */
static void ensure_served(struct sim_queue *queue)
{
    if (queue->served) {
        pthread_cond_signal(&queue->more);
        return;
    }
    queue->served = true;
    if (start_thread(queue))
        return;
    while (queue->head)
        serve_one(queue);
    queue->served = false;
}

static void link_op(struct sim_queue *queue, struct sim_op *op)
{
    op->seq = ++queue->enqueued;
    op->next = NULL;
    if (queue->tail)
        queue->tail->next = op;
    else
        queue->head = op;
    queue->tail = op;
    atomic_fetch_add(&queue->ctx->pending, 1);
}

static void append(struct sim_queue *queue, struct sim_op *op)
{
    sim_order_join(queue, op);
    link_op(queue, op);
}

/* True if work of a queue could begin this moment. */
static bool is_idle(const struct sim_queue *queue, const struct sim_ticket *tickets, size_t count)
{
    if (sim_config.seed || queue->completed != queue->enqueued)
        return false;
    for (size_t i = 0; i < count; i++)
        if (tickets[i].queue->completed < tickets[i].seq)
            return false;
    return true;
}

/* Work that is over in a moment needs no thread: the caller does it, in an idle queue. */
static void do_now(struct sim_queue *queue, struct sim_op *op)
{
    CUresult status = CUDA_SUCCESS;

    if (op->run && (op->always || sim_context_error(queue->ctx) == CUDA_SUCCESS))
        status = op->run(op, queue);
    if (status != CUDA_SUCCESS)
        sim_context_fail(queue->ctx, status);
    strip_op(op);
    free(op);
}

/** Enqueues work and takes it over. Returns its number. */
uint64_t sim_queue_push(struct sim_queue *queue, struct sim_op *op)
{
    int cancel;

    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
    pthread_mutex_lock(&lock);
    sim_order_join(queue, op);
    bool now = op->quick && is_idle(queue, op->tickets, op->ticket_count);
    uint64_t seq = queue->enqueued + 1;
    if (now) {
        op->seq = queue->enqueued = queue->completed = seq;
    } else {
        link_op(queue, op);
        ensure_served(queue);
    }
    pthread_mutex_unlock(&lock);
    if (now)
        do_now(queue, op);
    pthread_setcancelstate(cancel, NULL);
    return seq;
}

/** For work that is over in a moment and that the caller does itself: its number if the queue is idle, or
 * 0. */
uint64_t sim_queue_pass(struct sim_queue *queue)
{
    struct sim_op probe = {.next = NULL};
    uint64_t seq = 0;

    pthread_mutex_lock(&lock);
    if (is_idle(queue, NULL, 0)) {
        uint64_t gate = queue->gate_seen, green_gate = queue->green_gate_seen;
        sim_order_join(queue, &probe);
        if (is_idle(queue, probe.tickets, probe.ticket_count))
            seq = queue->completed = ++queue->enqueued;
        if (!seq) { /* the work that will be enqueued has to pass them */
            queue->gate_seen = gate;
            queue->green_gate_seen = green_gate;
        }
    }
    pthread_mutex_unlock(&lock);
    sim_ticket_free(probe.tickets, probe.ticket_count);
    return seq;
}

/** Enqueues work without having it served yet: for callers with a lock that the work needs. Returns its
 * number. */
uint64_t sim_queue_append(struct sim_queue *queue, struct sim_op *op)
{
    pthread_mutex_lock(&lock);
    append(queue, op);
    uint64_t seq = op->seq;
    pthread_mutex_unlock(&lock);
    return seq;
}

/** Has what was appended served. */
void sim_queue_serve(struct sim_queue *queue)
{
    int cancel;

    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
    pthread_mutex_lock(&lock);
    if (queue->head)
        ensure_served(queue);
    pthread_mutex_unlock(&lock);
    pthread_setcancelstate(cancel, NULL);
}

static void wait_locked(struct sim_queue *queue, uint64_t seq)
{
    while (queue->completed < seq)
        pthread_cond_wait(&queue->done, &lock);
}

/** Enqueues work and waits for it; on an idle queue the caller does it itself. Returns the context's
 * error. */
CUresult sim_queue_push_wait(struct sim_queue *queue, struct sim_op *op)
{
    int cancel;

    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
    pthread_mutex_lock(&lock);
    append(queue, op);
    uint64_t seq = op->seq;
    if (queue->served) {
        pthread_cond_signal(&queue->more);
        wait_locked(queue, seq);
    } else {
        queue->served = true;
        while (queue->completed < seq)
            serve_one(queue);
        queue->served = false;
        if (queue->head)
            ensure_served(queue);
        else if (queue->closed)
            unlink_queue(queue);
    }
    pthread_mutex_unlock(&lock);
    pthread_setcancelstate(cancel, NULL);
    return sim_context_error(queue->ctx);
}

/** The number of the last work enqueued. */
uint64_t sim_queue_position(struct sim_queue *queue)
{
    pthread_mutex_lock(&lock);
    uint64_t seq = queue->enqueued;
    pthread_mutex_unlock(&lock);
    return seq;
}

bool sim_queue_over(struct sim_queue *queue, uint64_t seq)
{
    pthread_mutex_lock(&lock);
    bool over = queue->completed >= seq;
    pthread_mutex_unlock(&lock);
    return over;
}

void sim_queue_wait(struct sim_queue *queue, uint64_t seq)
{
    int cancel;

    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
    pthread_mutex_lock(&lock);
    wait_locked(queue, seq);
    pthread_mutex_unlock(&lock);
    pthread_setcancelstate(cancel, NULL);
}

/** The host has waited for a queue up to that number by a call that is there to wait: what was freed there is
 * the device's. Other calls that happen to wait say nothing of it. */
void sim_queue_see(struct sim_queue *queue, uint64_t seq)
{
    pthread_mutex_lock(&lock);
    if (queue->seen < seq)
        queue->seen = seq;
    pthread_mutex_unlock(&lock);
}

/** As sim_queue_see, but for all of a context, or of a green one. */
void sim_context_see(struct CUctx_st *ctx)
{
    pthread_mutex_lock(&lock);
    for (struct sim_queue *queue = sim_context_home(ctx)->queues; queue; queue = queue->next)
        if (!ctx->home || queue->green == ctx)
            queue->seen = queue->completed;
    if (!ctx->home)
        ctx->waits++;
    pthread_mutex_unlock(&lock);
}

/** Tickets for all that is pending in a context, or in a green one; the caller frees them with
 * sim_ticket_free. */
size_t sim_queue_tickets(struct CUctx_st *ctx, struct sim_ticket **tickets_p)
{
    size_t count = 0;

    *tickets_p = NULL;
    pthread_mutex_lock(&lock);
    for (struct sim_queue *queue = sim_context_home(ctx)->queues; queue; queue = queue->next)
        if (queue->completed < queue->enqueued && (!ctx->home || queue->green == ctx))
            sim_ticket_add(tickets_p, &count, queue, queue->enqueued);
    pthread_mutex_unlock(&lock);
    return count;
}

/** Waits for all work that is in the context now. */
void sim_context_drain(struct CUctx_st *ctx)
{
    struct sim_ticket *tickets;
    size_t count = atomic_load(&sim_context_home(ctx)->pending) ? sim_queue_tickets(ctx, &tickets) : 0;

    if (!count)
        return;
    for (size_t i = 0; i < count; i++)
        sim_queue_wait(tickets[i].queue, tickets[i].seq);
    sim_ticket_free(tickets, count);
}
