/*
 * full.c - programs that hold a stream when memory runs out: whether they get memory or an error, they get
 * it.
 */
#include "nohang.h"

#define SMALL "MEMSIM_MEMORY=96M"
#define MANY  128

/* Memory runs out; the program then releases what it holds. */
static void until_it_runs_out(void)
{
    cudaStream_t held = new_stream();
    void *blocks[MANY], *p = NULL;
    struct hold hold;
    int count;

    hold_prepare(&hold);
    hold_begin(&hold, held, 0);
    count = take_all(blocks, MANY, 5 * MIB);
    say("all taken: %d", count < MANY);
    say("one more %d", cudaMalloc(&p, 5 * MIB));
    hold_end(&hold);
    say("device %d", cudaDeviceSynchronize());
    give_all(blocks, count);
    say("and now %d", cudaMalloc(&p, 50 * MIB));
}

/* What was freed before is behind what holds the stream, for an allocator that looks only now. */
static void freed_before(size_t bytes)
{
    cudaStream_t held = new_stream();
    void *blocks[MANY], *p = NULL;
    struct hold hold;
    int count;

    hold_prepare(&hold);
    for (int round = 0; round < 2; round++) {
        count = take_all(blocks, MANY, bytes);
        say("all taken: %d", count < MANY);
        give_all(blocks, count);
        hold_begin(&hold, held, 0);
        cudaMalloc(&p, 60 * MIB); /* has room natively; whatever the answer, it comes */
        say("answered");
        hold_end(&hold);
        say("device %d", cudaDeviceSynchronize());
        cudaFree(p);
        p = NULL;
        cudaGetLastError();
        say("afterwards %d", cudaMalloc(&p, 60 * MIB));
        say("free %d", cudaFree(p));
        p = NULL;
    }
}

static void freed_before_small(void)
{
    freed_before(900 * 1024);
}
static void freed_before_medium(void)
{
    freed_before(5 * MIB);
}
static void freed_before_large(void)
{
    freed_before(18 * MIB);
}

/* The same size again, which is kept at hand, and a size that needs something to be given back. */
static void same_and_other_size(void)
{
    cudaStream_t held = new_stream(), other = new_stream();
    void *blocks[4], *p = NULL;
    struct hold hold;

    hold_prepare(&hold);
    for (int i = 0; i < 4; i++)
        blocks[i] = take(20 * MIB);
    give_all(blocks, 4);
    cudaDeviceSynchronize(); /* nothing is pending: everything is free, and stays so for whoever asks now */
    hold_begin(&hold, held, 0);
    say("the same size %d", cudaMalloc(&p, 20 * MIB));
    say("other stream %d", cudaStreamSynchronize(other));
    say("another size %d", cudaMalloc(&p, 30 * MIB));
    say("a third %d", cudaMalloc(&p, 7 * MIB));
    say("small %d", cudaMalloc(&p, 7000));
    hold_end(&hold);
    say("device %d", cudaDeviceSynchronize());
}

/* Other kinds of memory find room where ours is idle. */
static void room_for_others(void)
{
    cudaStream_t held = new_stream();
    void *blocks[4], *p = NULL;
    struct hold hold;

    hold_prepare(&hold);
    for (int i = 0; i < 4; i++)
        blocks[i] = take(20 * MIB);
    give_all(blocks, 4);
    cudaDeviceSynchronize();
    hold_begin(&hold, held, 0);
    cudaMallocManaged(&p, 50 * MIB, cudaMemAttachGlobal);
    say("answered");
    hold_end(&hold);
    say("device %d", cudaDeviceSynchronize());
}

/* One device runs out while another is held, and the other way round. */
static void two_devices(void)
{
    void *blocks[MANY], *p = NULL;
    cudaStream_t held;
    struct hold hold;
    int count;

    cudaSetDevice(1);
    hold_prepare(&hold);
    held = new_stream();
    count = take_all(blocks, MANY, 5 * MIB);
    give_all(blocks, count);
    hold_begin(&hold, held, 0);
    cudaSetDevice(0);
    for (int round = 0; round < 2; round++) {
        count = take_all(blocks, MANY, 9 * MIB);
        give_all(blocks, count);
        say("device 0: %d", cudaMalloc(&p, 60 * MIB));
        say("free %d", cudaFree(p));
    }
    cudaSetDevice(1);
    cudaMalloc(&p, 60 * MIB);
    say("answered");
    hold_end(&hold);
    say("device 1 %d", cudaDeviceSynchronize());
}

/* The device ends with something that holds it, for a while. */
static void reset_while_held(void)
{
    for (int round = 0; round < 2; round++) {
        cudaStream_t held = new_stream();
        void *blocks[MANY];
        struct hold hold;

        hold_prepare(&hold);
        give_all(blocks, take_all(blocks, MANY, 5 * MIB));
        hold_begin(&hold, held, 60);
        cudaMalloc(&blocks[0], 50 * MIB);
        say("answered");
        hold_end(&hold);
        say("reset %d", cudaDeviceReset());
    }
}

/* While a capture is open, nothing that would end it can be done to find out whether freed memory is idle. */
static void capture_open(void)
{
    cudaStream_t captured = new_stream(), held = new_stream();
    void *blocks[MANY], *p = NULL;
    cudaGraph_t graph = NULL;
    struct hold hold;

    hold_prepare(&hold);
    for (int round = 0; round < 2; round++) {
        cudaError_t status = cudaStreamBeginCapture(captured, cudaStreamCaptureModeRelaxed);

        if (status == cudaErrorNotSupported) {
            say("skip: the simulated GPU cannot capture");
            exit(0);
        }
        say("begin %d", status);
        give_all(blocks, take_all(blocks, MANY, round ? 3 * MIB : 18 * MIB));
        if (round)
            hold_begin(&hold, held, 0);
        cudaMalloc(&p, 60 * MIB);
        say("answered");
        hold_end(&hold);
        cudaFree(p);
        cudaGetLastError();
        say("end %d", cudaStreamEndCapture(captured, &graph));
        say("device %d", cudaDeviceSynchronize());
        say("afterwards %d", cudaMalloc(&p, 60 * MIB));
        say("free %d", cudaFree(p));
        p = NULL;
    }
}

const struct program programs_full[] = {
    {"until-it-runs-out", until_it_runs_out, SMALL},
    {"freed-before-small", freed_before_small, SMALL},
    {"freed-before-medium", freed_before_medium, SMALL},
    {"freed-before-large", freed_before_large, SMALL},
    {"same-and-other-size", same_and_other_size, SMALL},
    {"room-for-others", room_for_others, SMALL},
    {"two-devices-full", two_devices, SMALL " MEMSIM_DEVICES=2"},
    {"reset-while-held", reset_while_held, SMALL},
    {"capture-open", capture_open, SMALL},
    {NULL, NULL, NULL},
};
