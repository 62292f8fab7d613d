/*
 * traps.c - runs one trap: traps NAME. `traps --list` prints every name, with the environment that it
 * needs. */
#include "traps.h"

#include <pthread.h>

const size_t trap_sizes[3] = {3000, 3 * MIB + 100, 20 * MIB};
const char *const trap_size_names[3] = {"small", "medium", "large"};

static const struct trap *const groups[] = {traps_order,   traps_free, traps_identity, traps_capture,
                                            traps_figures, traps_life, traps_misc,     traps_share};
#define GROUPS (sizeof groups / sizeof groups[0])

static void wait_at_gate(void *argument)
{
    struct gate *gate = argument;

    while (!atomic_load(&gate->open) && now_ms() - gate->closed_at < gate->ms)
        pause_ms(1);
}

static void close_gate(struct gate *gate, unsigned ms)
{
    gate->ms = ms;
    gate->closed_at = now_ms();
    atomic_store(&gate->open, 0);
}

void gate_close(struct gate *gate, unsigned ms, cudaStream_t stream)
{
    close_gate(gate, ms);
    cudaError_t status = cudaLaunchHostFunc(stream, wait_at_gate, gate);
    if (status)
        say("the gate cannot be closed: %d", status);
}

void gate_close_driver(struct gate *gate, unsigned ms, CUstream stream)
{
    close_gate(gate, ms);
    CUresult status = cuLaunchHostFunc(stream, wait_at_gate, gate);
    if (status)
        say("the gate cannot be closed: %d", status);
}

void gate_open(struct gate *gate)
{
    atomic_store(&gate->open, 1);
}

void *take(size_t bytes)
{
    void *p = NULL;
    cudaError_t status = cudaMalloc(&p, bytes);

    if (!status)
        return p;
    say("%zu bytes: status %d", bytes, status);
    exit(3);
}

CUdeviceptr take_driver(size_t bytes)
{
    CUdeviceptr p = 0;
    CUresult status = cuMemAlloc_v2(&p, bytes);

    if (!status)
        return p;
    say("%zu bytes: status %d", bytes, status);
    exit(3);
}

#define LOOK ((size_t)1024)

void fill(void *device, size_t bytes, int value, cudaStream_t stream)
{
    size_t length = bytes < LOOK ? bytes : LOOK, starts[3] = {0, (bytes - length) / 2, bytes - length};

    for (int i = 0; i < 3; i++) {
        cudaError_t status = cudaMemsetAsync((char *)device + starts[i], value, length, stream);

        if (status)
            say("a fill: %d", status);
    }
}

static int count_differing(const unsigned char *seen, size_t bytes, int value)
{
    int found = 0;

    for (size_t i = 0; i < bytes; i++)
        found += seen[i] != (unsigned char)value;
    return found;
}

int differing(const void *device, size_t bytes, int value)
{
    size_t length = bytes < LOOK ? bytes : LOOK, starts[3] = {0, (bytes - length) / 2, bytes - length};
    unsigned char seen[LOOK];
    int found = 0;

    for (int i = 0; i < 3; i++) {
        if (cudaMemcpy(seen, (const char *)device + starts[i], length, cudaMemcpyDeviceToHost))
            return -1;
        found += count_differing(seen, length, value);
    }
    return found;
}

int differing_driver(CUdeviceptr device, size_t bytes, int value)
{
    size_t length = bytes < LOOK ? bytes : LOOK, starts[3] = {0, (bytes - length) / 2, bytes - length};
    unsigned char seen[LOOK];
    int found = 0;

    for (int i = 0; i < 3; i++) {
        if (cuMemcpyDtoH_v2(seen, device + starts[i], length))
            return -1;
        found += count_differing(seen, length, value);
    }
    return found;
}

size_t free_bytes(void)
{
    size_t available = 0, total = 0;
    cudaError_t status = cudaMemGetInfo(&available, &total);

    if (status)
        say("cudaMemGetInfo: %d", status);
    return available;
}

struct errand {
    void (*function)(void *);
    void *argument;
};

static void *run_errand(void *argument)
{
    struct errand *errand = argument;

    errand->function(errand->argument);
    return NULL;
}

void elsewhere(void (*function)(void *), void *argument)
{
    struct errand errand = {function, argument};
    pthread_t thread;

    if (pthread_create(&thread, NULL, run_errand, &errand) == 0)
        pthread_join(thread, NULL);
}

CUcontext primary(CUdevice device)
{
    CUcontext ctx = NULL;

    if (cuInit(0) || cuDevicePrimaryCtxRetain(&ctx, device) || cuCtxSetCurrent(ctx)) {
        say("there is no context");
        exit(3);
    }
    return ctx;
}

int main(int argc, char **argv)
{
    bool list = argc == 2 && strcmp(argv[1], "--list") == 0;

    if (argc != 2)
        return 2;
    for (size_t i = 0; i < GROUPS; i++)
        for (const struct trap *trap = groups[i]; trap->name; trap++) {
            if (list) {
                printf("%s %s\n", trap->name, trap->environment ? trap->environment : "");
            } else if (strcmp(trap->name, argv[1]) == 0) {
                trap->run();
                return 0;
            }
        }
    return list ? 0 : 2;
}
