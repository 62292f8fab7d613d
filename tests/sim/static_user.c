/*
 * A program with the runtime linked in, by gcc or, as CUDA C++, by nvcc; and a library beside it
 * (static_beside.c) with a runtime of its own. Prints what it does: what it finds out, and a line "site
 * FUNCTION LINE CALLS BYTES" for each place that allocates, so that a report can be held against it; `forget`
 * leaks. Run by static.bats.
 */
#include <stdio.h>
#include <string.h>

#ifdef __CUDACC__
#include <cuda_runtime.h>
#define PER_COMPILER extern "C"
#else
#include "vendor/abi/cuda_runtime.h"
#include "vendor/abi/cuda_runtime_fn.h"
#define PER_COMPILER
#endif

#define APART              static __attribute__((noinline))
#define SITE(calls, bytes) printf("site %s %d %d %zu\n", __func__, __LINE__ - 1, calls, (size_t)(bytes))

PER_COMPILER void *beside_make(size_t bytes);
PER_COMPILER int beside_fails(void);
PER_COMPILER const void *beside_runtime(void);

enum { LAYERS = 3, LAYER_BYTES = 1 << 20, SCRATCH_BYTES = 3 << 16, FORGOTTEN_BYTES = 777777 };

static void *layers[LAYERS];

APART void make_layers(void)
{
    for (int i = 0; i < LAYERS; i++) {
        if (cudaMalloc(&layers[i], LAYER_BYTES) != cudaSuccess)
            printf("no layer\n");
        cudaMemset(layers[i], i + 1, LAYER_BYTES);
    }
    printf("site %s %d %d %zu\n", __func__, __LINE__ - 4, LAYERS, (size_t)LAYERS * LAYER_BYTES);
}

APART void use_scratch(cudaStream_t stream)
{
    void *scratch = NULL;

    cudaError_t status = cudaMallocAsync(&scratch, SCRATCH_BYTES, stream);
    SITE(1, SCRATCH_BYTES);
    printf("scratch %d, filled %d,", status, cudaMemsetAsync(scratch, 7, SCRATCH_BYTES, stream));
    printf(" freed %d\n", cudaFreeAsync(scratch, stream));
}

APART void forget(void)
{
    void *forgotten = NULL;

    cudaMalloc(&forgotten, FORGOTTEN_BYTES);
    SITE(1, FORGOTTEN_BYTES);
}

APART void copy_back(void)
{
    static unsigned char back[LAYER_BYTES];
    size_t right = 0;

    for (int i = 0; i < LAYERS; i++) {
        cudaMemcpy(back, layers[i], LAYER_BYTES, cudaMemcpyDeviceToHost);
        for (size_t k = 0; k < LAYER_BYTES; k++)
            right += back[k] == i + 1;
    }
    printf("copies %s\n", right == (size_t)LAYERS * LAYER_BYTES ? "right" : "wrong");
}

/* Two runtimes, one device: memory of one is freed by the other, and each has errors of its own. */
APART void meet_the_other(void)
{
    void *theirs = beside_make(LAYER_BYTES);
    cudaError_t (*own)(void **, size_t) = cudaMalloc;

    printf("runtimes %s\n", (const void *)own == beside_runtime() ? "one" : "two");
    printf("its memory is freed here: %d\n", cudaFree(theirs));
    printf("its error: %d,", beside_fails());
    printf(" here: %d\n", cudaPeekAtLastError());
    printf("an error here: %d,", cudaSetDevice(-1));
    printf(" kept: %d\n", cudaGetLastError());
}

#ifdef __CUDACC__
__global__ void scale(float *numbers, int count)
{
    if (threadIdx.x < count)
        numbers[threadIdx.x] *= 2;
}

APART void launch(cudaStream_t stream)
{
    scale<<<1, 32, 0, stream>>>((float *)layers[0], 32);
    printf("launch %d,", cudaGetLastError());
    printf(" over %d\n", cudaStreamSynchronize(stream));
}
#else
APART void launch(cudaStream_t stream)
{
    printf("no launch %d\n", cudaStreamSynchronize(stream));
}
#endif

int main(void)
{
    cudaStream_t stream;
    struct cudaPointerAttributes attributes;
    int version = 0;

    printf("runtime %d,", cudaRuntimeGetVersion(&version));
    printf(" %d\n", version / 1000);
    printf("stream %d\n", cudaStreamCreate(&stream));
    make_layers();
    use_scratch(stream);
    launch(stream);
    copy_back();
    cudaPointerGetAttributes(&attributes, layers[1]);
    printf("memory of type %d, of device %d\n", attributes.type, attributes.device);
    meet_the_other();
    forget();
    for (int i = 0; i < LAYERS; i++)
        printf("free %d\n", cudaFree(layers[i]));
    printf("stream %d\n", cudaStreamDestroy(stream));
    printf("end %d\n", cudaDeviceSynchronize());
    return 0;
}
