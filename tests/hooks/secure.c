/* secure.c - allocates, and says whether the kernel marked the process as one with more rights than its
 * caller. */
#include <stdio.h>
#include <sys/auxv.h>

#include "vendor/abi/cuda_driver_fn.h"

int main(void)
{
    CUdeviceptr p = 0;
    int status = cuMemAlloc_v2(&p, 4096);

    printf("secure %d, alloc %d\n", getauxval(AT_SECURE) != 0, status);
    return 0;
}
