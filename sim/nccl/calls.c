/*
 * The exported operations: each says what it takes from the rank and what it leaves there.
 */
#include "sim/nccl/nccl.h"

/* A rank's own block of what it gives or gets, or the blocks of all. */
static ncclResult_t operate(enum sim_kind kind, const char *function, const void *from, int from_blocks,
                            void *to, int to_blocks, uint64_t count, ncclDataType_t type, ncclRedOp_t op,
                            int root, ncclComm_t comm, cudaStream_t stream)
{
    uint64_t bytes = count * sim_type_bytes(type);
    struct sim_operation operation = {.kind = kind,
                                      .comm = comm,
                                      .stream = stream,
                                      .count = count,
                                      .type = type,
                                      .op = op,
                                      .root = root,
                                      .from = (uintptr_t)from,
                                      .to = (uintptr_t)to};

    SIM_TRY(sim_comm_check(comm, function));
    operation.from_bytes = bytes * (uint64_t)from_blocks;
    operation.to_bytes = bytes * (uint64_t)to_blocks;
    return sim_launch(&operation);
}

static int ranks_of(ncclComm_t comm)
{
    return comm ? comm->ranks : 0;
}

static int is_rank(ncclComm_t comm, int rank)
{
    return comm && comm->rank == rank;
}

SIM_NCCL(ncclResult_t, AllGather,
         (const void *from, void *to, size_t count, ncclDataType_t type, ncclComm_t comm,
          cudaStream_t stream))
{
    return operate(SIM_ALL_GATHER, "AllGather", from, 1, to, ranks_of(comm), count, type, ncclSum, 0, comm,
                   stream);
}

SIM_NCCL(ncclResult_t, AllReduce,
         (const void *from, void *to, size_t count, ncclDataType_t type, ncclRedOp_t op, ncclComm_t comm,
          cudaStream_t stream))
{
    return operate(SIM_ALL_REDUCE, "AllReduce", from, 1, to, 1, count, type, op, 0, comm, stream);
}

SIM_NCCL(ncclResult_t, Reduce,
         (const void *from, void *to, size_t count, ncclDataType_t type, ncclRedOp_t op, int root,
          ncclComm_t comm, cudaStream_t stream))
{
    return operate(SIM_REDUCE, "Reduce", from, 1, to, is_rank(comm, root), count, type, op, root, comm,
                   stream);
}

SIM_NCCL(ncclResult_t, ReduceScatter,
         (const void *from, void *to, size_t count, ncclDataType_t type, ncclRedOp_t op, ncclComm_t comm,
          cudaStream_t stream))
{
    return operate(SIM_REDUCE_SCATTER, "ReduceScatter", from, ranks_of(comm), to, 1, count, type, op, 0, comm,
                   stream);
}

SIM_NCCL(ncclResult_t, Broadcast,
         (const void *from, void *to, size_t count, ncclDataType_t type, int root, ncclComm_t comm,
          cudaStream_t stream))
{
    return operate(SIM_BROADCAST, "Broadcast", from, is_rank(comm, root), to, 1, count, type, ncclSum, root,
                   comm, stream);
}

SIM_NCCL(ncclResult_t, Bcast,
         (void *buffer, size_t count, ncclDataType_t type, int root, ncclComm_t comm, cudaStream_t stream))
{
    return pncclBroadcast(buffer, buffer, count, type, root, comm, stream);
}

SIM_NCCL(ncclResult_t, AlltoAll,
         (const void *from, void *to, size_t count, ncclDataType_t type, ncclComm_t comm,
          cudaStream_t stream))
{
    int all = ranks_of(comm);

    return operate(SIM_ALL_TO_ALL, "AlltoAll", from, all, to, all, count, type, ncclSum, 0, comm, stream);
}

SIM_NCCL(ncclResult_t, Gather,
         (const void *from, void *to, size_t count, ncclDataType_t type, int root, ncclComm_t comm,
          cudaStream_t stream))
{
    return operate(SIM_GATHER, "Gather", from, 1, to, is_rank(comm, root) * ranks_of(comm), count, type,
                   ncclSum, root, comm, stream);
}

SIM_NCCL(ncclResult_t, Scatter,
         (const void *from, void *to, size_t count, ncclDataType_t type, int root, ncclComm_t comm,
          cudaStream_t stream))
{
    return operate(SIM_SCATTER, "Scatter", from, is_rank(comm, root) * ranks_of(comm), to, 1, count, type,
                   ncclSum, root, comm, stream);
}

SIM_NCCL(ncclResult_t, Send,
         (const void *from, size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
          cudaStream_t stream))
{
    return operate(SIM_SEND, "Send", from, 1, NULL, 0, count, type, ncclSum, peer, comm, stream);
}

SIM_NCCL(ncclResult_t, Recv,
         (void *to, size_t count, ncclDataType_t type, int peer, ncclComm_t comm, cudaStream_t stream))
{
    return operate(SIM_RECEIVE, "Recv", NULL, 0, to, 1, count, type, ncclSum, peer, comm, stream);
}
