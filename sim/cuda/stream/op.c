/*
 * Pieces of work, and the tickets that say what must be over first. A piece that stands in a graph is never
 * run itself: each launch runs copies. No lock.
 */
#include <stdlib.h>
#include <string.h>

#include "sim/cuda/sim.h"

/** Work that calls run on the queue's thread; zeroed, of the given size, beginning with a struct sim_op. */
void *sim_op_new(size_t bytes, CUresult (*run)(struct sim_op *op, struct sim_queue *queue))
{
    struct sim_op *op = calloc(1, bytes);

    if (op) {
        op->run = run;
        op->bytes = bytes;
        op->node = SIM_NO_NODE;
    }
    return op;
}

/** A second piece of work like op, which waits for nothing; NULL when memory ran out. */
struct sim_op *sim_op_copy(const struct sim_op *op)
{
    struct sim_op *copy = malloc(op->bytes);

    if (!copy)
        return NULL;
    memcpy(copy, op, op->bytes);
    copy->next = NULL;
    copy->tickets = NULL;
    copy->ticket_count = 0;
    copy->status = CUDA_SUCCESS;
    if (copy->hold)
        copy->hold(copy);
    return copy;
}

/** Ends work that was not enqueued. */
void sim_op_drop(struct sim_op *op)
{
    if (!op)
        return;
    if (op->dispose)
        op->dispose(op);
    sim_ticket_free(op->tickets, op->ticket_count);
    free(op);
}

/* A queue found in a list may be on its way out; such a one has no work left. */
static bool try_ref(struct sim_queue *queue)
{
    unsigned refs = atomic_load(&queue->refs);

    while (refs)
        if (atomic_compare_exchange_weak(&queue->refs, &refs, refs + 1))
            return true;
    return false;
}

/** Adds to a list of tickets; false when memory ran out. */
bool sim_ticket_add(struct sim_ticket **tickets, size_t *count, struct sim_queue *queue, uint64_t seq)
{
    struct sim_ticket *grown = realloc(*tickets, (*count + 1) * sizeof **tickets);

    if (!grown)
        return false;
    *tickets = grown;
    if (try_ref(queue))
        grown[(*count)++] = (struct sim_ticket){queue, seq};
    return true;
}

void sim_ticket_free(struct sim_ticket *tickets, size_t count)
{
    for (size_t i = 0; i < count; i++)
        sim_queue_put(tickets[i].queue);
    free(tickets);
}

/** Lets op wait for a queue's work up to seq. */
bool sim_op_after(struct sim_op *op, struct sim_queue *queue, uint64_t seq)
{
    return sim_ticket_add(&op->tickets, &op->ticket_count, queue, seq);
}
