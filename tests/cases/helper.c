/* helper NUMBER: one helper allocates for all. With 1 what kv() asks for is lost; with 2 what weights() asks
 * for is, too, which is much more. With 3 kv() is called by another line as well. */
#include <stdlib.h>

#include "vendor/abi/cuda_runtime_fn.h"
#include "tests/cases/case.h"

__attribute__((noinline)) static void *alloc(size_t bytes)
{
    void *block;

    if (cudaMalloc(&block, bytes))
        exit(3);
    __asm__ volatile("" : "+r"(block)); /* no tail call: the caller's line is to be told */
    return block;
}

__attribute__((noinline)) static void *kv(void)
{
    void *block = alloc(MIB / 2);

    __asm__ volatile("" : "+r"(block));
    return block;
}

__attribute__((noinline)) static void *weights(void)
{
    void *block = alloc(256 * MIB);

    __asm__ volatile("" : "+r"(block));
    return block;
}

int main(int argc, char **argv)
{
    int number = argc > 1 ? atoi(argv[1]) : 1;
    volatile int times = 2; /* a loop that is unrolled has several lines of code for one */

    for (int i = 0; i < times; i++) {
        kv();
        if (number == 2)
            weights();
        if (number == 3)
            kv();
    }
    say("blocks %d", number > 1 ? 4 : 2);
    return 0;
}
