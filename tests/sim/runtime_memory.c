/*
 * Allocation through the simulated runtime: what each call returns, and with which status it refuses.
 * Compiled against memshim's own declarations, once per version of the runtime.
 */
#include <stdint.h>
#include <stdlib.h>

#include "vendor/abi/cuda_runtime_fn.h"
#include "tests/tap.h"

static size_t free_bytes(void)
{
    size_t available = 0, total = 0;

    if (cudaMemGetInfo(&available, &total) != cudaSuccess)
        bail("cudaMemGetInfo");
    return available;
}

static void test_device(void)
{
    void *p = (void *)0x1, *q = NULL;
    size_t before = free_bytes();
    char *inside;

    is_int(cudaMalloc(&p, 0), cudaSuccess, "cudaMalloc of nothing succeeds");
    is_ptr(p, NULL, "and gives NULL");
    is_int(cudaMalloc(NULL, 16), cudaErrorInvalidValue, "cudaMalloc into nowhere");
    is_int(cudaGetLastError(), cudaErrorInvalidValue, "is the last error");
    is_int(cudaGetLastError(), cudaSuccess, "which is told once");
    is_int(cudaMalloc(&p, 1000), cudaSuccess, "cudaMalloc");
    ok(p && (uintptr_t)p % 256 == 0, "is aligned to 256 bytes");
    ok(free_bytes() < before, "and takes memory");
    q = (void *)0x77;
    is_int(cudaMalloc(&q, (size_t)1 << 50), cudaErrorMemoryAllocation, "cudaMalloc of more than there is");
    is_ptr(q, NULL, "leaves no address behind");
    is_int(cudaPeekAtLastError(), cudaErrorMemoryAllocation, "peek at the last error");
    is_int(cudaGetLastError(), cudaErrorMemoryAllocation, "peeking does not clear it");
    inside = p;
    is_int(cudaFree(inside + 16), cudaErrorInvalidValue, "cudaFree of an interior pointer");
    is_int(cudaFree(&q), cudaErrorInvalidValue, "cudaFree of a foreign pointer");
    is_int(cudaFree(p), cudaSuccess, "cudaFree");
    is_int(cudaFree(p), cudaErrorInvalidValue, "cudaFree twice");
    is_int(cudaFree(NULL), cudaSuccess, "cudaFree of NULL");
    (void)cudaGetLastError();
    is_u64(free_bytes(), before, "all memory came back");
}

static void test_pitched(void)
{
    struct cudaExtent extent = {100, 10, 4};
    struct cudaPitchedPtr box = {0};
    size_t pitch = 0;
    void *p = NULL;

    is_int(cudaMallocPitch(&p, &pitch, 1000, 7), cudaSuccess, "cudaMallocPitch");
    ok(pitch >= 1000 && pitch % 32 == 0, "has a pitch of at least the width");
    is_int(cudaMemset2D(p, pitch, 1, 1000, 7), cudaSuccess, "and all its rows are there");
    is_int(cudaFree(p), cudaSuccess, "and is freed");
    is_int(cudaMallocPitch(&p, NULL, 1000, 7), cudaErrorInvalidValue,
           "cudaMallocPitch without a place for the pitch");
    is_int(cudaMallocPitch(&p, &pitch, 0, 7), cudaSuccess, "cudaMallocPitch of nothing");
    is_ptr(p, NULL, "gives NULL");
    is_int(cudaMalloc3D(&box, extent), cudaSuccess, "cudaMalloc3D");
    ok(box.ptr && box.pitch >= 100 && box.xsize == 100 && box.ysize == 10, "fills the pitched pointer");
    is_int(cudaMemset3D(box, 3, extent), cudaSuccess, "and the whole box is there");
    is_int(cudaFree(box.ptr), cudaSuccess, "and is freed");
    extent.height = SIZE_MAX / 2;
    is_int(cudaMalloc3D(&box, extent), cudaErrorMemoryAllocation, "cudaMalloc3D of an absurd extent");
    (void)cudaGetLastError();
}

static void test_host(void)
{
    static char block[65536] __attribute__((aligned(4096)));
    unsigned int flags = 99;
    void *p = NULL, *device = NULL;
    struct cudaPointerAttributes attributes;

    is_int(cudaMallocHost(&p, 5000), cudaErrorMemoryAllocation,
           "a fault in cuMemHostAlloc reaches cudaMallocHost");
    is_ptr(p, NULL, "which leaves the pointer alone");
    is_int(cudaGetLastError(), cudaErrorMemoryAllocation, "and remembers it");
    is_int(cudaMallocHost(&p, 5000), cudaSuccess, "cudaMallocHost");
    memset(p, 1, 5000);
    is_int(cudaPointerGetAttributes(&attributes, p), cudaSuccess, "its attributes");
    is_int(attributes.type, cudaMemoryTypeHost, "say host");
    is_ptr(attributes.hostPointer, p, "and where");
    is_int(cudaHostGetDevicePointer(&device, p, 0), cudaSuccess, "cudaHostGetDevicePointer");
    ok(device != NULL, "gives an address");
    is_int(cudaFreeHost(p), cudaSuccess, "cudaFreeHost");
    is_int(cudaFreeHost(p), cudaErrorInvalidValue, "cudaFreeHost twice");
    is_int(cudaFreeHost(NULL), cudaSuccess, "cudaFreeHost of NULL");
    is_int(cudaHostAlloc(&p, 4096, cudaHostAllocPortable | cudaHostAllocMapped), cudaSuccess,
           "cudaHostAlloc");
    is_int(cudaHostGetFlags(&flags, p), cudaSuccess, "cudaHostGetFlags");
    ok((flags & cudaHostAllocPortable) && (flags & cudaHostAllocMapped), "tells the flags");
    is_int(cudaFreeHost(p), cudaSuccess, "and is freed");
    is_int(cudaHostAlloc(&p, 4096, 0x800), cudaErrorInvalidValue, "cudaHostAlloc with unknown flags");
    is_int(cudaHostRegister(block, sizeof(block), 0), cudaSuccess, "cudaHostRegister");
    is_int(cudaHostRegister(block, sizeof(block), 0), cudaErrorHostMemoryAlreadyRegistered, "a second time");
    is_int(cudaHostUnregister(block), cudaSuccess, "cudaHostUnregister");
    is_int(cudaHostUnregister(block), cudaErrorHostMemoryNotRegistered, "a second time");
    (void)cudaGetLastError();
}

static void test_managed(void)
{
    struct cudaPointerAttributes attributes;
    void *p = NULL;
    int value = 0;

    is_int(cudaMallocManaged(&p, 0, cudaMemAttachGlobal), cudaSuccess, "cudaMallocManaged of nothing");
    is_int(cudaMallocManaged(&p, 100, 0), cudaErrorInvalidValue,
           "cudaMallocManaged without a kind of attachment");
    is_int(cudaMallocManaged(&p, 1 << 20, cudaMemAttachGlobal), cudaSuccess, "cudaMallocManaged");
    memset(p, 42, 1 << 20);
    is_int(cudaPointerGetAttributes(&attributes, p), cudaSuccess, "its attributes");
    is_int(attributes.type, cudaMemoryTypeManaged, "say managed");
#if MS_CUDART_MAJOR == 12
    is_int(cudaMemAdvise(p, 1 << 20, cudaMemAdviseSetReadMostly, 0), cudaSuccess, "cudaMemAdvise by device");
    is_int(cudaMemPrefetchAsync(p, 1 << 20, 0, NULL), cudaSuccess, "cudaMemPrefetchAsync to a device");
    is_int(cudaMemPrefetchAsync(p, 1 << 20, cudaCpuDeviceId, NULL), cudaSuccess,
           "cudaMemPrefetchAsync to the host");
#else
    struct cudaMemLocation device = {cudaMemLocationTypeDevice, 0};

    is_int(cudaMemAdvise(p, 1 << 20, cudaMemAdviseSetReadMostly, device), cudaSuccess,
           "cudaMemAdvise by location");
    is_int(cudaMemPrefetchAsync(p, 1 << 20, device, 0, NULL), cudaSuccess,
           "cudaMemPrefetchAsync to a location");
#endif
    is_int(cudaDeviceSynchronize(), cudaSuccess, "wait for it");
    is_int(cudaMemRangeGetAttribute(&value, sizeof(value), cudaMemRangeAttributeReadMostly, p, 1 << 20),
           cudaSuccess, "cudaMemRangeGetAttribute");
    is_int(((char *)p)[77777], 42, "the bytes are still there");
    is_int(cudaFree(p), cudaSuccess, "and is freed");
    (void)cudaGetLastError();
}

static void test_attributes(void)
{
    struct {
        struct cudaPointerAttributes attributes;
        long after;
    } guarded;
    int local = 0;
    void *p;

    memset(&guarded, 0x5a, sizeof(guarded));
    is_int(cudaPointerGetAttributes(&guarded.attributes, &local), cudaSuccess,
           "attributes of ordinary memory");
    is_int(guarded.attributes.type, cudaMemoryTypeUnregistered, "say unregistered");
    is_int(guarded.attributes.device, cudaInvalidDeviceId, "and no device");
    is_ptr(guarded.attributes.devicePointer, NULL, "and no device address");
#if MS_CUDART_MAJOR == 12
    is_u64(guarded.attributes.reserved[0], 0x5a5a5a5a5a5a5a5a, "CUDA 12's shorter structure is not overrun");
#else
    is_u64(guarded.attributes.reserved[0], 0, "the reserved words are cleared");
#endif
    is_int(cudaMalloc(&p, 100), cudaSuccess, "a block");
    is_int(cudaPointerGetAttributes(&guarded.attributes, (char *)p + 50), cudaSuccess,
           "attributes of its middle");
    is_int(guarded.attributes.type, cudaMemoryTypeDevice, "say device");
    is_int(guarded.attributes.device, 0, "number 0");
    is_ptr(guarded.attributes.devicePointer, (char *)p + 50, "and the address");
    is_ptr(guarded.attributes.hostPointer, NULL, "and nothing for the host");
    cudaFree(p);
}

static void test_arrays(void)
{
    struct cudaChannelFormatDesc desc = cudaCreateChannelDesc(32, 0, 0, 0, cudaChannelFormatKindFloat), back;
    struct cudaChannelFormatDesc odd = cudaCreateChannelDesc(32, 16, 0, 0, cudaChannelFormatKindFloat);
    struct cudaExtent extent = {16, 8, 4}, found;
    cudaMipmappedArray_t mipmap = NULL;
    cudaArray_t array = NULL, level = NULL;
    size_t before = free_bytes();
    unsigned int flags = 99;

    is_int(cudaMallocArray(&array, &desc, 64, 32, cudaArrayDefault), cudaSuccess, "cudaMallocArray");
    is_int(cudaArrayGetInfo(&back, &found, &flags, array), cudaSuccess, "cudaArrayGetInfo");
    ok(back.x == 32 && back.y == 0 && back.f == cudaChannelFormatKindFloat, "tells the format");
    ok(found.width == 64 && found.height == 32 && found.depth == 0 && flags == 0, "and the shape");
    is_int(cudaFreeArray(array), cudaSuccess, "cudaFreeArray");
    is_int(cudaFreeArray(NULL), cudaSuccess, "cudaFreeArray of NULL");
    is_int(cudaMallocArray(&array, &odd, 64, 32, 0), cudaErrorInvalidChannelDescriptor,
           "an impossible format");
    is_int(cudaMalloc3DArray(&array, &desc, extent, 0), cudaSuccess, "cudaMalloc3DArray");
    ok(free_bytes() < before, "takes memory");
    is_int(cudaFreeArray(array), cudaSuccess, "and is freed");
    is_int(cudaMallocMipmappedArray(&mipmap, &desc, extent, 2, 0), cudaSuccess, "cudaMallocMipmappedArray");
    is_int(cudaGetMipmappedArrayLevel(&level, mipmap, 1), cudaSuccess, "its second level");
    is_int(cudaArrayGetInfo(NULL, &found, NULL, level), cudaSuccess, "is an array");
    ok(found.width == 8 && found.height == 4 && found.depth == 2, "of half the size");
    is_int(cudaFreeMipmappedArray(mipmap), cudaSuccess, "cudaFreeMipmappedArray");
    is_u64(free_bytes(), before, "all memory came back");
    (void)cudaGetLastError();
}

static void test_pools(void)
{
    struct cudaMemPoolProps props = {.allocType = cudaMemAllocationTypePinned,
                                     .location = {cudaMemLocationTypeDevice, 0}};
    cudaMemPool_t pool = NULL, standard = NULL, current = NULL;
    unsigned long long used = 1, threshold = UINT64_MAX;
    enum cudaMemAccessFlags access = cudaMemAccessFlagsProtNone;
    cudaStream_t stream;
    void *p = NULL;

    is_int(cudaStreamCreate(&stream), cudaSuccess, "a stream");
    is_int(cudaMallocAsync(&p, 4000, stream), cudaSuccess, "cudaMallocAsync");
    is_int(cudaMemsetAsync(p, 5, 4000, stream), cudaSuccess, "usable in stream order");
    is_int(cudaFreeAsync(p, stream), cudaSuccess, "cudaFreeAsync");
    is_int(cudaMallocAsync(NULL, 4000, stream), cudaErrorInvalidValue, "cudaMallocAsync into nowhere");
    is_int(cudaDeviceGetDefaultMemPool(&standard, 0), cudaSuccess, "cudaDeviceGetDefaultMemPool");
    is_int(cudaDeviceGetMemPool(&current, 0), cudaSuccess, "cudaDeviceGetMemPool");
    is_ptr(current, standard, "is the default one at first");
    is_int(cudaMemPoolCreate(&pool, &props), cudaSuccess, "cudaMemPoolCreate");
    is_int(cudaMemPoolCreate(&pool, NULL), cudaErrorInvalidValue, "cudaMemPoolCreate of nothing");
    is_int(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &threshold), cudaSuccess,
           "cudaMemPoolSetAttribute");
    threshold = 0;
    is_int(cudaMemPoolGetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &threshold), cudaSuccess,
           "cudaMemPoolGetAttribute");
    is_u64(threshold, UINT64_MAX, "tells what was set");
    is_int(cudaMallocFromPoolAsync(&p, 10000, pool, stream), cudaSuccess, "cudaMallocFromPoolAsync");
    is_int(cudaMemPoolGetAttribute(pool, cudaMemPoolAttrUsedMemCurrent, &used), cudaSuccess,
           "what is in use");
    ok(used >= 10000, "counts it");
    is_int(cudaMemPoolGetAccess(&access, pool, &props.location), cudaSuccess, "cudaMemPoolGetAccess");
    is_int(access, cudaMemAccessFlagsProtReadWrite, "the pool's own device may read and write");
    is_int(cudaFreeAsync(p, stream), cudaSuccess, "freed in stream order");
    is_int(cudaStreamSynchronize(stream), cudaSuccess, "and done");
    is_int(cudaMemPoolTrimTo(pool, 0), cudaSuccess, "cudaMemPoolTrimTo");
    is_int(cudaDeviceSetMemPool(0, pool), cudaSuccess, "cudaDeviceSetMemPool");
    is_int(cudaDeviceGetMemPool(&current, 0), cudaSuccess, "and back");
    is_ptr(current, pool, "is the new one");
    is_int(cudaMemPoolDestroy(pool), cudaSuccess, "cudaMemPoolDestroy");
    is_int(cudaMemPoolDestroy(standard), cudaErrorInvalidValue, "the default pool cannot be destroyed");
    is_int(cudaMallocAsync_ptsz(&p, 64, NULL), cudaSuccess, "cudaMallocAsync on the per-thread stream");
    is_int(cudaFreeAsync_ptsz(p, NULL), cudaSuccess, "cudaFreeAsync on the per-thread stream");
    is_int(cudaStreamDestroy(stream), cudaSuccess, "cudaStreamDestroy");
    (void)cudaGetLastError();
}

int main(void)
{
    setenv("MEMSIM_FAIL", "cuMemHostAlloc@1=2", 1);
    plan(0);
    is_int(cudaFree(NULL), cudaSuccess, "the idiom that creates the context");
    test_device();
    test_pitched();
    test_host();
    test_managed();
    test_attributes();
    test_arrays();
    test_pools();
    return done();
}
