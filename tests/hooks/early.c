/*
 * early.c - a library that allocates in its constructor: directly, and in a thread that the constructor waits
 * for.
 *
 * Its constructor runs before memshim's when the program is linked with it, and with the loader's lock held
 * when it is opened. It is linked with the driver: natively nothing in here needs the loader, so nothing may
 * wait for it.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "vendor/abi/cuda_driver_fn.h"

int early_results[4];

static int allocate(void)
{
    CUcontext context;
    CUdeviceptr p = 0;
    int status = cuInit(0);

    if (status == 0)
        status = cuDevicePrimaryCtxRetain(&context, 0);
    if (status == 0)
        status = cuCtxSetCurrent(context);
    if (status == 0)
        status = cuMemAlloc_v2(&p, 3 << 12);
    if (status == 0)
        status = cuMemFree_v2(p);
    if (status == 0)
        status = cuMemAlloc_v2(&p, 5 << 12);
    return status;
}

static void *thread_main(void *result)
{
    *(int *)result = allocate();
    return NULL;
}

__attribute__((constructor)) static void early(void)
{
    pthread_t thread;

    if (getenv("EARLY_THREAD_FIRST")) {
        early_results[2] = pthread_create(&thread, NULL, thread_main, &early_results[1]);
        pthread_join(thread, NULL);
        early_results[0] = allocate();
    } else {
        early_results[0] = allocate();
        early_results[2] = pthread_create(&thread, NULL, thread_main, &early_results[1]);
        pthread_join(thread, NULL);
    }
}
