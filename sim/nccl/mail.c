/*
 * Sends and receives, on the thread of the stream. All that a group puts on one stream of one communicator is
 * one batch, whose parts make progress side by side: a piece from here to there whenever its mail box is
 * empty or full.
 */
#include <string.h>

#include "sim/nccl/nccl.h"

static uint64_t bytes_of(const struct sim_operation *o)
{
    return o->count * sim_type_bytes(o->type);
}

/* Of one pair only the first unfinished operation may use the box: pieces arrive in order. */
static bool is_next(const struct sim_operation *batch, const struct sim_operation *o)
{
    for (; batch != o; batch = batch->batch)
        if (batch->kind == o->kind && batch->root == o->root && batch->moved < bytes_of(batch))
            return false;
    return true;
}

static bool step(struct sim_operation *o)
{
    struct sim_room *room = o->comm->room;
    bool sends = o->kind == SIM_SEND;
    struct sim_mail *mail =
        sends ? sim_room_mail(room, o->comm->rank, o->root) : sim_room_mail(room, o->root, o->comm->rank);
    uint64_t left = bytes_of(o) - o->moved, bytes = left < SIM_MAIL_BYTES ? left : SIM_MAIL_BYTES;

    if (!left || atomic_load_explicit(&mail->full, memory_order_acquire) == (sends ? 1 : 0))
        return false;
    if (sends) {
        memcpy(mail->data, o->in + o->moved, bytes);
        mail->bytes = (uint32_t)bytes;
    } else {
        /* more than was asked for: it is the sender's mistake, and is lost */
        bytes = mail->bytes < left ? mail->bytes : left;
        memcpy(o->out + o->moved, mail->data, bytes);
    }
    o->moved += bytes;
    atomic_store_explicit(&mail->full, sends ? 1 : 0, memory_order_release);
    return true;
}

struct round {
    struct sim_operation *batch;
    bool moved, finished;
};

static bool go_round(void *arg)
{
    struct round *round = arg;

    round->moved = false;
    round->finished = true;
    for (struct sim_operation *o = round->batch; o; o = o->batch) {
        if (is_next(round->batch, o))
            round->moved |= step(o);
        round->finished &= o->moved == bytes_of(o);
    }
    return round->moved || round->finished;
}

static bool needs(void *arg, int rank)
{
    const struct round *round = arg;

    for (const struct sim_operation *o = round->batch; o; o = o->batch)
        if (o->root == rank && o->moved < bytes_of(o))
            return true;
    return false;
}

ncclResult_t sim_mail_run(struct sim_operation *batch)
{
    struct ncclComm *comm = batch->comm;
    struct round round = {.batch = batch};

    while (!round.finished) {
        SIM_TRY(sim_room_wait(comm->room, comm->rank, go_round, needs, &round));
        if (round.moved)
            sim_room_ring(comm->room);
    }
    return ncclSuccess;
}
