/*
 * other_kind.c - memory of cudaMalloc's is freed in the default stream, again and again, and one call of the
 * driver's is refused (MEMSIM_FAIL): each status but 0 is printed. Nothing here knows of memshim.
 */
#include <stdio.h>
#include "vendor/abi/cuda_runtime_fn.h"

int main(void)
{
    for (int i = 0; i < 8; i++) {
        void *p = NULL;
        int status = (int)cudaMalloc(&p, 1 << 16);
        if (status)
            printf("cudaMalloc %d\n", status);
        status = p ? (int)cudaFreeAsync(p, cudaStreamLegacy) : 0;
        if (status)
            printf("cudaFreeAsync %d\n", status);
    }
    return 0;
}
