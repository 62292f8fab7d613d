/*
 * Order between queues: what work waits for without being told (the legacy stream, whole contexts that wait),
 * and what is known to be over before a queue's next work begins, from the events that the program made it
 * wait for. All of it under the queues' lock.
 */
#include <stdlib.h>
#include <string.h>

#include "sim/cuda/sim.h"

/* The legacy stream waits for all blocking streams of its context and they for it. */
static void join_legacy(struct sim_queue *queue, struct sim_op *op)
{
    struct sim_queue *legacy = queue->green ? queue->green->legacy : queue->ctx->legacy;

    if (queue->joins_legacy && legacy && legacy->completed < legacy->enqueued)
        sim_ticket_add(&op->tickets, &op->ticket_count, legacy, legacy->enqueued);
    if (!queue->is_legacy)
        return;
    for (struct sim_queue *other = queue->ctx->queues; other; other = other->next)
        if (other->joins_legacy && other->green == queue->green) {
            other->joined = other->enqueued;
            if (other->completed < other->enqueued)
                sim_ticket_add(&op->tickets, &op->ticket_count, other, other->enqueued);
        }
}

/* Makes the next work of a queue wait for what the whole context was told to wait for (cuCtxWaitEvent). */
static void pass_gate(const struct CUctx_st *ctx, uint64_t *seen_p, struct sim_op *op)
{
    if (*seen_p == ctx->gate_generation)
        return;
    for (size_t i = 0; i < ctx->gate_count; i++)
        if (ctx->gate[i].queue->completed < ctx->gate[i].seq)
            sim_ticket_add(&op->tickets, &op->ticket_count, ctx->gate[i].queue, ctx->gate[i].seq);
    *seen_p = ctx->gate_generation;
}

/** Adds what the next work of a queue waits for by the rules of streams. The lock is held. */
void sim_order_join(struct sim_queue *queue, struct sim_op *op)
{
    join_legacy(queue, op);
    pass_gate(queue->ctx, &queue->gate_seen, op);
    if (queue->green)
        pass_gate(queue->green, &queue->green_gate_seen, op);
}

/** Makes all later work of a context wait for the tickets, which stay the caller's; false when memory ran
 * out. */
bool sim_queue_gate(struct CUctx_st *ctx, const struct sim_ticket *tickets, size_t count)
{
    bool done = true;

    sim_queue_lock();
    for (size_t i = 0; done && i < count; i++)
        done = sim_ticket_add(&ctx->gate, &ctx->gate_count, tickets[i].queue, tickets[i].seq);
    ctx->gate_generation++;
    sim_queue_unlock();
    return done;
}

/* Takes away what need not be waited for any more. Returns tickets to let go of without the lock. */
static struct sim_ticket *prune_gate(struct CUctx_st *ctx, bool all, size_t *count_p)
{
    struct sim_ticket *over = NULL;
    size_t kept = 0;

    *count_p = 0;
    sim_queue_lock();
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
    sim_queue_unlock();
    return over;
}

/** Forgets what a context was made to wait for: what is over, or all of it. */
void sim_queue_gate_prune(struct CUctx_st *ctx, bool all)
{
    size_t count;
    struct sim_ticket *over = prune_gate(ctx, all, &count);

    sim_ticket_free(over, count);
}

/* --- what is known -------------------------------------------------------------------------------------- */

static void note(struct sim_queue *queue, unsigned long long id, uint64_t seq)
{
    struct sim_known *oldest = &queue->known[queue->known_next];

    if (id == queue->id)
        return;
    for (unsigned i = 0; i < queue->known_count; i++)
        if (queue->known[i].id == id) {
            if (queue->known[i].seq < seq)
                queue->known[i].seq = seq;
            return;
        }
    if (queue->known_count < SIM_KNOWN) {
        queue->known[queue->known_count++] = (struct sim_known){id, seq};
        return;
    }
    *oldest = (struct sim_known){id, seq}; /* what is forgotten is only reused later */
    queue->known_next = (queue->known_next + 1) % SIM_KNOWN;
}

/** Says that a queue's later work comes behind another's up to seq, and behind what that knew. */
void sim_order_learn(struct sim_queue *queue, const struct sim_ticket *ticket, const struct sim_known *known,
                     unsigned count)
{
    sim_queue_lock();
    note(queue, ticket->queue->id, ticket->seq);
    for (unsigned i = 0; i < count; i++)
        note(queue, known[i].id, known[i].seq);
    sim_queue_unlock();
}

/** The list of what a queue knows, for an event that is recorded in it: to be freed, or NULL. */
struct sim_known *sim_order_known(struct sim_queue *queue, unsigned *count_p)
{
    struct sim_known *known = NULL;

    sim_queue_lock();
    *count_p = queue->known_count;
    if (queue->known_count)
        known = malloc(queue->known_count * sizeof *known);
    if (known)
        memcpy(known, queue->known, queue->known_count * sizeof *known);
    else
        *count_p = 0;
    sim_queue_unlock();
    return known;
}

static bool behind_legacy(const struct sim_queue *queue, const struct sim_queue *other, uint64_t seq)
{
    if (queue->ctx != other->ctx || queue->green != other->green)
        return false;
    if (queue->is_legacy || other->is_legacy)
        return queue->is_legacy ? other->joins_legacy : queue->joins_legacy;
    return queue->joins_legacy && other->joins_legacy && other->joined >= seq;
}

/** True if the next work of a queue comes behind another's number in any case. */
bool sim_queue_knows(struct sim_queue *queue, struct sim_queue *other, uint64_t seq)
{
    bool knows = queue == other;

    sim_queue_lock();
    for (unsigned i = 0; !knows && i < queue->known_count; i++)
        knows = queue->known[i].id == other->id && queue->known[i].seq >= seq;
    knows = knows || behind_legacy(queue, other, seq);
    sim_queue_unlock();
    return knows;
}

/** True if the host has waited for a queue's number; of a stream that was destroyed, for its context
 * since. */
bool sim_queue_seen(struct sim_queue *queue, uint64_t seq)
{
    sim_queue_lock();
    bool seen = queue->seen >= seq || (queue->gone && queue->gone <= queue->ctx->waits);
    sim_queue_unlock();
    return seen;
}
