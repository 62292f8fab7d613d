/* crossed: what one of the runtime's functions allocated is used and freed by the driver's, and the other way
 * round; each status that is not 0 is printed, and how long the driver says that a block is. */
#include "vendor/abi/cuda_driver_fn.h"
#include "vendor/abi/cuda_runtime_fn.h"
#include "tests/cases/case.h"

static int bad;

static void check(const char *what, int status)
{
    if (!status)
        return;
    bad++;
    say("%s = %d", what, status);
    cudaGetLastError();
}
#define CHECK(call) check(#call, (int)(call))

int main(void)
{
    CUdeviceptr address, base;
    char bytes[64];
    size_t length;
    void *block;

    cudaFree(NULL);
    CHECK(cuMemAlloc_v2(&address, 1000));
    CHECK(cudaMemset((void *)address, 1, 1000));
    CHECK(cudaMemcpy(bytes, (void *)address, sizeof(bytes), cudaMemcpyDeviceToHost));
    CHECK(cudaFree((void *)address));
    CHECK(cuMemAlloc_v2(&address, 1000));
    CHECK(cuMemFree_v2(address));
    CHECK(cudaMalloc(&block, 1000));
    CHECK(cuMemsetD8_v2((CUdeviceptr)block, 2, 1000));
    CHECK(cuMemcpyDtoH_v2(bytes, (CUdeviceptr)block, sizeof(bytes)));
    CHECK(cuMemFree_v2((CUdeviceptr)block));
    CHECK(cudaMallocAsync(&block, 1000, 0));
    CHECK(cuMemFreeAsync((CUdeviceptr)block, 0));
    CHECK(cuMemAllocAsync(&address, 1000, 0));
    CHECK(cudaFreeAsync((void *)address, 0));
    CHECK(cudaMalloc(&block, 1000));
    CHECK(cuMemGetAddressRange_v2(&base, &length, (CUdeviceptr)block));
    say("range %d %zu", base == (CUdeviceptr)block, length);
    CHECK(cudaFree(block));
    CHECK(cudaMalloc(&block, 2000)); /* stays */
    say("bad %d", bad);
    return bad != 0;
}
