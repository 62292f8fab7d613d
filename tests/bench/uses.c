/* uses MILLISECONDS CASE - what MEMSHIM_USES looks at, done for so long; for scripts/bench.
 *
 * CASE is `block`, 4 KiB allocated and freed; `fill`, 4 KiB filled in a stream; `launch`, a kernel with three
 * arguments; or `step`, a block that is filled, given to four kernels and freed. Prints nanoseconds of time,
 * of processor time and of the calling thread's for each round, and how many there were: the device of the
 * simulator is a thread of its own. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "vendor/abi/cuda_runtime_fn.h"
#include "tests/sim/kernels.h"

enum { BYTES = 4096, KERNELS = 4, AT_ONCE = 64 };

static const char fill_stub;
static void *kept;

static void must(cudaError_t status)
{
    if (status == cudaSuccess)
        return;
    fprintf(stderr, "uses: status %d\n", (int)status);
    exit(1);
}

static double now_ns(clockid_t clock)
{
    struct timespec now;

    clock_gettime(clock, &now);
    return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

/* As a compiled program registers its kernels. */
static void load_kernels(void)
{
    static struct {
        int magic, version;
        const void *data, *file;
    } wrapper = {0x466243b1, 1, kernels_ptx, NULL};
    void **handle = __cudaRegisterFatBinary(&wrapper);

    __cudaRegisterFunction(handle, &fill_stub, NULL, "memsim_fill", -1, NULL, NULL, NULL, NULL, NULL);
    __cudaRegisterFatBinaryEnd(handle);
}

static void launch_on(void *memory)
{
    unsigned long long words = (uintptr_t)memory, count = 1;
    unsigned value = 7;
    struct dim3 one = {1, 1, 1};

    must(cudaLaunchKernel(&fill_stub, one, one, (void *[]){&words, &value, &count}, 0, NULL));
}

static void block(void)
{
    void *memory;

    must(cudaMalloc(&memory, BYTES));
    must(cudaFree(memory));
}

static void fill(void)
{
    must(cudaMemsetAsync(kept, 0, BYTES, NULL));
}

static void launch(void)
{
    launch_on(kept);
}

static void step(void)
{
    void *memory;

    must(cudaMallocAsync(&memory, BYTES, NULL));
    must(cudaMemsetAsync(memory, 0, BYTES, NULL));
    for (int i = 0; i < KERNELS; i++)
        launch_on(memory);
    must(cudaFreeAsync(memory, NULL));
}

static const struct {
    const char *name;
    void (*play)(void);
} cases[] = {{"block", block}, {"fill", fill}, {"launch", launch}, {"step", step}};

int main(int argc, char **argv)
{
    double begin, end, cpu, caller = 0, from, milliseconds = argc > 1 ? atof(argv[1]) : 60;
    void (*play)(void) = block;
    long long rounds = 0;

    for (size_t i = 0; argc > 2 && i < sizeof cases / sizeof *cases; i++)
        play = strcmp(argv[2], cases[i].name) ? play : cases[i].play;
    load_kernels();
    must(cudaMalloc(&kept, BYTES));
    for (int i = 0; i < AT_ONCE; i++)
        play();
    must(cudaDeviceSynchronize());
    begin = now_ns(CLOCK_MONOTONIC);
    cpu = now_ns(CLOCK_PROCESS_CPUTIME_ID);
    do {
        from = now_ns(CLOCK_THREAD_CPUTIME_ID);
        for (int i = 0; i < AT_ONCE; i++, rounds++)
            play();
        caller += now_ns(CLOCK_THREAD_CPUTIME_ID) - from;
        must(cudaDeviceSynchronize());
        end = now_ns(CLOCK_MONOTONIC);
    } while (end - begin < milliseconds * 1e6);
    cpu = now_ns(CLOCK_PROCESS_CPUTIME_ID) - cpu;
    printf("%.1f %.1f %.1f %lld\n", (end - begin) / (double)rounds, cpu / (double)rounds,
           caller / (double)rounds, rounds);
    must(cudaFree(kept));
    return 0;
}
