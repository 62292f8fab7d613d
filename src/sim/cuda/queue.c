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

#include "sim.h"

#define IDLE_NS 200000000L

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

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

static void unlink_queue(struct sim_queue *queue)
{
    if (!queue->link)
        return;
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
    }
    pthread_mutex_unlock(&lock);
}

/* Lets go of all that the work holds. Before it counts as over: who waited for it may look. */
static void strip_op(struct sim_op *op)
{
    sim_ticket_free(op->tickets, op->ticket_count);
    if (op->dispose)
        op->dispose(op);
}

/* The legacy stream waits for all blocking streams of its context and they for it. */
static void join_legacy(struct sim_queue *queue, struct sim_op *op)
{
    struct sim_queue *legacy = queue->ctx->legacy;

    if (queue->joins_legacy && legacy && legacy->completed < legacy->enqueued)
        sim_ticket_add(&op->tickets, &op->ticket_count, legacy, legacy->enqueued);
    if (!queue->is_legacy)
        return;
    for (struct sim_queue *other = queue->ctx->queues; other; other = other->next)
        if (other->joins_legacy && other->completed < other->enqueued)
            sim_ticket_add(&op->tickets, &op->ticket_count, other, other->enqueued);
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

/* What the whole context was told to wait for (cuCtxWaitEvent), its queues wait for with their next work. */
static void pass_gate(struct sim_queue *queue, struct sim_op *op)
{
    const struct CUctx_st *ctx = queue->ctx;

    for (size_t i = 0; i < ctx->gate_count; i++)
        if (ctx->gate[i].queue->completed < ctx->gate[i].seq)
            sim_ticket_add(&op->tickets, &op->ticket_count, ctx->gate[i].queue, ctx->gate[i].seq);
    queue->gate_seen = ctx->gate_generation;
}

static void append(struct sim_queue *queue, struct sim_op *op)
{
    join_legacy(queue, op);
    if (queue->gate_seen != queue->ctx->gate_generation)
        pass_gate(queue, op);
    op->seq = ++queue->enqueued;
    op->next = NULL;
    if (queue->tail)
        queue->tail->next = op;
    else
        queue->head = op;
    queue->tail = op;
}

/** Enqueues work and takes it over. Returns its number. */
uint64_t sim_queue_push(struct sim_queue *queue, struct sim_op *op)
{
    int cancel;

    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
    pthread_mutex_lock(&lock);
    append(queue, op);
    uint64_t seq = op->seq;
    ensure_served(queue);
    pthread_mutex_unlock(&lock);
    pthread_setcancelstate(cancel, NULL);
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

/** Enqueues work and waits for it; on an idle queue the caller does it itself. Returns the context's error.
 */
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

/** Tickets for all that is pending in a context; the caller frees them with sim_ticket_free. */
size_t sim_queue_tickets(struct CUctx_st *ctx, struct sim_ticket **tickets_p)
{
    size_t count = 0;

    *tickets_p = NULL;
    pthread_mutex_lock(&lock);
    for (struct sim_queue *queue = ctx->queues; queue; queue = queue->next)
        if (queue->completed < queue->enqueued)
            sim_ticket_add(tickets_p, &count, queue, queue->enqueued);
    pthread_mutex_unlock(&lock);
    return count;
}

/** Makes all later work of a context wait for the tickets, which stay the caller's; false when memory ran
 * out. */
bool sim_queue_gate(struct CUctx_st *ctx, const struct sim_ticket *tickets, size_t count)
{
    bool done = true;

    pthread_mutex_lock(&lock);
    for (size_t i = 0; done && i < count; i++)
        done = sim_ticket_add(&ctx->gate, &ctx->gate_count, tickets[i].queue, tickets[i].seq);
    ctx->gate_generation++;
    pthread_mutex_unlock(&lock);
    return done;
}

/* Takes away what need not be waited for any more. Returns tickets to let go of without the lock. */
static struct sim_ticket *prune_gate(struct CUctx_st *ctx, bool all, size_t *count_p)
{
    struct sim_ticket *over = NULL;
    size_t kept = 0;

    *count_p = 0;
    pthread_mutex_lock(&lock);
    over = ctx->gate_count ? malloc(ctx->gate_count * sizeof *over) : NULL;
    for (size_t i = 0; over && i < ctx->gate_count; i++) {
        struct sim_ticket ticket = ctx->gate[i];
        if (all || ticket.queue->completed >= ticket.seq)
            over[(*count_p)++] = ticket;
        else
            ctx->gate[kept++] = ticket;
    }
    if (over)
        ctx->gate_count = kept;
    pthread_mutex_unlock(&lock);
    return over;
}

/** Forgets what a context was made to wait for: what is over, or all of it. */
void sim_queue_gate_prune(struct CUctx_st *ctx, bool all)
{
    size_t count;
    struct sim_ticket *over = prune_gate(ctx, all, &count);

    sim_ticket_free(over, count);
}

/** Waits for all work that is in the context now. */
void sim_context_drain(struct CUctx_st *ctx)
{
    struct sim_ticket *tickets;
    size_t count = sim_queue_tickets(ctx, &tickets);

    for (size_t i = 0; i < count; i++)
        sim_queue_wait(tickets[i].queue, tickets[i].seq);
    sim_ticket_free(tickets, count);
}
