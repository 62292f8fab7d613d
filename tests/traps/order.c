/*
 * order.c - traps of order: cudaFree has no stream, and what was freed must not be touched by work from
 * before the free once somebody else has it, whichever stream, thread, device or context that work is in.
 */
#include "traps.h"

#include <pthread.h>

/* Work is queued behind a gate that opens by itself: natively a free waits for it. */
#define GATE_MS   60
#define LONGER_MS 700

enum kind { LEGACY, BLOCKING, NONBLOCKING, PRIORITY, PER_THREAD, KINDS };
static const char *const kind_names[KINDS] = {"legacy", "blocking", "non-blocking", "high priority",
                                              "per-thread"};

static cudaStream_t make_stream(enum kind kind)
{
    cudaStream_t stream = NULL;
    int least = 0, greatest = 0;

    if (kind == BLOCKING)
        cudaStreamCreate(&stream);
    else if (kind == NONBLOCKING)
        cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
    else if (kind == PRIORITY && !cudaDeviceGetStreamPriorityRange(&least, &greatest))
        cudaStreamCreateWithPriority(&stream, cudaStreamNonBlocking, greatest);
    else if (kind == PER_THREAD)
        stream = cudaStreamPerThread;
    return stream;
}

static void drop_stream(enum kind kind, cudaStream_t stream)
{
    if (kind != LEGACY && kind != PER_THREAD)
        cudaStreamDestroy(stream);
}

/* So many that memory must be used again: there is not room for twice as much, and small blocks come from
 * what was freed last. */
#define MOST 400
static const int counts[3] = {MOST, 12, 4};

static void take_blocks(void **blocks, int i)
{
    for (int k = 0; k < counts[i]; k++)
        blocks[k] = take(trap_sizes[i]);
}

/* What frees are followed by: memory of the same size, written at once by a stream that waits for nobody,
 * must keep what was written although late work still writes to where the freed blocks were. */
static void second_owners(int i)
{
    void *blocks[MOST];
    cudaStream_t other;
    int wrong = 0;

    cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking);
    for (int k = 0; k < counts[i]; k++) {
        blocks[k] = take(trap_sizes[i]);
        fill(blocks[k], trap_sizes[i], 0x22, other);
    }
    cudaStreamSynchronize(other);
    pause_ms(GATE_MS + 20);
    say("device %d", cudaDeviceSynchronize());
    for (int k = 0; k < counts[i]; k++)
        wrong += differing(blocks[k], trap_sizes[i], 0x22) != 0;
    say("%s: %d of %d blocks do not hold what was written", trap_size_names[i], wrong, counts[i]);
    for (int k = 0; k < counts[i]; k++)
        if (cudaFree(blocks[k]))
            say("free %d", cudaGetLastError());
    cudaStreamDestroy(other);
}

/* Late writes to all blocks, and their frees. */
static void write_late_and_free(void **blocks, int i, struct gate *gate, cudaStream_t stream)
{
    gate_close(gate, GATE_MS, stream);
    for (int k = 0; k < counts[i]; k++)
        fill(blocks[k], trap_sizes[i], 0x11, stream);
    for (int k = 0; k < counts[i]; k++)
        if (cudaFree(blocks[k]))
            say("free %d", cudaGetLastError());
}

static void reuse_after(enum kind kind)
{
    cudaStream_t stream = make_stream(kind);
    void *blocks[MOST];

    for (int i = 0; i < 3; i++) {
        struct gate gate;

        take_blocks(blocks, i);
        write_late_and_free(blocks, i, &gate, stream);
        second_owners(i);
        cudaDeviceSynchronize();
    }
    drop_stream(kind, stream);
}

static void reuse_legacy(void)
{
    reuse_after(LEGACY);
}
static void reuse_blocking(void)
{
    reuse_after(BLOCKING);
}
static void reuse_nonblocking(void)
{
    reuse_after(NONBLOCKING);
}
static void reuse_priority(void)
{
    reuse_after(PRIORITY);
}
static void reuse_per_thread(void)
{
    reuse_after(PER_THREAD);
}

/* Late work in the per-thread stream of a thread that is gone by the time of the frees. */
struct late {
    void *blocks[MOST];
    int size;
    struct gate gate;
};

static void write_late(void *argument)
{
    struct late *late = argument;

    gate_close(&late->gate, GATE_MS, cudaStreamPerThread);
    for (int k = 0; k < counts[late->size]; k++)
        fill(late->blocks[k], trap_sizes[late->size], 0x11, cudaStreamPerThread);
}

static void reuse_other_thread(void)
{
    for (int i = 0; i < 3; i++) {
        struct late late = {.size = i};

        take_blocks(late.blocks, i);
        elsewhere(write_late, &late);
        for (int k = 0; k < counts[i]; k++)
            cudaFree(late.blocks[k]);
        second_owners(i);
    }
}

/* Another thread, which may well have the first one's stack and storage, frees and takes: it is not the first
 * one. */
static void free_and_take(void *argument)
{
    struct late *late = argument;

    for (int k = 0; k < counts[late->size]; k++)
        cudaFree(late->blocks[k]);
    second_owners(late->size);
}

static void reuse_two_threads(void)
{
    for (int i = 0; i < 3; i++) {
        struct late late = {.size = i};

        take_blocks(late.blocks, i);
        cudaDeviceSynchronize();
        elsewhere(write_late, &late);
        elsewhere(free_and_take, &late);
    }
}

/* Destroying a stream does not end its work. */
static void reuse_destroyed_stream(void)
{
    void *blocks[MOST];

    for (int i = 0; i < 3; i++) {
        cudaStream_t stream = make_stream(NONBLOCKING);
        struct gate gate;

        take_blocks(blocks, i);
        gate_close(&gate, GATE_MS, stream);
        for (int k = 0; k < counts[i]; k++)
            fill(blocks[k], trap_sizes[i], 0x11, stream);
        say("destroy %d", cudaStreamDestroy(stream));
        for (int k = 0; k < counts[i]; k++)
            cudaFree(blocks[k]);
        second_owners(i);
    }
}

/* A read that is late must see what was there, not what the next owner wrote. */
static void late_reads(void)
{
    cudaStream_t reader = make_stream(NONBLOCKING), writer = make_stream(NONBLOCKING);
    unsigned char *copy = NULL;

    cudaHostAlloc((void **)&copy, 4096, 0);
    for (int i = 0; i < 3; i++) {
        struct gate gate;
        void *p = take(trap_sizes[i]), *next;
        int wrong = 0;

        cudaMemset(p, 0x33, trap_sizes[i]);
        cudaDeviceSynchronize();
        memset(copy, 0, 3000);
        gate_close(&gate, GATE_MS, reader);
        cudaMemcpyAsync(copy, p, 3000, cudaMemcpyDeviceToHost, reader);
        say("free %d", cudaFree(p));
        next = take(trap_sizes[i]);
        fill(next, trap_sizes[i], 0x44, writer);
        cudaStreamSynchronize(writer);
        cudaStreamSynchronize(reader);
        for (int k = 0; k < 3000; k++)
            wrong += copy[k] != 0x33;
        say("%s: %d bytes of the late copy differ", trap_size_names[i], wrong);
        cudaFree(next);
    }
    cudaFreeHost(copy);
}

/* A free in a thread that has not touched the device before, and one while another device or context is
 * current. */
struct freed {
    void **blocks;
    int count;
};

static void free_them(void *argument)
{
    struct freed *freed = argument;

    for (int k = 0; k < freed->count; k++)
        if (cudaFree(freed->blocks[k]))
            say("free %d", cudaGetLastError());
}

static void free_from_thread(void)
{
    cudaStream_t stream = make_stream(NONBLOCKING);
    void *blocks[MOST];

    for (int i = 0; i < 3; i++) {
        struct freed freed = {blocks, counts[i]};
        struct gate gate;

        take_blocks(blocks, i);
        gate_close(&gate, GATE_MS, stream);
        for (int k = 0; k < counts[i]; k++)
            fill(blocks[k], trap_sizes[i], 0x11, stream);
        elsewhere(free_them, &freed);
        second_owners(i);
    }
}

static void free_from_device(void)
{
    void *blocks[MOST];

    for (int i = 0; i < 3; i++) {
        struct gate gate;

        cudaSetDevice(0);
        take_blocks(blocks, i);
        gate_close(&gate, GATE_MS, 0);
        for (int k = 0; k < counts[i]; k++)
            fill(blocks[k], trap_sizes[i], 0x11, 0);
        cudaDeviceSynchronize(); /* a native free waits for the current device alone */
        cudaSetDevice(1);
        for (int k = 0; k < counts[i]; k++)
            if (cudaFree(blocks[k]))
                say("free %d", cudaGetLastError());
        say("again %d", cudaFree(blocks[0]));
        say("last %d", cudaGetLastError());
        cudaSetDevice(0);
        second_owners(i);
    }
}

static void free_from_context(void)
{
    CUcontext first = primary(0), second = NULL;

    say("create %d", cuCtxCreate_v2(&second, 0, 0));
    for (int i = 0; i < 3; i++) {
        CUdeviceptr p, q;

        cuCtxSetCurrent(first);
        p = take_driver(trap_sizes[i]);
        cuCtxSetCurrent(second);
        q = take_driver(trap_sizes[i]);
        say("%s: differ %d", trap_size_names[i], p != q);
        say("free of the other's %d", cuMemFree_v2(p));
        say("again %d", cuMemFree_v2(p));
        cuCtxSetCurrent(first);
        say("free of the other's %d", cuMemFree_v2(q));
        say("again %d", cuMemFree_v2(q));
    }
    say("destroy %d", cuCtxDestroy_v2(second));
}

/* Does the program see the device idle after a free? */
static void free_waits(void)
{
    cudaStream_t streams[KINDS];
    struct gate gates[KINDS];
    void *p = take(4096);

    for (int i = 0; i < KINDS; i++)
        streams[i] = make_stream(i);
    for (int i = 0; i < KINDS; i++)
        gate_close(&gates[i], LONGER_MS, streams[i]);
    say("free %d", cudaFree(p));
    for (int i = 0; i < KINDS; i++)
        say("%s: %s", kind_names[i], cudaStreamQuery(streams[i]) ? "busy" : "ready");
    for (int i = 0; i < KINDS; i++)
        gate_open(&gates[i]);
    say("device %d", cudaDeviceSynchronize());
}

/* Twice as much as may be pending is freed behind work: does the first of the frees wait, and the last? */
static void free_over_the_bound(void)
{
    enum { BLOCKS = 8 };
    cudaStream_t busy = make_stream(NONBLOCKING);
    void *blocks[BLOCKS];
    struct gate gate;
    int refused = 0;

    for (int i = 0; i < BLOCKS; i++)
        blocks[i] = take(16 * MIB);
    gate_close(&gate, LONGER_MS, busy);
    say("free %d", cudaFree(blocks[0]));
    say("after the first: %s", cudaStreamQuery(busy) ? "busy" : "ready");
    for (int i = 1; i < BLOCKS; i++)
        refused += cudaFree(blocks[i]) != cudaSuccess;
    say("refused: %d, after the last: %s", refused, cudaStreamQuery(busy) ? "busy" : "ready");
    gate_open(&gate);
    say("device %d", cudaDeviceSynchronize());
}

/* Whoever synchronises one stream has not waited for another. */
static void sync_of_one_stream(void)
{
    cudaStream_t busy = make_stream(NONBLOCKING), idle = make_stream(NONBLOCKING);
    void *blocks[MOST];
    unsigned char word[512];
    cudaEvent_t event;

    cudaEventCreate(&event);
    for (int i = 0; i < 3; i++) {
        struct gate gate;
        void *q = take(512);

        cudaMemset(q, 1, 512);
        take_blocks(blocks, i);
        write_late_and_free(blocks, i, &gate, busy);
        cudaStreamSynchronize(idle);
        cudaEventRecord(event, idle);
        cudaEventSynchronize(event);
        cudaStreamQuery(idle);
        cudaMemcpy(word, q, 512, cudaMemcpyDeviceToHost);
        second_owners(i);
        cudaFree(q);
    }
}

/* Who gives the other stream its work: this thread after the free, or another one meanwhile. */
struct partner {
    struct gate gate;
    cudaStream_t stream;
    int status;
};

static void open_partners_gate(void *argument)
{
    struct partner *partner = argument;

    gate_open(&partner->gate);
}

static void *give_work_soon(void *argument)
{
    struct partner *partner = argument;

    pause_ms(GATE_MS);
    partner->status = cudaLaunchHostFunc(partner->stream, open_partners_gate, partner);
    return NULL;
}

/* One stream has the work, and memory of its went round: what is freed and asked for again is known to be its
 * own. */
static cudaStream_t settle(void **p)
{
    cudaStream_t stream = make_stream(NONBLOCKING);

    *p = take(trap_sizes[1]);
    say("device %d", cudaDeviceSynchronize());
    fill(*p, trap_sizes[1], 0x11, stream);
    return stream;
}

static void tell_who_opened(struct partner *partner, cudaStream_t stream)
{
    say("stream %d", cudaStreamSynchronize(stream));
    say("the gate opened by itself: %d", now_ms() - partner->gate.closed_at >= partner->gate.ms);
    say("device %d", cudaDeviceSynchronize());
}

/* What comes after the free may wait for another stream: nobody who joins waits for that. */
static void go_on_across(void)
{
    struct partner partner = {.stream = make_stream(NONBLOCKING)};
    void *p, *q;
    cudaStream_t stream = settle(&p);

    say("free %d", cudaFree(p));
    q = take(trap_sizes[1]);
    gate_close(&partner.gate, 4 * LONGER_MS, stream);
    fill(q, trap_sizes[1], 0x22, stream);
    fill(q, trap_sizes[1], 0x33, partner.stream);
    say("other stream %d", cudaLaunchHostFunc(partner.stream, open_partners_gate, &partner));
    tell_who_opened(&partner, stream);
    say("free %d", cudaFree(q));
}

/* What came before it waits for a stream that another thread gives work to, while the free waits. */
static void wait_across(void)
{
    struct partner partner = {.stream = make_stream(NONBLOCKING)};
    pthread_t thread;
    void *p;
    cudaStream_t stream = settle(&p);

    gate_close(&partner.gate, 4 * LONGER_MS, stream);
    pthread_create(&thread, NULL, give_work_soon, &partner);
    say("free %d", cudaFree(p));
    pthread_join(thread, NULL);
    say("other stream %d", partner.status);
    tell_who_opened(&partner, stream);
}

const struct trap traps_order[] = {
    {"free-waits", free_waits, NULL},
    {"free-over-the-bound", free_over_the_bound, NULL},
    {"reuse-after-legacy-stream", reuse_legacy, "MEMSIM_MEMORY=144M"},
    {"reuse-after-blocking-stream", reuse_blocking, "MEMSIM_MEMORY=144M"},
    {"reuse-after-nonblocking-stream", reuse_nonblocking, "MEMSIM_MEMORY=144M"},
    {"reuse-after-priority-stream", reuse_priority, "MEMSIM_MEMORY=144M"},
    {"reuse-after-per-thread-stream", reuse_per_thread, "MEMSIM_MEMORY=144M"},
    {"reuse-after-other-threads-stream", reuse_other_thread, "MEMSIM_MEMORY=144M"},
    {"reuse-by-a-thread-after-another", reuse_two_threads, "MEMSIM_MEMORY=144M"},
    {"reuse-after-destroyed-stream", reuse_destroyed_stream, "MEMSIM_MEMORY=144M"},
    {"reuse-and-late-reads", late_reads, NULL},
    {"reuse-after-sync-of-another-stream", sync_of_one_stream, "MEMSIM_MEMORY=144M"},
    {"free-from-other-thread", free_from_thread, "MEMSIM_MEMORY=144M"},
    {"free-from-other-device", free_from_device, "MEMSIM_DEVICES=2 MEMSIM_MEMORY=144M"},
    {"free-from-other-context", free_from_context, NULL},
    {"streams-go-on-across-a-free", go_on_across, NULL},
    {"streams-wait-across-a-free", wait_across, NULL},
    {NULL, NULL, NULL},
};
