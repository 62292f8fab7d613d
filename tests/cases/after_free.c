/* after_free KIND: a GiB of cudaMalloc's is freed, without a wait, and then a GiB of another kind is asked
 * for; what the device had given at most is printed. */
#include <string.h>

#include "vendor/abi/cuda_driver_fn.h"
#include "vendor/abi/cuda_runtime_fn.h"
#include "tests/cases/case.h"

#define GIB ((size_t)1 << 30)

static int handle(void)
{
    CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}};
    CUmemGenericAllocationHandle made;

    return (int)cuMemCreate(&made, GIB, &prop, 0);
}

static int ordered(void)
{
    void *block;

    return (int)cudaMallocAsync(&block, GIB, NULL);
}

static int own_pool(void)
{
    struct cudaMemPoolProps props = {.allocType = cudaMemAllocationTypePinned,
                                     .location = {.type = cudaMemLocationTypeDevice, .id = 0}};
    cudaMemPool_t pool;
    void *block;

    return cudaMemPoolCreate(&pool, &props) || cudaMallocFromPoolAsync(&block, GIB, pool, NULL);
}

static int array(void)
{
    struct cudaChannelFormatDesc format = {32, 0, 0, 0, cudaChannelFormatKindFloat};
    cudaArray_t made;

    return (int)cudaMallocArray(&made, &format, 32768, 8192, 0);
}

static int context(void)
{
    CUcontext made;
    CUdeviceptr block;

    return cuCtxCreate_v2(&made, 0, 0) || cuMemAlloc_v2(&block, GIB);
}

static int pitched(void)
{
    void *block;
    size_t pitch;

    return (int)cudaMallocPitch(&block, &pitch, 32768, 32768);
}

static int larger(void)
{
    void *block;

    return (int)cudaMalloc(&block, GIB + 64 * MIB);
}

static const struct {
    const char *name;
    int (*ask)(void);
} kinds[] = {{"handle", handle},   {"ordered", ordered}, {"own_pool", own_pool}, {"array", array},
             {"context", context}, {"pitched", pitched}, {"larger", larger}};

int main(int argc, char **argv)
{
    void *block;

    if (argc < 2 || cudaMalloc(&block, GIB) || cudaFree(block))
        return 2;
    for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++)
        if (!strcmp(argv[1], kinds[i].name) && kinds[i].ask())
            return 3;
    say("at most %lld", counted("peak_bytes") >> 20);
    return 0;
}
