/* many_blocks.c - 4000 blocks of 64 KiB, ten of 2 MiB, and one that is larger than any device; all from below
 * functions without frame pointers. Run on the simulated GPU by modes.sh. */
#include <stdio.h>

#include "vendor/abi/cuda_runtime_fn.h"
#include "tests/stack/snap.h"

static int failures;

static MS_NOINLINE void allocate(size_t bytes, int count)
{
    for (int i = 0; i < count; i++) {
        void *block = NULL;
        failures += cudaMalloc(&block, bytes) != cudaSuccess;
    }
}

static void small(void *arg)
{
    allocate(64 << 10, *(int *)arg);
    __asm__ volatile("" ::: "memory");
}

static void large(void *arg)
{
    allocate(2 << 20, *(int *)arg);
    __asm__ volatile("" ::: "memory");
}

static void impossible(void *arg)
{
    allocate((size_t)1 << 50, *(int *)arg);
    __asm__ volatile("" ::: "memory");
}

int main(void)
{
    frames_call(12, FRAMES_SHAPES, small, &(int){4000});
    frames_call(12, FRAMES_SHAPES, large, &(int){10});
    frames_call(12, FRAMES_SHAPES, impossible, &(int){1});
    printf("failures %d\n", failures);
    return 0;
}
