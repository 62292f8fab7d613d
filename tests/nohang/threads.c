/*
 * threads.c - programs in which one thread waits for the device and another releases it, on its way through
 * the allocator.
 */
#include "nohang.h"

struct shared {
    struct hold hold;
    cudaStream_t held;
    void *block;
    atomic_int freeing, progress, done;
};

static void free_the_block(void *argument)
{
    struct shared *shared = argument;

    atomic_store(&shared->freeing, 1);
    say("free %d", cudaFree(shared->block)); /* natively waits for the stream that is held */
    atomic_store(&shared->done, 1);
}

/* One thread is inside a free that waits; another allocates, and only then releases the device. */
static void free_waits_for_another_thread(void)
{
    struct shared shared = {.done = 0};
    struct helper *helper;

    hold_prepare(&shared.hold);
    shared.held = new_stream();
    for (int round = 0; round < 3; round++) {
        shared.block = take(round ? 20 * MIB : 5000);
        cudaFree(take(9 * MIB));
        cudaDeviceSynchronize();
        atomic_store(&shared.freeing, 0);
        hold_begin(&shared.hold, shared.held, 0);
        helper = start(free_the_block, &shared);
        while (!atomic_load(&shared.freeing))
            pause_ms(1);
        pause_ms(20);
        for (int i = 0; i < 30; i++)
            take((size_t)(i + 1) * 100000);
        hold_end(&shared.hold);
        finish(helper);
    }
    say("device %d", cudaDeviceSynchronize());
}

/* A thread frees while the device is held; a second releases it after a while, without touching the
 * allocator. */
static void release_after_a_while(void *argument)
{
    pause_ms(50);
    hold_end(argument);
}

static void free_and_release(void)
{
    struct hold hold;
    cudaStream_t held = new_stream();

    hold_prepare(&hold);
    for (int round = 0; round < 3; round++) {
        void *p = take(round == 2 ? 5000 : 20 * MIB), *q = NULL;
        struct helper *helper;

        hold_begin(&hold, held, 0);
        helper = start(release_after_a_while, &hold);
        say("free %d", cudaFree(p));
        say("allocation %d", cudaMalloc(&q, 20 * MIB));
        finish(helper);
        say("device %d", cudaDeviceSynchronize());
        cudaFree(q);
    }
}

/* Memory is full of what was freed; a thread allocates, and another, which waits for nothing of it, releases
 * the device. */
static void full_and_released(void)
{
    struct hold hold;
    cudaStream_t held = new_stream();
    void *blocks[64], *p = NULL;

    hold_prepare(&hold);
    for (int round = 0; round < 2; round++) {
        struct helper *helper;
        int count = take_all(blocks, 64, 5 * MIB);

        hold_begin(&hold, held, 0);
        helper = start(release_after_a_while, &hold);
        give_all(blocks, count); /* natively the first of them waits */
        say("allocation %d", cudaMalloc(&p, 60 * MIB));
        finish(helper);
        say("free %d", cudaFree(p));
    }
    say("device %d", cudaDeviceSynchronize());
}

/* Holds the device again and again; each time it waits for the other thread to get ahead before it lets
 * go. */
static void hold_for_progress(void *argument)
{
    struct shared *shared = argument;

    while (!atomic_load(&shared->done)) {
        int before = atomic_load(&shared->progress);

        hold_begin(&shared->hold, shared->held, 0);
        while (!atomic_load(&shared->done) && atomic_load(&shared->progress) < before + 3)
            pause_ms(1);
        hold_end(&shared->hold);
        cudaStreamSynchronize(shared->held);
    }
}

/* Allocates sizes that never come twice and waits for a stream of its own: natively nothing of it waits for
 * the device. */
static void progress_while_held(void)
{
    struct shared shared = {.done = 0};
    cudaStream_t own;
    struct helper *helper;

    hold_prepare(&shared.hold);
    shared.held = new_stream();
    own = new_stream();
    for (int i = 0; i < 20; i++)
        cudaFree(take((size_t)(i + 1) * 2 * MIB + 7)); /* to be given back some time */
    helper = start(hold_for_progress, &shared);
    for (int i = 0; i < 60; i++) {
        void *p = take((size_t)(i + 1) * MIB / 4 + (size_t)i);

        cudaMemsetAsync(p, 1, 512, own);
        if (cudaStreamSynchronize(own))
            say("stream");
        atomic_fetch_add(&shared.progress, 1);
        pause_ms(1);
    }
    atomic_store(&shared.done, 1);
    finish(helper);
    say("device %d", cudaDeviceSynchronize());
}

const struct program programs_threads[] = {
    {"free-waits-for-another-thread", free_waits_for_another_thread, NULL},
    {"free-and-release", free_and_release, NULL},
    {"full-and-released", full_and_released, "MEMSIM_MEMORY=96M"},
    {"progress-while-held", progress_while_held, NULL},
    {NULL, NULL, NULL},
};
