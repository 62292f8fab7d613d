/*
 * exchange.c - worker processes that exchange buffers through the runtime's IPC functions, and read and write
 * through each other's pointers.
 *
 * usage: exchange WORKERS KIND ROUNDS     KIND: packed, single, mixed; prints the same natively and under
 * memshim
 *
 * Each worker allocates buffers, and between them blocks that nobody else may see; fills all of them;
 * publishes its handles; opens everybody else's; reads every byte; writes its own stripe into each. Then each
 * worker finds the others' stripes in its buffers, and its own blocks as they were. Handles are taken as TVM
 * does (the buffer is the base) and, every other time, as vLLM does: from the start of the range that a
 * pointer in the middle lies in, with the offset sent along.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "vendor/abi/cuda_driver.h"
#include "vendor/abi/cuda_driver_fn.h"
#include "vendor/abi/cuda_runtime_fn.h"

enum { WORKERS_MAX = 16, BUFFERS = 8, SHARED_FD = 100 };
#define MIB (1u << 20)

static const size_t sizes[3][BUFFERS] = {
    {100, 512, 1000, 4096, 5000, 65536, 300000, MIB},
    {20 * MIB, 17 * MIB + 100, 16 * MIB, 16 * MIB, 16 * MIB + 1, 16 * MIB, 17 * MIB, 16 * MIB + 5},
    {100, 17 * MIB, 3 * MIB, 4096, 2 * MIB, 16 * MIB, 4 * MIB + 5, 65536},
};

struct shared {
    pthread_barrier_t barrier;
    struct {
        cudaIpcMemHandle_t handle;
        size_t offset; /* from the pointer that the handle opens */
    } sent[WORKERS_MAX][BUFFERS];
    int wrong[WORKERS_MAX];
};

static struct shared *shared;
static unsigned workers, rank, kind;
static unsigned char *host;

static void wrong(const char *what, long a, long b)
{
    fprintf(stderr, "worker %u: %s: %ld %ld\n", rank, what, a, b);
    shared->wrong[rank]++;
}

#define must(call)                                                                                           \
    do {                                                                                                     \
        int status_ = (int)(call);                                                                           \
        if (status_)                                                                                         \
            wrong(#call, status_, 0);                                                                        \
    } while (0)

static unsigned char value_of(unsigned owner, unsigned buffer, unsigned round)
{
    return (unsigned char)(1 + owner * 31 + buffer * 7 + round * 3);
}

static void fill(void *p, size_t bytes, unsigned char value)
{
    must(cudaMemset(p, value, bytes));
}

static void check(const void *p, size_t bytes, unsigned char value, const char *what, unsigned buffer)
{
    must(cudaMemcpy(host, p, bytes, cudaMemcpyDeviceToHost));
    if (host[0] != value || memcmp(host, host + 1, bytes - 1) != 0)
        wrong(what, (long)buffer, (long)host[0]);
}

/* Worker `w`'s part of a buffer. */
static size_t stripe(size_t bytes, unsigned w, size_t *length_p)
{
    size_t begin = bytes * w / workers;

    *length_p = bytes * (w + 1) / workers - begin;
    return begin;
}

static void send(unsigned buffer, char *p, size_t bytes, unsigned round)
{
    if (round % 2 == 0) {
        shared->sent[rank][buffer].offset = 0;
        must(cudaIpcGetMemHandle(&shared->sent[rank][buffer].handle, p));
        return;
    }
    char *middle = p + bytes / 2;
    CUdeviceptr start = 0;
    must(cuPointerGetAttribute(&start, CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, (CUdeviceptr)middle));
    shared->sent[rank][buffer].offset = (size_t)((CUdeviceptr)middle - start) - bytes / 2;
    must(cudaIpcGetMemHandle(&shared->sent[rank][buffer].handle, (void *)(uintptr_t)start));
}

static void visit(unsigned owner, unsigned buffer, unsigned round)
{
    size_t bytes = sizes[kind][buffer], length, begin, size = 0;
    void *opened = NULL, *again = NULL;
    CUdeviceptr base = 0;

    must(cudaIpcOpenMemHandle(&opened, shared->sent[owner][buffer].handle, cudaIpcMemLazyEnablePeerAccess));
    must(cudaIpcOpenMemHandle(&again, shared->sent[owner][buffer].handle, cudaIpcMemLazyEnablePeerAccess));
    if (opened != again || !opened) {
        wrong("opened twice", owner, buffer);
        return;
    }
    char *p = (char *)opened + shared->sent[owner][buffer].offset;
    must(cuMemGetAddressRange_v2(&base, &size, (CUdeviceptr)p + bytes / 2));
    /* What is an allocation of the vendor's may have been a larger block before. */
    if (base != (CUdeviceptr)p || size < bytes || (bytes < 16 * MIB && size != bytes))
        wrong("the range of an opened buffer", (long)((CUdeviceptr)p - base), (long)size);
    check(p, bytes, value_of(owner, buffer, round), "another's buffer", buffer);
    pthread_barrier_wait(&shared->barrier); /* everybody has read this one */
    begin = stripe(bytes, rank, &length);
    if (length)
        fill(p + begin, length, value_of(rank, buffer, round + 1));
    must(cudaDeviceSynchronize());
    must(cudaIpcCloseMemHandle(opened));
    must(cudaIpcCloseMemHandle(again));
}

/* One barrier for each buffer of each owner, also for the owner. */
static void visit_all(unsigned round)
{
    for (unsigned owner = 0; owner < workers; owner++) {
        for (unsigned buffer = 0; buffer < BUFFERS; buffer++) {
            if (owner == rank)
                pthread_barrier_wait(&shared->barrier);
            else
                visit(owner, buffer, round);
        }
    }
}

static void check_own(char *const *own, char *const *hidden, unsigned round)
{
    for (unsigned b = 0; b < BUFFERS; b++) {
        for (unsigned w = 0; w < workers; w++) {
            size_t length, begin = stripe(sizes[kind][b], w, &length);
            if (length)
                check(own[b] + begin, length, value_of(w, b, round + (w != rank)), "what others wrote", b);
        }
        check(hidden[b], sizes[kind][b], (unsigned char)(255 - b), "a block that was not shared", b);
    }
}

static void play(unsigned round)
{
    char *own[BUFFERS], *hidden[BUFFERS];

    for (unsigned b = 0; b < BUFFERS; b++) {
        must(cudaMalloc((void **)&own[b], sizes[kind][b]));
        must(cudaMalloc((void **)&hidden[b], sizes[kind][b]));
        fill(own[b], sizes[kind][b], value_of(rank, b, round));
        fill(hidden[b], sizes[kind][b], (unsigned char)(255 - b));
    }
    must(cudaDeviceSynchronize());
    for (unsigned b = 0; b < BUFFERS; b++)
        send(b, own[b], sizes[kind][b], round);
    pthread_barrier_wait(&shared->barrier);
    visit_all(round);
    pthread_barrier_wait(&shared->barrier);
    check_own(own, hidden, round);
    for (unsigned b = 0; b < BUFFERS; b++) {
        must(cudaFree(own[b]));
        must(cudaFree(hidden[b]));
    }
    pthread_barrier_wait(&shared->barrier);
}

static int work(char **argv)
{
    unsigned rounds = (unsigned)atoi(argv[3]);

    rank = (unsigned)atoi(argv[4]);
    shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED, SHARED_FD, 0);
    host = malloc(32 * MIB);
    if (shared == MAP_FAILED || !host)
        return 3;
    for (unsigned round = 0; round < rounds; round++)
        play(round);
    return shared->wrong[rank] != 0;
}

static pid_t start(char **argv, unsigned worker)
{
    char number[16];
    pid_t child = fork();

    if (child == 0) {
        snprintf(number, sizeof(number), "%u", worker);
        execl("/proc/self/exe", argv[0], argv[1], argv[2], argv[3], number, (char *)NULL);
        _exit(127);
    }
    return child;
}

int main(int argc, char **argv)
{
    pthread_barrierattr_t attributes;
    int failed = 0, status;

    if (argc < 4)
        return 2;
    workers = (unsigned)atoi(argv[1]);
    kind = strcmp(argv[2], "packed") == 0 ? 0 : strcmp(argv[2], "single") == 0 ? 1 : 2;
    if (workers > WORKERS_MAX)
        return 2;
    if (argc > 4)
        return work(argv);
    int fd = memfd_create("exchange", 0);
    if (dup2(fd, SHARED_FD) != SHARED_FD || ftruncate(fd, sizeof(*shared)) != 0)
        return 3;
    shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED, SHARED_FD, 0);
    if (shared == MAP_FAILED)
        return 3;
    pthread_barrierattr_init(&attributes);
    pthread_barrierattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
    pthread_barrier_init(&shared->barrier, &attributes, workers);
    for (unsigned w = 0; w < workers; w++)
        start(argv, w);
    while (wait(&status) > 0)
        failed += status != 0;
    printf("%u workers, %s: %d failed\n", workers, argv[2], failed);
    return failed != 0;
}
