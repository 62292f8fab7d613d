/* stepped.c - a signal at each instruction of a call, whose handler allocates and frees itself.
 *
 * usage: stepped CALL HANDLER. CALL is malloc, free, async or freeasync; HANDLER is what the handler does:
 * context, stream, or both. The processor's single step brings a trap after each instruction; that of the
 * n-th runs the handler, for each n until the call is over. Blocks that are live never overlap, and no call
 * fails. x86-64. */
#ifndef __x86_64__
int main(void)
{
    return 77;
}
#else
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <ucontext.h>

#include "vendor/abi/cuda_runtime_fn.h"

enum { BYTES = 4096, WARM = 60, POINTS = 600, STEP_FLAG = 0x100 };

static cudaStream_t stream, other;
static const char *handler;
static volatile long seen, at;
static volatile bool is_stepping, has_fired;
static long failed;

static void check(cudaError_t status)
{
    failed += status != cudaSuccess;
}

static void pair_of_context(void)
{
    void *block = NULL;
    check(cudaMalloc(&block, BYTES));
    check(cudaFree(block));
}

static void pair_of(cudaStream_t on)
{
    void *block = NULL;
    check(cudaMallocAsync(&block, BYTES, on));
    check(cudaFreeAsync(block, on));
}

static void trapped(int number, siginfo_t *info, void *context)
{
    ucontext_t *at_trap = context;
    (void)number, (void)info;
    if (is_stepping && seen++ < at)
        return;
    at_trap->uc_mcontext.gregs[REG_EFL] &= ~STEP_FLAG;
    if (!is_stepping)
        return;
    is_stepping = false;
    has_fired = true;
    if (strcmp(handler, "stream") != 0)
        pair_of_context();
    if (strcmp(handler, "context") != 0)
        pair_of(other);
}

static void begin(void)
{
    is_stepping = true;
    __asm__ volatile("pushfq; orq $0x100, (%%rsp); popfq" ::: "memory", "cc");
}

static void end(void)
{
    __asm__ volatile("pushfq; andq $~0x100, (%%rsp); popfq" ::: "memory", "cc");
    is_stepping = false;
}

/* One call, with blocks that are live meanwhile; each is at hand before, the context's last. */
static void run(const char *call)
{
    void *block = NULL, *mine = NULL, *streams = NULL;
    pair_of(stream);
    pair_of(other);
    check(cudaMallocAsync(&streams, BYTES, stream));
    check(cudaMalloc(&mine, BYTES));
    pair_of_context();
    pair_of_context();
    seen = 0;
    has_fired = false;
    bool is_ordered = strstr(call, "async") != NULL;
    if (is_ordered)
        pair_of(stream);
    begin();
    cudaError_t status = !strcmp(call, "malloc")  ? cudaMalloc(&block, BYTES)
                         : !strcmp(call, "free")  ? cudaFree(mine)
                         : !strcmp(call, "async") ? cudaMallocAsync(&block, BYTES, stream)
                                                  : cudaFreeAsync(streams, stream);
    end();
    check(status);
    failed += block && (block == mine || block == streams);
    if (block)
        check(is_ordered ? cudaFreeAsync(block, stream) : cudaFree(block));
    if (strcmp(call, "free") != 0)
        check(cudaFree(mine));
    if (strcmp(call, "freeasync") != 0)
        check(cudaFreeAsync(streams, stream));
}

int main(int argc, char **argv)
{
    struct sigaction action = {.sa_sigaction = trapped, .sa_flags = SA_SIGINFO};
    if (argc != 3 || sigaction(SIGTRAP, &action, NULL) != 0 ||
        cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking) != cudaSuccess ||
        cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking) != cudaSuccess)
        return 2;
    handler = argv[2];
    for (int i = 0; i < WARM; i++)
        pair_of_context();
    for (int i = 0; i < WARM; i++)
        pair_of(stream);
    for (int i = 0; i < WARM; i++)
        pair_of(other);
    for (at = 0; at < POINTS; at++) {
        run(argv[1]);
        if (!has_fired)
            break;
    }
    printf("%s, %s: %s points, %ld failed\n", argv[1], argv[2], at > 100 ? "many" : "few", failed);
    return failed != 0;
}
#endif
