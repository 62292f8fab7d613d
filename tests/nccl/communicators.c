/* communicators.c - a program with several of NCCL's communicators, for which the library takes memory,
 * beside a buffer of NCCL's that the program asks for itself. Says how many bytes are whose. */
#include <stdint.h>

#include "gpu/abi/cuda_runtime_fn.h"
#include "gpu/abi/nccl_fn.h"
#include "tests/program.h"

#define MIB (UINT64_C(1) << 20)
static ncclComm_t comms[8];

static void must(int status, const char *what)
{
    if (status)
        say("%s: %d", what, status);
}

/* One line for all of them: what tells them apart is not the place. */
__attribute__((noinline)) static void join(ncclComm_t *comm_p)
{
    ncclUniqueId id;

    must(ncclGetUniqueId(&id), "ncclGetUniqueId");
    must(ncclCommInitRank(comm_p, 1, id, 0), "ncclCommInitRank");
}

__attribute__((noinline)) static void split(void)
{
    ncclConfig_t *none = NULL;

    must(ncclCommSplit(comms[0], 0, 0, &comms[2], none), "ncclCommSplit");
}

__attribute__((noinline)) static void join_in_group(void)
{
    ncclUniqueId id;

    must(ncclGetUniqueId(&id), "ncclGetUniqueId");
    must(ncclGroupStart(), "ncclGroupStart");
    must(ncclCommInitRank(&comms[3], 1, id, 0), "ncclCommInitRank");
    must(ncclGroupEnd(), "ncclGroupEnd");
}

__attribute__((noinline)) static void join_all(void)
{
    int devices[] = {0, 1};

    must(ncclCommInitAll(&comms[4], 2, devices), "ncclCommInitAll");
}

__attribute__((noinline)) static void *own_buffer(void)
{
    void *buffer = NULL;

    must(ncclMemAlloc(&buffer, 6 * MIB), "ncclMemAlloc");
    return buffer;
}

int main(void)
{
    must(cudaSetDevice(0), "cudaSetDevice");
    own_buffer();
    for (volatile int i = 0; i < 2; i++)
        join(&comms[i]);
    split();
    join_in_group();
    join_all();
    must(ncclCommDestroy(comms[1]), "ncclCommDestroy");
    say("made");
    return 0;
}
