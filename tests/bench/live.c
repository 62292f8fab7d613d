/*
 * What following costs with many blocks alive, and what they cost at the end. Run by scripts/bench, see
 * follow.c.
 *
 * Usage: live BLOCKS MILLISECONDS: takes BLOCKS blocks from 10,000 call sites (fewer if there are fewer
 * blocks), then for so long frees one at random and takes another. Prints "PAIRS NS PEAK": pairs, nanoseconds
 * of this thread's processor time per pair, and the process's greatest memory until then in KiB; then returns
 * from main, with the blocks alive.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>

#include "vendor/abi/cuda_driver.h"
#include "vendor/abi/cuda_driver_fn.h"

enum { BYTES = 512, SITES_PER_LEVEL = 100, PAIRS_PER_LOOK = 256 };

static CUdeviceptr *blocks;
static uint64_t random_state = 88172645463325252u;

static uint64_t next_random(void)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return random_state;
}

static void die(const char *what)
{
    fprintf(stderr, "live: %s\n", what);
    exit(1);
}

#define CALL(n, f)                                                                                           \
    case n:                                                                                                  \
        f;                                                                                                   \
        __asm__ volatile("");                                                                                \
        break;
#define CALLS(n, f)                                                                                          \
    CALL(n, f)                                                                                               \
    CALL(n + 1, f)                                                                                           \
    CALL(n + 2, f)                                                                                           \
    CALL(n + 3, f) CALL(n + 4, f) CALL(n + 5, f) CALL(n + 6, f) CALL(n + 7, f) CALL(n + 8, f) CALL(n + 9, f)
#define HUNDRED_CALLS(f)                                                                                     \
    CALLS(0, f)                                                                                              \
    CALLS(10, f)                                                                                             \
    CALLS(20, f) CALLS(30, f) CALLS(40, f) CALLS(50, f) CALLS(60, f) CALLS(70, f) CALLS(80, f) CALLS(90, f)

static void take(CUdeviceptr *block_p)
{
    if (cuMemAlloc_v2(block_p, BYTES) != CUDA_SUCCESS)
        die("an allocation failed");
}

/* Two levels of a hundred calls each make ten thousand stacks. */
static __attribute__((noinline)) void take_inner(CUdeviceptr *block_p, unsigned site)
{
    switch (site) {
        HUNDRED_CALLS(take(block_p))
    }
}

static __attribute__((noinline)) void take_at(CUdeviceptr *block_p, uint64_t site)
{
    switch (site / SITES_PER_LEVEL % SITES_PER_LEVEL) {
        HUNDRED_CALLS(take_inner(block_p, site % SITES_PER_LEVEL))
    }
}

static uint64_t thread_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void churn(uint64_t count, uint64_t milliseconds)
{
    uint64_t start = thread_ns(), now, pairs = 0;
    struct rusage usage;

    do {
        for (int i = 0; i < PAIRS_PER_LOOK; i++) {
            uint64_t chosen = next_random() % count;
            if (cuMemFree_v2(blocks[chosen]) != CUDA_SUCCESS)
                die("a free failed");
            take_at(&blocks[chosen], chosen);
        }
        pairs += PAIRS_PER_LOOK;
        now = thread_ns();
    } while (now - start < milliseconds * 1000000);
    getrusage(RUSAGE_SELF, &usage);
    printf("%llu %.1f %ld\n", (unsigned long long)pairs, (double)(now - start) / (double)pairs,
           usage.ru_maxrss);
}

int main(int argc, char **argv)
{
    uint64_t count = argc == 3 ? strtoull(argv[1], NULL, 10) : 0;
    uint64_t milliseconds = argc == 3 ? strtoull(argv[2], NULL, 10) : 0;
    CUcontext context;

    if (!count || !milliseconds) {
        fprintf(stderr, "usage: live BLOCKS MILLISECONDS\n");
        return 2;
    }
    blocks = calloc(count, sizeof *blocks);
    if (!blocks || cuInit(0) != CUDA_SUCCESS || cuDevicePrimaryCtxRetain(&context, 0) != CUDA_SUCCESS ||
        cuCtxSetCurrent(context) != CUDA_SUCCESS)
        die("the simulated GPU does not answer");
    for (uint64_t i = 0; i < count; i++)
        take_at(&blocks[i], i);
    churn(count, milliseconds);
    return 0;
}
