/*
 * limit.c - memory in the order of a stream until there is none, then free memory as it is said to be: for
 * limit.py, which sets MEMSHIM_LIMIT. Prints "what value" lines.
 */
#include <stdio.h>

#include "vendor/abi/cuda_driver.h"
#include "vendor/abi/cuda_driver_fn.h"
#include "vendor/abi/cuda_runtime.h"
#include "vendor/abi/cuda_runtime_fn.h"

#define MIB            ((size_t)1 << 20)
#define SAY(name, ...) printf("%s %d\n", name, (int)(__VA_ARGS__))

static int available(void)
{
    size_t left = 0, total = 0;

    return cudaMemGetInfo(&left, &total) == cudaSuccess ? (int)(left / MIB) : -1;
}

int main(void)
{
    cudaStream_t stream = NULL;
    void *p[100], *q = NULL;
    int count = 0, status = 0;

    cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
    while (count < 100 && (status = (int)cudaMallocAsync(&p[count], 4 * MIB, stream)) == 0)
        count++;
    SAY("blocks", count);
    SAY("status", status);
    SAY("last", cudaGetLastError());
    SAY("left", available());
    for (int i = 0; i < count; i++)
        cudaFreeAsync(p[i], stream);
    SAY("synchronize", cudaStreamSynchronize(stream));
    SAY("left_again", available());
    SAY("cudaMalloc", cudaMalloc(&q, 40 * MIB));
    SAY("free", cudaFree(q));
    SAY("synchronize_all", cudaDeviceSynchronize());
    SAY("left_at_last", available());
    SAY("too_much", cudaMallocAsync(&q, 70 * MIB, stream));
    SAY("again", cudaMallocAsync(&q, 40 * MIB, stream));
    return 0;
}
