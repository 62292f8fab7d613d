/* kept COUNT MIB [LIVE]: COUNT blocks of MIB each are freed beside one of LIVE MiB that stays; what the
 * device still lacks after a wait is printed. */
#include <stdlib.h>

#include "vendor/abi/cuda_runtime_fn.h"
#include "tests/cases/case.h"

int main(int argc, char **argv)
{
    int count = argc > 1 ? atoi(argv[1]) : 1;
    size_t bytes = (argc > 2 ? (size_t)atoi(argv[2]) : 7000) * MIB;
    void *blocks[64], *live;

    if (count > 64 || (argc > 3 && cudaMalloc(&live, (size_t)atoi(argv[3]) * MIB)))
        return 2;
    for (int i = 0; i < count; i++)
        if (cudaMalloc(&blocks[i], bytes))
            return 3;
    for (int i = 0; i < count; i++)
        if (cudaFree(blocks[i]))
            return 4;
    if (cudaDeviceSynchronize())
        return 5;
    say("taken %lld", used_mib());
    return 0;
}
