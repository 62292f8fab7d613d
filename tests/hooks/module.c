/*
 * module.c - a plugin that allocates through the runtime that it is linked with; built once per runtime
 * version.
 *
 * Programs open it locally, globally, with RTLD_DEEPBIND or in a namespace of its own.
 */
#include <stddef.h>

#include "vendor/abi/cuda_runtime_fn.h"
#include "tests/hooks/module.h"

int module_alloc(void **p, size_t bytes)
{
    return cudaMalloc(p, bytes);
}

int module_free(void *p)
{
    return cudaFree(p);
}

/* A call without an output pointer fails and is remembered by the runtime that served it, and by no other. */
int module_fail(void)
{
    return cudaMalloc(NULL, 1);
}

int module_last(int clear)
{
    return clear ? cudaGetLastError() : cudaPeekAtLastError();
}

int module_version(void)
{
    int version = -1;

    cudaRuntimeGetVersion(&version);
    return version / 1000;
}
