/*
 * driver.h: what the tests of the simulated driver share. They are linked against it and see its functions
 * under their exported names.
 */
#ifndef MS_TESTS_SIM_DRIVER_H
#define MS_TESTS_SIM_DRIVER_H

#include <errno.h>
#include <pthread.h>
#include <time.h>
#include <unistd.h>

#include "vendor/abi/cuda_driver.h"
#include "vendor/abi/cuda_driver_fn.h"
#include "tests/clock.h"
#include "tests/tap.h"

#define MIB (1024UL * 1024UL)

/** The call answers this status. */
#define answers(call, status) is_int((call), (status), "%s answers " #status, #call)

/** The call must succeed, or nothing that follows makes sense. */
#define must(call)                                                                                           \
    do {                                                                                                     \
        CUresult must_status = (call);                                                                       \
        if (must_status != CUDA_SUCCESS)                                                                     \
            bail("%s:%d: %s: status %d", __FILE__, __LINE__, #call, (int)must_status);                       \
    } while (0)

/** A primary context of device 0, current. */
__attribute__((unused)) static CUcontext begin(void)
{
    CUcontext ctx;

    must(cuInit(0));
    must(cuDevicePrimaryCtxRetain(&ctx, 0));
    must(cuCtxSetCurrent(ctx));
    return ctx;
}

/** A host function that holds its stream until the flag behind data is raised; 10 seconds at most. */
__attribute__((unused)) static void hold(void *data)
{
    for (int i = 0; i < 10000 && !atomic_load((atomic_int *)data); i++)
        pause_ms(1);
}

/** How many threads this process has. */
__attribute__((unused)) static int thread_count(void)
{
    char line[256];
    int count = -1;
    FILE *status = fopen("/proc/self/status", "r");

    while (status && fgets(line, sizeof line, status))
        if (sscanf(line, "Threads: %d", &count) == 1)
            break;
    if (status)
        fclose(status);
    return count;
}

#endif
