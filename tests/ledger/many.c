/*
 * Takes many blocks and keeps them.
 *
 * Usage: many COUNT [MILLISECONDS [all]]: COUNT blocks of 512 bytes from 100 call sites of three frames each;
 * then "done" on standard output. With MILLISECONDS it waits for so long after that, to be killed; with `all`
 * it goes on where there is no memory.
 */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "vendor/abi/cuda_driver.h"
#include "vendor/abi/cuda_driver_fn.h"

static int goes_on;

static void take(void)
{
    CUdeviceptr block;

    if (cuMemAlloc_v2(&block, 512) != CUDA_SUCCESS && !goes_on) {
        fprintf(stderr, "many: out of memory\n");
        exit(1);
    }
}

#define SITE(n)                                                                                              \
    case n:                                                                                                  \
        take();                                                                                              \
        __asm__ volatile("");                                                                                \
        break;
#define SITES(n)                                                                                             \
    SITE(n)                                                                                                  \
    SITE(n + 1)                                                                                              \
    SITE(n + 2) SITE(n + 3) SITE(n + 4) SITE(n + 5) SITE(n + 6) SITE(n + 7) SITE(n + 8) SITE(n + 9)

static __attribute__((noinline)) void take_at(long site)
{
    switch (site) {
        SITES(0) SITES(10) SITES(20) SITES(30) SITES(40) SITES(50) SITES(60) SITES(70) SITES(80) SITES(90)
    }
}

int main(int argc, char **argv)
{
    long count = argc > 1 ? atol(argv[1]) : 0;
    CUcontext context;

    if (cuInit(0) != CUDA_SUCCESS || cuDevicePrimaryCtxRetain(&context, 0) != CUDA_SUCCESS ||
        cuCtxSetCurrent(context) != CUDA_SUCCESS)
        return 1;
    goes_on = argc > 3;
    for (long i = 0; i < count; i++)
        take_at(i % 100);
    puts("done");
    fflush(stdout);
    if (argc > 2)
        usleep((useconds_t)atol(argv[2]) * 1000);
    return 0;
}
