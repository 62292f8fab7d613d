/*
 * What following costs: nanoseconds per allocation and free, through the exported functions, in as many
 * threads as asked for. Run by scripts/bench with and without memshim before it; on the simulated GPU, whose
 * vendor calls cost nothing beyond their bookkeeping, so that the difference is memshim's own.
 *
 * Usage: follow API THREADS MILLISECONDS, where API is cudaMalloc, cudaMallocAsync or cuMemAlloc. Prints one
 * line, "API THREADS PAIRS NS CPU_NS": the time all threads took together, divided by the pairs they made
 * together, by the clock on the wall and in processor time, which does not count what else the machine was
 * doing.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "gpu/abi/cuda_driver.h"
#include "gpu/abi/cuda_driver_fn.h"
#include "gpu/abi/cuda_runtime.h"
#include "gpu/abi/cuda_runtime_fn.h"

enum { MAX_THREADS = 64, CALL_DEPTH = 12, PAIRS_PER_LOOK = 256, BYTES = 4096 };

struct bench {
    const char *name;
    int (*pair)(cudaStream_t stream); /* 0 if both calls succeeded */
};

static const struct bench *chosen;
static pthread_barrier_t begin;
static atomic_bool stop;

static int pair_malloc(cudaStream_t stream)
{
    void *block = NULL;

    (void)stream;
    return cudaMalloc(&block, BYTES) != cudaSuccess || cudaFree(block) != cudaSuccess;
}

static int pair_malloc_async(cudaStream_t stream)
{
    void *block = NULL;

    return cudaMallocAsync(&block, BYTES, stream) != cudaSuccess ||
           cudaFreeAsync(block, stream) != cudaSuccess;
}

static int pair_driver(cudaStream_t stream)
{
    CUdeviceptr block = 0;

    (void)stream;
    return cuMemAlloc_v2(&block, BYTES) != CUDA_SUCCESS || cuMemFree_v2(block) != CUDA_SUCCESS;
}

static const struct bench benches[] = {
    {"cudaMalloc", pair_malloc},
    {"cudaMallocAsync", pair_malloc_async},
    {"cuMemAlloc", pair_driver},
};

static uint64_t now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static uint64_t cpu_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static void die(const char *what)
{
    fprintf(stderr, "follow: %s\n", what);
    exit(1);
}

/* Programs allocate from some way down; the stack walk has to climb all of it. */
__attribute__((noinline)) static uint64_t descend(int depth, cudaStream_t stream)
{
    uint64_t pairs = 0;

    if (depth > 0) {
        pairs = descend(depth - 1, stream);
        __asm__ volatile("" ::: "memory"); /* not a tail call */
        return pairs;
    }
    while (!atomic_load_explicit(&stop, memory_order_relaxed)) {
        for (int i = 0; i < PAIRS_PER_LOOK; i++)
            if (chosen->pair(stream) != 0)
                die("a call failed");
        /* Or the host would run ever further ahead of the stream, and its queue would be what is measured. */
        if (cudaStreamSynchronize(stream) != cudaSuccess)
            die("the stream failed");
        pairs += PAIRS_PER_LOOK;
    }
    return pairs;
}

/* Something stays allocated, as in any program: nobody gives the last memory back and takes it again with
 * every pair. */
static void *worker(void *pairs_p)
{
    cudaStream_t stream = NULL;
    void *stays;

    if (cudaSetDevice(0) != cudaSuccess ||
        cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking) != cudaSuccess ||
        cudaMalloc(&stays, BYTES) != cudaSuccess || cudaMallocAsync(&stays, BYTES, stream) != cudaSuccess ||
        chosen->pair(stream) != 0)
        die("the simulated GPU does not answer");
    pthread_barrier_wait(&begin);
    *(uint64_t *)pairs_p = descend(CALL_DEPTH, stream);
    return NULL;
}

static void measure(int threads, long milliseconds)
{
    struct timespec wait = {.tv_sec = milliseconds / 1000, .tv_nsec = milliseconds % 1000 * 1000000};
    pthread_t thread[MAX_THREADS];
    uint64_t pairs[MAX_THREADS] = {0}, all = 0, start, cpu_start;

    pthread_barrier_init(&begin, NULL, (unsigned)threads + 1);
    for (int i = 0; i < threads; i++)
        if (pthread_create(&thread[i], NULL, worker, &pairs[i]) != 0)
            die("no more threads");
    pthread_barrier_wait(&begin);
    start = now_ns();
    cpu_start = cpu_ns();
    nanosleep(&wait, NULL);
    atomic_store(&stop, true);
    for (int i = 0; i < threads; i++) {
        pthread_join(thread[i], NULL);
        all += pairs[i];
    }
    printf("%s %d %llu %.1f %.1f\n", chosen->name, threads, (unsigned long long)all,
           (double)(now_ns() - start) / (double)all, (double)(cpu_ns() - cpu_start) / (double)all);
}

int main(int argc, char **argv)
{
    int threads = argc == 4 ? atoi(argv[2]) : 0;
    long milliseconds = argc == 4 ? atol(argv[3]) : 0;

    for (size_t i = 0; argc == 4 && i < sizeof benches / sizeof *benches; i++)
        if (strcmp(argv[1], benches[i].name) == 0)
            chosen = &benches[i];
    if (!chosen || threads < 1 || threads > MAX_THREADS || milliseconds < 1) {
        fprintf(stderr, "usage: follow cudaMalloc|cudaMallocAsync|cuMemAlloc THREADS MILLISECONDS\n");
        return 2;
    }
    measure(threads, milliseconds);
    return 0;
}
