/* communicators.c - a program with several of NCCL's communicators, for which the library takes memory,
 * beside a buffer of NCCL's that the program asks for itself. Says how many bytes are whose. */
#include <pthread.h>
#include <stdint.h>

#include "vendor/abi/cuda_runtime_fn.h"
#include "vendor/abi/nccl_fn.h"
#include "vendor/abi/nccl_later.h"
#include "tests/program.h"

#define MIB (UINT64_C(1) << 20)
static ncclComm_t comms[10];

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

/* The first one and a new rank, on another device; in a group, as one thread cannot wait for itself. */
__attribute__((noinline)) static void grow(void)
{
    ncclConfig_t *none = NULL;
    ncclUniqueId id;

    must(ncclCommGetUniqueId(comms[0], &id), "ncclCommGetUniqueId");
    must(ncclGroupStart(), "ncclGroupStart");
    must(ncclCommGrow(comms[0], 2, &id, -1, &comms[6], none), "ncclCommGrow");
    must(cudaSetDevice(1), "cudaSetDevice");
    must(ncclCommGrow(NULL, 2, &id, 1, &comms[7], none), "ncclCommGrow");
    must(ncclGroupEnd(), "ncclGroupEnd");
    must(cudaSetDevice(0), "cudaSetDevice");
}

static ncclUniqueId new_id;

static void *grow_beside(void *unused)
{
    (void)unused;
    must(cudaSetDevice(1), "cudaSetDevice");
    must(ncclCommGrow(NULL, 2, &new_id, 1, &comms[9], NULL), "ncclCommGrow");
    return NULL;
}

/* Two threads, and no group. */
__attribute__((noinline)) static void grow_in_threads(void)
{
    pthread_t beside;

    must(ncclCommGetUniqueId(comms[2], &new_id), "ncclCommGetUniqueId");
    must(pthread_create(&beside, NULL, grow_beside, NULL), "pthread_create");
    must(ncclCommGrow(comms[2], 2, &new_id, -1, &comms[8], NULL), "ncclCommGrow");
    pthread_join(beside, NULL);
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
    grow();
    grow_in_threads();
    must(ncclCommDestroy(comms[1]), "ncclCommDestroy");
    say("made");
    return 0;
}
