/* reset_free WAY: the driver ends the context that the runtime uses (0: resets it, 1: releases it, 2: resets
 * it and leaves none current), and blocks of all kinds are freed after. Prints each status; the runtime goes
 * on with the dead context, whoever answers. */
#include <stdint.h>
#include <stdlib.h>

#include "vendor/abi/cuda_driver_fn.h"
#include "vendor/abi/cuda_runtime_fn.h"
#include "tests/cases/case.h"

static void *blocks[4]; /* of cudaMalloc, of the default stream, of another one, of that one and small */

static void give_back(void)
{
    for (int i = 0; i < 4; i++) {
        say("free %d %d", i, (int)cudaFree(blocks[i]));
        say("again %d %d", i, (int)cudaFree(blocks[i]));
        say("in order %d %d", i, (int)cudaFreeAsync(blocks[i], NULL));
        say("driver %d %d", i, (int)cuMemFree_v2((CUdeviceptr)(uintptr_t)blocks[i]));
    }
    say("error %d", (int)cudaGetLastError());
}

int main(int argc, char **argv)
{
    int way = argc > 1 ? atoi(argv[1]) : 0;
    cudaStream_t stream;
    void *more;

    if (cudaStreamCreate(&stream) || cudaMalloc(&blocks[0], 5 * MIB) ||
        cudaMallocAsync(&blocks[1], 10 * MIB, NULL) || cudaMallocAsync(&blocks[2], 3 * MIB, stream) ||
        cudaMallocAsync(&blocks[3], 1000, stream) || cudaDeviceSynchronize())
        return 2;
    say("ended %d", (int)(way == 1 ? cuDevicePrimaryCtxRelease_v2(0) : cuDevicePrimaryCtxReset_v2(0)));
    if (way == 2)
        say("none %d", (int)cuCtxSetCurrent(NULL));
    give_back();
    say("more %d", (int)cudaMalloc(&more, MIB));
    return 0;
}
