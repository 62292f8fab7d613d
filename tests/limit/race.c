/*
 * race.c - threads that take and give memory of every kind at the limit, all at once: for race.py. The
 * device never gives more than MEMSHIM_LIMIT, and in the end everything is there again.
 *
 *   race LIMIT ROUNDS
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "vendor/abi/cuda_driver_fn.h"
#include "vendor/abi/cuda_runtime.h"
#include "vendor/abi/cuda_runtime_fn.h"

#define MIB ((size_t)1 << 20)
enum { THREADS = 6, HELD = 4, KINDS = 5 };

static const CUmemAllocationProp pages = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                          .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE}};
static int rounds;
static atomic_int taken, refused, wrong;

struct held {
    uint64_t what;
    int kind;
};

static int take(struct held *held, size_t bytes)
{
    const CUDA_ARRAY_DESCRIPTOR flat = {4096, bytes / 65536, CU_AD_FORMAT_FLOAT, 4};
    int status;

    switch (held->kind) {
    case 0:
        status = (int)cudaMalloc((void **)&held->what, bytes);
        break;
    case 1:
        status = (int)cuMemCreate((CUmemGenericAllocationHandle *)&held->what, bytes, &pages, 0);
        break;
    case 2:
        status = (int)cuArrayCreate_v2((CUarray *)&held->what, &flat);
        break;
    case 3:
        status = (int)cuMemAlloc_v2((CUdeviceptr *)&held->what, bytes);
        break;
    default:
        status = (int)cuMemAllocManaged((CUdeviceptr *)&held->what, bytes, 1);
        break;
    }
    if (status)
        held->what = 0;
    return status;
}

static int give(struct held *held)
{
    int status;

    switch (held->kind) {
    case 1:
        status = (int)cuMemRelease(held->what);
        break;
    case 2:
        status = (int)cuArrayDestroy((CUarray)(uintptr_t)held->what);
        break;
    case 0:
        status = (int)cudaFree((void *)(uintptr_t)held->what);
        break;
    default:
        status = (int)cuMemFree_v2(held->what);
        break;
    }
    held->what = 0;
    return status;
}

static void *work(void *arg)
{
    struct held held[HELD] = {{0}};
    unsigned seed = (unsigned)(uintptr_t)arg + 1;

    atomic_fetch_add(&wrong, cudaFree(NULL) != 0);
    for (int i = 0; i < rounds; i++) {
        struct held *one = &held[rand_r(&seed) % HELD];
        if (one->what) {
            atomic_fetch_add(&wrong, give(one) != 0);
            continue;
        }
        one->kind = (int)(rand_r(&seed) % KINDS);
        int status = take(one, (size_t)(1 + rand_r(&seed) % 8) * 2 * MIB);
        atomic_fetch_add(status ? &refused : &taken, 1);
        atomic_fetch_add(&wrong, status != 0 && status != CUDA_ERROR_OUT_OF_MEMORY);
    }
    for (int i = 0; i < HELD; i++)
        if (held[i].what)
            atomic_fetch_add(&wrong, give(&held[i]) != 0);
    return NULL;
}

int main(int argc, char **argv)
{
    pthread_t threads[THREADS];
    void *driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
    long long (*count)(const char *) =
        driver ? (long long (*)(const char *))(uintptr_t)dlsym(driver, "memsim_count") : NULL;
    long long limit = argc == 3 ? atoll(argv[1]) : 0;
    size_t left = 0, total = 0;

    if (!count || !limit)
        return 99;
    rounds = atoi(argv[2]);
    cudaFree(NULL);
    for (uintptr_t i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, work, (void *)i);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    cudaDeviceSynchronize();
    cudaMemGetInfo(&left, &total);
    printf("taken %d\nrefused %d\nwrong %d\nmost %lld\nleft %zu\ntotal %zu\n", atomic_load(&taken),
           atomic_load(&refused), atomic_load(&wrong), count("peak_bytes"), left, total);
    return 0;
}
