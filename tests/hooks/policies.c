/*
 * policies.c - what a policy of the pool changes, as the program itself sees it.
 *
 * usage: policies SCENARIO. Prints facts, one a line; policies.sh sets the variables and knows what they must
 * be. Work is held on the device by a host function that waits for the program, never for the time.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "vendor/abi/cuda_driver_fn.h"
#include "vendor/abi/cuda_runtime_fn.h"

#define MIB ((size_t)1 << 20)

static atomic_int held, released, done;

static void *allocate(size_t bytes)
{
    void *p = NULL;
    cudaError_t status = cudaMalloc(&p, bytes);

    if (status != cudaSuccess) {
        printf("cudaMalloc of %zu bytes: status %d\n", bytes, (int)status);
        exit(3);
    }
    return p;
}

static size_t free_bytes(void)
{
    size_t have = 0, all = 0;

    cudaMemGetInfo(&have, &all);
    return have;
}

static void hold(void *unused)
{
    (void)unused;
    held = 1;
    for (int i = 0; i < 20000 && !released; i++) /* the watchdog's time, should nobody come */
        usleep(1000);
    done = 1;
}

/* A stream that waits for `released`. */
static cudaStream_t held_stream(void)
{
    cudaStream_t stream = NULL;

    cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
    cudaLaunchHostFunc(stream, hold, NULL);
    while (!held)
        usleep(100);
    return stream;
}

static void *release_soon(void *unused)
{
    (void)unused;
    usleep(50000);
    released = 1;
    return NULL;
}

/* How many blocks of 8 MiB there are, and whether small ones come beside each other. */
static int fill(void)
{
    void *p;
    int count = 0;

    while (cudaMalloc(&p, 8 * MIB) == cudaSuccess)
        count++;
    cudaGetLastError();
    printf("blocks %d\n", count);
    return 0;
}

/* Behind six blocks of 12 MiB chunks are long enough for two large ones. */
static int layout(void)
{
    for (int i = 0; i < 6; i++)
        allocate(12 * MIB);
    char *small[2] = {allocate(1024), allocate(1024)},
         *large[2] = {allocate(5 * MIB / 2), allocate(5 * MIB / 2)};
    size_t apart = small[0] < small[1] ? (size_t)(small[1] - small[0]) : (size_t)(small[0] - small[1]);

    printf("small ones are %s\n", apart < MIB ? "near" : "far");
    printf("large ones are aligned %d\n",
           (uintptr_t)large[0] % (2 * MIB) == 0 && (uintptr_t)large[1] % (2 * MIB) == 0);
    printf("and to 64 KiB %d\n", ((uintptr_t)large[0] | (uintptr_t)large[1]) % (64 << 10) == 0);
    return 0;
}

/* A large block that was freed, and what the driver and the program then have. */
static int cached(void)
{
    size_t before = free_bytes(), now;

    cudaFree(allocate(48 * MIB));
    cudaDeviceSynchronize();
    now = free_bytes();
    printf("free again %d\n", now + 8 * MIB >= before);
    return 0;
}

/* Whether a free waits for work that came before it. */
static int free_waits(void)
{
    void *p = allocate(MIB);
    pthread_t thread;

    held_stream();
    pthread_create(&thread, NULL, release_soon, NULL);
    cudaFree(p);
    printf("waited %d\n", done);
    pthread_join(thread, NULL);
    cudaDeviceSynchronize();
    return 0;
}

/* Whether memory is given again while work that came before its free is not over. */
static int used_again(void)
{
    void *first[64], *again[64];
    int same = 0;

    for (int i = 0; i < 64; i++)
        first[i] = allocate(4096);
    held_stream();
    for (int i = 0; i < 64; i++)
        cudaFree(first[i]);
    for (int i = 0; i < 64; i++) {
        again[i] = allocate(4096);
        for (int k = 0; k < 64; k++)
            same += again[i] == first[k];
    }
    printf("used again %d\n", same > 0);
    released = 1;
    cudaDeviceSynchronize();
    return 0;
}

/* Every other block of a full device is freed: is there room for a large one? */
static int scattered(void)
{
    void *blocks[28], *large = NULL;
    int wrong = 0;

    for (int i = 0; i < 28; i++) {
        blocks[i] = allocate(2 * MIB);
        cudaMemset(blocks[i], i, 2 * MIB);
    }
    cudaDeviceSynchronize();
    for (int i = 0; i < 28; i += 2)
        cudaFree(blocks[i]);
    printf("status %d\n", (int)cudaMalloc(&large, 20 * MIB));
    if (large)
        cudaMemset(large, 0xee, 20 * MIB);
    for (int i = 1; i < 28; i += 2) {
        unsigned char byte = 0xff;
        cudaMemcpy(&byte, (char *)blocks[i] + MIB, 1, cudaMemcpyDeviceToHost);
        wrong += byte != i;
    }
    printf("wrong %d\n", wrong);
    return 0;
}

/* Nothing but the pending list is left: does an allocation wait for it? */
static int wait_for_pending(void)
{
    pthread_t thread;
    void *p = allocate(40 * MIB);
    cudaError_t status;

    held_stream();
    cudaFree(p);
    pthread_create(&thread, NULL, release_soon, NULL);
    status = cudaMalloc(&p, 40 * MIB);
    printf("status %d\n", (int)status);
    pthread_join(thread, NULL);
    cudaDeviceSynchronize();
    return 0;
}

static int poison(void)
{
    unsigned char bytes[4096];
    void *p = allocate(sizeof(bytes)), *q;
    int filled[2] = {1, 1};

    cudaMemset(p, 0x11, sizeof(bytes));
    cudaFree(p);
    cudaDeviceSynchronize();
    q = allocate(sizeof(bytes));
    cudaMemcpy(bytes, q, sizeof(bytes), cudaMemcpyDeviceToHost);
    for (size_t i = 0; i < sizeof(bytes); i++) {
        filled[0] &= bytes[i] == 0xa5;
        filled[1] &= bytes[i] == 0xdf;
    }
    printf("same %d alloc %d free %d\n", p == q, filled[0], filled[1]);
    return 0;
}

static int one(void)
{
    allocate(4096);
    allocate(4 * MIB);
    return 0;
}

/* A large block after a larger one was freed. */
static int large(void)
{
    cudaFree(allocate(64 * MIB));
    cudaDeviceSynchronize();
    allocate(20 * MIB);
    return 0;
}

/* ... in a program that has exported something. */
static int exported(void)
{
    cudaIpcMemHandle_t handle;

    if (cudaIpcGetMemHandle(&handle, allocate(4096)) != cudaSuccess)
        return 3;
    return large();
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        int (*run)(void);
    } scenarios[] = {{"fill", fill},
                     {"layout", layout},
                     {"cached", cached},
                     {"free-waits", free_waits},
                     {"again", used_again},
                     {"limbo", wait_for_pending},
                     {"scattered", scattered},
                     {"poison", poison},
                     {"one", one},
                     {"large", large},
                     {"exported", exported}};

    for (size_t i = 0; i < sizeof(scenarios) / sizeof(scenarios[0]); i++)
        if (argc == 2 && strcmp(argv[1], scenarios[i].name) == 0)
            return scenarios[i].run();
    fprintf(stderr, "policies: no such scenario\n");
    return 2;
}
