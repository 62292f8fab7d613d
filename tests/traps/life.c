/*
 * life.c - traps of lives: devices that are reset, contexts that end with live and with freed memory, several
 * contexts, forks, and what still happens after main.
 */
#include "traps.h"

#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

/* Some blocks of every size live, some freed, work pending on both. */
static void *untidy(struct gate *gate, cudaStream_t stream)
{
    void *kept = NULL;

    if (gate)
        gate_close(gate, 40, stream);
    for (int i = 0; i < 12; i++) {
        void *p = take(trap_sizes[i % 3]);

        cudaMemsetAsync(p, i, trap_sizes[i % 3], stream);
        if (i < 6)
            kept = p;
        else
            cudaFree(p);
    }
    return kept;
}

static void works_afterwards(const char *what)
{
    for (int i = 0; i < 3; i++) {
        void *p = take(trap_sizes[i]);

        say("%s, %s: fill %d", what, trap_size_names[i], cudaMemset(p, 0x77, trap_sizes[i]));
        say("%d bytes differ", differing(p, trap_sizes[i], 0x77));
        say("free %d", cudaFree(p));
    }
}

static void device_reset(void)
{
    size_t before;
    void *old;

    cudaFree(NULL);
    before = free_bytes();
    for (int round = 0; round < 3; round++) {
        old = untidy(NULL, 0);
        say("reset %d", cudaDeviceReset());
        say("free of what is gone %d", cudaFree(old));
        say("last %d", cudaGetLastError());
        say("everything is free: %d", free_bytes() == before);
        works_afterwards("after the reset");
        say("free of what is gone %d", cudaFree(old));
        cudaGetLastError();
    }
    say("reset %d", cudaDeviceReset());
    say("and again %d", cudaDeviceReset());
    works_afterwards("after two resets");
}

static void reset_with_pending_work(void)
{
    for (int round = 0; round < 2; round++) {
        struct gate gate;
        cudaStream_t stream;

        cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
        untidy(&gate, stream);
        say("reset %d", cudaDeviceReset());
        works_afterwards("after the reset");
    }
}

static void reset_of_one_device(void)
{
    void *other;

    cudaSetDevice(1);
    other = take(100000);
    cudaMemset(other, 0x66, 100000);
    cudaSetDevice(0);
    untidy(NULL, 0);
    say("reset %d", cudaDeviceReset());
    works_afterwards("device 0");
    cudaSetDevice(1);
    say("device 1 keeps its memory: %d bytes differ", differing(other, 100000, 0x66));
    say("free %d", cudaFree(other));
    works_afterwards("device 1");
}

static void primary_release(void)
{
    for (int round = 0; round < 3; round++) {
        CUcontext ctx = primary(0);
        CUdeviceptr p = take_driver(5000), q = take_driver(20 * MIB);
        size_t available = 0, total = 0;
        unsigned flags;
        int active = -1;

        cuMemFree_v2(take_driver(3 * MIB));
        cuMemFree_v2(take_driver(700));
        if (round == 1)
            say("reset %d", cuDevicePrimaryCtxReset_v2(0));
        say("release %d", cuDevicePrimaryCtxRelease_v2(0));
        say("state %d", cuDevicePrimaryCtxGetState(0, &flags, &active));
        say("active %d", active);
        say("free in a dead context %d", cuMemFree_v2(p));
        say("allocation in a dead context %d", cuMemAlloc_v2(&p, 512));
        say("one more release %d", cuDevicePrimaryCtxRelease_v2(0));
        primary(0);
        say("free of what is gone %d", cuMemFree_v2(q));
        cuMemGetInfo_v2(&available, &total);
        say("everything is free: %d", available == total);
        p = take_driver(6000);
        say("fill %d", cuMemsetD8_v2(p, 9, 6000));
        say("%d bytes differ", differing_driver(p, 6000, 9));
        say("release %d", cuDevicePrimaryCtxRelease_v2(0));
        (void)ctx;
    }
}

static void context_destroy(void)
{
    primary(0);
    for (int round = 0; round < 4; round++) {
        CUcontext ctx = NULL, current = NULL;
        CUdeviceptr p, kept = take_driver(9000);
        size_t before = 0, after = 0, total;

        cuMemGetInfo_v2(&before, &total);
        say("create %d", cuCtxCreate_v2(&ctx, 0, 0));
        p = take_driver(5000);
        take_driver(20 * MIB);
        cuMemFree_v2(take_driver(3 * MIB));
        if (round % 2) { /* work is still pending when it ends */
            static struct gate gate;
            CUstream stream;

            cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING);
            gate_close_driver(&gate, 40, stream);
            cuMemsetD8Async(p, 1, 5000, stream);
            cuMemFree_v2(take_driver(5000));
        }
        if (round / 2)
            cuCtxPopCurrent_v2(&current);
        say("destroy %d", cuCtxDestroy_v2(ctx));
        cuCtxGetCurrent(&current);
        say("current: %s", current == ctx ? "the dead one" : current ? "another" : "none");
        primary(0);
        say("free of what is gone %d", cuMemFree_v2(p));
        cuMemGetInfo_v2(&after, &total);
        say("its memory is free: %d", after == before);
        say("free %d", cuMemFree_v2(kept));
    }
}

/* Each context has its own memory, whichever is current when it is freed. */
static void contexts(void)
{
    CUcontext made[4];
    CUdeviceptr p[4][6];
    int wrong = 0;

    made[0] = primary(0);
    for (int i = 1; i < 4; i++)
        say("create %d", cuCtxCreate_v2(&made[i], 0, i == 3));
    for (int k = 0; k < 6; k++)
        for (int i = 0; i < 4; i++) {
            cuCtxSetCurrent(made[i]);
            p[i][k] = take_driver(trap_sizes[k % 3]);
            wrong += cuMemsetD8_v2(p[i][k], (unsigned char)(i * 6 + k), trap_sizes[k % 3]) != CUDA_SUCCESS;
        }
    for (int i = 0; i < 4; i++)
        for (int k = 0; k < 6; k++) {
            CUcontext of = NULL;
            int device = -1;

            cuCtxSetCurrent(made[(i + k) % 4]);
            cuPointerGetAttribute(&of, CU_POINTER_ATTRIBUTE_CONTEXT, p[i][k]);
            cuPointerGetAttribute(&device, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, p[i][k]);
            wrong += of != made[i] || device != (i == 3);
            cuCtxSetCurrent(made[i]);
            wrong += differing_driver(p[i][k], trap_sizes[k % 3], i * 6 + k) != 0;
        }
    say("blocks of %d contexts: %d wrong", 4, wrong);
    for (int i = 0; i < 4; i++)
        for (int k = 0; k < 6; k++) {
            cuCtxSetCurrent(made[(i + k) % 4]);
            say("free %d", cuMemFree_v2(p[i][k]));
        }
    for (int i = 3; i > 0; i--)
        say("destroy %d", cuCtxDestroy_v2(made[i]));
    say("without a context: set %d", cuCtxSetCurrent(NULL));
    say("allocation %d", cuMemAlloc_v2(&p[0][0], 512));
    say("free %d", cuMemFree_v2(p[0][0]));
}

/* A block of a context that is gone, freed while another context has memory at the same place. */
static void recycled_context(void)
{
    for (int round = 0; round < 20; round++) {
        CUcontext ctx = NULL;
        CUdeviceptr p;

        primary(0);
        if (cuCtxCreate_v2(&ctx, 0, 0))
            say("no context");
        p = take_driver(trap_sizes[round % 3]);
        if (cuMemsetD8_v2(p, (unsigned char)round, trap_sizes[round % 3]) ||
            differing_driver(p, trap_sizes[round % 3], round))
            say("round %d: it does not hold what was written", round);
        if (round % 2 && cuMemFree_v2(p))
            say("round %d: it cannot be freed", round);
        if (cuCtxDestroy_v2(ctx))
            say("round %d: it cannot be destroyed", round);
    }
    say("20 contexts came and went");
}

static int child_of(void *parents)
{
    void *p = NULL;
    size_t available = 0, total = 0;
    cudaError_t status = cudaMalloc(&p, 5000);

    say("child: allocation %d", status);
    say("child: the same size that the parent has free %d", cudaMalloc(&p, 3000));
    say("child: free of the parent's %d", cudaFree(parents));
    say("child: meminfo %d", cudaMemGetInfo(&available, &total));
    say("child: synchronize %d", cudaDeviceSynchronize());
    say("child: last %d", cudaGetLastError());
    return 7;
}

static void forked(void)
{
    void *kept = take(3000), *spare = take(3000);
    int status = -1;
    pid_t pid;

    cudaMemset(kept, 0x55, 3000);
    cudaFree(spare);
    for (int round = 0; round < 2; round++) {
        pid = fork();
        if (pid == 0) {
            int code = child_of(kept);

            if (round)
                exit(code);
            _exit(code);
        }
        waitpid(pid, &status, 0);
        say("the child's status: %d", WIFEXITED(status) ? WEXITSTATUS(status) : -1);
        say("parent: %d bytes differ", differing(kept, 3000, 0x55));
        works_afterwards("parent");
    }
    say("free %d", cudaFree(kept));
}

/* Blocks of many pages, beside which others come and go. */
static void forked_large(void)
{
    const size_t bytes = (size_t)30 << 20;
    void *most = take((size_t)300 << 20), *kept = take(bytes), *spare = take(bytes);
    int status = -1;

    cudaMemset(kept, 0x55, bytes);
    cudaFree(spare);
    pid_t pid = fork();
    if (pid == 0)
        exit(child_of(kept));
    waitpid(pid, &status, 0);
    say("the child's status: %d", WIFEXITED(status) ? WEXITSTATUS(status) : -1);
    spare = take(2 * bytes);
    say("parent: %d bytes differ", differing(kept, bytes, 0x55));
    say("free %d %d %d", cudaFree(kept), cudaFree(spare), cudaFree(most));
    works_afterwards("parent");
}

static void forked_first(void)
{
    int status = -1;
    pid_t pid = fork();

    if (pid == 0) {
        works_afterwards("child");
        exit(5);
    }
    waitpid(pid, &status, 0);
    say("the child's status: %d", WIFEXITED(status) ? WEXITSTATUS(status) : -1);
    works_afterwards("parent");
}

/* --- after main ----------------------------------------------------------------------------------------- */

static void *last_block, *last_small;
static pthread_key_t key;

static void at_exit_handler(void)
{
    void *p = NULL;

    say("atexit: free %d", cudaFree(last_block));
    say("atexit: allocation %d", cudaMalloc(&p, 5000));
    say("atexit: free %d", cudaFree(p));
}

__attribute__((destructor)) static void destructor(void)
{
    if (!last_small)
        return;
    say("destructor: free %d", cudaFree(last_small));
    say("destructor: again %d", cudaFree(last_small));
    say("destructor: free of nothing %d", cudaFree(NULL));
}

static void at_thread_exit(void *block)
{
    say("thread's end: free %d", cudaFree(block));
}

static void thread_with_key(void *unused)
{
    (void)unused;
    pthread_setspecific(key, take(7000));
    cudaFree(take(7000));
}

static void after_main(void)
{
    pthread_key_create(&key, at_thread_exit);
    elsewhere(thread_with_key, NULL);
    atexit(at_exit_handler);
    last_block = take(20 * MIB);
    last_small = take(4000);
    cudaFree(take(4000));
    cudaMemset(last_block, 1, 20 * MIB);
    exit(9);
}

static void *allocate_for_ever(void *unused)
{
    (void)unused;
    for (size_t i = 0;; i++) {
        void *p = NULL;

        if (cudaMalloc(&p, i % 50 * 1000 + 1) == cudaSuccess)
            cudaFree(p);
    }
    return NULL;
}

/* Threads are in the middle of it when the process ends. */
static void exit_among_threads(void)
{
    pthread_t threads[3];

    for (int i = 0; i < 3; i++)
        pthread_create(&threads[i], NULL, allocate_for_ever, NULL);
    pause_ms(20);
    say("leaving");
    exit(4);
}

const struct trap traps_life[] = {
    {"device-reset", device_reset, NULL},
    {"reset-with-pending-work", reset_with_pending_work, NULL},
    {"reset-of-one-device", reset_of_one_device, "MEMSIM_DEVICES=2"},
    {"primary-release", primary_release, NULL},
    {"context-destroy", context_destroy, NULL},
    {"contexts", contexts, "MEMSIM_DEVICES=2"},
    {"recycled-context", recycled_context, NULL},
    {"fork", forked, NULL},
    {"fork-large", forked_large, NULL},
    {"fork-first", forked_first, NULL},
    {"exit-order", after_main, NULL},
    {"exit-among-threads", exit_among_threads, NULL},
    {NULL, NULL, NULL},
};
