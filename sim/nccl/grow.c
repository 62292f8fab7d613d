/*
 * A communicator with more ranks: those it has keep their numbers, new ones are given theirs. One of the
 * old ranks makes an id, which is the name of the new room, and gives it to the new ranks; the other old
 * ranks read it in the old room. The old communicator stays.
 *
 * What they answer: NVIDIA/nccl, nccl.h (2.30) at ncclCommGetUniqueId and ncclCommGrow: one unused id at a
 * time, each used once; old ranks give -1 for their number, new ones no communicator. Assumed, since no
 * status is named: a second id is 5, everything else 4.
 */
#include <string.h>

#include "sim/nccl/nccl.h"

SIM_NCCL(ncclResult_t, CommGetUniqueId, (ncclComm_t comm, ncclUniqueId *id))
{
    SIM_TRY(sim_comm_check(comm, "CommGetUniqueId"));
    if (!id)
        return sim_fail(ncclInvalidArgument, "CommGetUniqueId : uniqueId argument is NULL");
    if (*comm->grow)
        return sim_fail(ncclInvalidUsage, "CommGetUniqueId : the last id has not been used");
    SIM_TRY(sim_room_name(comm->grow));
    sim_id_make(id, comm->grow);
    return ncclSuccess;
}

/* Phases of the ranks that are there: who has the id says so; all read it; then into the new room, with those
 * who have come. */
static ncclResult_t say(struct sim_job *job)
{
    struct ncclComm *parent = job->parent;
    struct sim_word *word = &parent->room->seats[parent->rank].word[SIM_MEET_HOST];

    memcpy(word->next, job->name, sizeof(word->next));
    word->color = job->ranks;
    job->step = sim_room_post(parent->room, parent->rank, SIM_MEET_HOST);
    return ncclSuccess;
}

static ncclResult_t hear(struct sim_job *job)
{
    struct ncclComm *parent = job->parent;
    int told = 0;

    SIM_TRY(sim_room_await(parent->room, parent->rank, SIM_MEET_HOST, job->step));
    for (int i = 0; i < parent->ranks; i++) {
        const struct sim_word *word = &parent->room->seats[i].word[SIM_MEET_HOST];

        if (word->color != job->ranks)
            return sim_fail(ncclInvalidArgument,
                            "CommGrow : the ranks do not agree on how many they will be");
        if (!*word->next)
            continue;
        told++;
        memcpy(job->name, word->next, sizeof(job->name));
    }
    if (told != 1)
        return sim_fail(ncclInvalidArgument, "CommGrow : %d ranks gave an id", told);
    return ncclSuccess;
}

static ncclResult_t meet(struct sim_job *job)
{
    SIM_TRY(sim_comm_meet(job));
    if (job->parent && strcmp(job->parent->grow, job->name) == 0)
        *job->parent->grow = '\0';
    return ncclSuccess;
}

static ncclResult_t check_old(const struct ncclComm *comm, int ranks, const ncclUniqueId *id, int rank)
{
    char name[SIM_NAME_BYTES];

    SIM_TRY(sim_comm_check(comm, "CommGrow"));
    if (rank != -1 || ranks <= comm->ranks)
        return sim_fail(ncclInvalidArgument, "CommGrow : rank %d of %d, from %d", rank, ranks, comm->ranks);
    if (!id)
        return ncclSuccess;
    SIM_TRY(sim_id_room(id, name));
    if (strcmp(name, comm->grow) != 0)
        return sim_fail(ncclInvalidArgument, "CommGrow : the id is not this communicator's, or was used");
    return ncclSuccess;
}

static ncclResult_t check_new(int ranks, const ncclUniqueId *id, int rank)
{
    if (!id || rank < 1 || rank >= ranks)
        return sim_fail(ncclInvalidArgument, "CommGrow : a new rank needs an id and its number, %d of %d",
                        rank, ranks);
    return ncclSuccess;
}

SIM_NCCL(ncclResult_t, CommGrow,
         (ncclComm_t comm, int ranks, const ncclUniqueId *id, int rank, ncclComm_t *new_p,
          ncclConfig_t *config))
{
    CUcontext context = NULL;
    struct sim_job *job;

    SIM_TRY(sim_runtime());
    SIM_TRY(sim_config_check(config));
    if (!new_p)
        return sim_fail(ncclInvalidArgument, "CommGrow : newcomm argument is NULL");
    SIM_TRY(comm ? check_old(comm, ranks, id, rank) : check_new(ranks, id, rank));
    if (ranks > SIM_RANKS)
        return sim_fail(ncclInternalError, "more than %d ranks are not simulated", SIM_RANKS);
    SIM_TRY(sim_cuda(SIM_DRV(cuCtxGetCurrent, &context)));
    *new_p = NULL;
    job = sim_job_new();
    if (!job)
        return ncclSystemError;
    if (id)
        sim_id_room(id, job->name);
    job->phases[0] = comm ? say : NULL;
    job->phases[1] = comm ? hear : NULL;
    job->phases[2] = sim_comm_enter;
    job->phases[3] = meet;
    job->parent = comm;
    job->context = comm ? comm->context : context;
    job->comm_p = new_p;
    job->ranks = ranks;
    job->rank = comm ? comm->rank : rank;
    return sim_job_submit(job);
}
