/* hip MILLISECONDS CASE - memory of the HIP runtime's, allocated and freed for so long; for scripts/bench.
 *
 * CASE is `pair`, 4 KiB allocated and freed, or `workspace`, what rocBLAS's handle does that is made, grows
 * once and is destroyed. Prints nanoseconds of time and of processor time per pair, the vendor's allocations
 * and frees in 1000 pairs, and how many there were. The simulator counts calls if MEMSIM_COUNT is 1. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "vendor/abi/hip.h"
#include "vendor/abi/hip_fn.h"

#define MIB ((size_t)1 << 20)
enum { WARM_UP = 64 };

static void must(hipError_t status)
{
    if (status == hipSuccess)
        return;
    fprintf(stderr, "hip: status %d\n", status);
    exit(1);
}

static double now_ns(clockid_t clock)
{
    struct timespec now;

    clock_gettime(clock, &now);
    return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

/* One round; returns how many blocks there were. */
static int turn(int workspace)
{
    static const size_t sizes[] = {32 * MIB, 80 * MIB};
    void *p;

    for (int i = 0; i < 2 && workspace; i++) {
        must(hipMalloc(&p, sizes[i]));
        must(hipFree(p));
    }
    if (workspace)
        return 2;
    must(hipMalloc(&p, 4096));
    must(hipFree(p));
    return 1;
}

int main(int argc, char **argv)
{
    long long (*counted)(const char *) =
        (long long (*)(const char *))dlsym(dlopen("libamdhip64.so.6", RTLD_NOW), "memsim_count");
    double end, cpu, begin, milliseconds = argc > 1 ? atof(argv[1]) : 60;
    int workspace = argc > 2 && !strcmp(argv[2], "workspace");
    long long pairs = 0, calls;
    void *kept;

    must(hipMalloc(&kept, 4096)); /* as something does in any program */
    for (int i = 0; i < WARM_UP; i++)
        turn(workspace);
    calls = counted("hipMalloc") + counted("hipFree");
    begin = now_ns(CLOCK_MONOTONIC);
    cpu = now_ns(CLOCK_PROCESS_CPUTIME_ID);
    do {
        for (int i = 0; i < 16; i++)
            pairs += turn(workspace);
        end = now_ns(CLOCK_MONOTONIC);
    } while (end - begin < milliseconds * 1e6);
    cpu = now_ns(CLOCK_PROCESS_CPUTIME_ID) - cpu;
    calls = counted("hipMalloc") + counted("hipFree") - calls;
    printf("%.1f %.1f %.1f %lld\n", (end - begin) / (double)pairs, cpu / (double)pairs,
           1000.0 * (double)calls / (double)pairs, pairs);
    must(hipFree(kept));
    return 0;
}
