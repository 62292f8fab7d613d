/* The simulated driver: memory pools and stream-ordered memory. */
#include "driver.h"

static uint64_t attribute(CUmemoryPool pool, CUmemPool_attribute which)
{
    cuuint64_t value = 0;

    must(cuMemPoolGetAttribute(pool, which, &value));
    return value;
}

static uint64_t taken(void)
{
    size_t left, total;

    must(cuMemGetInfo_v2(&left, &total));
    return total - left;
}

static CUmemPoolProps on_device(int device)
{
    return (CUmemPoolProps){
        .allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
        .location = {CU_MEM_LOCATION_TYPE_DEVICE, device},
    };
}

static void properties(void)
{
    CUmemoryPool pool = NULL;
    CUmemPoolProps props = on_device(0);

    answers(cuMemPoolCreate(&pool, NULL), CUDA_ERROR_INVALID_VALUE);
    answers(cuMemPoolCreate(&pool, &props), CUDA_SUCCESS);
    answers(cuMemPoolDestroy(pool), CUDA_SUCCESS);
    answers(cuMemPoolDestroy(pool), CUDA_ERROR_INVALID_VALUE);
    props.location.id = 5;
    answers(cuMemPoolCreate(&pool, &props), CUDA_ERROR_INVALID_VALUE);
    props.location.id = 0;
    props.location.type = CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT;
    answers(cuMemPoolCreate(&pool, &props), CUDA_ERROR_INVALID_VALUE);
    props.location.type = CU_MEM_LOCATION_TYPE_HOST;
    props.handleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
    answers(cuMemPoolCreate(&pool, &props), CUDA_ERROR_INVALID_VALUE);
    props.handleTypes = CU_MEM_HANDLE_TYPE_NONE;
    answers(cuMemPoolCreate(&pool, &props), CUDA_SUCCESS);
    must(cuMemPoolDestroy(pool));
    props = on_device(0);
    props.reserved[3] = 1;
    answers(cuMemPoolCreate(&pool, &props), CUDA_ERROR_INVALID_VALUE);
    props = on_device(0);
    props.allocType = CU_MEM_ALLOCATION_TYPE_INVALID;
    answers(cuMemPoolCreate(&pool, &props), CUDA_ERROR_INVALID_VALUE);
}

static void current(void)
{
    CUmemoryPool standard, own, now = NULL, other;
    CUmemPoolProps props = on_device(0), far = on_device(1);

    answers(cuDeviceGetDefaultMemPool(&standard, 0), CUDA_SUCCESS);
    answers(cuMemPoolDestroy(standard), CUDA_ERROR_INVALID_VALUE);
    must(cuMemPoolCreate(&own, &props));
    must(cuMemPoolCreate(&other, &far));
    answers(cuDeviceSetMemPool(0, other), CUDA_ERROR_INVALID_VALUE);
    answers(cuDeviceSetMemPool(9, own), CUDA_ERROR_INVALID_DEVICE);
    answers(cuDeviceSetMemPool(0, own), CUDA_SUCCESS);
    must(cuDeviceGetMemPool(&now, 0));
    is_ptr(now, own, "the current pool can be set");
    answers(cuMemPoolDestroy(own), CUDA_SUCCESS);
    must(cuDeviceGetMemPool(&now, 0));
    is_ptr(now, standard, "destroying it brings the default back");
    must(cuMemPoolDestroy(other));
}

/* What is not pinned memory of a device has pools of its own: those of managed memory the host reads and
 * writes. */
static void places(void)
{
    CUmemLocation device = {CU_MEM_LOCATION_TYPE_DEVICE, 1}, host = {CU_MEM_LOCATION_TYPE_HOST, 0};
    CUmemLocation nowhere = {CU_MEM_LOCATION_TYPE_NONE, 0};
    CUmemPoolProps props = {.allocType = CU_MEM_ALLOCATION_TYPE_MANAGED, .location = device};
    CUmemoryPool pool = NULL, plain = NULL, again = NULL, any = NULL, own;
    unsigned managed = 0, type = 0;
    CUdeviceptr p;

    answers(cuMemGetDefaultMemPool(&pool, &device, CU_MEM_ALLOCATION_TYPE_MANAGED), CUDA_SUCCESS);
    must(cuMemGetDefaultMemPool(&plain, &device, CU_MEM_ALLOCATION_TYPE_PINNED));
    ok(pool && pool != plain, "a device's managed memory has a pool of its own");
    must(cuMemGetDefaultMemPool(&again, &device, CU_MEM_ALLOCATION_TYPE_MANAGED));
    is_ptr(again, pool, "which is always the same");
    answers(cuMemGetDefaultMemPool(&any, &nowhere, CU_MEM_ALLOCATION_TYPE_MANAGED), CUDA_SUCCESS);
    ok(any && any != pool, "and memory that prefers no place another");
    answers(cuMemGetDefaultMemPool(&again, &nowhere, CU_MEM_ALLOCATION_TYPE_PINNED),
            CUDA_ERROR_INVALID_VALUE);
    answers(cuMemGetDefaultMemPool(&again, &host, CU_MEM_ALLOCATION_TYPE_PINNED), CUDA_SUCCESS);
    answers(cuMemPoolDestroy(pool), CUDA_ERROR_INVALID_VALUE);
    answers(cuMemAllocFromPoolAsync(&p, 4096, pool, NULL), CUDA_SUCCESS);
    must(cuStreamSynchronize(NULL));
    *(volatile int *)(uintptr_t)p = 7;
    is_int(*(volatile int *)(uintptr_t)p, 7, "the host uses its memory");
    must(cuPointerGetAttribute(&managed, CU_POINTER_ATTRIBUTE_IS_MANAGED, p));
    must(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, p));
    ok((managed & 0xff) == 1 && type == CU_MEMORYTYPE_DEVICE, "which is managed");
    must(cuMemFreeAsync(p, NULL));
    must(cuMemPoolCreate(&own, &props));
    answers(cuMemSetMemPool(&nowhere, CU_MEM_ALLOCATION_TYPE_MANAGED, own), CUDA_ERROR_INVALID_VALUE);
    answers(cuMemSetMemPool(&device, CU_MEM_ALLOCATION_TYPE_MANAGED, own), CUDA_SUCCESS);
    must(cuMemGetMemPool(&again, &device, CU_MEM_ALLOCATION_TYPE_MANAGED));
    is_ptr(again, own, "a place's pool can be set");
    must(cuMemPoolDestroy(own));
    must(cuMemGetMemPool(&again, &device, CU_MEM_ALLOCATION_TYPE_MANAGED));
    is_ptr(again, pool, "until it ends");
}

static void accounts(void)
{
    CUmemoryPool pool;
    CUmemPoolProps props = on_device(0);
    CUdeviceptr p, q, base;
    CUstream stream;
    cuuint64_t zero = 0, all = UINT64_MAX;
    size_t bytes = 0;

    must(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    must(cuMemPoolCreate(&pool, &props));
    is_u64(taken(), 0, "a pool begins with nothing");
    answers(cuMemAllocFromPoolAsync(&p, 1000, pool, stream), CUDA_SUCCESS);
    is_u64(attribute(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT), 1000, "what was asked for is in use");
    is_u64(attribute(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT), taken(),
           "what is reserved is what the device lost");
    answers(cuMemGetAddressRange_v2(&base, &bytes, p + 10), CUDA_SUCCESS);
    ok(base == p && bytes == 1000, "the range of a block is that of the request");
    answers(cuMemFreeAsync(p + 1, stream), CUDA_ERROR_INVALID_VALUE);
    answers(cuMemFreeAsync(p, stream), CUDA_SUCCESS);
    answers(cuMemFreeAsync(p, stream), CUDA_ERROR_INVALID_VALUE);
    answers(cuMemFree_v2(p), CUDA_ERROR_INVALID_VALUE);
    must(cuStreamSynchronize(stream));
    is_u64(attribute(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT), 0, "a synchronisation gives back");
    is_u64(taken(), 0, "to the device");
    must(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &all));
    must(cuMemAllocFromPoolAsync(&p, 3 * MIB, pool, stream));
    must(cuMemAllocFromPoolAsync(&q, 40 * MIB, pool, stream));
    must(cuMemFreeAsync(q, stream));
    must(cuMemFree_v2(p));
    must(cuStreamSynchronize(stream));
    is_u64(attribute(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT), 0, "all is free");
    is_u64(attribute(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT), 64 * MIB,
           "but below the threshold nothing goes back");
    is_u64(attribute(pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH), 43 * MIB, "the high-water mark stays");
    answers(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH, &all), CUDA_ERROR_INVALID_VALUE);
    answers(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH, &zero), CUDA_SUCCESS);
    is_u64(attribute(pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH), 0, "until it is set back");
    answers(cuMemPoolTrimTo(pool, 40 * MIB), CUDA_SUCCESS);
    is_u64(attribute(pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT), 64 * MIB,
           "a trim keeps what it is told to keep, by units");
    answers(cuMemPoolTrimTo(pool, 0), CUDA_SUCCESS);
    is_u64(taken(), 0, "and 0 keeps nothing");
    answers(cuMemAllocFromPoolAsync(&p, 2UL << 30, pool, stream), CUDA_ERROR_OUT_OF_MEMORY);
    answers(cuMemAllocFromPoolAsync(NULL, 16, pool, stream), CUDA_ERROR_INVALID_VALUE);
    answers(cuMemAllocFromPoolAsync(&p, 0, pool, stream), CUDA_SUCCESS);
    is_u64(p, 0, "nothing has no address");
    answers(cuMemFreeAsync(0, stream), CUDA_SUCCESS);
    must(cuMemAllocFromPoolAsync(&p, 16, pool, stream));
    must(cuMemPoolDestroy(pool));
    answers(cuMemAllocFromPoolAsync(&q, 16, pool, stream), CUDA_ERROR_INVALID_VALUE);
    answers(cuMemsetD8Async(p, 1, 16, stream), CUDA_SUCCESS);
    answers(cuMemFreeAsync(p, stream), CUDA_SUCCESS);
    must(cuStreamSynchronize(stream));
    is_u64(taken(), 0, "a destroyed pool lives until its last block");
    props.maxSize = 8 * MIB;
    must(cuMemPoolCreate(&pool, &props));
    answers(cuMemAllocFromPoolAsync(&p, 8 * MIB, pool, stream), CUDA_SUCCESS);
    answers(cuMemAllocFromPoolAsync(&q, 1, pool, stream), CUDA_ERROR_OUT_OF_MEMORY);
    must(cuMemFreeAsync(p, stream));
    must(cuMemPoolDestroy(pool));
    must(cuStreamDestroy_v2(stream));
    must(cuCtxSynchronize());
}

static void reuse(void)
{
    CUmemoryPool pool;
    CUmemPoolProps props = on_device(0);
    CUdeviceptr p, q, r;
    CUstream a, b;
    atomic_int go = 0;
    char out = 0, *h;
    int no = 0;

    props.maxSize = 2 * MIB;
    must(cuMemPoolCreate(&pool, &props));
    must(cuMemHostAlloc((void **)&h, 16, 0));
    must(cuStreamCreate(&a, CU_STREAM_NON_BLOCKING));
    must(cuStreamCreate(&b, CU_STREAM_NON_BLOCKING));
    must(cuMemAllocFromPoolAsync(&p, 2 * MIB, pool, a));
    must(cuLaunchHostFunc(a, hold, &go));
    must(cuMemsetD8Async(p, 1, 2 * MIB, a));
    must(cuMemcpyDtoHAsync_v2(h, p + MIB, 1, a));
    must(cuMemFreeAsync(p, a));
    is_u64(attribute(pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT), 2 * MIB,
           "a free counts when the stream gets there");
    answers(cuMemAllocFromPoolAsync(&q, MIB, pool, a), CUDA_SUCCESS);
    is_u64(q, p, "the same stream has the memory again at once");
    must(cuMemFreeAsync(q, a));
    must(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES, &no));
    answers(cuMemAllocFromPoolAsync(&r, 2 * MIB, pool, b), CUDA_ERROR_OUT_OF_MEMORY);
    atomic_store(&go, 1);
    must(cuStreamSynchronize(a));
    is_int(h[0], 1, "work that came before the reuse was not disturbed");
    answers(cuCtxSynchronize(), CUDA_SUCCESS);
    answers(cuMemAllocFromPoolAsync(&r, 2 * MIB, pool, b), CUDA_SUCCESS);
    must(cuMemFreeAsync(r, b));
    must(cuStreamSynchronize(b));

    int yes = 1;
    atomic_store(&go, 0);
    must(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_REUSE_ALLOW_INTERNAL_DEPENDENCIES, &yes));
    must(cuMemAllocFromPoolAsync(&p, 2 * MIB, pool, a));
    must(cuLaunchHostFunc(a, hold, &go));
    must(cuMemsetD8Async(p, 1, 2 * MIB, a));
    must(cuMemFreeAsync(p, a));
    answers(cuMemAllocFromPoolAsync(&q, 2 * MIB, pool, b), CUDA_SUCCESS);
    must(cuMemsetD8Async(q, 2, 1, b));
    answers(cuStreamQuery(b), CUDA_ERROR_NOT_READY);
    atomic_store(&go, 1);
    must(cuMemcpyDtoHAsync_v2(&out, q, 1, b));
    must(cuStreamSynchronize(b));
    is_int(out, 2, "another stream has it after the first");
    must(cuMemFreeAsync(q, b));
    must(cuCtxSynchronize());
    must(cuStreamDestroy_v2(a));
    must(cuStreamDestroy_v2(b));
    must(cuMemPoolDestroy(pool));
    must(cuMemFreeHost(h));
    is_u64(taken(), 0, "nothing is left");
}

static void squeezed(void)
{
    CUmemoryPool pool;
    CUdeviceptr p, q;
    cuuint64_t all = UINT64_MAX;

    must(cuDeviceGetDefaultMemPool(&pool, 0));
    must(cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &all));
    must(cuMemAllocAsync(&p, 900 * MIB, NULL));
    answers(cuMemAlloc_v2(&q, 900 * MIB), CUDA_ERROR_OUT_OF_MEMORY);
    must(cuMemFreeAsync_ptsz(p, NULL));
    must(cuCtxSynchronize());
    ok(taken() >= 900 * MIB, "the pool keeps what was freed");
    answers(cuMemAlloc_v2(&q, 900 * MIB), CUDA_SUCCESS);
    must(cuMemFree_v2(q));
    must(cuMemAlloc_v2(&p, 64));
    answers(cuMemFreeAsync(p, NULL), CUDA_SUCCESS);
    must(cuCtxSynchronize());
    answers(cuMemFree_v2(p), CUDA_ERROR_INVALID_VALUE);
    is_u64(taken(), 0, "plain memory can be freed in stream order");
}

static void access_lists(void)
{
    CUmemoryPool pool;
    CUmemPoolProps props = on_device(1);
    CUmemLocation here = {CU_MEM_LOCATION_TYPE_DEVICE, 0}, there = {CU_MEM_LOCATION_TYPE_DEVICE, 1};
    CUmemAccessDesc grant = {here, CU_MEM_ACCESS_FLAGS_PROT_READWRITE},
                    revoke = {there, CU_MEM_ACCESS_FLAGS_PROT_NONE};
    CUmemAccess_flags flags = CU_MEM_ACCESS_FLAGS_PROT_MAX;
    CUdeviceptr p;
    CUcontext ctx, other;

    must(cuMemPoolCreate(&pool, &props));
    must(cuMemAllocFromPoolAsync(&p, 4096, pool, NULL));
    answers(cuMemPoolGetAccess(&flags, pool, &here), CUDA_SUCCESS);
    is_int(flags, CU_MEM_ACCESS_FLAGS_PROT_NONE, "another device has no access");
    must(cuMemPoolGetAccess(&flags, pool, &there));
    is_int(flags, CU_MEM_ACCESS_FLAGS_PROT_READWRITE, "the owner has");
    answers(cuMemPoolSetAccess(pool, &revoke, 1), CUDA_ERROR_INVALID_DEVICE);
    answers(cuMemPoolSetAccess(pool, &grant, 1), CUDA_SUCCESS);
    must(cuMemPoolGetAccess(&flags, pool, &here));
    is_int(flags, CU_MEM_ACCESS_FLAGS_PROT_READWRITE, "access can be granted");
    must(cuMemsetD8_v2(p, 1, 16));
    answers(cuCtxSynchronize(), CUDA_SUCCESS);
    grant.flags = CU_MEM_ACCESS_FLAGS_PROT_NONE;
    must(cuMemPoolSetAccess(pool, &grant, 1));
    must(cuCtxGetCurrent(&ctx));
    must(cuCtxCreate_v2(&other, 0, 1));
    must(cuCtxEnablePeerAccess(ctx, 0));
    answers(cuMemsetD8_v2(p, 1, 16), CUDA_SUCCESS);
    answers(cuCtxSynchronize(), CUDA_SUCCESS);
    must(cuCtxDestroy_v2(other));
    must(cuCtxCreate_v2(&other, 0, 0));
    must(cuMemsetD8_v2(p, 1, 16));
    answers(cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
    answers(cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
    must(cuCtxDestroy_v2(other));
    answers(cuCtxSynchronize(), CUDA_SUCCESS);
    must(cuMemFree_v2(p));
    must(cuMemPoolDestroy(pool));
}

static void use_after_free(void)
{
    CUcontext own;
    CUdeviceptr p;
    atomic_int go = 0;

    must(cuCtxCreate_v2(&own, 0, 0));
    must(cuMemAllocAsync(&p, 4096, NULL));
    must(cuLaunchHostFunc(NULL, hold, &go));
    must(cuMemFreeAsync(p, NULL));
    /* the driver cannot see that it is wrong when it is called: only the device will */
    must(cuMemsetD8Async(p, 1, 16, NULL));
    atomic_store(&go, 1);
    answers(cuStreamSynchronize(NULL), CUDA_ERROR_ILLEGAL_ADDRESS);
    answers(cuMemAllocAsync(&p, 16, NULL), CUDA_ERROR_ILLEGAL_ADDRESS);
    must(cuCtxDestroy_v2(own));
}

/* cuda.h (13.0) wants a context to be current where a default stream is specified. */
static void no_context(void)
{
    CUstream stream;
    CUcontext own;
    CUdeviceptr p, q;
    CUmemoryPool pool;

    must(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    must(cuDeviceGetDefaultMemPool(&pool, 0));
    must(cuCtxPopCurrent_v2(&own));
    answers(cuMemAllocAsync(&p, 4096, stream), CUDA_SUCCESS);
    answers(cuMemAllocFromPoolAsync(&q, 4096, pool, stream), CUDA_SUCCESS);
    answers(cuMemFreeAsync(p, NULL), CUDA_ERROR_INVALID_CONTEXT);
    answers(cuMemFreeAsync(p, CU_STREAM_PER_THREAD), CUDA_ERROR_INVALID_CONTEXT);
    answers(cuMemFreeAsync(p, stream), CUDA_SUCCESS);
    answers(cuMemFreeAsync(q, stream), CUDA_SUCCESS);
    answers(cuMemAllocAsync(&p, 4096, NULL), CUDA_ERROR_INVALID_CONTEXT);
    must(cuCtxPushCurrent_v2(own));
    must(cuStreamDestroy_v2(stream));
}

int main(void)
{
    plan(0);
    setenv("MEMSIM_DEVICES", "2", 1);
    setenv("MEMSIM_MEMORY", "1G", 1);
    begin();
    properties();
    current();
    places();
    accounts();
    reuse();
    squeezed();
    access_lists();
    use_after_free();
    no_context();
    return done();
}
