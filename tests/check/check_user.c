/* check_user.c - a program that memshim check is asked about: check_user PEAK LEAK GROWTH, in MiB.
 *
 * It holds PEAK MiB at once in the phase "step", in blocks of 1 MiB, frees every other one and takes one of
 * 24 MiB, for which those leave no room; it leaks LEAK blocks of 1 MiB, and keeps GROWTH MiB of what the
 * phase "grow" allocates until its very end. */
#include <stdio.h>
#include <stdlib.h>

#include "include/memshim.h"

int cudaMalloc(void **pointer, size_t bytes);
int cudaFree(void *pointer);

enum { MIB = 1 << 20, BLOCKS_MAX = 1024, LARGE = 24 };

static void *blocks[BLOCKS_MAX], *grown[BLOCKS_MAX];

static void check(int status)
{
    if (status != 0) {
        fprintf(stderr, "no memory\n");
        exit(3);
    }
}

__attribute__((noinline)) static void hold_much(int count)
{
    void *large;

    for (int i = 0; i < count; i++)
        check(cudaMalloc(&blocks[i], MIB));
    for (int i = 0; i < count; i += 2)
        cudaFree(blocks[i]);
    check(cudaMalloc(&large, (size_t)LARGE * MIB));
    cudaFree(large);
    for (int i = 1; i < count; i += 2)
        cudaFree(blocks[i]);
}

__attribute__((noinline)) static void leak_some(int count)
{
    void *leaked;

    while (count-- > 0)
        check(cudaMalloc(&leaked, MIB));
}

__attribute__((noinline)) static void grow_by(int count)
{
    for (int i = 0; i < count; i++)
        check(cudaMalloc(&grown[i], MIB));
}

int main(int argc, char **argv)
{
    int peak = argc == 4 ? atoi(argv[1]) : -1, leak = argc == 4 ? atoi(argv[2]) : -1;
    int growth = argc == 4 ? atoi(argv[3]) : -1;
    void *first;

    if (peak < 0 || peak > BLOCKS_MAX || leak < 0 || growth < 0 || growth > BLOCKS_MAX)
        return 2;
    check(cudaMalloc(&first, MIB)); /* phases are told of devices that are in use when they begin */
    check(cudaFree(first));
    MEMSHIM_PHASE_PUSH("step");
    hold_much(peak);
    MEMSHIM_PHASE_POP();
    MEMSHIM_PHASE_PUSH("grow");
    grow_by(growth);
    MEMSHIM_PHASE_POP();
    leak_some(leak);
    for (int i = 0; i < growth; i++)
        cudaFree(grown[i]);
    return 0;
}
