/*
 * Random allocations, by the recipe that RMM is measured with: sizes are uniform up to a limit, 73 of 100
 * operations allocate, the others free a block at random; what would exceed the cap frees instead.
 *
 * Usage: random MAX_MIB OPERATIONS CAP_MIB SEED. Prints ns_per_op, cpu_ns_per_op, live_peak_bytes,
 * reserved_peak_bytes, vendor_calls (0 unless calls are counted) and failures.
 */
#include <stdio.h>
#include <stdlib.h>

#include "alloc.h"

#define MIB ((size_t)1 << 20)

struct block {
    void *address;
    size_t bytes;
};

struct state {
    const struct bench_allocator *allocator;
    struct bench_random random;
    struct block *blocks;
    size_t count, live, peak, cap, max;
    unsigned long failures;
};

static void release_one(struct state *s, size_t which)
{
    struct block block = s->blocks[which];

    s->blocks[which] = s->blocks[--s->count];
    s->live -= block.bytes;
    s->allocator->free(block.address, block.bytes, 0);
}

static void step(struct state *s)
{
    size_t bytes = 1 + bench_random(&s->random) % s->max;
    bool wants = bench_random(&s->random) % 100 < 73;

    if ((!wants || s->live + bytes > s->cap) && s->count) {
        release_one(s, bench_random(&s->random) % s->count);
        return;
    }
    void *address = s->allocator->alloc(bytes, 0);
    if (!address) {
        s->failures++;
        return;
    }
    s->blocks[s->count++] = (struct block){address, bytes};
    s->live += bytes;
    s->peak = s->live > s->peak ? s->live : s->peak;
}

int bench_recipe(const struct bench_allocator *allocator, int argc, char **argv)
{
    struct state s = {.allocator = allocator};
    unsigned long operations = argc == 4 ? strtoul(argv[1], NULL, 10) : 0;

    if (!operations) {
        fprintf(stderr, "usage: random MAX_MIB OPERATIONS CAP_MIB SEED\n");
        return 2;
    }
    s.max = strtoul(argv[0], NULL, 10) * MIB;
    s.cap = strtoul(argv[2], NULL, 10) * MIB;
    s.random.state = strtoul(argv[3], NULL, 10) * 0x9e3779b97f4a7c15u + 1;
    s.blocks = malloc(operations * sizeof *s.blocks);
    if (!s.blocks || !s.max)
        bench_die("out of memory");
    double begun = bench_now(), cpu_begun = bench_cpu();
    for (unsigned long i = 0; i < operations; i++)
        step(&s);
    while (s.count)
        release_one(&s, s.count - 1);
    double ns = bench_now() - begun, cpu_ns = bench_cpu() - cpu_begun;
    struct bench_counts counts = bench_count();
    printf("ns_per_op %.2f\ncpu_ns_per_op %.2f\nlive_peak_bytes %zu\nreserved_peak_bytes %lld\nvendor_calls "
           "%lld\nfailures %lu\n",
           ns / (double)operations, cpu_ns / (double)operations, s.peak, counts.peak_bytes,
           counts.vendor_calls, s.failures);
    return 0;
}
