/*
 * chain.c - a third library that stands before the runtime and passes calls on by dlsym(RTLD_NEXT), as
 * profilers do.
 *
 * It wraps one name that memshim owns and one that it does not. The program asks how often each was called
 * and where the next one was found. Linked (libchain.so) or preloaded before or behind memshim.
 */
#include <dlfcn.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "vendor/abi/cuda_runtime_fn.h"
#include "tests/hooks/chain.h"

static struct chain_seen seen;

static const char *owner_of(void *function)
{
    Dl_info info;
    const char *slash;

    if (!function)
        return "nowhere";
    if (!dladdr(function, &info) || !info.dli_fname)
        return "unknown";
    slash = strrchr(info.dli_fname, '/');
    return slash ? slash + 1 : info.dli_fname;
}

cudaError_t cudaMalloc(void **p, size_t bytes)
{
    cudaError_t (*next)(void **, size_t) = (cudaError_t(*)(void **, size_t))dlsym(RTLD_NEXT, "cudaMalloc");

    seen.malloc_calls++;
    seen.malloc_next = owner_of((void *)next);
    if (next == cudaMalloc || seen.malloc_calls > 100)
        return cudaErrorUnknown;
    return next ? next(p, bytes) : cudaErrorInsufficientDriver;
}

long atol(const char *text)
{
    long (*next)(const char *) = (long (*)(const char *))dlsym(RTLD_NEXT, "atol");

    seen.atol_calls++;
    seen.atol_next = owner_of((void *)next);
    return next && next != atol ? next(text) : -1;
}

const struct chain_seen *chain_seen(void)
{
    return &seen;
}
