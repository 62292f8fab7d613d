/*
 * Programs whose host never waits, of several shapes: each block is written before it is freed, by work that
 * is queued behind all that came before, so that what is freed is in use for as long as the host is ahead.
 *
 * Usage: shapes NAME STREAMS, with MEMSIM_COST for what work takes. Prints live_peak_bytes (in steps of 512),
 * largest_bytes, reserved_peak_bytes, and events, syncs, vendor_calls (0 unless calls are counted),
 * seconds. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "alloc.h"
#include "vendor/abi/cuda_runtime.h"
#include "vendor/abi/cuda_runtime_fn.h"

#define MIB     ((size_t)1 << 20)
#define STEP    ((size_t)512)
#define TOUCHED ((size_t)256)
#define TINY    100000
#define USED    64 /* of so many tiny blocks one has work */
#define LAYERS  24
#define STREAMS 4

static struct state {
    const struct bench_allocator *allocator;
    cudaStream_t streams[STREAMS + 1]; /* from 1 on, as the allocator numbers them */
    unsigned stream_count;
    struct bench_random random;
    size_t live, live_peak, largest;
} state;

struct block {
    void *address;
    size_t bytes;
    unsigned stream;
};

static void worked(cudaError_t status, const char *what)
{
    if (status != cudaSuccess)
        bench_die(what);
}

static struct block take(size_t bytes, unsigned number)
{
    unsigned stream = number % state.stream_count + 1;
    struct block block = {state.allocator->alloc(bytes, stream), bytes, stream};
    size_t granted = (bytes + STEP - 1) / STEP * STEP;

    if (!block.address)
        bench_die("out of memory");
    state.live += granted;
    state.live_peak = state.live > state.live_peak ? state.live : state.live_peak;
    state.largest = granted > state.largest ? granted : state.largest;
    return block;
}

/* Work on the block's own stream: it takes as long as MEMSIM_COST says. */
static void use(const struct block *block)
{
    worked(cudaMemsetAsync(block->address, 1, block->bytes < TOUCHED ? block->bytes : TOUCHED,
                           state.streams[block->stream]),
           "a fill is refused");
}

static void copy(const struct block *to, const struct block *from)
{
    size_t bytes = from->bytes < to->bytes ? from->bytes : to->bytes;

    worked(cudaMemcpyAsync(to->address, from->address, bytes < TOUCHED ? bytes : TOUCHED,
                           cudaMemcpyDeviceToDevice, state.streams[to->stream]),
           "a copy is refused");
}

static void give(const struct block *block)
{
    state.allocator->free(block->address, block->bytes, block->stream);
    state.live -= (block->bytes + STEP - 1) / STEP * STEP;
}

/* Two blocks at a time: filled, copied, freed. */
static void loop(void)
{
    for (unsigned i = 0; i < 400; i++) {
        struct block one = take(16 * MIB, i), two = take(16 * MIB, i);

        use(&one);
        copy(&two, &one);
        give(&one);
        give(&two);
    }
}

/* Layers forwards, each with what stays and what goes at once, and backwards until nothing has stayed. */
static void layers(void)
{
    for (unsigned step = 0; step < 20; step++) {
        struct block kept[LAYERS];

        for (unsigned i = 0; i < LAYERS; i++) {
            struct block work = take((3 + i % 2) * MIB, step);
            kept[i] = take((6 + i % 3 * 2) * MIB, step);
            use(&work);
            use(&kept[i]);
            give(&work);
        }
        for (unsigned i = LAYERS; i-- > 0;) {
            struct block gradient = take(kept[i].bytes, step), work = take((3 + i % 2) * MIB, step);
            copy(&gradient, &kept[i]);
            use(&work);
            give(&work);
            give(&gradient);
            give(&kept[i]);
        }
    }
}

/* Buffers that are allocated anew, a quarter larger, copied and freed, until they are full, again and
 * again. */
static void growing(void)
{
    for (unsigned round = 0; round < 8; round++) {
        struct block buffers[4];

        for (unsigned i = 0; i < 4; i++) {
            buffers[i] = take(MIB, i);
            use(&buffers[i]);
        }
        for (size_t bytes = MIB; bytes < 64 * MIB; bytes += bytes / 4)
            for (unsigned i = 0; i < 4; i++) {
                struct block larger = take(bytes + bytes / 4, i);
                copy(&larger, &buffers[i]);
                give(&buffers[i]);
                buffers[i] = larger;
            }
        for (unsigned i = 0; i < 4; i++)
            give(&buffers[i]);
    }
}

/* So many blocks of up to 4 KiB, and then their frees, in the order in which they came. */
static void tiny(void)
{
    struct block *blocks = malloc(TINY * sizeof *blocks);

    if (!blocks)
        bench_die("out of memory");
    for (unsigned round = 0; round < 2; round++) {
        for (unsigned i = 0; i < TINY; i++) {
            blocks[i] = take(1 + bench_random(&state.random) % 4096, i);
            if (i % USED == 0)
                use(&blocks[i]);
        }
        for (unsigned i = 0; i < TINY; i++) {
            if (i % USED == 0)
                use(&blocks[i]);
            give(&blocks[i]);
        }
    }
    free(blocks);
}

/* A server: requests of all sizes come and go, up to 512 MiB of them. */
static void serving(void)
{
    enum { MOST = 4096, CAP_MIB = 512 };
    struct block blocks[MOST];
    unsigned count = 0;

    for (unsigned i = 0; i < 6000; i++) {
        size_t bytes = bench_size(1 + bench_random(&state.random) % (BENCH_SIZES - 4)) -
                       bench_random(&state.random) % 256;

        while (count == MOST || (count && state.live + bytes > CAP_MIB * MIB) ||
               (count && bench_random(&state.random) % 8 == 0)) {
            unsigned which = (unsigned)(bench_random(&state.random) % count);
            use(&blocks[which]);
            give(&blocks[which]);
            blocks[which] = blocks[--count];
        }
        blocks[count] = take(bytes, i);
        use(&blocks[count++]);
    }
    while (count)
        give(&blocks[--count]);
}

int bench_shapes(const struct bench_allocator *allocator, int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*run)(void);
    } shapes[] = {
        {"loop", loop}, {"layers", layers}, {"growing", growing}, {"tiny", tiny}, {"serving", serving}};

    state.allocator = allocator;
    state.random.state = 0x9e3779b97f4a7c15u;
    state.stream_count = argc == 2 ? (unsigned)atoi(argv[1]) : 0;
    if (state.stream_count < 1 || state.stream_count > STREAMS) {
        fprintf(stderr, "usage: shapes loop|layers|growing|tiny|serving STREAMS (1 to %d)\n", STREAMS);
        return 2;
    }
    for (unsigned i = 1; i <= state.stream_count; i++) {
        if (allocator->stream)
            state.streams[i] = allocator->stream(i);
        else
            worked(cudaStreamCreateWithFlags(&state.streams[i], cudaStreamNonBlocking), "no stream");
    }
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        if (strcmp(shapes[i].name, argv[0]) != 0)
            continue;
        struct bench_counts before = bench_count();
        double begun = bench_now();
        shapes[i].run();
        worked(cudaDeviceSynchronize(), "the device fails");
        double seconds = (bench_now() - begun) / 1e9;
        struct bench_counts counts = bench_count();
        printf("live_peak_bytes %zu\nlargest_bytes %zu\nreserved_peak_bytes %lld\nevents %lld\nsyncs "
               "%lld\nvendor_calls %lld\nseconds %.3f\n",
               state.live_peak, state.largest, counts.peak_bytes, counts.events - before.events,
               counts.syncs - before.syncs, counts.vendor_calls - before.vendor_calls, seconds);
        return 0;
    }
    return bench_shapes(allocator, 0, NULL);
}
