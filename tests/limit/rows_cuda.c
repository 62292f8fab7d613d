/* rows_cuda.c - the functions of CUDA's driver and runtime, and NCCL's: see rows.h. */
#include "tests/limit/rows.h"

#include "vendor/abi/cuda_driver_fn.h"
#include "vendor/abi/cuda_runtime.h"
#include "vendor/abi/cuda_runtime_fn.h"
#include "vendor/abi/nccl.h"
#include "vendor/abi/nccl_fn.h"

static const CUmemAllocationProp pages = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                          .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE}};
static const struct cudaChannelFormatDesc floats = {32, 32, 32, 32, cudaChannelFormatKindFloat};
static CUmemoryPool pool;

static const CUDA_ARRAY_DESCRIPTOR *flat(size_t n)
{
    static CUDA_ARRAY_DESCRIPTOR what;

    what = (CUDA_ARRAY_DESCRIPTOR){ROW_BYTES / 16, n / ROW_BYTES, CU_AD_FORMAT_FLOAT, 4};
    return &what;
}

static const CUDA_ARRAY_DESCRIPTOR_v1 *flat_v1(size_t n)
{
    static CUDA_ARRAY_DESCRIPTOR_v1 what;

    what = (CUDA_ARRAY_DESCRIPTOR_v1){ROW_BYTES / 16, (unsigned)(n / ROW_BYTES), CU_AD_FORMAT_FLOAT, 4};
    return &what;
}

static const CUDA_ARRAY3D_DESCRIPTOR *deep(size_t n)
{
    static CUDA_ARRAY3D_DESCRIPTOR what;

    what = (CUDA_ARRAY3D_DESCRIPTOR){.Width = ROW_BYTES / 16,
                                     .Height = n / ROW_BYTES / 4,
                                     .Depth = 4,
                                     .Format = CU_AD_FORMAT_FLOAT,
                                     .NumChannels = 4};
    return &what;
}

static const CUDA_ARRAY3D_DESCRIPTOR_v1 *deep_v1(size_t n)
{
    static CUDA_ARRAY3D_DESCRIPTOR_v1 what;

    what = (CUDA_ARRAY3D_DESCRIPTOR_v1){.Width = ROW_BYTES / 16,
                                        .Height = (unsigned)(n / ROW_BYTES / 4),
                                        .Depth = 4,
                                        .Format = CU_AD_FORMAT_FLOAT,
                                        .NumChannels = 4};
    return &what;
}

static struct cudaExtent extent(size_t n, size_t element_bytes)
{
    return (struct cudaExtent){ROW_BYTES / element_bytes, n / ROW_BYTES / 4, 4};
}

static int pitched(struct thing *t, size_t n)
{
    struct cudaPitchedPtr given = {.ptr = NULL};
    int status = (int)cudaMalloc3D(&given, extent(n, 1));

    t->pointer = given.ptr;
    return status;
}

#define EACH_ROW(X)                                                                                          \
    X(cuMemAlloc, cuMemAlloc(&t->low, (unsigned)n), cuMemFree(t->low))                                       \
    X(cuMemAlloc_v2, cuMemAlloc_v2((CUdeviceptr *)&t->bits, n), cuMemFree_v2(t->bits))                       \
    X(cuMemAllocPitch,                                                                                       \
      cuMemAllocPitch(&t->low, &t->low_pitch, (unsigned)ROW_BYTES, (unsigned)(n / ROW_BYTES), 4),            \
      cuMemFree(t->low))                                                                                     \
    X(cuMemAllocPitch_v2,                                                                                    \
      cuMemAllocPitch_v2((CUdeviceptr *)&t->bits, &t->pitch, ROW_BYTES, n / ROW_BYTES, 4),                   \
      cuMemFree_v2(t->bits))                                                                                 \
    X(cuMemAllocManaged, cuMemAllocManaged((CUdeviceptr *)&t->bits, n, 1), cuMemFree_v2(t->bits))            \
    X(cuArrayCreate, cuArrayCreate((CUarray *)&t->pointer, flat_v1(n)), cuArrayDestroy(t->pointer))          \
    X(cuArrayCreate_v2, cuArrayCreate_v2((CUarray *)&t->pointer, flat(n)), cuArrayDestroy(t->pointer))       \
    X(cuArray3DCreate, cuArray3DCreate((CUarray *)&t->pointer, deep_v1(n)), cuArrayDestroy(t->pointer))      \
    X(cuArray3DCreate_v2, cuArray3DCreate_v2((CUarray *)&t->pointer, deep(n)), cuArrayDestroy(t->pointer))   \
    X(cuMipmappedArrayCreate, cuMipmappedArrayCreate((CUmipmappedArray *)&t->pointer, deep(n), 1),           \
      cuMipmappedArrayDestroy(t->pointer))                                                                   \
    X(cuMemAllocAsync, cuMemAllocAsync((CUdeviceptr *)&t->bits, n, NULL), cuMemFreeAsync(t->bits, NULL))     \
    X(cuMemAllocAsync_ptsz, cuMemAllocAsync_ptsz((CUdeviceptr *)&t->bits, n, NULL),                          \
      cuMemFreeAsync_ptsz(t->bits, NULL))                                                                    \
    X(cuMemAllocFromPoolAsync, cuMemAllocFromPoolAsync((CUdeviceptr *)&t->bits, n, pool, NULL),              \
      cuMemFreeAsync(t->bits, NULL))                                                                         \
    X(cuMemAllocFromPoolAsync_ptsz, cuMemAllocFromPoolAsync_ptsz((CUdeviceptr *)&t->bits, n, pool, NULL),    \
      cuMemFreeAsync_ptsz(t->bits, NULL))                                                                    \
    X(cuMemCreate, cuMemCreate((CUmemGenericAllocationHandle *)&t->bits, n, &pages, 0),                      \
      cuMemRelease(t->bits))                                                                                 \
    X(cudaMalloc, cudaMalloc(&t->pointer, n), cudaFree(t->pointer))                                          \
    X(cudaMalloc3D, pitched(t, n), cudaFree(t->pointer))                                                     \
    X(cudaMallocPitch, cudaMallocPitch(&t->pointer, &t->pitch, ROW_BYTES, n / ROW_BYTES),                    \
      cudaFree(t->pointer))                                                                                  \
    X(cudaMallocArray,                                                                                       \
      cudaMallocArray((cudaArray_t *)&t->pointer, &floats, ROW_BYTES / 16, n / ROW_BYTES, 0),                \
      cudaFreeArray(t->pointer))                                                                             \
    X(cudaMalloc3DArray, cudaMalloc3DArray((cudaArray_t *)&t->pointer, &floats, extent(n, 16), 0),           \
      cudaFreeArray(t->pointer))                                                                             \
    X(cudaMallocMipmappedArray,                                                                              \
      cudaMallocMipmappedArray((cudaMipmappedArray_t *)&t->pointer, &floats, extent(n, 16), 1, 0),           \
      cudaFreeMipmappedArray(t->pointer))                                                                    \
    X(cudaMallocManaged, cudaMallocManaged(&t->pointer, n, 1), cudaFree(t->pointer))                         \
    X(cudaMallocAsync, cudaMallocAsync(&t->pointer, n, NULL), cudaFreeAsync(t->pointer, NULL))               \
    X(cudaMallocAsync_ptsz, cudaMallocAsync_ptsz(&t->pointer, n, NULL),                                      \
      cudaFreeAsync_ptsz(t->pointer, NULL))                                                                  \
    X(cudaMallocFromPoolAsync, cudaMallocFromPoolAsync(&t->pointer, n, (cudaMemPool_t)pool, NULL),           \
      cudaFreeAsync(t->pointer, NULL))                                                                       \
    X(cudaMallocFromPoolAsync_ptsz, cudaMallocFromPoolAsync_ptsz(&t->pointer, n, (cudaMemPool_t)pool, NULL), \
      cudaFreeAsync_ptsz(t->pointer, NULL))                                                                  \
    X(ncclMemAlloc, ncclMemAlloc(&t->pointer, n), ncclMemFree(t->pointer))                                   \
    X(pncclMemAlloc, pncclMemAlloc(&t->pointer, n), pncclMemFree(t->pointer))

EACH_ROW(FUNCTION)

static const struct row rows[] = {EACH_ROW(ROW){NULL, NULL, NULL}};

/* By the runtime, as most programs begin: the primary context. */
static int cuda_begin(void)
{
    int status = (int)cudaFree(NULL);

    return status ? status : (int)cuDeviceGetDefaultMemPool(&pool, 0);
}

static int cuda_memory(size_t *free_p, size_t *total_p)
{
    return (int)cudaMemGetInfo(free_p, total_p);
}

static int cuda_wait(void)
{
    return (int)cudaDeviceSynchronize();
}

const struct vendor cuda_vendor = {"libcuda.so.1", cuda_begin, cuda_memory, cuda_wait, rows};
