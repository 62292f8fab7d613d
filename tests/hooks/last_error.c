/*
 * last_error.c - the runtime's last error through calls that succeed, fail and are refused. Prints statuses
 * and whether outputs were touched, never an address: the same natively and under memshim.
 */
#include <stdio.h>

#include "vendor/abi/cuda_runtime_fn.h"

#define UNTOUCHED ((void *)0x1)

int main(void)
{
    void *p = UNTOUCHED, *q = NULL;
    size_t pitch = 77;
    int local = 0;

    printf("malloc %d\n", cudaMalloc(&q, 1 << 16));
    printf("last %d\n", cudaPeekAtLastError());
    printf("too much %d, untouched %d\n", cudaMalloc(&p, (size_t)1 << 60), p == UNTOUCHED);
    printf("peek %d\n", cudaPeekAtLastError());
    printf("malloc %d\n", cudaMalloc(&p, 1 << 10));
    printf("peek %d\n", cudaPeekAtLastError());
    printf("get %d, then %d\n", cudaGetLastError(), cudaGetLastError());
    printf("foreign %d\n", cudaFree(&local));
    printf("get %d\n", cudaGetLastError());
    printf("interior %d\n", cudaFree((char *)q + 256));
    printf("get %d\n", cudaGetLastError());
    printf("free %d\n", cudaFree(q));
    printf("twice %d\n", cudaFree(q));
    printf("get %d\n", cudaGetLastError());
    printf("null %d\n", cudaFree(NULL));
    printf("zero %d %s\n", cudaMalloc(&q, 0), q ? "pointer" : "null");
    printf("no output %d\n", cudaMalloc(NULL, 5));
    printf("no pitch %d, %zu\n", cudaMallocPitch(&p, NULL, 5, 5), pitch);
    printf("managed %d\n", cudaMallocManaged(&q, 0, 1));
    printf("flags %d\n", cudaMallocManaged(&q, 100, 99));
    printf("host %d\n", cudaFreeHost(&local));
    printf("unregister %d\n", cudaHostUnregister(&local));
    printf("async %d\n", cudaFreeAsync(&local, 0));
    printf("pool %d\n", cudaMallocFromPoolAsync(&q, 100, NULL, 0));
    printf("device %d\n", cudaSetDevice(99));
    printf("get %d\n", cudaGetLastError());
    printf("reset %d\n", cudaDeviceReset());
    printf("after reset %d\n", cudaMalloc(&q, 100));
    printf("get %d\n", cudaGetLastError());
    return 0;
}
