/*
 * A busy program with a log of its own: THREADS threads allocate and free at random until they are killed,
 * and write down in a mapped file what they hold. Each entry of the log is of one thread; its state is
 * written last, so the log, too, is true at any moment but for the one call that each thread may be in.
 *
 * Usage: churn LOG THREADS [CALLS]: with CALLS they end after so many, together. The log is an array of
 * struct entry, THREADS * ENTRIES of them.
 */
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "vendor/abi/cuda_driver.h"
#include "vendor/abi/cuda_driver_fn.h"

enum { ENTRIES = 128, ALLOCATING = 1, LIVE = 2, FREEING = 3 };

struct entry {
    uint64_t address, bytes, state, unused;
};

static struct entry *entries;
static CUcontext context;
static unsigned long calls_each; /* 0: without end */

static void set_state(struct entry *entry, uint64_t state)
{
    __atomic_store_n(&entry->state, state, __ATOMIC_SEQ_CST);
}

/* Two places in the code, so that there are two sites. */
__attribute__((noinline)) static CUresult take_small(CUdeviceptr *address_p, size_t bytes)
{
    CUresult result = cuMemAlloc_v2(address_p, bytes);
    __asm__ volatile("");
    return result;
}

__attribute__((noinline)) static CUresult take_large(CUdeviceptr *address_p, size_t bytes)
{
    CUresult result = cuMemAlloc_v2(address_p, bytes);
    __asm__ volatile("");
    return result;
}

static void turn(struct entry *entry, unsigned random)
{
    CUdeviceptr address;

    if (entry->state == LIVE) {
        set_state(entry, FREEING);
        if (cuMemFree_v2(entry->address) != CUDA_SUCCESS)
            abort();
        set_state(entry, 0);
        return;
    }
    entry->bytes = 1 + (random >> 8) % 65536;
    set_state(entry, ALLOCATING);
    if ((entry->bytes < 4096 ? take_small : take_large)(&address, entry->bytes) != CUDA_SUCCESS)
        abort();
    entry->address = address;
    set_state(entry, LIVE);
}

static void *work(void *arg)
{
    uint64_t number = (uintptr_t)arg;
    unsigned random = (unsigned)(number * 7919 + (uint64_t)getpid());

    cuCtxSetCurrent(context);
    for (unsigned long i = 0; !calls_each || i < calls_each; i++) {
        random = random * 1664525 + 1013904223;
        turn(&entries[number * ENTRIES + (random >> 16) % ENTRIES], random >> 3);
    }
    return NULL;
}

int main(int argc, char **argv)
{
    long threads = argc == 3 || argc == 4 ? atol(argv[2]) : 0;
    size_t bytes = (size_t)threads * ENTRIES * sizeof(struct entry);
    int log = threads ? open(argv[1], O_RDWR | O_CREAT | O_TRUNC, 0600) : -1;
    pthread_t thread[64];

    if (log < 0 || threads < 1 || threads > 64 || ftruncate(log, (off_t)bytes) != 0) {
        fprintf(stderr, "usage: churn LOG THREADS [CALLS]\n");
        return 2;
    }
    calls_each = argc == 4 ? strtoul(argv[3], NULL, 10) / (unsigned long)threads : 0;
    entries = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, log, 0);
    if (entries == MAP_FAILED || cuInit(0) != CUDA_SUCCESS ||
        cuDevicePrimaryCtxRetain(&context, 0) != CUDA_SUCCESS)
        return 1;
    for (long i = 1; i < threads; i++)
        pthread_create(&thread[i], NULL, work, (void *)i);
    work(NULL);
    for (long i = 1; i < threads; i++)
        pthread_join(thread[i], NULL);
    return 0;
}
