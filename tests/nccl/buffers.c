/*
 * ncclMemAlloc as programs use it, one small part for each argument: what it prints does not depend on who
 * answers. How often the driver made memory is said on standard error, for whoever compares.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "vendor/abi/cuda_driver_fn.h"
#include "vendor/abi/cuda_runtime_fn.h"
#include "vendor/abi/nccl_fn.h"

enum { MIB = 1 << 20 };

static long long creates(void)
{
    static long long (*count)(const char *);

    if (!count) {
        void *simulator = dlopen("libcuda.so.1", RTLD_NOW);
        *(void **)&count = simulator ? dlsym(simulator, "memsim_count") : NULL;
    }
    return count ? count("cuMemCreate") : -1;
}

/* For each part: what the driver made since the last. */
static void say_made(const char *what)
{
    static long long before;
    long long now = creates();

    fprintf(stderr, "made %s %lld\n", what, now - before);
    before = now;
}

static int fill_and_check(void *p, size_t bytes, int value)
{
    unsigned char *host = malloc(bytes);
    int bad = cudaMemset(p, value, bytes) || cudaMemcpy(host, p, bytes, cudaMemcpyDeviceToHost);

    for (size_t i = 0; i < bytes; i++)
        bad |= host[i] != (unsigned char)value;
    free(host);
    return bad;
}

/* An autotuner tries work areas of several sizes, round after round. */
static void autotune(void)
{
    static const size_t sizes[] = {(size_t)5 * MIB + 1, (size_t)64 * MIB, (size_t)33 * MIB};

    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < 3; i++) {
            void *work = NULL, *more = NULL;
            int alloc = (int)ncclMemAlloc(&work, sizes[i]) | (int)pncclMemAlloc(&more, 1000);
            int bad = fill_and_check(work, sizes[i], round * 3 + i) | fill_and_check(more, 1000, i);

            printf("round %d size %d: %d %d %d\n", round, i, alloc, bad,
                   (int)pncclMemFree(work) | (int)ncclMemFree(more));
        }
        cudaDeviceSynchronize();
        say_made("round");
    }
}

static void statuses(void)
{
    void *p = NULL, *none = (void *)0x1;
    CUdeviceptr base = 0;
    size_t bytes = 0;

    printf("nowhere %d\n", ncclMemAlloc(NULL, 100));
    printf("nothing %d\n", ncclMemAlloc(&none, 0));
    printf("pointer %p\n", none);
    none = (void *)0x1;
    printf("too much %d\n", ncclMemAlloc(&none, (size_t)1 << 50));
    printf("pointer %p\n", none);
    printf("free nothing %d\n", ncclMemFree(NULL));
    printf("alloc %d\n", ncclMemAlloc(&p, 100));
    printf("range %d", cuMemGetAddressRange_v2(&base, &bytes, (uintptr_t)p + 50));
    printf(" %d %zu\n", base == (uintptr_t)p, bytes);
    printf("free of the inside %d\n", ncclMemFree((void *)((uintptr_t)p + 512)));
    printf("free by cudaFree %d\n", cudaFree(p));
    cudaGetLastError();
    printf("free %d\n", ncclMemFree(p));
    printf("free again %d\n", ncclMemFree(p));
    printf("range of what is gone %d\n", cuMemGetAddressRange_v2(&base, &bytes, (uintptr_t)p) != 0);
}

/* As the library itself does, and as cuDecomp does with its own. */
static int take_apart(void *p)
{
    CUmemGenericAllocationHandle handle;
    size_t bytes = 0;
    int status = cuMemRetainAllocationHandle(&handle, p);

    status |= cuMemRelease(handle) | cuMemGetAddressRange_v2(NULL, &bytes, (uintptr_t)p) |
              cuMemUnmap((uintptr_t)p, bytes);
    status |= cuMemRelease(handle) | cuMemAddressFree((uintptr_t)p, bytes);
    return status;
}

static void apart(void)
{
    for (int round = 0; round < 3; round++) {
        void *p = NULL, *q = NULL;
        int status = ncclMemAlloc(&p, 3 * MIB) | (int)ncclMemAlloc(&q, 3 * MIB);

        printf("round %d: %d", round, status);
        printf(" %d", fill_and_check(p, 3 * MIB, 5) | take_apart(p));
        printf(" %d", fill_and_check(q, 3 * MIB, 6));
        printf(" %d\n", (int)ncclMemFree(q));
    }
    say_made("apart");
}

/* Work that is still to come when the buffer is freed must not show in the next one. */
static void late(void)
{
    unsigned char *host = malloc(4 * MIB);
    cudaStream_t stream;
    int dirty = 0;

    cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
    for (int i = 0; i < 30; i++) {
        void *p = NULL;

        if (ncclMemAlloc(&p, 4 * MIB) || cudaMemset(p, 0, 4 * MIB) || cudaDeviceSynchronize())
            printf("no buffer\n");
        cudaMemcpy(host, p, 4 * MIB, cudaMemcpyDeviceToHost);
        for (int k = 0; k < 4 * MIB; k++)
            dirty |= host[k];
        for (int k = 0; k < 8; k++)
            cudaMemsetAsync(p, 0xff, 4 * MIB, stream);
        cudaStreamSynchronize(stream); /* a program has to, natively */
        ncclMemFree(p);
    }
    printf("dirty %d\n", dirty);
    cudaStreamDestroy(stream);
    free(host);
}

static void registered(void)
{
    ncclComm_t comm = NULL;
    ncclWindow_t window = NULL;
    void *p = NULL, *q = NULL, *handle = NULL;

    printf("comm %d\n", ncclCommInitAll(&comm, 1, NULL));
    ncclMemAlloc(&p, 2 * MIB);
    say_made("first");
    printf("register %d\n", ncclCommRegister(comm, p, 2 * MIB, &handle));
    ncclMemFree(p);
    ncclMemAlloc(&q, 2 * MIB); /* the first is registered: it must be another */
    say_made("while registered");
    printf("another %d\n", p != q || creates() > 1);
    printf("deregister %d\n", ncclCommDeregister(comm, handle));
    printf("window %d\n", ncclCommWindowRegister(comm, q, 2 * MIB, &window, NCCL_WIN_DEFAULT));
    printf("deregister %d\n", ncclCommWindowDeregister(comm, window));
    printf("free %d\n", ncclMemFree(q));
    cudaDeviceSynchronize();
    say_made("meanwhile");
    ncclMemAlloc(&p, 2 * MIB);
    ncclMemAlloc(&q, 2 * MIB);
    say_made("after");
    printf("register %d\n", ncclCommRegister(comm, p, 2 * MIB, &handle));
    printf("free %d\n", ncclMemFree(p) | (int)ncclMemFree(q));
    printf("destroy %d\n", ncclCommDestroy(comm));
    cudaDeviceSynchronize();
    ncclMemAlloc(&p, 2 * MIB);
    ncclMemAlloc(&q, 2 * MIB);
    say_made("after the communicator");
    printf("free %d\n", ncclMemFree(p) | (int)ncclMemFree(q));
}

static void short_of_memory(void)
{
    void *p[8] = {NULL}, *big = NULL;
    int got = 0;

    for (int i = 0; i < 6; i++)
        got += ncclMemAlloc(&p[i], 16 * MIB) == ncclSuccess;
    for (int i = 0; i < 6; i++)
        ncclMemFree(p[i]);
    printf("got %d\n", got);
    printf("all of it, for the driver %d\n", cudaMalloc(&big, 100 * MIB));
    printf("none left %d\n", ncclMemAlloc(&p[0], 64 * MIB));
    printf("free %d\n", cudaFree(big));
    printf("all of it, for the library %d\n", ncclMemAlloc(&p[0], 100 * MIB));
    printf("free %d\n", ncclMemFree(p[0]));
}

static void *worker(void *arg)
{
    int bad = 0;

    for (int i = 0; i < 40; i++) {
        void *p = NULL, *q = NULL;

        bad |= ncclMemAlloc(&p, 2 * MIB) | (int)ncclMemAlloc(&q, 4 * MIB);
        bad |= fill_and_check(p, 4096, i) | fill_and_check(q, 4096, i + 1);
        bad |= ncclMemFree(q) | (int)ncclMemFree(p);
    }
    *(int *)arg = bad;
    return NULL;
}

static void threads(void)
{
    pthread_t thread[4];
    int bad[4];

    for (int i = 0; i < 4; i++)
        pthread_create(&thread[i], NULL, worker, &bad[i]);
    for (int i = 0; i < 4; i++) {
        pthread_join(thread[i], NULL);
        printf("thread %d: %d\n", i, bad[i]);
    }
}

static void two_devices(void)
{
    void *p = NULL, *q = NULL;
    int device = -1;

    cudaSetDevice(0);
    printf("on one %d\n", ncclMemAlloc(&p, MIB));
    cudaSetDevice(1);
    printf("on the other %d\n", ncclMemAlloc(&q, MIB));
    printf("freed from the other %d\n", ncclMemFree(p));
    printf("not its memory %d\n", ncclMemAlloc(&p, MIB));
    cuPointerGetAttribute(&device, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, (uintptr_t)p);
    printf("device %d\n", device);
    printf("free %d\n", ncclMemFree(p) | (int)ncclMemFree(q));
}

static void reset(void)
{
    void *p = NULL, *q = NULL;

    printf("alloc %d\n", ncclMemAlloc(&p, MIB));
    printf("free %d\n", ncclMemFree(p));
    printf("reset %d\n", cudaDeviceReset());
    printf("alloc %d\n", ncclMemAlloc(&q, MIB));
    printf("usable %d\n", fill_and_check(q, 4096, 3));
    printf("free %d\n", ncclMemFree(q));
}

/* Many small buffers, each of which takes a whole granule. */
static void granules(void)
{
    void *p[40];
    int bad = 0;

    for (int i = 0; i < 40; i++)
        bad |= (int)ncclMemAlloc(&p[i], 1000);
    for (int i = 0; i < 40; i++)
        bad |= (int)ncclMemFree(p[i]);
    printf("granules %d\n", bad);
}

/* With its first symmetric window the library takes memory for itself, through its own exported name. */
static void reenter(void)
{
    ncclComm_t comm = NULL;
    ncclWindow_t window = NULL;
    void *p = NULL;

    printf("comm %d\n", ncclCommInitAll(&comm, 1, NULL));
    for (int round = 0; round < 2; round++) {
        printf("alloc %d\n", ncclMemAlloc(&p, 3 * MIB));
        printf("window %d\n", ncclCommWindowRegister(comm, p, 3 * MIB, &window, NCCL_WIN_COLL_SYMMETRIC));
        printf("deregister %d\n", ncclCommWindowDeregister(comm, window));
        printf("free %d\n", ncclMemFree(p));
        cudaDeviceSynchronize();
        say_made("window");
    }
    printf("destroy %d\n", ncclCommDestroy(comm));
}

/* Registered in a group, of which there is one inside another: the window is there when the outer one
 * ends. */
static void grouped(void)
{
    ncclComm_t comm = NULL;
    ncclWindow_t nowhere = (ncclWindow_t)(uintptr_t)4096, window = nowhere;
    void *p = NULL, *q = NULL;

    printf("comm %d\n", ncclCommInitAll(&comm, 1, NULL));
    ncclMemAlloc(&p, 2 * MIB);
    say_made("first");
    printf("group %d\n", ncclGroupStart());
    printf("window %d\n", ncclCommWindowRegister(comm, p, 2 * MIB, &window, NCCL_WIN_DEFAULT));
    printf("inner %d\n", (int)ncclGroupStart() | (int)ncclGroupEnd());
    printf("not yet %d\n", window == nowhere);
    printf("end %d\n", ncclGroupEnd());
    printf("there %d\n", window != nowhere);
    ncclMemFree(p);
    ncclMemAlloc(&q, 2 * MIB); /* the first has a window: it must be another */
    say_made("while it has a window");
    printf("deregister %d\n", ncclCommWindowDeregister(comm, window));
    printf("free %d\n", ncclMemFree(q));
    cudaDeviceSynchronize();
    ncclMemAlloc(&p, 2 * MIB);
    ncclMemAlloc(&q, 2 * MIB);
    say_made("after");
    printf("free %d\n", ncclMemFree(p) | (int)ncclMemFree(q));
    printf("destroy %d\n", ncclCommDestroy(comm));
}

/* The whole program is three calls: no runtime, no context before. */
static void alone(void)
{
    void *p = NULL;

    printf("alloc %d\n", ncclMemAlloc(&p, 3 * MIB));
    printf("free %d\n", ncclMemFree(p));
    printf("alloc %d\n", ncclMemAlloc(&p, 3 * MIB));
    say_made("alone");
    printf("leaked\n");
}

static const struct {
    const char *name;
    void (*run)(void);
} parts[] = {
    {"autotune", autotune},     {"statuses", statuses},     {"apart", apart},       {"late", late},
    {"registered", registered}, {"short", short_of_memory}, {"threads", threads},   {"devices", two_devices},
    {"reset", reset},           {"alone", alone},           {"granules", granules}, {"reenter", reenter},
    {"grouped", grouped},
};

int main(int argc, char **argv)
{
    setvbuf(stdout, NULL, _IOLBF, 0);
    for (size_t i = 0; argc == 2 && i < sizeof(parts) / sizeof(parts[0]); i++) {
        if (strcmp(parts[i].name, argv[1]) == 0) {
            parts[i].run();
            return 0;
        }
    }
    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
        puts(parts[i].name);
    return argc == 1 ? 0 : 2;
}
