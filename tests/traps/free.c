/*
 * free.c - traps of arguments: what is freed twice, never allocated, or nothing; sizes of nothing; what
 * failures leave behind in the runtime's last error; and errno.
 */
#include "traps.h"

#include <errno.h>

/* Every status also as the runtime's last error. */
static void free_and_say(const char *what, void *p)
{
    cudaError_t status = cudaFree(p), last = cudaGetLastError(), then = cudaGetLastError();

    say("%s: %d, last %d, then %d", what, status, last, then);
}

static void free_double(void)
{
    for (int i = 0; i < 3; i++) {
        void *p = take(trap_sizes[i]), *keeps_company = take(trap_sizes[i]);

        free_and_say("first", p);
        free_and_say("second", p);
        free_and_say("third", p);
        free_and_say("the neighbour", keeps_company);
        free_and_say("once more", p);
    }
}

static void free_double_driver(void)
{
    primary(0);
    for (int i = 0; i < 3; i++) {
        CUdeviceptr p = take_driver(trap_sizes[i]);

        say("first %d", cuMemFree_v2(p));
        say("second %d", cuMemFree_v2(p));
        say("synchronize %d", cuCtxSynchronize());
        say("third %d", cuMemFree_v2(p));
    }
}

static void free_foreign(void)
{
    static char own[4096];
    char on_stack[64];
    void *host = NULL, *heap = malloc(4096);

    cudaFree(NULL);
    free_and_say("static memory", own);
    free_and_say("the stack", on_stack);
    free_and_say("malloc", heap);
    cudaHostAlloc(&host, 4096, 0);
    free_and_say("host memory of the driver's", host);
    say("freed rightly %d", cudaFreeHost(host));
    free_and_say("nobody's address", (void *)(uintptr_t)0x7000000000);
    free_and_say("a small number", (void *)(uintptr_t)42);
    free_and_say("the last address", (void *)UINTPTR_MAX);
    free(heap);
}

static void free_interior(void)
{
    for (int i = 0; i < 3; i++) {
        char *p = take(trap_sizes[i]);

        free_and_say("one byte in", p + 1);
        free_and_say("512 bytes in", p + 512);
        free_and_say("half way", p + trap_sizes[i] / 2);
        free_and_say("the last byte", p + trap_sizes[i] - 1);
        free_and_say("it is still there", p);
    }
}

static void free_null(void)
{
    free_and_say("before anything else", NULL);
    say("the driver's %d", cuMemFree_v2(0));
    take(64);
    free_and_say("afterwards", NULL);
    say("the driver's %d", cuMemFree_v2(0));
    say("for the host %d", cudaFreeHost(NULL));
}

static void malloc_zero(void)
{
    void *p = (void *)(uintptr_t)0x1234;
    CUdeviceptr q = 0x1234;
    cudaError_t status = cudaMalloc(&p, 0);
    CUresult driver_status = cuMemAlloc_v2(&q, 0);

    say("cudaMalloc(0): %d, %s", status, p ? "something" : "NULL");
    free_and_say("freed", p);
    say("cuMemAlloc(0): %d, %s", driver_status, q == 0x1234 ? "untouched" : q ? "something" : "0");
    say("into nowhere: %d", cudaMalloc(NULL, 512));
    say("the driver's: %d", cuMemAlloc_v2(NULL, 512));
    say("nothing into nowhere: %d", cudaMalloc(NULL, 0));
    say("last %d", cudaGetLastError());
}

static void malloc_too_much(void)
{
    void *p = (void *)(uintptr_t)0x1234;
    CUdeviceptr q = 0x1234;

    say("cudaMalloc: %d", cudaMalloc(&p, (size_t)1 << 60));
    say("last %d", cudaPeekAtLastError());
    say("still %d", cudaGetLastError());
    say("and then %d", cudaGetLastError());
    say("pointer %s", p == (void *)(uintptr_t)0x1234 ? "untouched" : p ? "something" : "NULL");
    say("cuMemAlloc: %d", cuMemAlloc_v2(&q, (size_t)1 << 60));
    say("pointer %s", q == 0x1234 ? "untouched" : q ? "something" : "0");
    for (size_t less = 0; less <= 1 << 22; less = less ? less << 2 : 1) {
        say("%zu less than the largest size: cudaMalloc %d", less, cudaMalloc(&p, SIZE_MAX - less));
        say("cuMemAlloc %d", cuMemAlloc_v2(&q, SIZE_MAX - less));
    }
    cudaGetLastError();
    say("a reasonable size: %d", cudaMalloc(&p, 4096));
    say("last %d", cudaGetLastError());
}

static void success_keeps_last_error(void)
{
    void *p = NULL, *q[64] = {NULL};

    cudaMalloc(&p, (size_t)1 << 60);
    for (int i = 0; i < 64; i++)
        cudaMalloc(&q[i], 1000 * (size_t)(i + 1));
    say("last after successes %d", cudaPeekAtLastError());
    for (int i = 0; i < 64; i++)
        cudaFree(q[i]);
    say("last after frees %d", cudaPeekAtLastError());
    cudaMalloc(&q[0], 1000);
    say("last after a reuse %d", cudaGetLastError());
    say("then %d", cudaGetLastError());
}

static void errno_is_kept(void)
{
    void *p[8];

    errno = 1234;
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < 8; i++)
            p[i] = take((size_t)3000 << i);
        say("after allocations %d", errno);
        for (int i = 0; i < 8; i++)
            cudaFree(p[i]);
        say("after frees %d", errno);
        cudaDeviceSynchronize();
    }
    cudaFree(p[0]);
    say("after a wrong free %d", errno);
}

/* cudaFreeAsync of what cudaMalloc gave, and cudaFree of what cudaMallocAsync gave. */
static void free_across_interfaces(void)
{
    cudaStream_t stream;
    void *p = NULL;

    cudaStreamCreate(&stream);
    for (int i = 0; i < 3; i++) {
        p = take(trap_sizes[i]);
        cudaMemset(p, 1, trap_sizes[i]);
        say("cudaFreeAsync of cudaMalloc's: %d", cudaFreeAsync(p, stream));
        say("synchronize %d", cudaStreamSynchronize(stream));
        free_and_say("then cudaFree", p);
        say("cudaMallocAsync %d", cudaMallocAsync(&p, trap_sizes[i], stream));
        cudaMemsetAsync(p, 2, trap_sizes[i], stream);
        cudaStreamSynchronize(stream);
        free_and_say("cudaFree of cudaMallocAsync's", p);
        free_and_say("again", p);
    }
    p = take(5000);
    say("cudaFreeHost of cudaMalloc's: %d", cudaFreeHost(p));
    free_and_say("then cudaFree", p);
}

const struct trap traps_free[] = {
    {"free-double", free_double, NULL},
    {"free-double-driver", free_double_driver, NULL},
    {"free-foreign", free_foreign, NULL},
    {"free-interior", free_interior, NULL},
    {"free-null", free_null, NULL},
    {"malloc-zero", malloc_zero, NULL},
    {"malloc-too-much-and-last-error", malloc_too_much, NULL},
    {"success-keeps-last-error", success_keeps_last_error, NULL},
    {"errno-is-kept", errno_is_kept, NULL},
    {"free-across-interfaces", free_across_interfaces, NULL},
    {NULL, NULL, NULL},
};
