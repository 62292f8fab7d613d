/*
 * What the benches of allocators share; see alloc.h.
 *
 * Usage: alloc ALLOCATOR VERB ARGUMENT..., where VERB is pool, replay, random, runahead or shapes.
 */
#include <dlfcn.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#if defined(__x86_64__)
#include <x86intrin.h>
#endif

#include "alloc.h"

void bench_die(const char *what)
{
    fprintf(stderr, "alloc: %s\n", what);
    exit(1);
}

size_t bench_size(unsigned number)
{
    double ratio = pow(64.0 * 1024 * 1024 / 512, 1.0 / (BENCH_SIZES - 1));

    return (size_t)(pow(ratio, number) + 0.5) * 512;
}

uint64_t bench_random(struct bench_random *random)
{
    random->state ^= random->state << 13;
    random->state ^= random->state >> 7;
    random->state ^= random->state << 17;
    return random->state;
}

static double system_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

double bench_cpu(void)
{
    struct timespec t;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

#if defined(__x86_64__)
static double ns_per_tick;

/* Nothing that came before is still going on when it is read, and nothing that comes after has begun. */
double bench_now(void)
{
    unsigned aux;
    uint64_t ticks = __rdtscp(&aux);

    _mm_lfence();
    return (double)ticks * ns_per_tick;
}

static void calibrate(void)
{
    struct timespec wait = {0, 20000000};
    double ns = system_ns();
    uint64_t ticks = __rdtsc();

    nanosleep(&wait, NULL);
    ns_per_tick = (system_ns() - ns) / (double)(__rdtsc() - ticks);
}
#else
double bench_now(void)
{
    return system_ns();
}

static void calibrate(void)
{
}
#endif

static double clock_cost;

double bench_clock_cost(void)
{
    return clock_cost;
}

void bench_clock_start(void)
{
    struct bench_samples samples = {0};

    calibrate();
    for (int i = 0; i < 10000; i++) {
        double begun = bench_now();
        bench_sample(&samples, bench_now() - begun);
    }
    clock_cost = bench_quantile(&samples, 0.5);
    free(samples.values);
}

void bench_sample(struct bench_samples *samples, double value)
{
    if (samples->count == samples->room) {
        samples->room = samples->room ? 2 * samples->room : 4096;
        samples->values = realloc(samples->values, samples->room * sizeof *samples->values);
        if (!samples->values)
            bench_die("out of memory");
    }
    samples->values[samples->count++] = value;
}

void bench_samples_add(struct bench_samples *samples, const struct bench_samples *more)
{
    for (size_t i = 0; i < more->count; i++)
        bench_sample(samples, more->values[i]);
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

double bench_quantile(struct bench_samples *samples, double part)
{
    if (!samples->count)
        return 0;
    qsort(samples->values, samples->count, sizeof *samples->values, by_value);
    return samples->values[(size_t)(part * (double)(samples->count - 1))];
}

/* The functions that are counted: events, waits for the device, and what takes or gives memory. */
#ifdef TEST_HIP
#define LIBRARY "libamdhip64.so.7"
static const char *const events[] = {"hipEventRecord", NULL};
static const char *const syncs[] = {"hipDeviceSynchronize", "hipStreamSynchronize", "hipEventSynchronize",
                                    "hipFree", NULL};
static const char *const calls[] = {"hipMalloc",
                                    "hipFree",
                                    "hipMallocAsync",
                                    "hipMallocFromPoolAsync",
                                    "hipFreeAsync",
                                    "hipMemCreate",
                                    "hipMemRelease",
                                    "hipMemPoolTrimTo",
                                    NULL};
#else
#define LIBRARY "libcuda.so.1"
static const char *const events[] = {"cuEventRecord",          "cuEventRecord_ptsz",
                                     "cuEventRecordWithFlags", "cuEventRecordWithFlags_ptsz",
                                     "cuCtxRecordEvent",       NULL};
static const char *const syncs[] = {"cuCtxSynchronize",   "cuStreamSynchronize", "cuStreamSynchronize_ptsz",
                                    "cuEventSynchronize", "cuMemFree_v2",        NULL};
static const char *const calls[] = {"cuMemAlloc_v2",
                                    "cuMemAllocPitch_v2",
                                    "cuMemFree_v2",
                                    "cuMemAllocAsync",
                                    "cuMemAllocAsync_ptsz",
                                    "cuMemAllocFromPoolAsync",
                                    "cuMemAllocFromPoolAsync_ptsz",
                                    "cuMemFreeAsync",
                                    "cuMemFreeAsync_ptsz",
                                    "cuMemAddressReserve",
                                    "cuMemAddressFree",
                                    "cuMemCreate",
                                    "cuMemRelease",
                                    "cuMemMap",
                                    "cuMemUnmap",
                                    "cuMemSetAccess",
                                    "cuMemPoolTrimTo",
                                    NULL};
#endif

static long long (*counter(void))(const char *)
{
    static long long (*count)(const char *);
    void *driver = count ? NULL : dlopen(LIBRARY, RTLD_NOW | RTLD_NOLOAD);

    if (driver)
        count = (long long (*)(const char *))dlsym(driver, "memsim_count");
    if (!count)
        bench_die("the driver is not the simulated one, which alone can count");
    return count;
}

static long long sum(const char *const *names)
{
    long long total = 0;

    for (; *names; names++) {
        long long count = counter()(*names);
        if (count < 0)
            bench_die(*names);
        total += count;
    }
    return total;
}

struct bench_counts bench_count(void)
{
    return (struct bench_counts){sum(events), sum(syncs), sum(calls), counter()("used_bytes"),
                                 counter()("peak_bytes")};
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        int (*run)(const struct bench_allocator *, int, char **);
    } verbs[] = {{"pool", bench_pool},         {"replay", bench_replay}, {"random", bench_recipe},
                 {"runahead", bench_runahead}, {"shapes", bench_shapes}, {"small", bench_small}};
    const struct bench_allocator *allocator = bench_allocators;

    while (argc > 2 && allocator->name && strcmp(allocator->name, argv[1]) != 0)
        allocator++;
    for (size_t i = 0; argc > 2 && allocator->name && i < sizeof verbs / sizeof *verbs; i++)
        if (strcmp(argv[2], verbs[i].name) == 0) {
            bench_clock_start();
            return allocator->start() != 0 ? 1 : verbs[i].run(allocator, argc - 3, argv + 3);
        }
    fprintf(stderr,
            "usage: alloc ALLOCATOR pool|replay|random|runahead|shapes|small ARGUMENT...\nallocators:");
    for (allocator = bench_allocators; allocator->name; allocator++)
        fprintf(stderr, " %s", allocator->name);
    fputc('\n', stderr);
    return 2;
}
