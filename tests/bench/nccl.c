/* nccl MILLISECONDS CASE - buffers had and given back for so long, as systems do it; for scripts/bench.
 *
 * CASE is `buffer`, an ncclMemAlloc of 20 MiB that is filled and freed; `tvm`, the three allocations of one
 * of TVM's buffers, exported, and the two temporary ones for each exchange of handles; or `autotune`, a
 * cudaMalloc work area of 24 MiB, give or take what a grid pads, cleared and freed. Prints nanoseconds of
 * time and of processor time for each allocation, the calls of the driver's that make or free memory for 1000
 * of them, and how many there were. The simulator counts calls if MEMSIM_COUNT is 1. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "vendor/abi/cuda_runtime_fn.h"
#include "vendor/abi/nccl_fn.h"

#define BUFFER_BYTES (20UL << 20)
enum { WARM_UP = 16, HANDLE_BYTES = 64, WORKERS = 8 };

static void must(int status)
{
    if (status == 0)
        return;
    fprintf(stderr, "nccl: status %d\n", status);
    exit(1);
}

static double now_ns(clockid_t clock)
{
    struct timespec now;

    clock_gettime(clock, &now);
    return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

/* Each gives how many allocations it made. */
static int buffer(void)
{
    void *p;

    must((int)ncclMemAlloc(&p, BUFFER_BYTES));
    must((int)cudaMemset(p, 1, 4096));
    must((int)cudaDeviceSynchronize());
    must((int)ncclMemFree(p));
    return 1;
}

static int tvm(void)
{
    static const size_t bytes[3] = {1 << 20, 4096, 4096};
    cudaIpcMemHandle_t handle;
    void *p[3], *from, *to;

    for (int i = 0; i < 3; i++) {
        must((int)cudaMalloc(&p[i], bytes[i]));
        must((int)cudaIpcGetMemHandle(&handle, p[i]));
        must((int)cudaMalloc(&from, HANDLE_BYTES) | (int)cudaMalloc(&to, HANDLE_BYTES * WORKERS));
        must((int)cudaMemcpy(from, &handle, HANDLE_BYTES, cudaMemcpyHostToDevice));
        must((int)cudaFree(from) | (int)cudaFree(to));
    }
    for (int i = 0; i < 3; i++)
        must((int)cudaFree(p[i]));
    return 9;
}

static int autotune(void)
{
    static const size_t kibibytes[3] = {24000, 25000, 24500};

    for (int i = 0; i < 3; i++) {
        void *p;

        must((int)cudaMalloc(&p, kibibytes[i] << 10));
        must((int)cudaMemset(p, 0, 4096));
        must((int)cudaDeviceSynchronize());
        must((int)cudaFree(p));
    }
    return 3;
}

static long long calls(void)
{
    static const char *const names[] = {"cuMemAlloc_v2", "cuMemFree_v2", "cuMemCreate", "cuMemRelease",
                                        "cuMemFreeAsync"};
    static long long (*counted)(const char *);
    long long sum = 0;

    if (!counted)
        *(void **)&counted = dlsym(dlopen("libcuda.so.1", RTLD_NOW), "memsim_count");
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        sum += counted(names[i]);
    return sum;
}

int main(int argc, char **argv)
{
    double end, cpu, begin, milliseconds = argc > 1 ? atof(argv[1]) : 60;
    int (*turn)(void) = argc > 2 && !strcmp(argv[2], "tvm")        ? tvm
                        : argc > 2 && !strcmp(argv[2], "autotune") ? autotune
                                                                   : buffer;
    long long made = 0, before;

    must((int)cudaSetDevice(0));
    for (int i = 0; i < WARM_UP; i++)
        turn();
    before = calls();
    begin = now_ns(CLOCK_MONOTONIC);
    cpu = now_ns(CLOCK_PROCESS_CPUTIME_ID);
    do {
        made += turn();
        end = now_ns(CLOCK_MONOTONIC);
    } while (end - begin < milliseconds * 1e6);
    cpu = now_ns(CLOCK_PROCESS_CPUTIME_ID) - cpu;
    printf("%.1f %.1f %.1f %lld\n", (end - begin) / (double)made, cpu / (double)made,
           1000.0 * (double)(calls() - before) / (double)made, made);
    return 0;
}
