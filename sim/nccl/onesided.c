/*
 * One-sided operations: a put copies on the caller's stream into the window of another rank, which takes no
 * part in it, and then counts a signal there; who waits for signals waits on its own stream. Signals are
 * counted in the ranks' room, for each pair, and each is waited for once: a wait for two takes the next
 * two.
 *
 * What they answer: NVIDIA/nccl, docs/userguide/source/api/p2p.rst (2.30), "One-Sided Point-to-Point
 * Operations (RMA)": signal index, context and flags must be 0, the window symmetric. With nothing to copy
 * a put is a signal.
 */
#include <stdlib.h>

#include "sim/nccl/nccl.h"

static ncclResult_t check_zeros(const char *function, int index, int context, unsigned flags)
{
    if (index || context || flags)
        return sim_fail(ncclInvalidArgument, "%s : signal index %d, context %d and flags %u must be 0",
                        function, index, context, flags);
    return ncclSuccess;
}

SIM_NCCL(ncclResult_t, Signal,
         (int peer, int index, int context, unsigned int flags, ncclComm_t comm, cudaStream_t stream))
{
    const struct sim_operation operation = {
        .kind = SIM_SIGNAL, .comm = comm, .stream = stream, .count = 1, .type = ncclInt8, .root = peer};

    SIM_TRY(sim_comm_check(comm, "Signal"));
    SIM_TRY(check_zeros("Signal", index, context, flags));
    return sim_launch(&operation);
}

SIM_NCCL(ncclResult_t, PutSignal,
         (const void *from, size_t count, ncclDataType_t type, int peer, ncclWindow_t handle, size_t offset,
          int index, int context, unsigned int flags, ncclComm_t comm, cudaStream_t stream))
{
    struct sim_operation operation = {.kind = SIM_PUT,
                                      .comm = comm,
                                      .stream = stream,
                                      .count = count,
                                      .type = type,
                                      .root = peer,
                                      .from = (uintptr_t)from};
    struct sim_window *window = sim_window_of(handle);
    size_t size = sim_type_bytes(type);
    uint64_t bytes;

    SIM_TRY(sim_comm_check(comm, "PutSignal"));
    SIM_TRY(check_zeros("PutSignal", index, context, flags));
    if (!window || window->comm != comm)
        return sim_fail(ncclInvalidArgument, "PutSignal : not a window of this communicator");
    if (!size || __builtin_mul_overflow(count, size, &bytes))
        return sim_fail(ncclInvalidArgument, "PutSignal : invalid type %d or count", (int)type);
    if (!count)
        return pncclSignal(peer, index, context, flags, comm, stream);
    SIM_TRY(sim_reach(window, peer, offset, &operation.to));
    if (!from || offset > window->offers[peer].bytes || bytes > window->offers[peer].bytes - offset)
        return sim_fail(ncclInvalidArgument, "PutSignal : no buffer, or it does not fit into the window");
    if (!operation.to)
        return sim_fail(ncclSystemError, "PutSignal : rank %d is out of reach", peer);
    return sim_launch(&operation);
}

SIM_NCCL(ncclResult_t, WaitSignal,
         (int count, ncclWaitSignalDesc_t *wanted, ncclComm_t comm, cudaStream_t stream))
{
    struct sim_operation operation = {.kind = SIM_AWAIT,
                                      .comm = comm,
                                      .stream = stream,
                                      .count = 1,
                                      .type = ncclInt8,
                                      .target_count = count};
    ncclResult_t result;

    SIM_TRY(sim_comm_check(comm, "WaitSignal"));
    if (count < 1 || !wanted)
        return sim_fail(ncclInvalidArgument, "WaitSignal : no signals are named");
    for (int i = 0; i < count; i++) {
        SIM_TRY(check_zeros("WaitSignal", wanted[i].sigIdx, wanted[i].ctx, 0));
        if (wanted[i].peer < 0 || wanted[i].peer >= comm->ranks || wanted[i].opCnt < 0)
            return sim_fail(ncclInvalidArgument, "WaitSignal : %d signals of rank %d", wanted[i].opCnt,
                            wanted[i].peer);
    }
    operation.targets = calloc((size_t)count, sizeof(*operation.targets));
    if (!operation.targets)
        return sim_fail(ncclSystemError, "out of memory");
    for (int i = 0; i < count; i++)
        operation.targets[i] =
            (struct sim_target){wanted[i].peer, comm->awaited[wanted[i].peer] += (uint32_t)wanted[i].opCnt};
    result = sim_launch(&operation);
    if (result != ncclSuccess)
        free(operation.targets);
    for (int i = 0; result != ncclSuccess && i < count; i++)
        comm->awaited[wanted[i].peer] -= (uint32_t)wanted[i].opCnt;
    return result;
}

static bool has_come(const struct ncclComm *comm, const struct sim_target *target)
{
    uint32_t signals =
        atomic_load_explicit(&comm->room->seats[comm->rank].signals[target->rank], memory_order_acquire);

    return (int32_t)(signals - target->signals) >= 0;
}

static bool all_came(void *arg)
{
    const struct sim_operation *operation = arg;

    for (int i = 0; i < operation->target_count; i++)
        if (!has_come(operation->comm, &operation->targets[i]))
            return false;
    return true;
}

static bool needs(void *arg, int rank)
{
    const struct sim_operation *operation = arg;

    for (int i = 0; i < operation->target_count; i++)
        if (operation->targets[i].rank == rank && !has_come(operation->comm, &operation->targets[i]))
            return true;
    return false;
}

ncclResult_t sim_onesided_run(struct sim_operation *operation)
{
    struct ncclComm *comm = operation->comm;

    if (operation->kind == SIM_AWAIT)
        return sim_room_wait(comm->room, comm->rank, all_came, needs, operation);
    atomic_fetch_add_explicit(&comm->room->seats[operation->root].signals[comm->rank], 1,
                              memory_order_release);
    sim_room_ring(comm->room);
    return ncclSuccess;
}
