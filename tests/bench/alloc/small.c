/*
 * Small programs, as a new user writes them first: what they take of the device beside what they asked for.
 * Nothing is queued, so that nothing is pending for longer than an allocator lets it.
 *
 * Usage: small NAME STREAMS. Prints live_peak_bytes (in steps of 512), reserved_peak_bytes, vendor_calls, and
 * worst_over_live: the most, over all moments from 16 MiB on, of what was taken of the device over the most
 * that was live until then. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "alloc.h"
#include "vendor/abi/cuda_runtime.h"
#include "vendor/abi/cuda_runtime_fn.h"

#define KIB     ((size_t)1 << 10)
#define MIB     ((size_t)1 << 20)
#define STEP    ((size_t)512)
#define SMALL   (16 * MIB) /* below so much live memory nothing is promised */
#define BLOCKS  100
#define BUFFERS 4
#define TINY    10000
#define STREAMS 4

static struct state {
    const struct bench_allocator *allocator;
    unsigned stream_count;
    struct bench_random random;
    size_t live, live_peak;
    double worst;
} state;

struct block {
    void *address;
    size_t bytes;
    unsigned stream;
};

static size_t granted(size_t bytes)
{
    return (bytes + STEP - 1) / STEP * STEP;
}

static struct block take(size_t bytes, unsigned number)
{
    unsigned stream = number % state.stream_count + 1;
    struct block block = {state.allocator->alloc(bytes, stream), bytes, stream};

    if (!block.address)
        bench_die("out of memory");
    state.live += granted(bytes);
    state.live_peak = state.live > state.live_peak ? state.live : state.live_peak;
    double over = state.live_peak >= SMALL ? (double)bench_count().used_bytes / (double)state.live_peak : 0;
    state.worst = over > state.worst ? over : state.worst;
    return block;
}

static void give(const struct block *block)
{
    state.allocator->free(block->address, block->bytes, block->stream);
    state.live -= granted(block->bytes);
}

static void blocks(void)
{
    struct block taken[BLOCKS];

    for (unsigned round = 0; round < 2; round++) {
        for (unsigned i = 0; i < BLOCKS; i++)
            taken[i] = take(MIB, i);
        for (unsigned i = 0; i < BLOCKS; i++)
            give(&taken[i]);
    }
}

/* Buffers that are allocated anew, twice as long, and freed, as a vector grows. */
static void growing(void)
{
    struct block buffers[BUFFERS];

    for (unsigned i = 0; i < BUFFERS; i++)
        buffers[i] = take(MIB / 4, i);
    for (size_t bytes = MIB / 2; bytes <= 16 * MIB; bytes *= 2)
        for (unsigned i = 0; i < BUFFERS; i++) {
            struct block larger = take(bytes, i);
            give(&buffers[i]);
            buffers[i] = larger;
        }
    for (unsigned i = 0; i < BUFFERS; i++)
        give(&buffers[i]);
}

static void tiny(void)
{
    static struct block taken[TINY];

    for (unsigned i = 0; i < TINY; i++)
        taken[i] = take(1 + bench_random(&state.random) % (4 * KIB), i);
    for (unsigned i = 0; i < TINY; i++)
        give(&taken[i]);
}

int bench_small(const struct bench_allocator *allocator, int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*run)(void);
    } programs[] = {{"blocks", blocks}, {"growing", growing}, {"tiny", tiny}};

    state.allocator = allocator;
    state.random.state = 0x9e3779b97f4a7c15u;
    state.stream_count = argc == 2 ? (unsigned)atoi(argv[1]) : 0;
    for (size_t i = 0; i < sizeof programs / sizeof *programs && state.stream_count - 1 < STREAMS; i++) {
        if (strcmp(programs[i].name, argv[0]) != 0)
            continue;
        programs[i].run();
        struct bench_counts counts = bench_count();
        printf("live_peak_bytes %zu\nreserved_peak_bytes %lld\nvendor_calls %lld\nworst_over_live %.4f\n",
               state.live_peak, counts.peak_bytes, counts.vendor_calls, state.worst);
        return 0;
    }
    fprintf(stderr, "usage: small blocks|growing|tiny STREAMS (1 to %d)\n", STREAMS);
    return 2;
}
