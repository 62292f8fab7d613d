/* hip MILLISECONDS CASE - memory of the HIP runtime's, allocated and freed for so long; for scripts/bench.
 *
 * CASE is `pair`, 4 KiB allocated and freed; `workspace`, what rocBLAS's handle does that is made, grows once
 * and is destroyed; `busy`, as `pair` while another stream has work; or `ordered`, a pair in the order of a
 * stream. Prints nanoseconds of time and of processor time per pair, the vendor's allocations, frees and
 * waits for the device in 1000 pairs, how many there were, and those waits alone. The simulator counts calls
 * if MEMSIM_COUNT is 1. */
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

static void *kept;
static hipStream_t stream;

/* One round; each returns how many blocks there were. */
static int workspace(void)
{
    static const size_t sizes[] = {32 * MIB, 80 * MIB};
    void *p;

    for (int i = 0; i < 2; i++) {
        must(hipMalloc(&p, sizes[i]));
        must(hipFree(p));
    }
    return 2;
}

static int pair(void)
{
    void *p;

    must(hipMalloc(&p, 4096));
    must(hipFree(p));
    return 1;
}

static int busy(void)
{
    must(hipMemsetAsync(kept, 0, 4096, stream));
    return pair();
}

static int ordered(void)
{
    void *p;

    must(hipMallocAsync(&p, 4096, stream));
    must(hipFreeAsync(p, stream));
    return 1;
}

static const struct {
    const char *name;
    int (*turn)(void);
} cases[] = {{"pair", pair}, {"workspace", workspace}, {"busy", busy}, {"ordered", ordered}};

static long long (*counted)(const char *);

static long long count_of(const char *const *names)
{
    long long calls = 0;

    for (; *names; names++)
        calls += counted(*names);
    return calls;
}

/* The vendor's own free waits for the device. */
static long long waits(void)
{
    static const char *const names[] = {"hipFree", "hipDeviceSynchronize", NULL};

    return count_of(names);
}

static long long vendor_calls(void)
{
    static const char *const names[] = {"hipMalloc",
                                        "hipFree",
                                        "hipMallocAsync",
                                        "hipMallocFromPoolAsync",
                                        "hipFreeAsync",
                                        "hipDeviceSynchronize",
                                        NULL};

    return count_of(names);
}

int main(int argc, char **argv)
{
    double end, cpu, begin, milliseconds = argc > 1 ? atof(argv[1]) : 60;
    int (*turn)(void) = pair;
    long long pairs = 0, calls, waited;

    counted = (long long (*)(const char *))dlsym(dlopen("libamdhip64.so.6", RTLD_NOW), "memsim_count");
    for (unsigned i = 0; i < sizeof cases / sizeof *cases && argc > 2; i++)
        turn = strcmp(argv[2], cases[i].name) ? turn : cases[i].turn;
    must(hipMalloc(&kept, 4096)); /* as something does in any program */
    must(hipStreamCreateWithFlags(&stream, hipStreamNonBlocking));
    for (int i = 0; i < WARM_UP; i++)
        turn();
    calls = vendor_calls();
    waited = waits();
    begin = now_ns(CLOCK_MONOTONIC);
    cpu = now_ns(CLOCK_PROCESS_CPUTIME_ID);
    do {
        for (int i = 0; i < 16; i++)
            pairs += turn();
        end = now_ns(CLOCK_MONOTONIC);
    } while (end - begin < milliseconds * 1e6);
    cpu = now_ns(CLOCK_PROCESS_CPUTIME_ID) - cpu;
    calls = vendor_calls() - calls;
    waited = waits() - waited;
    printf("%.1f %.1f %.1f %lld %.1f\n", (end - begin) / (double)pairs, cpu / (double)pairs,
           1000.0 * (double)calls / (double)pairs, pairs, 1000.0 * (double)waited / (double)pairs);
    must(hipFree(kept));
    return 0;
}
