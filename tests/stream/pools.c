/*
 * pools.c - what a program sees of the pool API: the status of every call, and every attribute, as "what
 * value" lines, which pools.py puts side by side, natively and under memshim.
 *
 * Calls are made through the runtime and through the driver alike. With TEST_HIP the same is asked of HIP,
 * which lacks a few functions, and whose pools end with a reset. Nothing here depends on addresses or time.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "tests/hip/as_cuda.h"
#include "vendor/abi/cuda_driver.h"
#include "vendor/abi/cuda_driver_fn.h"
#include "vendor/abi/cuda_runtime.h"
#include "vendor/abi/cuda_runtime_fn.h"

#define MIB            ((size_t)1 << 20)
#define SAY(name, ...) printf("%s %d\n", name, (int)(__VA_ARGS__))

static const char *const names[] = {"",         "follow_events", "opportunistic", "internal", "threshold",
                                    "reserved", "reserved_high", "used",          "used_high"};
static cudaStream_t stream;

static uint64_t attribute(cudaMemPool_t pool, int which)
{
    uint64_t wide = 0;
    int narrow = 0;
    int status = (int)cudaMemPoolGetAttribute(pool, (enum cudaMemPoolAttr)which,
                                              which < 4 ? (void *)&narrow : (void *)&wide);

    return status ? 1000000 + (uint64_t)status : which < 4 ? (uint64_t)narrow : wide;
}

static void attributes(const char *when, cudaMemPool_t pool)
{
    for (int which = 1; which <= 8; which++)
        printf("%s.%s %llu\n", when, names[which], (unsigned long long)attribute(pool, which));
}

static int set(cudaMemPool_t pool, int which, uint64_t value)
{
    int narrow = (int)value;

    return (int)cudaMemPoolSetAttribute(pool, (enum cudaMemPoolAttr)which,
                                        which < 4 ? (void *)&narrow : (void *)&value);
}

static struct cudaMemPoolProps plain(void)
{
    return (struct cudaMemPoolProps){.allocType = cudaMemAllocationTypePinned,
                                     .location = {cudaMemLocationTypeDevice, 0}};
}

static void create_with(const char *name, struct cudaMemPoolProps props)
{
    cudaMemPool_t pool = NULL;
    char line[80];
    void *p = NULL;
    int status = (int)cudaMemPoolCreate(&pool, &props);

    snprintf(line, sizeof line, "create.%s", name);
    SAY(line, status);
    if (status)
        return;
    snprintf(line, sizeof line, "create.%s.alloc", name);
    SAY(line, cudaMallocFromPoolAsync(&p, 1000, pool, stream));
    snprintf(line, sizeof line, "create.%s.free", name);
    SAY(line, cudaFreeAsync(p, stream));
    cudaStreamSynchronize(stream);
    snprintf(line, sizeof line, "create.%s.destroy", name);
    SAY(line, cudaMemPoolDestroy(pool));
}

static void creation(void)
{
    struct cudaMemPoolProps props = plain();
    cudaMemPool_t pool;

    SAY("create.no_properties", cudaMemPoolCreate(&pool, NULL));
    SAY("create.no_pool", cudaMemPoolCreate(NULL, &props));
    create_with("plain", props);
    props.reserved[53] = 1;
    create_with("reserved_byte", props);
    props = plain();
    props.win32SecurityAttributes = &props;
    create_with("win32", props);
    props = plain();
    props.usage = cudaMemPoolCreateUsageHwDecompress;
    create_with("usage", props);
    props = plain();
    props.allocType = cudaMemAllocationTypeInvalid;
    create_with("no_type", props);
    props = plain();
    props.allocType = cudaMemAllocationTypeManaged;
    create_with("managed", props);
    static const int kinds[] = {0, 2, 3, 4};
    static const char *const places[] = {"nowhere", "host", "host_numa", "host_numa_current"};
    for (int i = 0; i < 4; i++) {
        props = plain();
        props.location.type = (enum cudaMemLocationType)kinds[i];
        create_with(places[i], props);
    }
    props = plain();
    props.location.id = 7;
    create_with("no_device", props);
    static const int types[] = {1, 2, 8};
    static const char *const handles[] = {"posix", "win32_handle", "fabric"};
    for (int i = 0; i < 3; i++) {
        props = plain();
        props.handleTypes = (enum cudaMemAllocationHandleType)types[i];
        create_with(handles[i], props);
    }
    props = plain();
    props.maxSize = 4 * MIB;
    create_with("max_size", props);
}

static void life(void)
{
    struct cudaMemPoolProps props = plain();
    cudaMemPool_t pool = NULL, other;
    void *p = NULL, *q = NULL;

    SAY("life.create", cudaMemPoolCreate(&pool, &props));
    attributes("life.new", pool);
    SAY("life.alloc", cudaMallocFromPoolAsync(&p, 3 * MIB + 1, pool, stream));
    SAY("life.alloc_small", cudaMallocFromPoolAsync(&q, 1000, pool, stream));
    attributes("life.two", pool);
    SAY("life.free", cudaFreeAsync(p, stream));
    SAY("life.synchronize", cudaStreamSynchronize(stream));
    attributes("life.one", pool);
    SAY("life.free_twice", cudaFreeAsync(p, stream));
    SAY("life.free_inside", cudaFreeAsync((char *)q + 8, stream));
    SAY("life.free_nothing", cudaFreeAsync(NULL, stream));
    SAY("life.alloc_nothing", cudaMallocFromPoolAsync(&p, 0, pool, stream));
    SAY("life.alloc_nothing_is_null", p == NULL);
    SAY("life.alloc_nowhere", cudaMallocFromPoolAsync(NULL, 16, pool, stream));
    SAY("life.alloc_no_pool", cudaMallocFromPoolAsync(&p, 16, NULL, stream));
    SAY("life.alloc_too_much", cudaMallocFromPoolAsync(&p, (size_t)1 << 45, pool, stream));
    SAY("life.alloc_bad_stream",
        cuMemAllocFromPoolAsync((CUdeviceptr *)&p, 16, (CUmemoryPool)pool, (CUstream)0x8888));
    SAY("life.free_bad_stream", cuMemFreeAsync((CUdeviceptr)q, (CUstream)0x8888));
    SAY("life.destroy_with_a_block", cudaMemPoolDestroy(pool));
    SAY("life.destroy_twice", cudaMemPoolDestroy(pool));
    SAY("life.alloc_when_destroyed", cudaMallocFromPoolAsync(&p, 16, pool, stream));
    SAY("life.attribute_when_destroyed", attribute(pool, 7) > 1000000);
    SAY("life.use_when_destroyed", cudaMemsetAsync(q, 1, 1000, stream));
    SAY("life.free_when_destroyed", cudaFreeAsync(q, stream));
    SAY("life.synchronize_again", cudaDeviceSynchronize());
    SAY("life.default", cudaDeviceGetDefaultMemPool(&other, 0));
    SAY("life.destroy_default", cudaMemPoolDestroy(other));
}

static void rules(void)
{
    struct cudaMemPoolProps props = plain();
    cudaMemPool_t pool = NULL;
    void *p[8];

    cudaMemPoolCreate(&pool, &props);
    for (int which = 1; which <= 8; which++) {
        char line[80];

        snprintf(line, sizeof line, "rules.set_%s", names[which]);
        SAY(line, set(pool, which, which == 4 ? UINT64_MAX : 0));
        snprintf(line, sizeof line, "rules.set_%s_to_7", names[which]);
        SAY(line, which == 4 ? 0 : set(pool, which, 7));
    }
    SAY("rules.set_unknown", set(pool, 99, 0));
    SAY("rules.get_unknown", attribute(pool, 99));
    SAY("rules.get_into_nothing", cudaMemPoolGetAttribute(pool, cudaMemPoolAttrUsedMemCurrent, NULL));
    attributes("rules.set", pool);
    for (int i = 0; i < 8; i++)
        cudaMallocFromPoolAsync(&p[i], 5 * MIB, pool, stream);
    attributes("rules.eight", pool);
    for (int i = 0; i < 8; i++)
        cudaFreeAsync(p[i], stream);
    cudaStreamSynchronize(stream);
    printf("rules.freed.used %llu\n", (unsigned long long)attribute(pool, 7));
    printf("rules.freed.used_high %llu\n", (unsigned long long)attribute(pool, 8));
    SAY("rules.reset_high", set(pool, 8, 0));
    printf("rules.reset.used_high %llu\n", (unsigned long long)attribute(pool, 8));
    SAY("rules.trim", cudaMemPoolTrimTo(pool, 0));
    printf("rules.trimmed.reserved %llu\n", (unsigned long long)attribute(pool, 5));
    SAY("rules.reset_reserved_high", set(pool, 6, 0));
    printf("rules.reset.reserved_high %llu\n", (unsigned long long)attribute(pool, 6));
    SAY("rules.trim_more", cudaMemPoolTrimTo(pool, (size_t)1 << 40));
    SAY("rules.destroy", cudaMemPoolDestroy(pool));
    SAY("rules.trim_destroyed", cudaMemPoolTrimTo(pool, 0));
}

static void most(void)
{
    struct cudaMemPoolProps props = plain();
    cudaMemPool_t pool = NULL;
    void *p = NULL, *q = NULL;

    props.maxSize = 8 * MIB;
    cudaMemPoolCreate(&pool, &props);
    SAY("most.all", cudaMallocFromPoolAsync(&p, 8 * MIB, pool, stream));
    SAY("most.more", cudaMallocFromPoolAsync(&q, 1, pool, stream));
    SAY("most.free", cudaFreeAsync(p, stream));
    SAY("most.again", cudaMallocFromPoolAsync(&p, 5 * MIB, pool, stream));
    SAY("most.the_rest", cudaMallocFromPoolAsync(&q, 3 * MIB, pool, stream));
    SAY("most.free_one", cudaFreeAsync(p, stream));
    SAY("most.free_other", cudaFreeAsync(q, stream));
    cudaStreamSynchronize(stream);
    SAY("most.destroy", cudaMemPoolDestroy(pool));
}

static void current(void)
{
    struct cudaMemPoolProps props = plain();
    struct cudaMemLocation here = {cudaMemLocationTypeDevice, 0};
    cudaMemPool_t first = NULL, pool = NULL, now = NULL;
    void *p = NULL, *q = NULL;

    SAY("current.default", cudaDeviceGetDefaultMemPool(&first, 0));
    SAY("current.default_of_nothing", cudaDeviceGetDefaultMemPool(&now, 9));
    SAY("current.get", cudaDeviceGetMemPool(&now, 0));
    SAY("current.is_default", now == first);
    cudaMemPoolCreate(&pool, &props);
    SAY("current.set", cudaDeviceSetMemPool(0, pool));
    SAY("current.set_elsewhere", cudaDeviceSetMemPool(1, pool));
    SAY("current.get_again", cudaDeviceGetMemPool(&now, 0));
    SAY("current.is_set", now == pool);
    SAY("current.alloc", cudaMallocAsync(&p, 2 * MIB, stream));
    printf("current.used %llu\n", (unsigned long long)attribute(pool, 7));
#ifndef TEST_HIP
    SAY("current.by_place", cudaMemSetMemPool(&here, cudaMemAllocationTypePinned, first));
#else
    SAY("current.by_place", cudaDeviceSetMemPool(here.id, first));
#endif
    SAY("current.alloc_from_default", cudaMallocAsync(&q, MIB, stream));
    printf("current.used_still %llu\n", (unsigned long long)attribute(pool, 7));
    SAY("current.set_again", cudaDeviceSetMemPool(0, pool));
    SAY("current.destroy", cudaMemPoolDestroy(pool));
    SAY("current.get_last", cudaDeviceGetMemPool(&now, 0));
    SAY("current.is_default_again", now == first);
    SAY("current.free", cudaFreeAsync(p, stream));
    SAY("current.free_other", cudaFreeAsync(q, stream));
    cudaDeviceSynchronize();
    printf("current.default_used %llu\n", (unsigned long long)attribute(first, 7));
}

static void reach(void)
{
    struct cudaMemPoolProps props = plain();
    struct cudaMemAccessDesc desc = {{cudaMemLocationTypeDevice, 1}, cudaMemAccessFlagsProtReadWrite};
    struct cudaMemLocation own = {cudaMemLocationTypeDevice, 0}, peer = {cudaMemLocationTypeDevice, 1};
    enum cudaMemAccessFlags flags;
    cudaMemPool_t pool = NULL;
    unsigned word = 0;
    void *p = NULL, *q = NULL;

    cudaMemPoolCreate(&pool, &props);
    cudaMallocFromPoolAsync(&p, 4096, pool, stream);
    cudaMemsetAsync(p, 7, 4096, stream);
    cudaStreamSynchronize(stream);
    SAY("access.own", cudaMemPoolGetAccess(&flags, pool, &own));
    SAY("access.own_is", flags);
    SAY("access.peer", cudaMemPoolGetAccess(&flags, pool, &peer));
    SAY("access.peer_is", flags);
    SAY("access.set", cudaMemPoolSetAccess(pool, &desc, 1));
    SAY("access.peer_again", cudaMemPoolGetAccess(&flags, pool, &peer));
    SAY("access.peer_may", flags);
    desc.location.id = 0;
    desc.flags = cudaMemAccessFlagsProtNone;
    SAY("access.take_own_away", cudaMemPoolSetAccess(pool, &desc, 1));
    SAY("access.set_nothing", cudaMemPoolSetAccess(pool, NULL, 1));
    cudaSetDevice(1);
    cudaMalloc(&q, 4096);
    SAY("access.peer_copies", cudaMemcpy(q, p, 4096, cudaMemcpyDeviceToDevice));
    SAY("access.peer_reads", cudaMemcpy(&word, q, 4, cudaMemcpyDeviceToHost));
    SAY("access.peer_reads_what", word == 0x07070707);
    cudaFree(q);
    cudaSetDevice(0);
    cudaFreeAsync(p, stream);
    cudaStreamSynchronize(stream);
    cudaMemPoolDestroy(pool);
}

static void sharing(void)
{
    struct cudaMemPoolProps props = plain();
    struct cudaMemPoolPtrExportData data;
    cudaMemPool_t pool = NULL, other = NULL;
    cudaIpcMemHandle_t handle;
    void *p = NULL, *q = NULL;
    int fd = -1;

    SAY("sharing.default_alloc", cudaMallocAsync(&q, 4096, stream));
    SAY("sharing.legacy_export", cudaIpcGetMemHandle(&handle, q));
    SAY("sharing.default_pointer", cudaMemPoolExportPointer(&data, q));
    cudaFreeAsync(q, stream);
    props.handleTypes = cudaMemHandleTypePosixFileDescriptor;
    SAY("sharing.create", cudaMemPoolCreate(&pool, &props));
    SAY("sharing.alloc", cudaMallocFromPoolAsync(&p, 5000, pool, stream));
    SAY("sharing.export",
        cudaMemPoolExportToShareableHandle(&fd, pool, cudaMemHandleTypePosixFileDescriptor, 0));
    SAY("sharing.export_pointer", cudaMemPoolExportPointer(&data, p));
    SAY("sharing.import", cudaMemPoolImportFromShareableHandle(&other, (void *)(intptr_t)fd,
                                                               cudaMemHandleTypePosixFileDescriptor, 0));
    SAY("sharing.import_pointer", cudaMemPoolImportPointer(&q, other, &data));
    SAY("sharing.alloc_from_imported", cudaMallocFromPoolAsync(&q, 16, other, stream));
    SAY("sharing.free", cudaFreeAsync(p, stream));
    cudaStreamSynchronize(stream);
    SAY("sharing.destroy", cudaMemPoolDestroy(pool));
    SAY("sharing.destroy_imported", cudaMemPoolDestroy(other));
    close(fd);
}

static void mixed(void)
{
    void *p = NULL, *q = NULL;
    cudaStream_t other;
    CUdeviceptr base = 0;
    size_t bytes = 0;

    cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking);
    SAY("mixed.alloc", cudaMallocAsync(&p, 12345, stream));
    SAY("mixed.range", cuMemGetAddressRange_v2(&base, &bytes, (CUdeviceptr)p + 5));
    SAY("mixed.range_is", base == (CUdeviceptr)p && bytes == 12345);
    cudaStreamSynchronize(stream);
    SAY("mixed.cudaFree", cudaFree(p));
    SAY("mixed.cudaFree_twice", cudaFree(p));
    SAY("mixed.cudaMalloc", cudaMalloc(&q, 5000));
    SAY("mixed.cudaFreeAsync", cudaFreeAsync(q, stream));
    SAY("mixed.cudaFreeAsync_twice", cudaFreeAsync(q, stream));
    SAY("mixed.legacy", cudaMallocAsync(&p, 100, 0));
    SAY("mixed.free_on_another", cudaFreeAsync(p, other));
    SAY("mixed.per_thread", cudaMallocAsync(&p, 100, cudaStreamPerThread));
    SAY("mixed.free_per_thread", cudaFreeAsync(p, cudaStreamPerThread));
#ifndef TEST_HIP
    SAY("mixed.per_thread_twin", cudaMallocAsync_ptsz(&p, 100, 0));
    SAY("mixed.free_per_thread_twin", cudaFreeAsync_ptsz(p, 0));
#endif
    SAY("mixed.alloc_elsewhere", cudaMallocAsync(&p, 4000, other));
    SAY("mixed.end_of_its_stream", cudaStreamDestroy(other));
    SAY("mixed.free_after_that", cudaFreeAsync(p, stream));
    cudaDeviceSynchronize();
}

#ifndef TEST_HIP
static void reset(void)
{
    struct cudaMemPoolProps props = plain();
    cudaMemPool_t pool = NULL;
    cudaStream_t fresh = NULL;
    void *p = NULL, *q = NULL;
    unsigned word = 0;

    cudaMemPoolCreate(&pool, &props);
    cudaMallocAsync(&p, 4096, stream);
    cudaMallocFromPoolAsync(&q, 4096, pool, stream);
    cudaMemsetAsync(p, 3, 4096, stream);
    cudaMemsetAsync(q, 4, 4096, stream);
    cudaStreamSynchronize(stream);
    SAY("reset", cudaDeviceReset());
    SAY("reset.new_stream", cudaStreamCreateWithFlags(&fresh, cudaStreamNonBlocking));
    SAY("reset.lives", cudaMemcpy(&word, p, 4, cudaMemcpyDeviceToHost));
    SAY("reset.lives_and_holds", word == 0x03030303);
    SAY("reset.pool_lives", cudaMemcpy(&word, q, 4, cudaMemcpyDeviceToHost));
    SAY("reset.pool_lives_and_holds", word == 0x04040404);
    SAY("reset.free", cudaFreeAsync(p, fresh));
    SAY("reset.free_other", cudaFreeAsync(q, fresh));
    SAY("reset.alloc", cudaMallocFromPoolAsync(&q, 4096, pool, fresh));
    SAY("reset.free_last", cudaFreeAsync(q, fresh));
    cudaDeviceSynchronize();
    SAY("reset.destroy", cudaMemPoolDestroy(pool));
}
#else
/* A reset ends every pool of the device, so no handle from before it is used again. */
static void reset(void)
{
    struct cudaMemPoolProps props = plain();
    cudaMemPool_t pool = NULL;
    cudaStream_t fresh = NULL;
    void *p = NULL, *q = NULL;
    CUdeviceptr base = 0;
    size_t size = 0;

    cudaMemPoolCreate(&pool, &props);
    cudaMallocAsync(&p, 4096, stream);
    cudaMallocFromPoolAsync(&q, 4096, pool, stream);
    cudaDeviceGetDefaultMemPool(&pool, 0);
    set(pool, 4, UINT64_MAX);
    cudaStreamSynchronize(stream);
    SAY("reset", cudaDeviceReset());
    SAY("reset.new_stream", cudaStreamCreateWithFlags(&fresh, cudaStreamNonBlocking));
    cudaDeviceGetDefaultMemPool(&pool, 0);
    printf("reset.threshold %llu\n", (unsigned long long)attribute(pool, 4));
    printf("reset.used %llu\n", (unsigned long long)attribute(pool, 7));
    printf("reset.reserved %llu\n", (unsigned long long)attribute(pool, 5));
    SAY("reset.knows_its_memory", cuMemGetAddressRange_v2(&base, &size, (CUdeviceptr)p) == 0);
    SAY("reset.knows_that_of_pools", cuMemGetAddressRange_v2(&base, &size, (CUdeviceptr)q) == 0);
    SAY("reset.free_before", cudaFreeAsync(p, fresh) != 0);
    SAY("reset.alloc", cudaMallocAsync(&p, 5000, fresh));
    SAY("reset.use", cudaMemsetAsync(p, 3, 5000, fresh));
    printf("reset.used_then %llu\n", (unsigned long long)attribute(pool, 7));
    SAY("reset.free", cudaFreeAsync(p, fresh));
    SAY("reset.synchronize", cudaDeviceSynchronize());
}
#endif

int main(void)
{
    cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
    creation();
    life();
    rules();
    most();
    current();
    reach();
    sharing();
    mixed();
    reset();
    return 0;
}
