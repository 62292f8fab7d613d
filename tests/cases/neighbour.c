/* neighbour TIMES: so often 7 GiB are allocated, freed and waited for; then another process takes 64 MiB,
 * this one waits once more, and the other wants 6 GiB of the device of 8. Its statuses are printed. */
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "vendor/abi/cuda_runtime_fn.h"
#include "tests/cases/case.h"

static int to_other[2], to_first[2];

static void tell(const int *pipe_ends)
{
    if (write(pipe_ends[1], "x", 1) != 1)
        _exit(5);
}

static void hear(const int *pipe_ends)
{
    char byte;

    if (read(pipe_ends[0], &byte, 1) != 1)
        _exit(6);
}

static void other(void)
{
    void *block;

    hear(to_other);
    say("first %d", (int)cudaMalloc(&block, 64 * MIB));
    tell(to_first);
    hear(to_other);
    say("then %d", (int)cudaMalloc(&block, 6144 * MIB));
    _exit(0);
}

int main(int argc, char **argv)
{
    int times = argc > 1 ? atoi(argv[1]) : 1;
    void *block;

    if (pipe(to_other) || pipe(to_first))
        return 2;
    pid_t child = fork();
    if (child < 0)
        return 3;
    if (!child)
        other();
    for (int i = 0; i < times; i++)
        if (cudaMalloc(&block, 7168 * MIB) || cudaFree(block) || cudaDeviceSynchronize())
            return 4;
    tell(to_other);
    hear(to_first);
    usleep(20000); /* who else is there is asked every 10 ms at most */
    cudaDeviceSynchronize();
    tell(to_other);
    waitpid(child, NULL, 0);
    return 0;
}
