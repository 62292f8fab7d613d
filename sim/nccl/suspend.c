/*
 * Suspending a communicator: it gives back the device's memory that it has for itself, and takes it again
 * when it is resumed. No operation may be under way, and none is taken in between.
 *
 * What they answer: NVIDIA/nccl, docs/userguide/source/api/comms.rst (2.30), "ncclCommSuspend",
 * "ncclCommResume", "ncclCommMemStats". Assumed, since the page names no status: an operation of a
 * suspended communicator is 5; suspending twice, or resuming what is not suspended, is nothing. What was
 * given back still counts as memory that can be suspended.
 */
#include "sim/nccl/nccl.h"

SIM_NCCL(ncclResult_t, CommSuspend, (ncclComm_t comm, int flags))
{
    CUcontext ours;

    SIM_TRY(sim_comm_check(comm, "CommSuspend"));
    if (!(flags & NCCL_SUSPEND_MEM) || comm->suspended)
        return ncclSuccess;
    SIM_TRY(sim_comm_drain(comm));
    SIM_TRY(sim_cuda(SIM_DRV(cuCtxPushCurrent_v2, comm->context)));
    sim_scratch_give(comm);
    SIM_DRV(cuCtxPopCurrent_v2, &ours);
    comm->suspended = true;
    return ncclSuccess;
}

SIM_NCCL(ncclResult_t, CommResume, (ncclComm_t comm))
{
    ncclResult_t result = ncclSuccess;
    CUcontext ours;

    SIM_TRY(sim_comm_check(comm, "CommResume"));
    if (!comm->suspended)
        return ncclSuccess;
    SIM_TRY(sim_cuda(SIM_DRV(cuCtxPushCurrent_v2, comm->context)));
    if (comm->scratch_bytes)
        result = sim_scratch_take(comm);
    SIM_DRV(cuCtxPopCurrent_v2, &ours);
    comm->suspended = result != ncclSuccess;
    return result;
}

/* The communicator has nothing for itself but the windows' scratch memory; nothing of it stays when it is
 * suspended. */
SIM_NCCL(ncclResult_t, CommMemStats, (ncclComm_t comm, ncclCommMemStat_t which, uint64_t *value_p))
{
    SIM_TRY(sim_comm_check(comm, "CommMemStats"));
    if (!value_p)
        return sim_fail(ncclInvalidArgument, "CommMemStats : value argument is NULL");
    switch ((int)which) {
    case ncclStatGpuMemSuspend:
    case ncclStatGpuMemTotal:
        *value_p = comm->scratch_bytes;
        return ncclSuccess;
    case ncclStatGpuMemSuspended:
        *value_p = comm->suspended;
        return ncclSuccess;
    case ncclStatGpuMemPersist:
        *value_p = 0;
        return ncclSuccess;
    default:
        return sim_fail(ncclInvalidArgument, "CommMemStats : no such figure %d", (int)which);
    }
}
