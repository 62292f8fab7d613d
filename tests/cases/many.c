/* many COUNT BYTES: so many blocks stay; how many there were, and what the device has given. */
#include <stdlib.h>

#include "vendor/abi/cuda_runtime_fn.h"
#include "tests/cases/case.h"

int main(int argc, char **argv)
{
    int count = argc > 1 ? atoi(argv[1]) : 1, made = 0;
    size_t bytes = argc > 2 ? strtoul(argv[2], NULL, 10) : 1000;
    void *block;

    while (made < count && !cudaMalloc(&block, bytes))
        made++;
    say("blocks %d given %lld", made, used_mib());
    return 0;
}
