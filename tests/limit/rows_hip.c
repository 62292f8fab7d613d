/* rows_hip.c - the functions of HIP: see rows.h. */
#include "tests/limit/rows.h"

#include "vendor/abi/cuda_driver.h"
#include "vendor/abi/hip.h"
#include "vendor/abi/hip_fn.h"

static const hipMemAllocationProp pages = {.type = 1, .location = {.type = 1}};
static const hipChannelFormatDesc floats = {32, 32, 32, 32, hipChannelFormatKindFloat};
static hipMemPool_t pool;

static const HIP_ARRAY_DESCRIPTOR *flat(size_t n)
{
    static HIP_ARRAY_DESCRIPTOR what;

    what = (HIP_ARRAY_DESCRIPTOR){ROW_BYTES / 16, n / ROW_BYTES, CU_AD_FORMAT_FLOAT, 4};
    return &what;
}

static HIP_ARRAY3D_DESCRIPTOR *deep(size_t n)
{
    static HIP_ARRAY3D_DESCRIPTOR what;

    what = (HIP_ARRAY3D_DESCRIPTOR){.Width = ROW_BYTES / 16,
                                    .Height = n / ROW_BYTES / 4,
                                    .Depth = 4,
                                    .Format = CU_AD_FORMAT_FLOAT,
                                    .NumChannels = 4};
    return &what;
}

static hipExtent extent(size_t n, size_t element_bytes)
{
    return (hipExtent){ROW_BYTES / element_bytes, n / ROW_BYTES / 4, 4};
}

static int pitched(struct thing *t, size_t n)
{
    hipPitchedPtr given = {.ptr = NULL};
    int status = (int)hipMalloc3D(&given, extent(n, 1));

    t->pointer = given.ptr;
    return status;
}

#define EACH_ROW(X)                                                                                          \
    X(hipMalloc, hipMalloc(&t->pointer, n), hipFree(t->pointer))                                             \
    X(hipExtMallocWithFlags, hipExtMallocWithFlags(&t->pointer, n, 0), hipFree(t->pointer))                  \
    X(hipMallocPitch, hipMallocPitch(&t->pointer, &t->pitch, ROW_BYTES, n / ROW_BYTES), hipFree(t->pointer)) \
    X(hipMemAllocPitch,                                                                                      \
      hipMemAllocPitch((hipDeviceptr_t *)&t->bits, &t->pitch, ROW_BYTES, n / ROW_BYTES, 4),                  \
      hipFree(t->pointer))                                                                                   \
    X(hipMalloc3D, pitched(t, n), hipFree(t->pointer))                                                       \
    X(hipMallocManaged, hipMallocManaged(&t->pointer, n, 1), hipFree(t->pointer))                            \
    X(hipMallocArray, hipMallocArray((hipArray **)&t->pointer, &floats, ROW_BYTES / 16, n / ROW_BYTES, 0),   \
      hipFreeArray(t->pointer))                                                                              \
    X(hipMalloc3DArray, hipMalloc3DArray((hipArray **)&t->pointer, &floats, extent(n, 16), 0),               \
      hipFreeArray(t->pointer))                                                                              \
    X(hipMallocMipmappedArray,                                                                               \
      hipMallocMipmappedArray((hipMipmappedArray_t *)&t->pointer, &floats, extent(n, 16), 1, 0),             \
      hipFreeMipmappedArray(t->pointer))                                                                     \
    X(hipArrayCreate, hipArrayCreate((hipArray **)&t->pointer, flat(n)), hipArrayDestroy(t->pointer))        \
    X(hipArray3DCreate, hipArray3DCreate((hipArray **)&t->pointer, deep(n)), hipArrayDestroy(t->pointer))    \
    X(hipMipmappedArrayCreate, hipMipmappedArrayCreate((hipMipmappedArray_t *)&t->pointer, deep(n), 1),      \
      hipMipmappedArrayDestroy(t->pointer))                                                                  \
    X(hipMallocAsync, hipMallocAsync(&t->pointer, n, NULL), hipFreeAsync(t->pointer, NULL))                  \
    X(hipMallocFromPoolAsync, hipMallocFromPoolAsync(&t->pointer, n, pool, NULL),                            \
      hipFreeAsync(t->pointer, NULL))                                                                        \
    X(hipMemCreate, hipMemCreate((hipMemGenericAllocationHandle_t *)&t->pointer, n, &pages, 0),              \
      hipMemRelease((hipMemGenericAllocationHandle_t)t->pointer))

EACH_ROW(FUNCTION)

static const struct row rows[] = {EACH_ROW(ROW){NULL, NULL, NULL}};

static int hip_begin(void)
{
    int status = (int)hipInit(0);

    return status ? status : (int)hipDeviceGetDefaultMemPool(&pool, 0);
}

static int hip_memory(size_t *free_p, size_t *total_p)
{
    return (int)hipMemGetInfo(free_p, total_p);
}

static int hip_wait(void)
{
    return (int)hipDeviceSynchronize();
}

const struct vendor hip_vendor = {"libamdhip64.so.7", hip_begin, hip_memory, hip_wait, rows};
