/*
 * costs: what the driver's own calls cost, by size, on an idle device or on one that is kept busy by kernels.
 *
 *   costs idle|busy [REPETITIONS]
 *
 * A line per call and size: "cost CALL BYTES STATE MEDIAN_NS P90_NS LEAST_NS COUNT"; bytes are 0 where size
 * does not matter, and a call that fails says "- status". On the simulator figures are those of the
 * simulator.
 */
#include "costs.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define KERNEL_NS 200000ULL
#define BACKLOG   8
#define MOST_MS   1000

static atomic_bool over;
static CUcontext context;

/* Keeps a stream busy with kernels of a known length, a few ahead, until told to stop. */
static void *keep_busy(void *data)
{
    CUevent events[BACKLOG];
    CUdeviceptr word;
    CUstream stream;
    CUfunction kernel;
    uint32_t value = 1;
    uint64_t limit = KERNEL_NS;

    (void)data;
    kit_must(cuCtxSetCurrent(context));
    kernel = kit_kernel("memsim_hold");
    kit_must(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    kit_must(cuMemAlloc_v2(&word, 256));
    kit_must(cuMemsetD8_v2(word, 0, 256));
    for (unsigned i = 0; i < BACKLOG; i++)
        kit_must(cuEventCreate(&events[i], CU_EVENT_DISABLE_TIMING));
    for (unsigned i = 0; !atomic_load(&over); i++) {
        void *parameters[] = {&word, &value, &limit};
        kit_must(cuEventSynchronize(events[i % BACKLOG]));
        kit_must(cuLaunchKernel(kernel, 1, 1, 1, 1, 1, 1, 0, stream, parameters, NULL));
        kit_must(cuEventRecord(events[i % BACKLOG], stream));
    }
    kit_must(cuStreamSynchronize(stream));
    return NULL;
}

static void measure(const struct cost_call *call, size_t bytes, const char *state, unsigned repetitions)
{
    struct cost_figures figures;
    int status = cost_measure(call, bytes, repetitions, MOST_MS, &figures);

    printf("cost %s %zu %s ", call->name, call->sized ? bytes : 0, state);
    if (status == 0)
        printf("%.0f %.0f %.0f %u\n", figures.median_ns, figures.p90_ns, figures.least_ns, figures.count);
    else
        printf("- %d\n", status);
    fflush(stdout);
}

int main(int argc, char **argv)
{
    unsigned repetitions = argc > 2 && atoi(argv[2]) > 0 ? (unsigned)atoi(argv[2]) : 100;
    size_t left, total;
    pthread_t thread;

    if (argc < 2 || (strcmp(argv[1], "idle") != 0 && strcmp(argv[1], "busy") != 0)) {
        fprintf(stderr, "usage: costs idle|busy [REPETITIONS]\n");
        return 2;
    }
    bool busy = strcmp(argv[1], "busy") == 0;
    context = kit_begin();
    cost_begin();
    kit_must(cuMemGetInfo_v2(&left, &total));
    if (busy && (!kit_kernel("memsim_hold") || pthread_create(&thread, NULL, keep_busy, NULL) != 0))
        kit_give_up("nothing keeps the device busy");
    for (size_t i = 0; i < cost_call_count; i++)
        for (size_t k = 0; k < (cost_calls[i].sized ? cost_size_count : 1); k++)
            if (!cost_calls[i].sized || cost_sizes[k] <= left / 4)
                measure(&cost_calls[i], cost_sizes[k], argv[1], repetitions);
    atomic_store(&over, true);
    if (busy)
        pthread_join(thread, NULL);
    return 0;
}
