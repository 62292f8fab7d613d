/*
 * What NCCL 2.29 and 2.30 brought, in the simulated NCCL: windows that other ranks reach into, by pointer and
 * by puts and signals, between devices of one process and between processes; communicators that grow, are
 * suspended and resumed. Needs four devices; the processes come first, since a child of a process that has
 * touched the driver has none.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "vendor/abi/cuda_driver_fn.h"
#include "vendor/abi/cuda_runtime_fn.h"
#include "vendor/abi/nccl_later.h"
#include "tests/tap.h"

enum { RANKS = 3, WORDS = 50000, WINDOW_BYTES = 4 << 20, OFFSET = 8192 };

static unsigned word_of(int rank, size_t i)
{
    return (unsigned)rank * 1000000u + (unsigned)i;
}

static int fill(void *device, int rank)
{
    unsigned *host = malloc(WORDS * sizeof(*host));
    int bad;

    for (size_t i = 0; i < WORDS; i++)
        host[i] = word_of(rank, i);
    bad = (int)cudaMemcpy(device, host, WORDS * sizeof(*host), cudaMemcpyHostToDevice);
    free(host);
    return bad;
}

static int differs(const void *device, int rank)
{
    unsigned *host = malloc(WORDS * sizeof(*host));
    int bad = cudaMemcpy(host, device, WORDS * sizeof(*host), cudaMemcpyDeviceToHost) != cudaSuccess;

    for (size_t i = 0; i < WORDS; i++)
        bad |= host[i] != word_of(rank, i);
    free(host);
    return bad;
}

/* Each rank puts its words into the window of the next one, which takes no part in it but to wait for the
 * signal. */
static int put_around(int rank, ncclComm_t comm)
{
    int next = (rank + 1) % RANKS, last = (rank + RANKS - 1) % RANKS, bad = 0;
    ncclWaitSignalDesc_t one = {.opCnt = 1, .peer = last}, two = {.opCnt = 2, .peer = last};
    char *buffer = NULL;
    void *words = NULL;
    ncclWindow_t window = NULL;

    bad |= (int)ncclMemAlloc((void **)&buffer, WINDOW_BYTES) | (int)cudaMalloc(&words, WORDS * 4) |
           fill(words, rank);
    bad |= (int)ncclCommWindowRegister(comm, buffer, WINDOW_BYTES, &window, NCCL_WIN_COLL_SYMMETRIC);
    bad |= (int)ncclPutSignal(words, WORDS, ncclUint32, next, window, OFFSET, 0, 0, 0, comm, NULL) << 4;
    bad |= (int)ncclWaitSignal(1, &one, comm, NULL) << 4 | (int)cudaDeviceSynchronize() << 8;
    bad |= differs(buffer + OFFSET, last) << 16;
    bad |= (int)ncclSignal(next, 0, 0, 0, comm, NULL) | (int)ncclSignal(next, 0, 0, 0, comm, NULL);
    bad |= (int)ncclWaitSignal(1, &two, comm, NULL) | (int)cudaDeviceSynchronize();
    bad |= (int)ncclCommWindowDeregister(comm, window) | (int)ncclMemFree(buffer) | (int)cudaFree(words);
    return bad;
}

static int be_rank(int rank, ncclUniqueId id)
{
    ncclResult_t wrong = ncclInternalError;
    ncclComm_t comm = NULL;
    int bad = (int)cudaSetDevice(rank) | (int)ncclCommInitRank(&comm, RANKS, id, rank);

    if (bad)
        return 1;
    bad = put_around(rank, comm);
    if (ncclCommGetAsyncError(comm, &wrong) != ncclSuccess || wrong != ncclSuccess)
        return 3;
    return bad || ncclCommDestroy(comm) != ncclSuccess ? 2 : 0;
}

static void test_processes(void)
{
    pid_t children[RANKS];
    ncclUniqueId id;

    is_int(ncclGetUniqueId(&id), ncclSuccess, "an id");
    fflush(stdout);
    for (int i = 0; i < RANKS; i++) {
        children[i] = fork();
        if (children[i] == 0)
            _exit(be_rank(i, id));
    }
    for (int i = 0; i < RANKS; i++) {
        int status = -1;

        waitpid(children[i], &status, 0);
        is_int(status, 0, "process %d puts into the next one's window, and waits for the last one's signals",
               i);
    }
}

static ncclComm_t comms[RANKS];
static ncclWindow_t windows[RANKS], plain;
static char *buffers[RANKS];

static void make_windows(void)
{
    int results = 0;

    is_int(ncclCommInitAll(comms, RANKS, NULL), ncclSuccess, "ranks of one thread");
    for (int i = 0; i < RANKS; i++) {
        cudaSetDevice(i);
        results |= (int)ncclMemAlloc((void **)&buffers[i], WINDOW_BYTES);
        results |= fill(buffers[i] + OFFSET, i);
    }
    ncclGroupStart();
    for (int i = 0; i < RANKS; i++)
        results |= (int)ncclCommWindowRegister(comms[i], buffers[i] + 4096, 1 << 20, &windows[i],
                                               NCCL_WIN_COLL_SYMMETRIC);
    results |= (int)ncclGroupEnd();
    cudaSetDevice(0);
    results |= (int)ncclCommWindowRegister(comms[0], buffers[0] + (2 << 20), 4096, &plain, NCCL_WIN_DEFAULT);
    is_int(results, 0, "have windows");
}

static void test_pointers(void)
{
    ncclWindow_t wild = (ncclWindow_t)(void *)buffers;
    void *p = (void *)0x1;

    is_int(ncclWinGetUserPtr(comms[1], windows[1], &p), ncclSuccess, "ncclWinGetUserPtr");
    is_ptr(p, buffers[1] + 4096, "is the buffer that was registered");
    is_int(ncclWinGetUserPtr(comms[0], windows[1], &p), ncclInvalidArgument,
           "of a window of that communicator");
    is_int(ncclWinGetUserPtr(comms[0], windows[0], NULL), ncclInvalidArgument, "somewhere");
    is_int(ncclGetPeerDevicePointer(windows[0], 0, 0, &p), ncclSuccess, "ncclGetPeerDevicePointer");
    is_ptr(p, buffers[0] + 4096, "of oneself is the buffer");
    is_int(ncclGetPeerDevicePointer(windows[0], OFFSET - 4096, 1, &p), ncclSuccess, "of another rank");
    ok(p && p != (void *)(buffers[1] + OFFSET), "is an address of its own");
    is_int(differs(p, 1), 0, "of the same memory");
    is_int(fill(p, 7) | differs(buffers[1] + OFFSET, 7), 0, "which can be written");
    is_int(ncclGetLsaDevicePointer(windows[0], OFFSET - 4096, 2, &p) | (ncclResult_t)differs(p, 2), 0,
           "all are one team");
    is_int(ncclGetPeerDevicePointer(windows[0], 0, RANKS, &p), ncclInvalidArgument, "no such rank");
    is_int(ncclGetPeerDevicePointer(plain, 0, 1, &p), ncclInvalidArgument, "no symmetric window");
    is_int(ncclGetPeerDevicePointer(wild, 0, 1, &p), ncclInvalidArgument, "no window");
    is_int(ncclGetPeerDevicePointer(windows[0], 0, 1, NULL), ncclInvalidArgument, "nowhere");
    is_int(ncclGetLsaMultimemDevicePointer(windows[0], 0, &p), ncclSuccess,
           "ncclGetLsaMultimemDevicePointer");
    is_ptr(p, NULL, "has none where nothing is multicast");
}

/* Puts in a group, from one thread for all ranks; and each thing that is wrong. */
static void test_onesided(void)
{
    ncclWaitSignalDesc_t wanted[RANKS - 1] = {{.opCnt = 1, .peer = 1}, {.opCnt = 1, .peer = 2}};
    void *words[RANKS] = {NULL};
    int results = 0;

    for (int i = 0; i < RANKS; i++) {
        cudaSetDevice(i);
        results |= (int)cudaMalloc(&words[i], WORDS * 4) | fill(words[i], 10 + i);
    }
    ncclGroupStart();
    for (int i = 1; i < RANKS; i++)
        results |= (int)ncclPutSignal(words[i], WORDS, ncclUint32, 0, windows[i], (size_t)i * 256 << 10, 0, 0,
                                      0, comms[i], NULL);
    results |= (int)ncclWaitSignal(RANKS - 1, wanted, comms[0], NULL);
    is_int(results | (int)ncclGroupEnd(), 0, "two ranks put, one waits for both");
    cudaSetDevice(0);
    cudaDeviceSynchronize();
    for (int i = 1; i < RANKS; i++)
        is_int(differs(buffers[0] + 4096 + ((size_t)i * 256 << 10), 10 + i), 0, "and has what rank %d put",
               i);
    results = ncclPutSignal(words[0], 4, ncclUint32, 1, windows[0], (1 << 20) - 8, 0, 0, 0, comms[0], NULL);
    is_int(results, ncclInvalidArgument, "more than the window has room for");
    results = ncclPutSignal(words[0], (size_t)1 << 62, ncclUint32, 1, windows[0], 0, 0, 0, 0, comms[0], NULL);
    is_int(results, ncclInvalidArgument, "more than there can be");
    results = ncclPutSignal(words[0], 4, ncclUint32, 1, plain, 0, 0, 0, 0, comms[0], NULL);
    is_int(results, ncclInvalidArgument, "a window that is not symmetric");
    results = ncclPutSignal(words[0], 4, ncclUint32, 1, windows[1], 0, 0, 0, 0, comms[0], NULL);
    is_int(results, ncclInvalidArgument, "another communicator's window");
    is_int(ncclSignal(RANKS, 0, 0, 0, comms[0], NULL), ncclInvalidArgument, "a signal to nobody");
    is_int(ncclSignal(1, 1, 0, 0, comms[0], NULL), ncclInvalidArgument, "signals have one index");
    is_int(ncclSignal(1, 0, 1, 0, comms[0], NULL), ncclInvalidArgument, "one context");
    is_int(ncclSignal(1, 0, 0, 1, comms[0], NULL), ncclInvalidArgument, "and no flags");
    wanted[0].peer = RANKS;
    is_int(ncclWaitSignal(1, wanted, comms[0], NULL), ncclInvalidArgument, "waiting for nobody");
    is_int(ncclWaitSignal(0, wanted, comms[0], NULL), ncclInvalidArgument, "or for nothing");
    for (int i = 0; i < RANKS; i++) {
        cudaSetDevice(i);
        cudaFree(words[i]);
    }
    cudaSetDevice(0);
}

static uint64_t figure(ncclComm_t comm, ncclCommMemStat_t which)
{
    uint64_t value = 77;

    return ncclCommMemStats(comm, which, &value) == ncclSuccess ? value : 99;
}

static size_t free_bytes(void)
{
    size_t available = 0, total;

    cudaMemGetInfo(&available, &total);
    return available;
}

static void test_suspend(void)
{
    uint64_t held = figure(comms[0], ncclStatGpuMemSuspend);
    size_t before = free_bytes();
    void *words = NULL;

    ok(held >= 1 << 20 && held % 4096 == 0, "with windows a communicator has memory of its own");
    is_u64(figure(comms[0], ncclStatGpuMemTotal), held, "that is all of it");
    is_u64(figure(comms[0], ncclStatGpuMemPersist), 0, "and none that stays");
    is_u64(figure(comms[0], ncclStatGpuMemSuspended), 0, "it is active");
    is_int(ncclCommSuspend(comms[0], 0), ncclSuccess, "suspending nothing");
    is_u64(figure(comms[0], ncclStatGpuMemSuspended), 0, "does nothing");
    is_int(ncclCommSuspend(comms[0], NCCL_SUSPEND_MEM), ncclSuccess, "suspending its memory");
    is_u64(figure(comms[0], ncclStatGpuMemSuspended), 1, "is told");
    is_u64(free_bytes() - before, held, "the device has it back");
    cudaMalloc(&words, 64);
    is_int(ncclSignal(1, 0, 0, 0, comms[0], NULL), ncclInvalidUsage, "nothing is taken meanwhile");
    is_int(ncclAllReduce(words, words, 4, ncclUint32, ncclSum, comms[0], NULL), ncclInvalidUsage, "at all");
    cudaFree(words);
    is_int(ncclCommResume(comms[0]), ncclSuccess, "resumed");
    is_u64(before - free_bytes(), 0, "it has its memory");
    is_u64(figure(comms[0], ncclStatGpuMemSuspended), 0, "and is active");
    is_int(ncclSignal(1, 0, 0, 0, comms[0], NULL) | (ncclResult_t)cudaDeviceSynchronize(), 0, "again");
    is_int(ncclCommMemStats(comms[0], (ncclCommMemStat_t)9, &held), ncclInvalidArgument, "no such figure");
    is_int(ncclCommMemStats(comms[0], ncclStatGpuMemTotal, NULL), ncclInvalidArgument,
           "and nowhere to put one");
}

static void test_grow(void)
{
    ncclComm_t grown[RANKS + 1] = {NULL};
    ncclUniqueId id, other;
    int results = 0, value = -1;
    unsigned one = 1, sum = 0;
    void *words[RANKS + 1];

    is_int(ncclCommGetUniqueId(comms[1], &id), ncclSuccess, "an id to grow by");
    is_int(ncclCommGetUniqueId(comms[1], &other), ncclInvalidUsage, "one at a time");
    is_int(ncclCommGrow(comms[0], RANKS, NULL, -1, grown, NULL), ncclInvalidArgument, "growing by none");
    is_int(ncclCommGrow(comms[0], RANKS + 1, NULL, 0, grown, NULL), ncclInvalidArgument,
           "a rank that is there has its number");
    is_int(ncclCommGrow(comms[0], RANKS + 1, &id, -1, grown, NULL), ncclInvalidArgument,
           "the id is rank 1's");
    is_int(ncclCommGrow(NULL, RANKS + 1, NULL, RANKS, grown, NULL), ncclInvalidArgument,
           "a new rank needs the id");
    ncclGroupStart();
    for (int i = 0; i <= RANKS; i++) {
        cudaSetDevice(i);
        results |=
            (int)ncclCommGrow(i < RANKS ? comms[i] : NULL, RANKS + 1, i == 1 || i == RANKS ? &id : NULL,
                              i < RANKS ? -1 : RANKS, &grown[i], NULL);
    }
    is_int(results | (int)ncclGroupEnd(), 0, "three ranks and one more");
    for (int i = 0; i <= RANKS; i++) {
        results |= (int)ncclCommUserRank(grown[i], &value) | (value != i);
        results |= (int)ncclCommCount(grown[i], &value) | (value != RANKS + 1);
    }
    is_int(results, 0, "are four, under their numbers");
    ncclGroupStart();
    for (int i = 0; i <= RANKS; i++) {
        cudaSetDevice(i);
        results |=
            (int)cudaMalloc(&words[i], 64) | (int)cudaMemcpy(words[i], &one, 4, cudaMemcpyHostToDevice);
        results |= (int)ncclAllReduce(words[i], words[i], 1, ncclUint32, ncclSum, grown[i], NULL);
    }
    results |= (int)ncclGroupEnd() | (int)cudaMemcpy(&sum, words[RANKS], 4, cudaMemcpyDeviceToHost);
    ok(!results && sum == RANKS + 1, "that add up");
    is_int(ncclCommGrow(comms[1], RANKS + 1, &id, -1, &grown[0], NULL), ncclInvalidArgument,
           "an id is used once");
    is_int(ncclCommGetUniqueId(comms[1], &id), ncclSuccess, "then there is another");
    for (int i = 0; i <= RANKS; i++) {
        cudaSetDevice(i);
        cudaDeviceSynchronize();
        cudaFree(words[i]);
        results |= (int)ncclCommDestroy(grown[i]);
    }
    cudaSetDevice(0);
    is_int(results, 0, "the old ones stay");
}

static void test_end(void)
{
    void *p;

    for (int i = 0; i < RANKS; i++) {
        cudaSetDevice(i);
        ncclCommDestroy(comms[i]);
        ncclMemFree(buffers[i]);
    }
    is_int(ncclGetPeerDevicePointer(windows[0], 0, 1, &p), ncclInvalidArgument,
           "windows end with their communicator");
}

int main(void)
{
    setenv("MEMSIM_DEVICES", "4", 1);
    plan(0);
    test_processes();
    make_windows();
    test_pointers();
    test_onesided();
    test_suspend();
    test_grow();
    test_end();
    return done();
}
