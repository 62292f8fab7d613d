/*
 * A library with the shared runtime, beside a program that has the static one (static_user.c): memory of this
 * one's, an error of this one's, and which runtime its names mean. The tests' own; allocates what it is asked
 * for, locks nothing.
 */
#include "vendor/abi/cuda_runtime.h"
#include "vendor/abi/cuda_runtime_fn.h"

void *beside_make(size_t bytes);
int beside_fails(void);
const void *beside_runtime(void);

void *beside_make(size_t bytes)
{
    void *memory = NULL;

    return cudaMalloc(&memory, bytes) == cudaSuccess ? memory : NULL;
}

int beside_fails(void)
{
    cudaMalloc(NULL, 1);
    return (int)cudaGetLastError();
}

const void *beside_runtime(void)
{
    cudaError_t (*malloc_of_this)(void **, size_t) = cudaMalloc;

    return (const void *)malloc_of_this;
}
