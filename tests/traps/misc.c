/*
 * misc.c - traps of everything around: memory that is to be left alone, calls from places where calls are not
 * allowed, errors that stick, peers, and programs that are wrong.
 */
#include "traps.h"

#include <pthread.h>
#include <signal.h>

static void managed(void)
{
    struct cudaPointerAttributes seen;
    unsigned char *p = NULL;
    int wrong = 0;

    say("cudaMallocManaged %d", cudaMallocManaged((void **)&p, 3 * MIB, cudaMemAttachGlobal));
    memset(p, 0x12, 3 * MIB);
    say("fill of half %d", cudaMemset(p, 0x34, MIB));
    say("synchronize %d", cudaDeviceSynchronize());
    for (size_t i = 0; i < 3 * MIB; i++)
        wrong += p[i] != (i < MIB ? 0x34 : 0x12);
    say("%d bytes differ", wrong);
    cudaPointerGetAttributes(&seen, p);
    say("type %d, same address %d", seen.type, seen.hostPointer == p);
    say("free %d", cudaFree(p));
    say("again %d", cudaFree(p));
}

static void host_memory(void)
{
    unsigned char *p = NULL;
    void *device = NULL;

    say("cudaHostAlloc %d", cudaHostAlloc((void **)&p, 5000, cudaHostAllocMapped));
    memset(p, 0x21, 5000);
    say("its address on the device %d", cudaHostGetDevicePointer(&device, p, 0));
    say("fill %d", cudaMemset(device, 0x43, 5000));
    cudaDeviceSynchronize();
    say("%s", p[0] == 0x43 && p[4999] == 0x43 ? "seen" : "not seen");
    say("cudaFree of it %d", cudaFree(p));
    say("cudaFreeHost %d", cudaFreeHost(p));
}

/* --- re-entrancy ---------------------------------------------------------------------------------------- */

struct inside {
    void *block, *ordered;
    cudaStream_t other;
    cudaError_t malloc_status, free_status, null_status, ordered_malloc_status, ordered_free_status;
    CUresult driver_status;
};

static void call_inside(void *argument)
{
    struct inside *inside = argument;
    CUdeviceptr q = 0;
    void *p = NULL;

    inside->malloc_status = cudaMalloc(&p, 3000);
    inside->driver_status = cuMemAlloc_v2(&q, 3000);
    inside->free_status = cudaFree(inside->block);
    inside->null_status = cudaFree(NULL);
    inside->ordered_malloc_status = cudaMallocAsync(&p, 3000, inside->other);
    inside->ordered_free_status = cudaFreeAsync(inside->ordered, inside->other);
}

static void callback(cudaStream_t stream, cudaError_t status, void *argument)
{
    (void)stream;
    (void)status;
    call_inside(argument);
}

static void say_inside(const char *what, const struct inside *inside)
{
    say("%s: cudaMalloc %d, cuMemAlloc %d, cudaFree %d, of NULL %d", what, inside->malloc_status,
        inside->driver_status, inside->free_status, inside->null_status);
    say("%s: cudaMallocAsync %d, cudaFreeAsync %d", what, inside->ordered_malloc_status,
        inside->ordered_free_status);
}

static void host_functions(void)
{
    struct inside inside = {.block = take(3000)};
    cudaStream_t stream;

    cudaFree(take(3000)); /* so that there is something to hand out */
    cudaDeviceSynchronize();
    cudaStreamCreate(&stream);
    cudaStreamCreate(&inside.other);
    say("ordered %d", cudaMallocAsync(&inside.ordered, 3000, inside.other));
    say("launch %d", cudaLaunchHostFunc(stream, call_inside, &inside));
    say("synchronize %d", cudaStreamSynchronize(stream));
    say_inside("host function", &inside);
    say("callback %d", cudaStreamAddCallback(stream, callback, &inside, 0));
    say("synchronize %d", cudaStreamSynchronize(stream));
    say_inside("callback", &inside);
    say("the block is still there: free %d", cudaFree(inside.block));
    say("so is the other: free %d", cudaFreeAsync(inside.ordered, inside.other));
    say("last %d", cudaGetLastError());
}

static volatile sig_atomic_t handled, handler_failed;

static void on_signal(int number)
{
    CUdeviceptr p = 0;

    (void)number;
    if (cuMemAlloc_v2(&p, 1000) != CUDA_SUCCESS || cuMemFree_v2(p) != CUDA_SUCCESS)
        handler_failed++;
    handled++;
}

static void signals(void)
{
    primary(0);
    signal(SIGUSR1, on_signal);
    for (int i = 0; i < 50; i++) {
        CUdeviceptr p = take_driver(trap_sizes[i % 2]);

        raise(SIGUSR1);
        cuMemFree_v2(p);
        raise(SIGUSR1);
    }
    say("handled %d, failed %d", (int)handled, (int)handler_failed);
}

static void small_stack_body(void *unused)
{
    (void)unused;
    for (int i = 0; i < 100; i++)
        if (cudaFree(take((size_t)i * 5000 + 1)))
            say("free %d", cudaGetLastError());
    cudaFree(take(20 * MIB));
}

static void *small_stack_thread(void *unused)
{
    small_stack_body(unused);
    return NULL;
}

static void small_stack(void)
{
    pthread_attr_t attributes;
    pthread_t thread;

    cudaFree(NULL);
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, 64 * 1024);
    say("create %d", pthread_create(&thread, &attributes, small_stack_thread, NULL));
    say("join %d", pthread_join(thread, NULL));
}

/* --- errors that stick ---------------------------------------------------------------------------------- */

static const char ptx[] =
    ".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry nothing()\n{\n\tret;\n}\n";

static CUfunction kernel(void)
{
    CUfunction function = NULL;
    CUmodule module = NULL;

    if (cuModuleLoadData(&module, ptx) || cuModuleGetFunction(&function, module, "nothing"))
        say("no kernel");
    return function;
}

/* The program has seen the error: from then on every call answers it. */
static void sticky_error(void)
{
    CUdeviceptr p, spare, none = 0;
    void *new_life = NULL;

    cudaFree(NULL);
    p = take_driver(5000);
    spare = take_driver(5000);
    cuMemFree_v2(spare);
    say("launch %d", cuLaunchKernel(kernel(), 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL));
    say("synchronize %d", cuCtxSynchronize());
    say("allocation %d", cuMemAlloc_v2(&none, 5000));
    say("one that needs memory %d", cuMemAlloc_v2(&none, 40 * MIB));
    say("free %d", cuMemFree_v2(p));
    say("meminfo %d", cuMemGetInfo_v2(&(size_t){0}, &(size_t){0}));
    say("last %d", cudaGetLastError());
    say("reset %d", cudaDeviceReset());
    say("a new life: %d", cudaMalloc(&new_life, 5000));
    say("fill %d", cudaMemset(new_life, 1, 5000));
    say("free %d", cudaFree(new_life));
}

/* The error has not been seen yet when memory is freed: a free that waits would be the first to say so. */
static void error_at_a_free(void)
{
    struct gate gate;
    CUdeviceptr p;

    primary(0);
    p = take_driver(5000);
    gate_close_driver(&gate, 100, NULL);
    say("launch %d", cuLaunchKernel(kernel(), 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL));
    say("free %d", cuMemFree_v2(p));
    say("synchronize %d", cuCtxSynchronize());
    say("allocation %d", cuMemAlloc_v2(&p, 5000));
}

/* --- peers ---------------------------------------------------------------------------------------------- */

static void peers(void)
{
    unsigned char *there[6];
    int can = 0, wrong = 0;
    void *here;

    say("can %d", cudaDeviceCanAccessPeer(&can, 0, 1));
    cudaSetDevice(1);
    for (int i = 0; i < 3; i++) {
        there[i] = take(trap_sizes[i]);
        cudaMemset(there[i], i + 1, trap_sizes[i]);
    }
    cudaDeviceSynchronize();
    cudaSetDevice(0);
    here = take(trap_sizes[2]);
    say("enable %d, %d", can, cudaDeviceEnablePeerAccess(1, 0));
    cudaSetDevice(1);
    for (int i = 3; i < 6; i++) {
        there[i] = take(trap_sizes[i - 3]);
        cudaMemset(there[i], i + 1, trap_sizes[i - 3]);
    }
    cudaDeviceSynchronize();
    cudaSetDevice(0);
    for (int i = 0; i < 6; i++) {
        size_t bytes = trap_sizes[i % 3];

        say("copy between devices %d", cudaMemcpyPeer(here, 0, there[i], 1, bytes));
        wrong += differing(here, bytes, i + 1) != 0;
        say("copy by address %d", cudaMemcpy(here, there[i], bytes, cudaMemcpyDeviceToDevice));
        say("fill of the other's %d", cudaMemset(there[i], 0x40 + i, bytes));
        cudaDeviceSynchronize();
        cudaSetDevice(1);
        cudaDeviceSynchronize();
        wrong += differing(there[i], bytes, 0x40 + i) != 0;
        say("free %d", cudaFree(there[i]));
        cudaSetDevice(0);
    }
    say("%d wrong", wrong);
    say("disable %d", cudaDeviceDisablePeerAccess(1));
    say("last %d", cudaGetLastError());
}

/* A fill of memory that the device was never let to. */
static void peers_without_access(void)
{
    void *there;

    cudaSetDevice(1);
    there = take(trap_sizes[1]);
    cudaSetDevice(0);
    say("enable %d", cudaDeviceEnablePeerAccess(1, 0));
    say("disable %d", cudaDeviceDisablePeerAccess(1));
    say("fill of the other's %d", cudaMemset(there, 1, 512));
    say("synchronize %d", cudaDeviceSynchronize());
    say("allocation %d", cudaMalloc(&there, 512));
}

/* --- programs that are wrong ---------------------------------------------------------------------------- */

static void use_after_free(void)
{
    for (int i = 0; i < 3; i++) {
        void *p = take(trap_sizes[i]), *company = take(trap_sizes[i]);

        cudaFree(p);
        cudaDeviceSynchronize();
        say("%s: fill of what was freed %d", trap_size_names[i], cudaMemset(p, 1, 512));
        say("copy from it %d", cudaMemcpy(company, p, 512, cudaMemcpyDeviceToDevice));
        say("last %d", cudaGetLastError());
        cudaFree(company);
    }
}

static void overrun(void)
{
    char *p = take(20 * MIB), *q = take(2 * MIB), *r = take(5000);

    cudaDeviceSynchronize();
    say("beyond 5000 bytes: %d", cudaMemset(r, 1, 5001));
    say("beyond 2 MiB: %d", cudaMemset(q, 1, 2 * MIB + 1));
    say("beyond 20 MiB: %d", cudaMemset(p, 1, 20 * MIB + 1));
    say("before its first byte: %d", cudaMemset(q - 1, 1, 1));
    say("last %d", cudaGetLastError());
}

/* A device that is slow to fill memory: nothing but the program writes to the program's block. */
static void slow_fills(void)
{
    unsigned char *host = malloc(5000);
    void *p = take(5000);

    memset(host, 0x5c, 5000);
    say("copy %d", cudaMemcpy(p, host, 5000, cudaMemcpyHostToDevice));
    pause_ms(600);
    say("%d bytes differ", differing(p, 5000, 0x5c));
    say("free %d", cudaFree(p));
    free(host);
}

const struct trap traps_misc[] = {
    {"managed-left-alone", managed, NULL},
    {"host-memory-left-alone", host_memory, NULL},
    {"host-functions", host_functions, NULL},
    {"signal-handlers", signals, NULL},
    {"small-stack", small_stack, NULL},
    {"sticky-error", sticky_error, "MEMSIM_FAIL=kernel@1=719"},
    {"error-at-a-free", error_at_a_free, "MEMSIM_FAIL=kernel@1=719"},
    {"peers", peers, "MEMSIM_DEVICES=2"},
    {"peers-without-access", peers_without_access, "MEMSIM_DEVICES=2"},
    {"slow-fills", slow_fills, "MEMSIM_COST=memset=1300000000"},
    {"use-after-free", use_after_free, NULL},
    {"overrun", overrun, NULL},
    {NULL, NULL, NULL},
};
