/*
 * What a call that gives work to a stream costs the host: a copy of nothing, which the simulated driver
 * answers without queueing anything.
 *
 * Usage: submit MILLISECONDS. The function comes out of cuGetProcAddress, as the runtime has it. Prints the
 * median processor time of a call in the legacy stream and in a created one: "legacy_ns VALUE", "created_ns
 * VALUE".
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "gpu/abi/cuda_driver.h"
#include "gpu/abi/cuda_driver_fn.h"
#include "gpu/abi/cuda_runtime.h"
#include "gpu/abi/cuda_runtime_fn.h"

enum { CALLS = 1000, BATCHES = 100000 };

typedef CUresult (*copy_func_t)(CUdeviceptr, CUdeviceptr, size_t, CUstream);

static double now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

static double median_ns(copy_func_t copy, CUdeviceptr block, CUstream stream, double ms)
{
    static double taken[BATCHES];
    double begun = now_ns();
    size_t count = 0;

    while (count < BATCHES && now_ns() - begun < ms * 1e6) {
        double at = now_ns();
        for (int i = 0; i < CALLS; i++)
            if (copy(block, block, 0, stream) != CUDA_SUCCESS)
                exit(1);
        taken[count++] = (now_ns() - at) / CALLS;
    }
    qsort(taken, count, sizeof *taken, by_value);
    return taken[count / 2];
}

int main(int argc, char **argv)
{
    double ms = argc > 1 ? atof(argv[1]) : 50;
    void *block = NULL, *found = NULL;
    cudaStream_t stream = NULL;

    if (cudaMalloc(&block, 1 << 20) != cudaSuccess ||
        cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking) != cudaSuccess ||
        cuGetProcAddress_v2("cuMemcpyAsync", &found, 12000, CU_GET_PROC_ADDRESS_DEFAULT, NULL) !=
            CUDA_SUCCESS)
        return 1;
    printf("legacy_ns %.2f\n", median_ns((copy_func_t)found, (CUdeviceptr)(uintptr_t)block, NULL, ms));
    printf("created_ns %.2f\n",
           median_ns((copy_func_t)found, (CUdeviceptr)(uintptr_t)block, (CUstream)stream, ms));
    return 0;
}
