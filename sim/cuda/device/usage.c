/*
 * Telling other processes what this one takes of the devices: see usage.h. Called under the rooms' own locks;
 * takes none. Where no file is to be had nothing is told.
 */
#include "sim/cuda/books.h"
#include "sim/cuda/device/usage.h"

#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

static pthread_once_t once = PTHREAD_ONCE_INIT;
static struct sim_usage *shared;

/* The descriptor stays open: it is by that that others find the file. */
static void make(void)
{
    int file = sim_memfd_open(SIM_USAGE_NAME, sizeof *shared);
    void *map =
        file < 0 ? MAP_FAILED : mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);

    if (map == MAP_FAILED) {
        if (file >= 0)
            close(file);
        return;
    }
    shared = map;
    shared->pid = (int32_t)getpid();
    __atomic_store_n(&shared->magic, SIM_USAGE_MAGIC, __ATOMIC_RELEASE);
}

void sim_usage_bytes(int ordinal, uint64_t used_bytes)
{
    pthread_once(&once, make);
    if (shared)
        __atomic_store_n(&shared->devices[ordinal].used_bytes, used_bytes, __ATOMIC_RELAXED);
}

void sim_usage_context(int ordinal, int more)
{
    pthread_once(&once, make);
    if (shared)
        __atomic_fetch_add(&shared->devices[ordinal].contexts, (uint64_t)(int64_t)more, __ATOMIC_RELAXED);
}

const char *sim_books_world(void)
{
    return "cuda";
}
