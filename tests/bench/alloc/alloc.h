/*
 * What the benches of allocators share: one interface to all of them, a clock, random numbers, and the
 * simulator's counters. The same object files are linked with memshim's way in (runtime.c) and with the
 * peers' (../peers), so that all are measured by the same code.
 */
#ifndef MS_BENCH_ALLOC_H
#define MS_BENCH_ALLOC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/** An allocator. `name` is as the row has it; one program may have several. */
struct bench_allocator {
    const char *name;
    /** Once, in the first thread. Returns 0, or -1 after a line on standard error. */
    int (*start)(void);
    /** In each further thread; may be NULL. */
    void (*start_thread)(void);
    /** NULL when there is no memory. Stream 0 is the default; others are small numbers. */
    void *(*alloc)(size_t bytes, unsigned stream);
    void (*free)(void *block, size_t bytes, unsigned stream);
    /** The block was used on another stream than it is for, before it is freed there; NULL where the free
     * says it all. */
    void (*used_on)(void *block, unsigned stream);
    /** The stream of that number, as the runtime has it; NULL where the allocator knows none. */
    void *(*stream)(unsigned stream);
};

/** The program's allocators, ended by one without a name. */
extern const struct bench_allocator bench_allocators[];

enum { BENCH_SIZES = 20, BENCH_THREADS_MAX = 64, BENCH_STREAMS_MAX = 64 };

/** From 512 B to 64 MiB, in equal ratios, multiples of 512. */
size_t bench_size(unsigned number);

struct bench_random {
    uint64_t state;
};
uint64_t bench_random(struct bench_random *random);

/** Nanoseconds on a clock whose reading costs bench_clock_cost(). */
double bench_now(void);
double bench_clock_cost(void);
/** Nanoseconds of processor time of the whole process. */
double bench_cpu(void);
void bench_clock_start(void);

/** Samples of which the median and the 99th of a hundred are wanted. */
struct bench_samples {
    double *values;
    size_t count, room;
};
void bench_sample(struct bench_samples *samples, double value);
void bench_samples_add(struct bench_samples *samples, const struct bench_samples *more);
double bench_quantile(struct bench_samples *samples, double part);

/** What the simulated driver counted so far; needs MEMSIM_COUNT=1 but for the bytes. */
struct bench_counts {
    long long events; /* recorded, on a stream or a context */
    long long syncs;  /* calls that wait for the device: synchronisations, and frees, which wait as well */
    long long vendor_calls; /* that take device memory, give it back or map it */
    long long used_bytes, peak_bytes;
};
struct bench_counts bench_count(void);

/** A line on standard error, and the end. */
void bench_die(const char *what) __attribute__((noreturn));

/** The verbs. Each prints what scripts/bench reads: "name value" lines. */
int bench_pool(const struct bench_allocator *allocator, int argc, char **argv);
int bench_replay(const struct bench_allocator *allocator, int argc, char **argv);
int bench_runahead(const struct bench_allocator *allocator, int argc, char **argv);
int bench_shapes(const struct bench_allocator *allocator, int argc, char **argv);
int bench_small(const struct bench_allocator *allocator, int argc, char **argv);
int bench_recipe(const struct bench_allocator *allocator, int argc, char **argv);

#ifdef __cplusplus
}
#endif
#endif
