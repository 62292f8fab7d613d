/* asked ROUNDS: each round takes 800 MiB, frees it and waits, as a training step does; prints how often the
 * driver was asked what is left of the device. */
#include <stdlib.h>

#include "vendor/abi/cuda_runtime_fn.h"
#include "tests/cases/case.h"

int main(int argc, char **argv)
{
    int rounds = argc > 1 ? atoi(argv[1]) : 200;

    for (int round = 0; round < rounds; round++) {
        void *blocks[4];

        for (int i = 0; i < 4; i++)
            if (cudaMalloc(&blocks[i], 200 * MIB))
                return 2;
        for (int i = 0; i < 4; i++)
            if (cudaFree(blocks[i]))
                return 3;
        if (cudaDeviceSynchronize())
            return 4;
    }
    say("asked %lld kept %lld", counted("cuMemGetInfo_v2"), used_mib());
    return 0;
}
