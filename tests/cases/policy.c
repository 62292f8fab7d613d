/* policy sizes: blocks are taken and freed in rounds, each of other sizes than the one before.
 * policy pending [late]: as much again is taken while the device still uses what was freed. That ends when
 * all of it is there, or, late, by itself. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "vendor/abi/cuda_runtime_fn.h"
#include "tests/cases/case.h"

enum { ROUNDS = 6, BLOCKS = 8 };

static atomic_bool over;

static int sizes(void)
{
    void *blocks[BLOCKS];

    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < BLOCKS; i++)
            if (cudaMalloc(&blocks[i], (size_t)(20 + 13 * round + 7 * i) * MIB / (1 + (size_t)round % 2)))
                return 2;
        for (int i = 0; i < BLOCKS; i++)
            if (cudaFree(blocks[i]))
                return 3;
    }
    return 0;
}

static void work(void *unused)
{
    (void)unused;
    while (!atomic_load(&over))
        usleep(1000);
}

static void *end_work(void *unused)
{
    usleep(100000);
    atomic_store(&over, true);
    return unused;
}

static int pending(bool late)
{
    pthread_t ender;
    void *block;

    for (int half = 0; half < 2; half++) {
        void *blocks[BLOCKS];

        for (int i = 0; i < BLOCKS; i++)
            if (cudaMalloc(&blocks[i], 40 * MIB))
                return 2;
        if (!half &&
            (cudaLaunchHostFunc(NULL, work, NULL) || (late && pthread_create(&ender, NULL, end_work, NULL))))
            return 3;
        for (int i = 0; i < BLOCKS; i++)
            if (cudaFree(blocks[i]))
                return 4;
    }
    atomic_store(&over, true);
    return (late && pthread_join(ender, NULL)) || cudaMalloc(&block, MIB) || cudaDeviceSynchronize();
}

int main(int argc, char **argv)
{
    return argc > 1 && !strcmp(argv[1], "pending") ? pending(argc > 2) : sizes();
}
