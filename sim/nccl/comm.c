/*
 * Communicators: made by rank, for all devices of a process, by splitting; questions about them; their end. A
 * communicator belongs to the context that was current when it was made. Blocking: where the program asks for
 * a communicator that is not, it is made all the same before the call returns.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/nccl/nccl.h"

#define COMM_MAGIC   0x1ca0cafe0badcafeu
#define CONFIG_MAGIC 0xcafebeefu

static const char id_prefix[8] = "memsim1";

ncclResult_t sim_comm_check(const struct ncclComm *comm, const char *function)
{
    if (!comm)
        return sim_fail(ncclInvalidArgument, "%s : comm argument is NULL", function);
    if (comm->magic != COMM_MAGIC)
        return sim_fail(ncclInvalidArgument, "%s : corrupted comm object detected", function);
    return ncclSuccess;
}

void sim_comm_note(struct ncclComm *comm, ncclResult_t result)
{
    int none = ncclSuccess;

    if (result != ncclSuccess)
        atomic_compare_exchange_strong(&comm->async, &none, (int)result);
}

ncclResult_t sim_comm_drain(struct ncclComm *comm)
{
    CUresult status = CUDA_SUCCESS;
    CUcontext ours;

    if (!comm->busy)
        return ncclSuccess;
    if (SIM_DRV(cuCtxPushCurrent_v2, comm->context) == CUDA_SUCCESS) {
        status = SIM_DRV(cuEventSynchronize, comm->done);
        SIM_DRV(cuCtxPopCurrent_v2, &ours);
    }
    return sim_cuda(status);
}

static void end_comm(struct ncclComm *comm)
{
    CUcontext ours;
    bool pushed = SIM_DRV(cuCtxPushCurrent_v2, comm->context) == CUDA_SUCCESS;

    sim_windows_drop(comm);
    sim_stages_free(comm);
    if (comm->buffers)
        SIM_DRV(cuMemFree_v2, comm->buffers);
    if (comm->done)
        SIM_DRV(cuEventDestroy_v2, comm->done);
    if (pushed)
        SIM_DRV(cuCtxPopCurrent_v2, &ours);
    if (comm->room)
        sim_room_leave(comm->room, comm->rank);
    if (*comm->grow)
        sim_room_unlink(comm->grow);
    comm->magic = 0;
    free(comm);
}

/* The vendor's takes buffers for each communicator; how many bytes is not known of it, so it is none unless
 * somebody says. */
static ncclResult_t take_buffers(struct ncclComm *comm)
{
    const char *wanted = secure_getenv("MEMSIM_COMMUNICATOR");
    size_t bytes = wanted ? strtoull(wanted, NULL, 10) : 0;

    return bytes ? sim_cuda(SIM_DRV(cuMemAlloc_v2, &comm->buffers, bytes)) : ncclSuccess;
}

ncclResult_t sim_comm_enter(struct sim_job *job)
{
    struct ncclComm *comm = calloc(1, sizeof(*comm));
    CUdevice device = 0;
    ncclResult_t result;

    if (!comm)
        return sim_fail(ncclSystemError, "out of memory");
    job->comm = comm;
    *comm = (struct ncclComm){
        .magic = COMM_MAGIC, .rank = job->rank, .ranks = job->ranks, .context = job->context};
    result = sim_cuda(SIM_DRV(cuCtxGetDevice, &device));
    comm->ordinal = (int)device;
    if (result == ncclSuccess)
        result = sim_cuda(SIM_DRV(cuEventCreate, &comm->done, CU_EVENT_DISABLE_TIMING));
    if (result == ncclSuccess)
        result = take_buffers(comm);
    if (result == ncclSuccess)
        result = sim_room_enter(job->name, job->ranks, job->rank, &comm->room);
    if (result == ncclSuccess)
        result = sim_cuda(SIM_DRV(cuDeviceGetUuid_v2, &comm->room->seats[comm->rank].device, device));
    if (result == ncclSuccess) {
        job->step = sim_room_post(comm->room, comm->rank, SIM_MEET_HOST);
    } else {
        end_comm(comm);
        job->comm = NULL;
    }
    return result;
}

/* No device twice, as the vendor has it. */
ncclResult_t sim_comm_meet(struct sim_job *job)
{
    struct ncclComm *comm = job->comm;
    const struct sim_seat *seats = comm->room->seats;
    ncclResult_t result = sim_room_await(comm->room, comm->rank, SIM_MEET_HOST, job->step);

    if (comm->rank == 0)
        sim_room_unlink(job->name);
    for (int i = 0; result == ncclSuccess && i < comm->ranks; i++)
        if (i != comm->rank && !memcmp(&seats[i].device, &seats[comm->rank].device, sizeof(seats[i].device)))
            result = sim_fail(ncclInvalidUsage,
                              "Duplicate GPU detected : rank %d and rank %d both on CUDA device %d",
                              comm->rank, i, comm->ordinal);
    if (result != ncclSuccess) {
        end_comm(comm);
        return result;
    }
    *job->comm_p = comm;
    return ncclSuccess;
}

ncclResult_t sim_config_check(const ncclConfig_t *config)
{
    if (config && config->magic != CONFIG_MAGIC)
        return sim_fail(ncclInvalidArgument,
                        "ncclConfig_t argument not initialized via NCCL_CONFIG_INITIALIZER");
    return ncclSuccess;
}

void sim_id_make(ncclUniqueId *id, const char *name)
{
    memset(id, 0, sizeof(*id));
    memcpy(id->internal, id_prefix, sizeof(id_prefix));
    snprintf(id->internal + sizeof(id_prefix), sizeof(id->internal) - sizeof(id_prefix), "%s", name);
}

ncclResult_t sim_id_room(const ncclUniqueId *id, char name[SIM_NAME_BYTES])
{
    if (memcmp(id->internal, id_prefix, sizeof(id_prefix)) != 0 ||
        !memchr(id->internal, 0, sizeof(id->internal)))
        return sim_fail(ncclInvalidArgument, "the unique id is not of ncclGetUniqueId");
    snprintf(name, SIM_NAME_BYTES, "%.*s", SIM_NAME_BYTES - 1, id->internal + sizeof(id_prefix));
    return ncclSuccess;
}

static ncclResult_t init_rank(CUcontext context, ncclComm_t *comm_p, int ranks, const ncclUniqueId *id,
                              int rank)
{
    char name[SIM_NAME_BYTES];
    struct sim_job *job;

    if (!comm_p || ranks < 1 || rank < 0 || rank >= ranks)
        return sim_fail(ncclInvalidArgument, "Invalid rank requested : %d/%d", rank, ranks);
    if (ranks > SIM_RANKS)
        return sim_fail(ncclInternalError, "more than %d ranks are not simulated", SIM_RANKS);
    SIM_TRY(sim_id_room(id, name));
    job = sim_job_new();
    if (!job)
        return ncclSystemError;
    job->phases[0] = sim_comm_enter;
    job->phases[1] = sim_comm_meet;
    job->context = context;
    job->comm_p = comm_p;
    job->ranks = ranks;
    job->rank = rank;
    memcpy(job->name, name, sizeof(name));
    return sim_job_submit(job);
}

SIM_NCCL(ncclResult_t, GetUniqueId, (ncclUniqueId * id))
{
    char name[SIM_NAME_BYTES];

    if (!id)
        return sim_fail(ncclInvalidArgument, "GetUniqueId : uniqueId argument is NULL");
    SIM_TRY(sim_room_name(name));
    sim_id_make(id, name);
    return ncclSuccess;
}

SIM_NCCL(ncclResult_t, CommInitRankConfig,
         (ncclComm_t * comm_p, int ranks, ncclUniqueId id, int rank, ncclConfig_t *config))
{
    CUcontext context = NULL;

    SIM_TRY(sim_runtime());
    SIM_TRY(sim_config_check(config));
    SIM_TRY(sim_cuda(SIM_DRV(cuCtxGetCurrent, &context)));
    return init_rank(context, comm_p, ranks, &id, rank);
}

SIM_NCCL(ncclResult_t, CommInitRank, (ncclComm_t * comm_p, int ranks, ncclUniqueId id, int rank))
{
    return pncclCommInitRankConfig(comm_p, ranks, id, rank, NULL);
}

SIM_NCCL(ncclResult_t, CommInitRankScalable,
         (ncclComm_t * comm_p, int ranks, int rank, int id_count, ncclUniqueId *ids, ncclConfig_t *config))
{
    if (!ids || id_count < 1 || id_count > ranks)
        return sim_fail(ncclInvalidArgument, "CommInitRankScalable : improper number of ids");
    return pncclCommInitRankConfig(comm_p, ranks, ids[0], rank, config);
}

SIM_NCCL(ncclResult_t, CommInitAll, (ncclComm_t * comms, int count, const int *devices))
{
    ncclResult_t result = ncclSuccess, ended;
    ncclUniqueId id;

    SIM_TRY(sim_runtime());
    if (!comms || count < 1)
        return sim_fail(ncclInvalidArgument, "CommInitAll : improper arguments");
    SIM_TRY(pncclGetUniqueId(&id));
    SIM_TRY(pncclGroupStart());
    for (int i = 0; result == ncclSuccess && i < count; i++) {
        CUcontext context = NULL;

        result = sim_context_of(devices ? devices[i] : i, &context);
        if (result == ncclSuccess)
            result = init_rank(context, &comms[i], count, &id, i);
    }
    ended = pncclGroupEnd();
    return result == ncclSuccess ? ended : result;
}

/* Phases of a split: say colour and key; choose, and name the room of one's colour; then into it as any
 * other. Colours and keys are read between the two meetings alone, for a rank of another colour may be at its
 * next split after them; the name of the room is read until one is in it, and who gave it waits there for
 * all. */
static ncclResult_t split_say(struct sim_job *job)
{
    struct ncclComm *parent = job->parent;
    struct sim_word *word = &parent->room->seats[parent->rank].word[SIM_MEET_HOST];

    word->color = job->color;
    word->key = job->key;
    word->next[0] = '\0';
    job->step = sim_room_post(parent->room, parent->rank, SIM_MEET_HOST);
    return ncclSuccess;
}

static const struct sim_word *word_of(const struct ncclComm *parent, int rank)
{
    return &parent->room->seats[rank].word[SIM_MEET_HOST];
}

/* Order by key, then by rank; the first of the parent's ranks is who names the room. */
static int choose(struct sim_job *job)
{
    const struct ncclComm *parent = job->parent;
    int first = -1;

    job->ranks = job->rank = 0;
    for (int i = 0; i < parent->ranks; i++) {
        const struct sim_word *word = word_of(parent, i);

        if (word->color != job->color)
            continue;
        first = first < 0 ? i : first;
        job->ranks++;
        job->rank += word->key < job->key || (word->key == job->key && i < parent->rank);
    }
    return first;
}

static ncclResult_t split_name(struct sim_job *job)
{
    struct ncclComm *parent = job->parent;
    ncclResult_t result = sim_room_await(parent->room, parent->rank, SIM_MEET_HOST, job->step);

    if (result == ncclSuccess && job->color != NCCL_SPLIT_NOCOLOR &&
        (job->leader = choose(job)) == parent->rank)
        result = sim_room_name(parent->room->seats[parent->rank].word[SIM_MEET_HOST].next);
    job->step = sim_room_post(parent->room, parent->rank, SIM_MEET_HOST);
    return result;
}

static ncclResult_t split_enter(struct sim_job *job)
{
    struct ncclComm *parent = job->parent;

    SIM_TRY(sim_room_await(parent->room, parent->rank, SIM_MEET_HOST, job->step));
    if (job->color == NCCL_SPLIT_NOCOLOR)
        return ncclSuccess;
    snprintf(job->name, sizeof(job->name), "%s", word_of(parent, job->leader)->next);
    return sim_comm_enter(job);
}

static ncclResult_t split_meet(struct sim_job *job)
{
    return job->color == NCCL_SPLIT_NOCOLOR ? ncclSuccess : sim_comm_meet(job);
}

SIM_NCCL(ncclResult_t, CommSplit,
         (ncclComm_t parent, int color, int key, ncclComm_t *comm_p, ncclConfig_t *config))
{
    struct sim_job *job;

    SIM_TRY(sim_comm_check(parent, "CommSplit"));
    SIM_TRY(sim_config_check(config));
    if (!comm_p || color < NCCL_SPLIT_NOCOLOR)
        return sim_fail(ncclInvalidArgument, "CommSplit : improper arguments");
    *comm_p = NULL;
    job = sim_job_new();
    if (!job)
        return ncclSystemError;
    job->phases[0] = split_say;
    job->phases[1] = split_name;
    job->phases[2] = split_enter;
    job->phases[3] = split_meet;
    job->parent = parent;
    job->context = parent->context;
    job->comm_p = comm_p;
    job->color = color;
    job->key = key;
    return sim_job_submit(job);
}

/* Operations that were issued are over when this returns; the communicator itself goes with
 * ncclCommDestroy. */
SIM_NCCL(ncclResult_t, CommFinalize, (ncclComm_t comm))
{
    SIM_TRY(sim_comm_check(comm, "CommFinalize"));
    return sim_comm_drain(comm);
}

SIM_NCCL(ncclResult_t, CommDestroy, (ncclComm_t comm))
{
    if (!comm)
        return ncclSuccess;
    SIM_TRY(sim_comm_check(comm, "CommDestroy"));
    sim_comm_drain(comm);
    end_comm(comm);
    return ncclSuccess;
}

SIM_NCCL(ncclResult_t, CommAbort, (ncclComm_t comm))
{
    if (!comm)
        return ncclSuccess;
    SIM_TRY(sim_comm_check(comm, "CommAbort"));
    atomic_store(&comm->room->aborted, 1);
    sim_room_ring(comm->room);
    return pncclCommDestroy(comm);
}

SIM_NCCL(ncclResult_t, CommGetAsyncError, (ncclComm_t comm, ncclResult_t *result_p))
{
    SIM_TRY(sim_comm_check(comm, "CommGetAsyncError"));
    if (!result_p)
        return sim_fail(ncclInvalidArgument, "CommGetAsyncError : asyncError argument is NULL");
    *result_p = (ncclResult_t)atomic_load(&comm->async);
    return ncclSuccess;
}

static ncclResult_t answer(const struct ncclComm *comm, const char *function, int value, int *value_p)
{
    SIM_TRY(sim_comm_check(comm, function));
    if (!value_p)
        return sim_fail(ncclInvalidArgument, "%s : argument is NULL", function);
    *value_p = value;
    return ncclSuccess;
}

SIM_NCCL(ncclResult_t, CommCount, (const ncclComm_t comm, int *count))
{
    return answer(comm, "CommCount", comm ? comm->ranks : 0, count);
}

SIM_NCCL(ncclResult_t, CommCuDevice, (const ncclComm_t comm, int *device))
{
    return answer(comm, "CommCuDevice", comm ? comm->ordinal : 0, device);
}

SIM_NCCL(ncclResult_t, CommUserRank, (const ncclComm_t comm, int *rank))
{
    return answer(comm, "CommUserRank", comm ? comm->rank : 0, rank);
}
