/* followed: memory of the pool's beside memory that the driver makes, managed and an array. What was reserved
 * at most is no less than what was allocated. */
#include "vendor/abi/cuda_runtime_fn.h"
#include "tests/cases/case.h"

int main(void)
{
    struct cudaChannelFormatDesc what = {.x = 32, .f = cudaChannelFormatKindFloat};
    void *served, *managed, *ordered;
    cudaArray_t array;
    cudaStream_t stream;

    if (cudaStreamCreate(&stream) || cudaMalloc(&served, 20 * MIB) ||
        cudaMallocManaged(&managed, 100 * MIB, cudaMemAttachGlobal) ||
        cudaMallocAsync(&ordered, 40 * MIB, stream) || cudaMallocArray(&array, &what, 4096, 4096, 0) ||
        cudaDeviceSynchronize())
        return 2;
    say("done 1");
    return 0;
}
