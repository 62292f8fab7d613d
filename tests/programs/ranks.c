/* ranks.c - a job of four ranks, one device each, that train together over NCCL; rank 0 also evaluates, and
 * keeps what it evaluated by mistake. The first process starts the ranks by executing itself, as a launcher
 * would. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "vendor/abi/cuda_runtime_fn.h"
#include "vendor/abi/nccl_fn.h"

enum { RANKS = 4, MIB = 1 << 20 };

#define CHECK(call)                                                                                          \
    do {                                                                                                     \
        int status_ = (int)(call);                                                                           \
        if (status_) {                                                                                       \
            fprintf(stderr, "%s: %d\n", #call, status_);                                                     \
            exit(1);                                                                                         \
        }                                                                                                    \
    } while (0)

__attribute__((noinline)) static void *load_weights(void)
{
    void *weights = NULL;

    CHECK(cudaMalloc(&weights, 192 * MIB));
    CHECK(cudaMemset(weights, 0, 192 * MIB));
    return weights;
}

__attribute__((noinline)) static void train_step(void *weights, ncclComm_t comm)
{
    void *activations = NULL;

    CHECK(cudaMalloc(&activations, 96 * MIB));
    CHECK(ncclAllReduce(weights, weights, MIB, ncclFloat, ncclSum, comm, NULL));
    CHECK(cudaDeviceSynchronize());
    CHECK(cudaFree(activations));
}

__attribute__((noinline)) static void evaluate(void)
{
    void *results = NULL;

    CHECK(cudaMalloc(&results, 24 * MIB));
    CHECK(cudaMemset(results, 0, 24 * MIB));
}

static void be_rank(int rank, const char *text)
{
    ncclUniqueId id;
    ncclComm_t comm;

    for (size_t i = 0; i < sizeof id; i++) {
        unsigned byte = 0;
        sscanf(text + 2 * i, "%2x", &byte);
        ((char *)&id)[i] = (char)byte;
    }
    CHECK(cudaSetDevice(rank));
    void *weights = load_weights();
    CHECK(ncclCommInitRank(&comm, RANKS, id, rank));
    for (int step = 0; step < 3; step++) {
        train_step(weights, comm);
        if (rank == 0)
            evaluate();
    }
    CHECK(ncclCommDestroy(comm));
    CHECK(cudaFree(weights));
}

static int launch(const char *program)
{
    ncclUniqueId id;
    char text[2 * sizeof id + 1], number[16];
    int failed = 0;

    CHECK(ncclGetUniqueId(&id));
    for (size_t i = 0; i < sizeof id; i++)
        snprintf(text + 2 * i, 3, "%02x", ((unsigned char *)&id)[i]);
    for (int rank = 0; rank < RANKS; rank++) {
        snprintf(number, sizeof number, "%d", rank);
        if (fork() == 0) {
            setenv("RANK", number, 1);
            setenv("WORLD_SIZE", "4", 1);
            setenv("RANKS_ID", text, 1);
            execl(program, program, (char *)NULL);
            _exit(127);
        }
    }
    for (int i = 0; i < RANKS; i++) {
        int status = 0;
        wait(&status);
        failed |= status;
    }
    return failed != 0;
}

int main(int argc, char **argv)
{
    const char *rank = getenv("RANK"), *id = getenv("RANKS_ID");

    (void)argc;
    if (!rank || !id)
        return launch(argv[0]);
    be_rank(atoi(rank), id);
    return 0;
}
