/* The simulated driver: what a pointer is, for every kind of memory; advice. */
#include "driver.h"

static int number(CUdeviceptr p, CUpointer_attribute which)
{
    int value = -99;

    cuPointerGetAttribute(&value, which, p);
    return value;
}

static bool flag(CUdeviceptr p, CUpointer_attribute which)
{
    _Bool value = false;

    must(cuPointerGetAttribute(&value, which, p));
    return value;
}

static unsigned long long wide(CUdeviceptr p, CUpointer_attribute which)
{
    unsigned long long value = 0;

    must(cuPointerGetAttribute(&value, which, p));
    return value;
}

static void kinds(CUcontext ctx)
{
    CUdeviceptr device, managed, pooled;
    CUmemoryPool pool;
    CUcontext owner = NULL;
    void *pinned, *own = malloc(4096);
    char here;

    must(cuMemAlloc_v2(&device, 5000));
    must(cuMemAllocManaged(&managed, 5000, CU_MEM_ATTACH_GLOBAL));
    must(cuMemAllocAsync(&pooled, 5000, NULL));
    must(cuMemHostAlloc(&pinned, 5000, 0));
    must(cuMemHostRegister_v2(own, 4096, 0));
    is_int(number(device + 7, CU_POINTER_ATTRIBUTE_MEMORY_TYPE), CU_MEMORYTYPE_DEVICE, "device memory");
    is_int(number(managed, CU_POINTER_ATTRIBUTE_MEMORY_TYPE), CU_MEMORYTYPE_DEVICE,
           "managed memory is on the device");
    is_int(number((uintptr_t)pinned, CU_POINTER_ATTRIBUTE_MEMORY_TYPE), CU_MEMORYTYPE_HOST, "pinned memory");
    is_int(number((uintptr_t)own, CU_POINTER_ATTRIBUTE_MEMORY_TYPE), CU_MEMORYTYPE_HOST, "registered memory");
    ok(flag(managed, CU_POINTER_ATTRIBUTE_IS_MANAGED) && !flag(device, CU_POINTER_ATTRIBUTE_IS_MANAGED),
       "is managed");
    is_u64(wide(device + 7, CU_POINTER_ATTRIBUTE_RANGE_START_ADDR), device, "range: start");
    is_u64(wide(device + 7, CU_POINTER_ATTRIBUTE_RANGE_SIZE), 5000, "range: size");
    is_int(number(device, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL), 0, "device ordinal");
    must(cuPointerGetAttribute(&owner, CU_POINTER_ATTRIBUTE_CONTEXT, device));
    is_ptr(owner, ctx, "context");
    ok(wide(device, CU_POINTER_ATTRIBUTE_BUFFER_ID) != wide(pooled, CU_POINTER_ATTRIBUTE_BUFFER_ID),
       "ids differ");
    ok(flag(device, CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE) &&
           !flag(pooled, CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE),
       "plain memory can be exported, pool memory cannot");
    must(cuDeviceGetDefaultMemPool(&pool, 0));
    is_u64(wide(pooled, CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE), (uintptr_t)pool, "a block knows its pool");
    is_u64(wide(device, CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE), 0, "plain memory has none");
    is_int(number(device, CU_POINTER_ATTRIBUTE_ACCESS_FLAGS), CU_POINTER_ATTRIBUTE_ACCESS_FLAG_READWRITE,
           "access");
    unsigned sync = 1;
    answers(cuPointerSetAttribute(&sync, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, device), CUDA_SUCCESS);
    ok(flag(device, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS), "synchronous memory operations can be asked for");
    answers(cuPointerGetAttribute(&sync, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, (uintptr_t)&here),
            CUDA_ERROR_INVALID_VALUE);
    answers(cuPointerGetAttribute(&sync, (CUpointer_attribute)99, device), CUDA_ERROR_INVALID_VALUE);

    CUpointer_attribute which[] = {CU_POINTER_ATTRIBUTE_MEMORY_TYPE, CU_POINTER_ATTRIBUTE_RANGE_SIZE};
    int type = 9;
    size_t bytes = 9;
    void *data[] = {&type, &bytes};
    answers(cuPointerGetAttributes(2, which, data, (uintptr_t)&here), CUDA_SUCCESS);
    ok(!type && !bytes, "of an unknown pointer several attributes are 0");
    answers(cuPointerGetAttributes(2, which, data, managed), CUDA_SUCCESS);
    ok(type == CU_MEMORYTYPE_DEVICE && bytes == 5000, "of a known one they are right");
    must(cuMemFree_v2(device));
    answers(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, device), CUDA_ERROR_INVALID_VALUE);
    must(cuMemFree_v2(managed));
    must(cuMemFreeAsync(pooled, NULL));
    must(cuMemFreeHost(pinned));
    must(cuMemHostUnregister(own));
    free(own);
}

static void advice(void)
{
    CUdeviceptr managed, device;
    CUmemLocation here = {CU_MEM_LOCATION_TYPE_DEVICE, 0}, nowhere = {CU_MEM_LOCATION_TYPE_DEVICE, 8};
    int value = -1;

    must(cuMemAllocManaged(&managed, 8192, CU_MEM_ATTACH_GLOBAL));
    must(cuMemAlloc_v2(&device, 8192));
    answers(cuMemAdvise_v2(managed, 4096, CU_MEM_ADVISE_SET_PREFERRED_LOCATION, here), CUDA_SUCCESS);
    answers(cuMemAdvise_v2(managed, 4096, CU_MEM_ADVISE_SET_PREFERRED_LOCATION, nowhere),
            CUDA_ERROR_INVALID_VALUE);
    answers(cuMemAdvise_v2(device, 4096, CU_MEM_ADVISE_SET_READ_MOSTLY, here), CUDA_ERROR_INVALID_VALUE);
    answers(cuMemPrefetchAsync_v2(managed, 8192, here, 0, NULL), CUDA_SUCCESS);
    answers(cuMemPrefetchAsync_v2(managed, 8193, here, 0, NULL), CUDA_ERROR_INVALID_VALUE);
    answers(cuMemRangeGetAttribute(&value, sizeof value, CU_MEM_RANGE_ATTRIBUTE_READ_MOSTLY, managed, 8192),
            CUDA_SUCCESS);
    must(cuMemFree_v2(managed));
    must(cuMemFree_v2(device));
}

int main(void)
{
    plan(0);
    CUcontext ctx = begin();
    kinds(ctx);
    advice();
    return done();
}
