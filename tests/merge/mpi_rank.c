/* mpi_rank.c - a rank of an MPI job that holds device memory: mpi_rank OUTLIER.
 *
 * Jobs of 16 ranks and more are pipelines of four stages, each with call sites of its own; ranks of a stage
 * differ a little. The rank OUTLIER has one more, whose memory it never frees. */
#include <mpi.h>
#include <stdlib.h>

int cudaMalloc(void **pointer, size_t bytes);
int cudaFree(void *pointer);

enum { STAGES = 4, STAGED = 16, STEPS = 5, MIB = 1 << 20, PAGE = 4096 };

/* Each is a call site of its own. */
#define HOLDER(name, mib)                                                                                    \
    __attribute__((noinline)) static void name(void **pointer, size_t more)                                  \
    {                                                                                                        \
        if (cudaMalloc(pointer, (size_t)(mib)*MIB + more) != 0)                                              \
            MPI_Abort(MPI_COMM_WORLD, 3);                                                                    \
    }

HOLDER(optimizer, 16)
HOLDER(embed, 8)
HOLDER(attention, 10)
HOLDER(experts, 12)
HOLDER(head, 6)
HOLDER(stray, 3)

int main(int argc, char **argv)
{
    static void (*const stages[STAGES])(void **, size_t) = {embed, attention, experts, head};
    int rank, ranks, token = 0;
    void *weights, *activations, *forgotten;

    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    optimizer(&weights, (size_t)(rank * 37 % 11) * PAGE);
    for (int step = 0; step < STEPS; step++) {
        stages[ranks < STAGED ? 0 : rank * STAGES / ranks](&activations, (size_t)(rank * 7 % 5) * PAGE);
        if (argc > 1 && rank == atoi(argv[1]))
            stray(&forgotten, 0);
        MPI_Allreduce(MPI_IN_PLACE, &token, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
        cudaFree(activations);
    }
    cudaFree(weights);
    MPI_Finalize();
    return 0;
}
