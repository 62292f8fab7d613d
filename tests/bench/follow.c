/*
 * What following costs: nanoseconds per allocation and free, through the exported functions, in as many
 * threads as asked for. Run by scripts/bench with and without memshim before it; on the simulated GPU, whose
 * vendor calls cost nothing beyond their bookkeeping, so that the difference is memshim's own.
 *
 * Usage: follow API THREADS MILLISECONDS [FRAMES [WALK]], where API is cudaMalloc, cudaMallocAsync or
 * cuMemAlloc. FRAMES is how many functions are on the stack when it is called, the C library's below main or
 * the thread included (16). WALK has the program itself look at its stack before each allocation, all FRAMES
 * of it: unw_backtrace (libunwind.so.8, opened here), backtrace (glibc's) or frame-pointer.
 *
 * Prints one line, "API THREADS PAIRS NS CPU_NS FRAMES": the time all threads took together, divided by the
 * pairs they made together, by the clock on the wall and in processor time, which does not count what else
 * the machine was doing; and how many frames the walk found (without one: 0).
 */
#include <dlfcn.h>
#include <execinfo.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "vendor/abi/cuda_driver.h"
#include "vendor/abi/cuda_driver_fn.h"
#include "vendor/abi/cuda_runtime.h"
#include "vendor/abi/cuda_runtime_fn.h"
#include "tests/bench/chain.h"

enum { MAX_THREADS = 64, FRAMES = 16, FRAMES_MAX = 256, PAIRS_PER_LOOK = 256, BYTES = 4096 };

struct bench {
    const char *name;
    int (*pair)(cudaStream_t stream); /* 0 if both calls succeeded */
};

static const struct bench *chosen;
static pthread_barrier_t begin;
static atomic_bool stop;

static int frames_wanted = FRAMES;
static int (*walk)(void **frames, int max); /* NULL: none */

/* Of this thread. */
static _Thread_local struct {
    cudaStream_t stream;
    uint64_t pairs;
    int frames_at_loop, frames_found;
} self;

/* By frame pointers, which this program is compiled with, as long as they lead upwards by little; what lies
 * below main may not have any. */
static int walk_pointers(void **frames, int max)
{
    void **frame = __builtin_frame_address(0);
    int count = 0;

    while (count < max) {
        void **next = *frame;
        frames[count++] = frame[1];
        if (next <= frame || (char *)next - (char *)frame > 1 << 16)
            break;
        frame = next;
    }
    return count;
}

static inline __attribute__((always_inline)) void look_at_stack(void)
{
    void *frames[FRAMES_MAX];

    if (walk)
        self.frames_found = walk(frames, frames_wanted);
}

static int pair_malloc(cudaStream_t stream)
{
    void *block = NULL;

    look_at_stack();
    (void)stream;
    return cudaMalloc(&block, BYTES) != cudaSuccess || cudaFree(block) != cudaSuccess;
}

static int pair_malloc_async(cudaStream_t stream)
{
    void *block = NULL;

    look_at_stack();
    return cudaMallocAsync(&block, BYTES, stream) != cudaSuccess ||
           cudaFreeAsync(block, stream) != cudaSuccess;
}

static int pair_driver(cudaStream_t stream)
{
    CUdeviceptr block = 0;

    look_at_stack();
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

static void allocate(void)
{
    do {
        for (int i = 0; i < PAIRS_PER_LOOK; i++)
            if (chosen->pair(self.stream) != 0)
                die("a call failed");
        /* Or the host would run ever further ahead of the stream, and its queue would be what is measured. */
        if (cudaStreamSynchronize(self.stream) != cudaSuccess)
            die("the stream failed");
        self.pairs += PAIRS_PER_LOOK;
    } while (!atomic_load_explicit(&stop, memory_order_relaxed));
}

/* What the chain calls: first to be counted. */
static __attribute__((noinline)) void loop(void)
{
    void *frames[FRAMES_MAX];

    if (self.frames_at_loop)
        allocate();
    else
        self.frames_at_loop = backtrace(frames, FRAMES_MAX);
    __asm__ volatile("" ::: "memory"); /* not a tail call */
}

/* Something stays allocated, as in any program: nobody gives the last memory back and takes it again with
 * every pair. */
static void *worker(void *result)
{
    void *stays;

    if (cudaSetDevice(0) != cudaSuccess ||
        cudaStreamCreateWithFlags(&self.stream, cudaStreamNonBlocking) != cudaSuccess ||
        cudaMalloc(&stays, BYTES) != cudaSuccess ||
        cudaMallocAsync(&stays, BYTES, self.stream) != cudaSuccess || chosen->pair(self.stream) != 0)
        die("the simulated GPU does not answer");
    chain_0(0);
    /* One more is the pair's function. */
    if (frames_wanted <= self.frames_at_loop)
        die("so few frames cannot be had");
    pthread_barrier_wait(&begin);
    chain_0((unsigned)(frames_wanted - self.frames_at_loop - 1));
    memcpy(result, &self, sizeof self);
    return NULL;
}

static void measure(int threads, long milliseconds)
{
    struct timespec wait = {.tv_sec = milliseconds / 1000, .tv_nsec = milliseconds % 1000 * 1000000};
    pthread_t thread[MAX_THREADS];
    __typeof__(self) results[MAX_THREADS];
    uint64_t all = 0, start, cpu_start;

    pthread_barrier_init(&begin, NULL, (unsigned)threads + 1);
    for (int i = 0; i < threads; i++)
        if (pthread_create(&thread[i], NULL, worker, &results[i]) != 0)
            die("no more threads");
    pthread_barrier_wait(&begin);
    start = now_ns();
    cpu_start = cpu_ns();
    nanosleep(&wait, NULL);
    atomic_store(&stop, true);
    for (int i = 0; i < threads; i++) {
        pthread_join(thread[i], NULL);
        all += results[i].pairs;
    }
    printf("%s %d %llu %.1f %.1f %d\n", chosen->name, threads, (unsigned long long)all,
           (double)(now_ns() - start) / (double)all, (double)(cpu_ns() - cpu_start) / (double)all,
           results[0].frames_found);
}

static void choose_walk(const char *name)
{
    if (strcmp(name, "frame-pointer") == 0) {
        walk = walk_pointers;
    } else if (strcmp(name, "backtrace") == 0) {
        walk = backtrace;
    } else if (strcmp(name, "unw_backtrace") == 0) {
        void *library = dlopen("libunwind.so.8", RTLD_NOW | RTLD_LOCAL);
        walk = library ? (int (*)(void **, int))dlsym(library, "unw_backtrace") : NULL;
        if (!walk)
            die("there is no packaged libunwind (Debian: libunwind8)");
    } else {
        die("there is no such walk");
    }
}

int main(int argc, char **argv)
{
    int threads = argc >= 4 ? atoi(argv[2]) : 0;
    long milliseconds = argc >= 4 ? atol(argv[3]) : 0;

    chain_last = loop;
    for (size_t i = 0; argc >= 4 && i < sizeof benches / sizeof *benches; i++)
        if (strcmp(argv[1], benches[i].name) == 0)
            chosen = &benches[i];
    if (argc >= 5)
        frames_wanted = atoi(argv[4]);
    if (argc >= 6)
        choose_walk(argv[5]);
    if (!chosen || argc > 6 || threads < 1 || threads > MAX_THREADS || milliseconds < 1 ||
        frames_wanted < 1 || frames_wanted > FRAMES_MAX) {
        fprintf(stderr,
                "usage: follow cudaMalloc|cudaMallocAsync|cuMemAlloc THREADS MILLISECONDS [FRAMES [WALK]]\n");
        return 2;
    }
    measure(threads, milliseconds);
    return 0;
}
