/*
 * What a pair costs: one allocation and one free, of an allocator that has nothing else to do, in several
 * threads.
 *
 * Usage: pool CASE THREADS MILLISECONDS, which prints p50_ns, p99_ns, pairs_per_s and cpu_ns_per_pair; or
 * pool CASE THREADS pairs=N, which makes N pairs after as many to warm up and prints what the simulator
 * counted in them: events, syncs, vendor_calls.
 *
 * hit           4 KiB, allocated and freed at once
 * mixN          N blocks of 20 sizes are alive, shared out among the threads: one is freed at random, one
 * allocated cross_thread  4 KiB, allocated in half of the threads and freed in the others miss          32
 * MiB, the process's first 256 blocks: each needs new memory; then they are freed stream        as hit, for a
 * stream of the thread's own cross_stream  4 KiB, allocated for one stream and freed on another many_streams
 * as hit, for 32 streams in turn
 *
 * The median is of batches of up to 16 pairs, whose time is divided by their number; the 99th of a hundred is
 * of pairs that are timed alone. The clock's own cost is subtracted from both, and what to do next is worked
 * out beforehand. Pairs per second are taken in a second phase without any clock.
 */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "alloc.h"

enum { BATCH = 16, RING = 256, MISSES = 256, ROUNDS_MIN = 8 };
#define HIT_BYTES  ((size_t)4096)
#define MISS_BYTES ((size_t)32 << 20)

enum phase { WARM, LATENCY, THROUGHPUT, COUNT };

struct slot {
    void *address;
    size_t bytes;
};

/* From one thread to another. */
struct ring {
    _Atomic size_t head, tail;
    atomic_bool closed;
    void *blocks[RING];
};

struct worker {
    pthread_t thread;
    unsigned index;
    struct bench_random random;
    struct slot *slots;
    size_t slot_count;
    struct ring *ring; /* cross_thread: shared with the partner */
    struct bench_samples batches, singles;
    unsigned long long pairs;
    double begun, ended; /* of the phase */
} __attribute__((aligned(128)));

struct pool_case {
    const char *name;
    /* One round of at most BATCH pairs; how many. Timed: adds samples. */
    unsigned (*round)(struct worker *worker, bool timed, bool alone);
};

static const struct bench_allocator *allocator;
static const struct pool_case *chosen;
static size_t sizes[BENCH_SIZES], live_blocks;
static unsigned threads;
static atomic_bool stop;
static _Atomic int phase;
static unsigned long long quota; /* pairs of each thread, 0: until it is stopped */
static pthread_barrier_t gate, all_threads;
static struct worker workers[BENCH_THREADS_MAX];

static void *take(size_t bytes)
{
    void *block = allocator->alloc(bytes, 0);

    if (!block)
        bench_die("an allocation failed");
    return block;
}

static void note(struct worker *worker, double begun, unsigned pairs, bool alone)
{
    double ns = bench_now() - begun - bench_clock_cost();

    bench_sample(alone ? &worker->singles : &worker->batches, (ns > 0 ? ns : 0) / pairs);
}

static unsigned round_hit(struct worker *worker, bool timed, bool alone)
{
    unsigned count = alone ? 1 : BATCH;
    double begun = timed ? bench_now() : 0;

    for (unsigned i = 0; i < count; i++)
        allocator->free(take(HIT_BYTES), HIT_BYTES, 0);
    if (timed)
        note(worker, begun, count, alone);
    return count;
}

static size_t random_size(struct worker *worker)
{
    return sizes[bench_random(&worker->random) % BENCH_SIZES];
}

static unsigned round_mix(struct worker *worker, bool timed, bool alone)
{
    unsigned count = alone ? 1 : worker->slot_count < BATCH ? (unsigned)worker->slot_count : BATCH;
    size_t part = worker->slot_count / count, place[BATCH], bytes[BATCH];
    struct slot old[BATCH];
    void *fresh[BATCH];

    for (unsigned i = 0; i < count; i++) {
        place[i] = i * part + bench_random(&worker->random) % part;
        bytes[i] = random_size(worker);
        old[i] = worker->slots[place[i]];
    }
    double begun = timed ? bench_now() : 0;
    for (unsigned i = 0; i < count; i++) {
        allocator->free(old[i].address, old[i].bytes, 0);
        fresh[i] = take(bytes[i]);
    }
    if (timed)
        note(worker, begun, count, alone);
    for (unsigned i = 0; i < count; i++)
        worker->slots[place[i]] = (struct slot){fresh[i], bytes[i]};
    return count;
}

/* --- of streams: each thread has its own, but for many_streams ------------------------------------------ */

enum { MANY_STREAMS = 32 };

static void *take_on(unsigned stream)
{
    void *block = allocator->alloc(HIT_BYTES, stream);

    if (!block)
        bench_die("an allocation failed");
    return block;
}

static unsigned round_stream(struct worker *worker, bool timed, bool alone)
{
    unsigned count = alone ? 1 : BATCH, stream = 1 + worker->index % (BENCH_STREAMS_MAX - 1);
    double begun = timed ? bench_now() : 0;

    for (unsigned i = 0; i < count; i++)
        allocator->free(take_on(stream), HIT_BYTES, stream);
    if (timed)
        note(worker, begun, count, alone);
    return count;
}

/* Allocated for one stream, and freed on another that has used it. */
static unsigned round_cross_stream(struct worker *worker, bool timed, bool alone)
{
    unsigned count = alone ? 1 : BATCH, from = 1 + 2 * worker->index % (BENCH_STREAMS_MAX - 2), to = from + 1;
    double begun = timed ? bench_now() : 0;

    for (unsigned i = 0; i < count; i++) {
        void *block = take_on(from);
        if (allocator->used_on)
            allocator->used_on(block, to);
        allocator->free(block, HIT_BYTES, to);
    }
    if (timed)
        note(worker, begun, count, alone);
    return count;
}

static unsigned round_many_streams(struct worker *worker, bool timed, bool alone)
{
    unsigned count = alone ? 1 : BATCH, stream = (unsigned)worker->pairs % MANY_STREAMS + 1;
    double begun = timed ? bench_now() : 0;

    for (unsigned i = 0; i < count; i++) {
        allocator->free(take_on(stream), HIT_BYTES, stream);
        stream = stream % MANY_STREAMS + 1;
    }
    if (timed)
        note(worker, begun, count, alone);
    return count;
}

/* --- cross_thread: the first half of the threads allocates for the other -------------------------------- */

static unsigned produce(struct worker *worker, bool timed, bool alone)
{
    struct ring *ring = worker->ring;
    unsigned count = alone ? 1 : BATCH;
    size_t head = atomic_load_explicit(&ring->head, memory_order_relaxed);
    void *blocks[BATCH];

    if (head + count - atomic_load_explicit(&ring->tail, memory_order_acquire) > RING) {
        sched_yield();
        return 0;
    }
    double begun = timed ? bench_now() : 0;
    for (unsigned i = 0; i < count; i++)
        blocks[i] = take(HIT_BYTES);
    if (timed)
        note(worker, begun, count, alone);
    for (unsigned i = 0; i < count; i++)
        ring->blocks[(head + i) % RING] = blocks[i];
    atomic_store_explicit(&ring->head, head + count, memory_order_release);
    return count;
}

static unsigned consume(struct worker *worker, bool timed, bool alone)
{
    struct ring *ring = worker->ring;
    size_t tail = atomic_load_explicit(&ring->tail, memory_order_relaxed);
    size_t waiting = atomic_load_explicit(&ring->head, memory_order_acquire) - tail;
    unsigned count = alone ? 1 : BATCH;
    void *blocks[BATCH];

    if (waiting < count) {
        sched_yield();
        return 0;
    }
    for (unsigned i = 0; i < count; i++)
        blocks[i] = ring->blocks[(tail + i) % RING];
    double begun = timed ? bench_now() : 0;
    for (unsigned i = 0; i < count; i++)
        allocator->free(blocks[i], HIT_BYTES, 0);
    if (timed)
        note(worker, begun, count, alone);
    atomic_store_explicit(&ring->tail, tail + count, memory_order_release);
    return count;
}

static unsigned round_cross(struct worker *worker, bool timed, bool alone)
{
    return (worker->index % 2 ? consume : produce)(worker, timed, alone);
}

/* At the end of a phase: what is under way arrives. */
static void settle(struct worker *worker)
{
    struct ring *ring = worker->ring;

    if (!ring)
        return;
    if (worker->index % 2 == 0) {
        atomic_store(&ring->closed, true);
        return;
    }
    while (!atomic_load(&ring->closed))
        sched_yield();
    while (atomic_load(&ring->head) != atomic_load(&ring->tail))
        worker->pairs += consume(worker, false, true);
    atomic_store(&ring->closed, false);
}

/* --- miss: once per process ----------------------------------------------------------------------------- */

static void miss(struct worker *worker)
{
    unsigned count = MISSES / threads;
    void *blocks[MISSES];
    double ns[MISSES];

    for (unsigned i = 0; i < count; i++) {
        double begun = bench_now();
        blocks[i] = take(MISS_BYTES);
        ns[i] = bench_now() - begun - bench_clock_cost();
    }
    pthread_barrier_wait(&all_threads); /* or one thread would take what another has freed already */
    for (unsigned i = 0; i < count; i++) {
        double begun = bench_now();
        allocator->free(blocks[i], MISS_BYTES, 0);
        ns[i] += bench_now() - begun - bench_clock_cost();
        bench_sample(&worker->batches, ns[i] > 0 ? ns[i] : 0);
        bench_sample(&worker->singles, ns[i] > 0 ? ns[i] : 0);
    }
    worker->pairs += count;
}

/* --- threads -------------------------------------------------------------------------------------------- */

static void run_phase(struct worker *worker)
{
    bool timed = atomic_load(&phase) == LATENCY;
    unsigned long long begun = worker->pairs;
    unsigned rounds = 0;

    if (!chosen->round) {
        miss(worker);
        return;
    }
    while (quota ? worker->pairs - begun < quota
                 : rounds < ROUNDS_MIN || !atomic_load_explicit(&stop, memory_order_relaxed)) {
        unsigned pairs = chosen->round(worker, timed, timed && rounds % 4 == 3);
        worker->pairs += pairs;
        rounds += pairs != 0;
    }
    settle(worker);
}

static void prepare(struct worker *worker)
{
    size_t first = (size_t)worker->index * live_blocks / threads;

    worker->random.state = 0x2545f4914f6cdd1du * (worker->index + 1);
    worker->slot_count = (size_t)(worker->index + 1) * live_blocks / threads - first;
    worker->slots = calloc(worker->slot_count + 1, sizeof *worker->slots);
    if (!worker->slots)
        bench_die("out of memory");
    for (size_t i = 0; i < worker->slot_count; i++) {
        size_t bytes = random_size(worker);
        worker->slots[i] = (struct slot){take(bytes), bytes};
    }
    /* Something stays, as in any program: nobody gives the last memory back and takes it again with every
     * pair, or finds out about the device in a miss. */
    take(HIT_BYTES);
}

static void *work(void *arg)
{
    struct worker *worker = arg;

    if (worker->index && allocator->start_thread)
        allocator->start_thread();
    prepare(worker);
    for (;;) {
        pthread_barrier_wait(&gate);
        if (atomic_load(&phase) < 0)
            return NULL;
        worker->begun = bench_now();
        run_phase(worker);
        worker->ended = bench_now();
        pthread_barrier_wait(&gate);
    }
}

/* Runs a phase for so long, or until the quota is made; nanoseconds from the first thread's begin to the last
 * one's end. */
static double conduct(enum phase which, long milliseconds)
{
    struct timespec wait = {milliseconds / 1000, milliseconds % 1000 * 1000000};

    atomic_store(&phase, (int)which);
    atomic_store(&stop, false);
    for (unsigned i = 0; i < threads; i++)
        workers[i].pairs = 0;
    pthread_barrier_wait(&gate);
    if (!quota && chosen->round)
        nanosleep(&wait, NULL);
    atomic_store(&stop, true);
    pthread_barrier_wait(&gate);
    double begun = workers[0].begun, ended = workers[0].ended;
    for (unsigned i = 1; i < threads; i++) {
        begun = workers[i].begun < begun ? workers[i].begun : begun;
        ended = workers[i].ended > ended ? workers[i].ended : ended;
    }
    return ended - begun;
}

/* Of cross_thread each pair is in two threads, and counted in the one that frees. */
static unsigned long long all_pairs(void)
{
    unsigned long long pairs = 0;

    for (unsigned i = 0; i < threads; i++)
        pairs += workers[i].ring && i % 2 == 0 ? 0 : workers[i].pairs;
    return pairs;
}

static double quantile(double part, bool alone)
{
    struct bench_samples all[2] = {{0}, {0}};

    for (unsigned i = 0; i < threads; i++)
        bench_samples_add(&all[workers[i].ring ? i % 2 : 0],
                          alone ? &workers[i].singles : &workers[i].batches);
    return bench_quantile(&all[0], part) + bench_quantile(&all[1], part);
}

static void measure(long milliseconds)
{
    double ns, cpu_before = bench_cpu();

    if (chosen->round) {
        conduct(WARM, milliseconds / 4 + 1);
        conduct(LATENCY, milliseconds);
        cpu_before = bench_cpu();
        ns = conduct(THROUGHPUT, milliseconds);
    } else {
        ns = conduct(LATENCY, 0);
    }
    double cpu = bench_cpu() - cpu_before;
    unsigned long long pairs = all_pairs();
    printf("p50_ns %.1f\np99_ns %.1f\npairs_per_s %.0f\ncpu_ns_per_pair %.1f\n", quantile(0.5, false),
           quantile(0.99, true), (double)pairs / ns * 1e9, cpu / (double)pairs);
}

static void count(unsigned long long pairs)
{
    quota = pairs / threads + 1;
    if (chosen->round)
        conduct(WARM, 0);
    struct bench_counts before = bench_count();
    conduct(COUNT, 0);
    struct bench_counts after = bench_count();
    printf("pairs %llu\nevents %lld\nsyncs %lld\nvendor_calls %lld\n", all_pairs(),
           after.events - before.events, after.syncs - before.syncs,
           after.vendor_calls - before.vendor_calls);
}

static void start_threads(void)
{
    static struct ring rings[BENCH_THREADS_MAX / 2];

    pthread_barrier_init(&gate, NULL, threads + 1);
    pthread_barrier_init(&all_threads, NULL, threads);
    for (unsigned i = 0; i < threads; i++) {
        workers[i].index = i;
        workers[i].ring = chosen->round == round_cross ? &rings[i / 2] : NULL;
        if (pthread_create(&workers[i].thread, NULL, work, &workers[i]) != 0)
            bench_die("no more threads");
    }
}

static bool choose(const char *name)
{
    static const struct pool_case cases[] = {{"hit", round_hit},
                                             {"mix", round_mix},
                                             {"cross_thread", round_cross},
                                             {"miss", NULL},
                                             {"stream", round_stream},
                                             {"cross_stream", round_cross_stream},
                                             {"many_streams", round_many_streams}};

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        if (!strcmp(name, cases[i].name) || (!strncmp(name, "mix", 3) && cases[i].round == round_mix))
            chosen = &cases[i];
    if (chosen && chosen->round == round_mix)
        live_blocks = strtoul(name + 3, NULL, 10);
    for (unsigned i = 0; i < BENCH_SIZES; i++)
        sizes[i] = bench_size(i);
    return chosen && (chosen->round != round_mix || live_blocks >= threads) &&
           (chosen->round != round_cross || threads % 2 == 0);
}

int bench_pool(const struct bench_allocator *which, int argc, char **argv)
{
    allocator = which;
    threads = argc == 3 ? (unsigned)atoi(argv[1]) : 0;
    if (threads < 1 || threads > BENCH_THREADS_MAX || !choose(argv[0])) {
        fprintf(stderr, "usage: pool hit|mixN|cross_thread|miss|stream|cross_stream|many_streams THREADS "
                        "MILLISECONDS|pairs=N\n");
        return 2;
    }
    start_threads();
    if (!strncmp(argv[2], "pairs=", 6))
        count(strtoull(argv[2] + 6, NULL, 10));
    else
        measure(atol(argv[2]));
    atomic_store(&phase, -1);
    pthread_barrier_wait(&gate);
    for (unsigned i = 0; i < threads; i++)
        pthread_join(workers[i].thread, NULL);
    return 0;
}
