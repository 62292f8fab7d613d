/*
 * A program that is shaped like training, whose host runs ahead of its stream.
 *
 * Usage: runahead MILLISECONDS [ITERATIONS]. Each iteration goes forwards through layers (an activation that
 * stays, a workspace that goes at once) and backwards (a gradient and a workspace, and the activation goes);
 * each layer keeps the stream busy for a while, and touches its blocks. The host queues all that and goes on,
 * so far ahead as MILLISECONDS of the stream's work; what it frees may be needed by work that is so much
 * later. All is in the default stream.
 *
 * Prints live_peak_bytes and reserved_peak_bytes; in_flight_peak_bytes, what was freed at most in iterations
 * that the stream had not finished; ahead_ms, how far ahead the host was; seconds of the whole,
 * stream_seconds of the stream's own work; wrong, the blocks that did not hold what was written last; events,
 * syncs, vendor_calls (0 unless calls are counted).
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "alloc.h"
#include "vendor/abi/cuda_runtime.h"
#include "vendor/abi/cuda_runtime_fn.h"

#define MIB                ((size_t)1 << 20)
#define LAYERS             24
#define LAYER_US           500
#define WORD_BYTES         256
#define RING               256
#define WARM_UP            5
#define ITERATIONS_DEFAULT 60

static const size_t activation_bytes[3] = {6 * MIB, 8 * MIB, 10 * MIB};
static const size_t workspace_bytes[2] = {4 * MIB, 3 * MIB};

struct iteration {
    double queued_ns;
    size_t freed; /* in all, when it was queued */
};

static struct run {
    const struct bench_allocator *allocator;
    void *weights[LAYERS], *activations[LAYERS];
    struct iteration ring[RING];
    cudaEvent_t events[RING];
    size_t live, live_peak, freed, in_flight_peak;
    _Atomic size_t freed_and_done; /* up to the latest iteration that the stream has finished */
    _Atomic unsigned done;
    double ahead_ns, busy_ns; /* the stream's own */
    unsigned wrong;
} run;

static void worked(cudaError_t status, const char *what)
{
    if (status != cudaSuccess)
        bench_die(what);
}

static void *take(size_t bytes)
{
    void *block = run.allocator->alloc(bytes, 0);

    if (!block)
        bench_die("out of memory");
    run.live += bytes;
    if (run.live > run.live_peak)
        run.live_peak = run.live;
    return block;
}

static void give(void *block, size_t bytes)
{
    run.allocator->free(block, bytes, 0);
    run.live -= bytes;
    run.freed += bytes;
    size_t in_flight = run.freed - atomic_load(&run.freed_and_done);
    if (in_flight > run.in_flight_peak)
        run.in_flight_peak = in_flight;
}

/* The stream's work: in its order, on its own thread. */
static void compute(void *unused)
{
    const struct timespec rest = {0, LAYER_US * 1000};
    double begun = bench_now();
    (void)unused;

    nanosleep(&rest, NULL);
    run.busy_ns += bench_now() - begun;
}

static void finish(void *argument)
{
    const struct iteration *iteration = argument;
    double late = bench_now() - iteration->queued_ns;

    if (late > run.ahead_ns)
        run.ahead_ns = late;
    atomic_store(&run.freed_and_done, iteration->freed);
    atomic_fetch_add(&run.done, 1);
}

static void work_on(void *block, unsigned value)
{
    worked(cudaMemsetAsync(block, (int)(value & 0xff), WORD_BYTES, 0), "a fill is refused");
}

static void layer(void)
{
    worked(cudaLaunchHostFunc(0, compute, NULL), "a host function is refused");
}

static void forwards(unsigned number)
{
    for (unsigned i = 0; i < LAYERS; i++) {
        void *workspace = take(workspace_bytes[i % 2]);

        run.activations[i] = take(activation_bytes[i % 3]);
        work_on(workspace, ~number);
        layer();
        work_on(run.activations[i], number + i);
        give(workspace, workspace_bytes[i % 2]);
    }
}

static struct seen {
    unsigned char bytes[WORD_BYTES];
} * seen;

/* What a layer wrote forwards is still there when the stream comes back to it. */
static void look(void *argument)
{
    unsigned want = (unsigned)(uintptr_t)argument & 0xff, slot = (unsigned)((uintptr_t)argument >> 8);

    for (unsigned i = 0; i < WORD_BYTES; i++)
        if (seen[slot].bytes[i] != want) {
            run.wrong++;
            break;
        }
}

static void backwards(unsigned number)
{
    for (unsigned i = LAYERS; i-- > 0;) {
        void *gradient = take(activation_bytes[i % 3]), *workspace = take(workspace_bytes[i % 2]);

        worked(cudaMemcpyAsync(seen[i].bytes, run.activations[i], WORD_BYTES, cudaMemcpyDeviceToHost, 0),
               "a copy is refused");
        worked(cudaLaunchHostFunc(0, look, (void *)(uintptr_t)(i << 8 | ((number + i) & 0xff))),
               "a host function is refused");
        work_on(gradient, ~number);
        layer();
        work_on(workspace, ~number);
        work_on(run.weights[i], number);
        give(workspace, workspace_bytes[i % 2]);
        give(gradient, activation_bytes[i % 3]);
        give(run.activations[i], activation_bytes[i % 3]);
    }
}

/* The host waits only for an iteration that is so long ago. */
static void iterate(unsigned number, unsigned ahead)
{
    struct iteration *iteration = &run.ring[number % RING];

    iteration->queued_ns = bench_now();
    forwards(number);
    backwards(number);
    iteration->freed = run.freed;
    worked(cudaLaunchHostFunc(0, finish, iteration), "a host function is refused");
    worked(cudaEventRecord(run.events[number % RING], 0), "an event is refused");
    if (number >= ahead)
        worked(cudaEventSynchronize(run.events[(number - ahead) % RING]), "an event fails");
}

static void prepare(void)
{
    worked(cudaHostAlloc((void **)&seen, LAYERS * sizeof *seen, 0), "no host memory");
    for (unsigned i = 0; i < LAYERS; i++)
        run.weights[i] = take(activation_bytes[i % 3]);
    for (unsigned i = 0; i < RING; i++)
        worked(cudaEventCreateWithFlags(&run.events[i], cudaEventDisableTiming), "no event");
    worked(cudaDeviceSynchronize(), "the device fails");
}

/* How many iterations the stream takes so long for, as it is just now. */
static unsigned iterations_in(double ms)
{
    double begun = 0;

    for (unsigned i = 0; i < WARM_UP; i++) {
        if (i == 1)
            begun = bench_now();
        iterate(i, 0);
    }
    worked(cudaDeviceSynchronize(), "the device fails");
    unsigned ahead = (unsigned)(ms * 1e6 * (WARM_UP - 1) / (bench_now() - begun) + 0.5);
    run.ahead_ns = run.busy_ns = 0;
    run.in_flight_peak = 0;
    if (ahead >= RING)
        bench_die("that is too far ahead");
    return ahead;
}

int bench_runahead(const struct bench_allocator *allocator, int argc, char **argv)
{
    double ahead_ms = argc > 0 ? atof(argv[0]) : 500;
    unsigned iterations = argc > 1 ? (unsigned)atoi(argv[1]) : ITERATIONS_DEFAULT, ahead;
    struct bench_counts before, counts;

    run.allocator = allocator;
    prepare();
    ahead = iterations_in(ahead_ms);
    before = bench_count();
    double begun = bench_now();
    for (unsigned i = WARM_UP; i < WARM_UP + iterations; i++)
        iterate(i, ahead);
    worked(cudaDeviceSynchronize(), "the device fails");
    double seconds = (bench_now() - begun) / 1e9;
    counts = bench_count();
    for (unsigned i = 0; i < LAYERS; i++)
        give(run.weights[i], activation_bytes[i % 3]);
    printf("live_peak_bytes %zu\nreserved_peak_bytes %lld\nin_flight_peak_bytes %zu\nahead_ms %.1f\nseconds "
           "%.3f\nstream_seconds %.3f\n",
           run.live_peak, counts.peak_bytes, run.in_flight_peak, run.ahead_ns / 1e6, seconds,
           run.busy_ns / 1e9);
    printf("wrong %u\nevents %lld\nsyncs %lld\nvendor_calls %lld\n", run.wrong, counts.events - before.events,
           counts.syncs - before.syncs, counts.vendor_calls - before.vendor_calls);
    return 0;
}
