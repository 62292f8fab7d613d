/*
 * copies_calls.c - calls functions of the runtime that memshim has wrappers of, in a way that each refuses.
 *
 * Built as a plugin that is linked with the runtime, as one that is not, and into the program. With
 * COPIES_OTHERS it also refers to functions that memshim knows nothing of, as nearly every program does.
 */
#include "tests/hooks/copies_calls.h"

#include <stdint.h>

#include "vendor/abi/cuda_runtime_fn.h"

static void *const nowhere = (void *)(uintptr_t)0xdead0000;
static size_t pitch;

static const struct {
    const char *name;
    void *function;
} calls[] = {
    {"cudaMalloc", (void *)cudaMalloc},           {"cudaFree", (void *)cudaFree},
    {"cudaMallocHost", (void *)cudaMallocHost},   {"cudaFreeHost", (void *)cudaFreeHost},
    {"cudaMallocPitch", (void *)cudaMallocPitch}, {"cudaHostAlloc", (void *)cudaHostAlloc},
};

int copies_count(void)
{
    return (int)(sizeof(calls) / sizeof(calls[0]));
}

int copies_fail(int i)
{
    switch (i) {
    case 0:
        return cudaMalloc(NULL, 1);
    case 1:
        return cudaFree(nowhere);
    case 2:
        return cudaMallocHost(NULL, 1);
    case 3:
        return cudaFreeHost(nowhere);
    case 4:
        return cudaMallocPitch(NULL, &pitch, 1, 1);
    default:
        return cudaHostAlloc(NULL, 1, 0);
    }
}

const char *copies_name(int i)
{
    return calls[i].name;
}

void *copies_pointer(int i)
{
    return calls[i].function;
}

#ifdef COPIES_OTHERS
int copies_version(int *version_p);
int copies_version(int *version_p)
{
    return cudaRuntimeGetVersion(version_p);
}
#endif
