/*
 * threads.c - threads of one process export blocks and free them, threads of another open, read and close
 * them, all at once. Each slot's lock keeps a block alive while it is open; handles of blocks that are gone
 * are opened as well, and must be refused or be of no effect.
 *
 * usage: threads ROUNDS
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "vendor/abi/cuda_runtime_fn.h"

enum { SLOTS = 12, THREADS = 4, SHARED_FD = 100, SMALL = 3000 };

struct shared {
    pthread_barrier_t start;
    struct {
        pthread_mutex_t lock;
        cudaIpcMemHandle_t handle;
        size_t bytes;
        unsigned char value;
    } slots[SLOTS];
};

static struct shared *shared;
static unsigned rounds;
static atomic_int wrong;
static void *pointers[SLOTS];

static void complain(const char *what, unsigned slot, int status)
{
    fprintf(stderr, "%s: slot %u, status %d\n", what, slot, status);
    atomic_fetch_add(&wrong, 1);
}

static void refill(unsigned slot, unsigned value)
{
    size_t bytes = slot % 4 == 3 ? 17u << 20 : SMALL + slot * 100;
    void *p = NULL;
    int status = (int)cudaMalloc(&p, bytes);

    status += (int)cudaMemset(p, (int)value, SMALL);
    status += (int)cudaDeviceSynchronize();
    status += (int)cudaIpcGetMemHandle(&shared->slots[slot].handle, p);
    if (status)
        complain("exporting", slot, status);
    pointers[slot] = p;
    shared->slots[slot].bytes = bytes;
    shared->slots[slot].value = (unsigned char)value;
}

static void *export_some(void *arg)
{
    unsigned seed = (unsigned)(uintptr_t)arg;

    for (unsigned i = 0; i < rounds; i++) {
        unsigned slot = (unsigned)rand_r(&seed) % SLOTS;
        pthread_mutex_lock(&shared->slots[slot].lock);
        if (cudaFree(pointers[slot]) != cudaSuccess)
            complain("freeing", slot, 0);
        refill(slot, (unsigned)rand_r(&seed) % 255 + 1);
        pthread_mutex_unlock(&shared->slots[slot].lock);
    }
    return NULL;
}

static void visit(unsigned slot, unsigned char *host)
{
    void *p = NULL;
    int status = (int)cudaIpcOpenMemHandle(&p, shared->slots[slot].handle, cudaIpcMemLazyEnablePeerAccess);

    if (status) {
        complain("opening", slot, status);
        return;
    }
    status = (int)cudaMemcpy(host, p, SMALL, cudaMemcpyDeviceToHost);
    for (unsigned i = 0; i < SMALL && !status; i++)
        status = host[i] != shared->slots[slot].value ? 1000 + (int)i : 0;
    if (status)
        complain("reading", slot, status);
    status = (int)cudaIpcCloseMemHandle(p);
    if (status)
        complain("closing", slot, status);
}

static void *import_some(void *arg)
{
    unsigned seed = (unsigned)(uintptr_t)arg + 100;
    unsigned char host[SMALL];
    cudaIpcMemHandle_t old;
    void *p;

    memset(&old, 0, sizeof(old));
    for (unsigned i = 0; i < rounds; i++) {
        unsigned slot = (unsigned)rand_r(&seed) % SLOTS;
        pthread_mutex_lock(&shared->slots[slot].lock);
        visit(slot, host);
        if (i % 8 == 0)
            old = shared->slots[slot].handle;
        pthread_mutex_unlock(&shared->slots[slot].lock);
        if (i % 8 == 7 && cudaIpcOpenMemHandle(&p, old, cudaIpcMemLazyEnablePeerAccess) == cudaSuccess &&
            cudaIpcCloseMemHandle(p) != cudaSuccess)
            complain("closing what was perhaps freed", slot, 0);
    }
    return NULL;
}

static int work(const char *role)
{
    void *(*play)(void *) = strcmp(role, "export") == 0 ? export_some : import_some;
    pthread_t threads[THREADS];

    shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED, SHARED_FD, 0);
    if (shared == MAP_FAILED)
        return 3;
    if (play == export_some) {
        for (unsigned slot = 0; slot < SLOTS; slot++)
            refill(slot, slot + 1);
    }
    pthread_barrier_wait(&shared->start);
    for (uintptr_t t = 0; t < THREADS; t++)
        pthread_create(&threads[t], NULL, play, (void *)(t + 1));
    for (unsigned t = 0; t < THREADS; t++)
        pthread_join(threads[t], NULL);
    pthread_barrier_wait(&shared->start);
    for (unsigned slot = 0; slot < SLOTS && play == export_some; slot++)
        cudaFree(pointers[slot]);
    return atomic_load(&wrong) != 0;
}

static void start(char **argv, const char *role)
{
    if (fork() == 0) {
        execl("/proc/self/exe", argv[0], argv[1], role, (char *)NULL);
        _exit(127);
    }
}

static void prepare(void)
{
    pthread_barrierattr_t barrier;
    pthread_mutexattr_t mutex;

    pthread_barrierattr_init(&barrier);
    pthread_barrierattr_setpshared(&barrier, PTHREAD_PROCESS_SHARED);
    pthread_barrier_init(&shared->start, &barrier, 2);
    pthread_mutexattr_init(&mutex);
    pthread_mutexattr_setpshared(&mutex, PTHREAD_PROCESS_SHARED);
    for (unsigned slot = 0; slot < SLOTS; slot++)
        pthread_mutex_init(&shared->slots[slot].lock, &mutex);
}

int main(int argc, char **argv)
{
    int failed = 0, status;

    if (argc < 2)
        return 2;
    rounds = (unsigned)atoi(argv[1]);
    if (argc > 2)
        return work(argv[2]);
    int fd = memfd_create("threads", 0);
    if (dup2(fd, SHARED_FD) != SHARED_FD || ftruncate(fd, sizeof(*shared)) != 0)
        return 3;
    shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED, SHARED_FD, 0);
    if (shared == MAP_FAILED)
        return 3;
    prepare();
    start(argv, "export");
    start(argv, "import");
    while (wait(&status) > 0)
        failed += status != 0;
    printf("%d failed\n", failed);
    return failed != 0;
}
