/*
 * poisoned.c - what is read of a block right behind its free, while its stream was at work on it, and what
 * the device has free then. Prints how many of the blocks showed another byte than 0xdf, and how many frees
 * were not seen in the free memory.
 */
#include <stdio.h>

#include "vendor/abi/cuda_runtime_fn.h"

int main(void)
{
    static const size_t sizes[] = {512, 70000, 3 << 20, 20 << 20};
    static unsigned char seen[512];
    int stale = 0, unseen = 0;
    cudaStream_t stream = NULL;

    cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
    for (int i = 0; i < 20; i++) {
        size_t before, after, total, bytes = sizes[i % 4];
        void *p = NULL;

        cudaMalloc(&p, bytes);
        for (int k = 0; k < 4; k++)
            cudaMemsetAsync(p, k, bytes, stream);
        cudaMemGetInfo(&before, &total);
        cudaFree(p);
        cudaMemGetInfo(&after, &total);
        cudaMemcpy(seen, p, sizeof seen, cudaMemcpyDeviceToHost);
        for (unsigned k = 0; k < sizeof seen; k++) {
            if (seen[k] != 0xdf) {
                stale++;
                break;
            }
        }
        unseen += bytes >= 3 << 20 && after < before + bytes;
    }
    printf("stale %d unseen %d\n", stale, unseen);
    return 0;
}
