/*
 * plain.c - programs that hold a stream while there is memory enough.
 */
#include "nohang.h"

#include <sys/wait.h>
#include <unistd.h>

/* Allocations of every size go on. */
static void allocations(void)
{
    static const size_t sizes[] = {700, 50000, MIB, 3 * MIB, 9 * MIB, 20 * MIB};
    cudaStream_t held = new_stream();
    struct hold hold;

    hold_prepare(&hold);
    for (int i = 0; i < 60; i++)
        cudaFree(take(sizes[i % 6] + (size_t)i * 5000)); /* what is free, or will be */
    hold_begin(&hold, held, 0);
    for (int i = 0; i < 60; i++)
        take(sizes[i % 6] + (size_t)i * 5000);
    hold_end(&hold);
    say("synchronize %d", cudaDeviceSynchronize());
}

/* Waiting for other streams, with idle memory around that could be given back. */
static void other_waits(void)
{
    cudaStream_t held = new_stream(), other = new_stream();
    void *blocks[6], *p = take(4096);
    cudaEvent_t event;
    struct hold hold;
    char word[8];

    hold_prepare(&hold);
    cudaEventCreate(&event);
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < 6; i++)
            blocks[i] = take((size_t)(i + 1) * 5 * MIB);
        give_all(blocks, 6);
        if (round)
            cudaDeviceSynchronize();
        hold_begin(&hold, held, 0);
        cudaMemsetAsync(p, 1, 4096, other);
        say("stream %d", cudaStreamSynchronize(other));
        cudaEventRecord(event, other);
        say("event %d", cudaEventSynchronize(event));
        say("copy %d", cudaMemcpy(word, p, 8, cudaMemcpyDeviceToHost));
        say("legacy stream %d", cudaStreamSynchronize(NULL));
        say("held: %s", cudaStreamQuery(held) ? "busy" : "ready");
        say("meminfo %d", cudaMemGetInfo(&(size_t){0}, &(size_t){0}));
        take(7 * MIB + (size_t)round);
        hold_end(&hold);
        say("device %d", cudaDeviceSynchronize());
    }
}

/* A value that another stream writes, which is told so only after an allocation. */
static void released_by_a_stream(void)
{
    cudaStream_t held = new_stream(), writer = new_stream();
    struct hold hold;

    hold_prepare(&hold);
    cudaFree(take(20 * MIB));
    cudaFree(take(5000));
    hold_begin(&hold, held, 0);
    for (int i = 0; i < 20; i++)
        take((size_t)(i + 1) * MIB);
    say("write %d", cuStreamWriteValue32_v2(writer, hold.device_flag, 1, 0));
    say("synchronize %d", cudaStreamSynchronize(held));
}

/* Other kinds of memory. */
static void other_memory(void)
{
    struct cudaChannelFormatDesc desc = {32, 0, 0, 0, cudaChannelFormatKindFloat};
    cudaStream_t held = new_stream(), other = new_stream();
    void *p = NULL, *blocks[4];
    cudaArray_t array = NULL;
    struct hold hold;
    size_t pitch;

    hold_prepare(&hold);
    for (int i = 0; i < 4; i++)
        blocks[i] = take(10 * MIB);
    give_all(blocks, 4);
    hold_begin(&hold, held, 0);
    say("pitch %d", cudaMallocPitch(&p, &pitch, 1000, 1000));
    say("managed %d", cudaMallocManaged(&p, MIB, cudaMemAttachGlobal));
    say("array %d", cudaMallocArray(&array, &desc, 100, 100, 0));
    say("host %d", cudaHostAlloc(&p, MIB, 0));
    say("stream-ordered %d", cudaMallocAsync(&p, MIB, other));
    say("its free %d", cudaFreeAsync(p, other));
    say("other stream %d", cudaStreamSynchronize(other));
    hold_end(&hold);
    say("device %d", cudaDeviceSynchronize());
}

/* The stream that is held ends in name; its work does not. */
static void destroyed_stream(void)
{
    cudaStream_t held = new_stream();
    struct hold hold;

    hold_prepare(&hold);
    cudaFree(take(20 * MIB));
    hold_begin(&hold, held, 0);
    say("destroy %d", cudaStreamDestroy(held));
    take(20 * MIB);
    take(40 * MIB);
    hold_end(&hold);
    say("device %d", cudaDeviceSynchronize());
}

/* Each device waits for its own work. */
static void two_devices(void)
{
    cudaStream_t held;
    void *blocks[8];
    struct hold hold;

    cudaSetDevice(1);
    hold_prepare(&hold);
    held = new_stream();
    for (int i = 0; i < 8; i++)
        blocks[i] = take((size_t)(i + 1) * 3 * MIB);
    give_all(blocks, 8);
    hold_begin(&hold, held, 0);
    cudaSetDevice(0);
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < 8; i++)
            blocks[i] = take((size_t)(i + 1) * 3 * MIB);
        give_all(blocks, 8); /* natively waits for device 0 */
        say("device 0 %d", cudaDeviceSynchronize());
    }
    cudaSetDevice(1);
    for (int i = 0; i < 8; i++)
        take((size_t)(i + 1) * 2 * MIB);
    hold_end(&hold);
    say("device 1 %d", cudaDeviceSynchronize());
}

static void say_status(void *argument)
{
    *(int *)argument = cudaFree(NULL);
}

static void free_in_stream(void *argument)
{
    void **block = argument;

    block[1] = (void *)(uintptr_t)cudaFree(block[0]);
}

/* Frees from host functions may be refused (see docs/user/differences.md), and must not wait for the
 * stream that they are in. */
static void frees_in_host_functions(void)
{
    cudaStream_t held = new_stream(), other = new_stream();
    void *block[2] = {take(20 * MIB), NULL};
    struct hold hold;
    int status = -1;

    hold_prepare(&hold);
    cudaFree(take(20 * MIB));
    hold_begin(&hold, held, 0);
    cudaLaunchHostFunc(other, free_in_stream, block);
    cudaLaunchHostFunc(other, say_status, &status);
    say("other stream %d", cudaStreamSynchronize(other));
    say("of NULL %d", status);
    hold_end(&hold);
    say("device %d", cudaDeviceSynchronize());
    if (block[1])
        say("free %d", cudaFree(block[0]));
    else
        say("free 0");
}

/* A child of fork has no device to wait for. */
static void fork_while_held(void)
{
    cudaStream_t held = new_stream();
    void *p = take(3000);
    struct hold hold;
    int status = -1;
    pid_t pid;

    hold_prepare(&hold);
    cudaFree(take(20 * MIB));
    hold_begin(&hold, held, 0);
    pid = fork();
    if (pid == 0) {
        cudaFree(p);
        cudaMalloc(&p, 5000);
        exit(6);
    }
    waitpid(pid, &status, 0);
    say("child %d", WIFEXITED(status) ? WEXITSTATUS(status) : -1);
    hold_end(&hold);
    say("device %d", cudaDeviceSynchronize());
    say("free %d", cudaFree(p));
}

/* The process ends while the device is held for ever, with memory in every state. */
static void exit_while_held(void)
{
    cudaStream_t held = new_stream();
    static struct hold hold; /* the host function looks at it until the process is gone, and main is not */

    hold_prepare(&hold);
    take(3000);
    cudaFree(take(20 * MIB));
    cudaFree(take(9000));
    hold_begin(&hold, held, 0);
    take(MIB);
    if (hold_kind == HOLD_KERNEL)
        hold_end(&hold); /* a process with a kernel that runs for ever cannot be ended by a driver either */
}

const struct program programs_plain[] = {
    {"allocations", allocations, NULL},
    {"other-waits", other_waits, NULL},
    {"released-by-a-stream", released_by_a_stream, NULL},
    {"other-memory", other_memory, NULL},
    {"destroyed-stream", destroyed_stream, NULL},
    {"two-devices", two_devices, "MEMSIM_DEVICES=2"},
    {"frees-in-host-functions", frees_in_host_functions, NULL},
    {"fork-while-held", fork_while_held, NULL},
    {"exit-while-held", exit_while_held, NULL},
    {NULL, NULL, NULL},
};
