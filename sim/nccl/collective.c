/*
 * Collective operations, on the thread of the stream: host memory in, host memory out. Every rank passes what
 * it has through its window, piece by piece: all write, all meet, all read, all meet. Whoever disagrees about
 * what is being done is told so.
 */
#include <string.h>

#include "sim/nccl/nccl.h"

static char *window_of(const struct sim_operation *operation, int rank)
{
    return sim_room_window(operation->comm->room, rank);
}

static ncclResult_t meet(const struct sim_operation *operation)
{
    return sim_room_meet(operation->comm->room, operation->comm->rank, SIM_MEET_STREAM);
}

/* In the order in which all have come: the words of this operation are read before anybody writes those of
 * the next. */
static ncclResult_t agree(const struct sim_operation *operation)
{
    struct ncclComm *comm = operation->comm;
    struct sim_seat *seats = comm->room->seats;
    struct sim_word *word = &seats[comm->rank].word[SIM_MEET_STREAM];
    bool same = true;

    *word = (struct sim_word){.count = operation->count,
                              .kind = (int)operation->kind,
                              .type = (int)operation->type,
                              .op = (int)operation->op,
                              .root = operation->root};
    SIM_TRY(meet(operation));
    for (int i = 0; i < comm->ranks; i++)
        same &= memcmp(&seats[i].word[SIM_MEET_STREAM], word, offsetof(struct sim_word, color)) == 0;
    SIM_TRY(meet(operation));
    return same ? ncclSuccess
                : sim_fail(ncclInvalidUsage, "rank %d: the ranks do not agree on a collective operation",
                           comm->rank);
}

/* A part that rank `from` gives to rank `to` (-1: to all): `bytes` at `in_offset` of its input. Where it
 * lands at the receiver is up to the kind: the whole of what all give is one sequence of such parts, gone
 * through in the same order everywhere. */
struct part {
    int from, to;
    uint64_t in_offset, out_offset, bytes;
};

static ncclResult_t pass(const struct sim_operation *o, const struct part *part)
{
    int rank = o->comm->rank;

    for (uint64_t done = 0; done < part->bytes; done += SIM_WINDOW_BYTES) {
        uint64_t bytes = part->bytes - done < SIM_WINDOW_BYTES ? part->bytes - done : SIM_WINDOW_BYTES;

        if (rank == part->from)
            memcpy(window_of(o, rank), o->in + part->in_offset + done, bytes);
        SIM_TRY(meet(o));
        if (part->to < 0 || rank == part->to)
            memcpy(o->out + part->out_offset + done, window_of(o, part->from), bytes);
        SIM_TRY(meet(o));
    }
    return ncclSuccess;
}

/* All give `bytes` at `offset`; the fold of them lands at `out`, if that is not NULL. */
static ncclResult_t fold(const struct sim_operation *o, uint64_t offset, uint64_t bytes, char *out)
{
    size_t each = sim_type_bytes(o->type);

    for (uint64_t done = 0; done < bytes; done += SIM_WINDOW_BYTES) {
        uint64_t piece = bytes - done < SIM_WINDOW_BYTES ? bytes - done : SIM_WINDOW_BYTES;

        memcpy(window_of(o, o->comm->rank), o->in + offset + done, piece);
        SIM_TRY(meet(o));
        if (out) {
            memcpy(out + done, window_of(o, 0), piece);
            for (int i = 1; i < o->comm->ranks; i++)
                sim_reduce(out + done, window_of(o, i), piece / each, o->type, o->op);
            sim_reduce_finish(out + done, piece / each, o->type, o->op, o->comm->ranks);
        }
        SIM_TRY(meet(o));
    }
    return ncclSuccess;
}

static ncclResult_t scatter_reduced(const struct sim_operation *o, uint64_t bytes)
{
    for (int to = 0; to < o->comm->ranks; to++)
        SIM_TRY(fold(o, (uint64_t)to * bytes, bytes, to == o->comm->rank ? o->out : NULL));
    return ncclSuccess;
}

/* From each rank to each, or to one, or from one. */
static ncclResult_t pass_all(const struct sim_operation *o, uint64_t bytes)
{
    for (int i = 0; i < o->comm->ranks; i++) {
        uint64_t at = (uint64_t)i * bytes;

        switch (o->kind) {
        case SIM_ALL_GATHER:
            SIM_TRY(pass(o, &(struct part){i, -1, 0, at, bytes}));
            break;
        case SIM_GATHER:
            SIM_TRY(pass(o, &(struct part){i, o->root, 0, at, bytes}));
            break;
        case SIM_SCATTER:
            SIM_TRY(pass(o, &(struct part){o->root, i, at, 0, bytes}));
            break;
        default:
            for (int to = 0; to < o->comm->ranks; to++)
                SIM_TRY(pass(o, &(struct part){i, to, (uint64_t)to * bytes, at, bytes}));
        }
    }
    return ncclSuccess;
}

ncclResult_t sim_collective_run(struct sim_operation *o)
{
    uint64_t bytes = o->count * sim_type_bytes(o->type);

    SIM_TRY(agree(o));
    switch (o->kind) {
    case SIM_ALL_REDUCE:
        return fold(o, 0, bytes, o->out);
    case SIM_REDUCE:
        return fold(o, 0, bytes, o->comm->rank == o->root ? o->out : NULL);
    case SIM_REDUCE_SCATTER:
        return scatter_reduced(o, bytes);
    case SIM_BROADCAST:
        return pass(o, &(struct part){o->root, -1, 0, 0, bytes});
    default:
        return pass_all(o, bytes);
    }
}
