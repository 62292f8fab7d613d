/*
 * facts_sizes.c: questions 7 and 8: granularity, alignment, packing and pitch; what pools can be made of and
 * who reaches them.
 */
#include "facts.h"

#include <stdlib.h>
#include <string.h>

#define BLOCKS 24

static const size_t sizes[] = {1,
                               256,
                               512,
                               513,
                               4096,
                               65536,
                               512 * KIT_KIB,
                               KIT_MIB,
                               KIT_MIB + 1,
                               2 * KIT_MIB - 1,
                               2 * KIT_MIB,
                               2 * KIT_MIB + 1,
                               5 * KIT_MIB,
                               20 * KIT_MIB};

/* Appends to a list of words that is to be one value. */
static void append(char *text, size_t size, const char *form, size_t key, size_t value)
{
    size_t used = strlen(text);

    snprintf(text + used, size - used, form, used ? " " : "", key, value);
}

static size_t free_bytes(void)
{
    size_t left = 0, total = 0;

    kit_must(cuMemGetInfo_v2(&left, &total));
    return left;
}

static size_t alignment_of(const CUdeviceptr *blocks, size_t count)
{
    CUdeviceptr bits = 2 * KIT_MIB;

    for (size_t i = 0; i < count; i++)
        bits |= blocks[i];
    return (size_t)(bits & -bits);
}

static int by_address(const void *a, const void *b)
{
    CUdeviceptr one = *(const CUdeviceptr *)a, other = *(const CUdeviceptr *)b;

    return one < other ? -1 : one > other;
}

static size_t distance_of(CUdeviceptr *blocks, size_t count)
{
    size_t least = SIZE_MAX;

    qsort(blocks, count, sizeof *blocks, by_address);
    for (size_t i = 1; i < count; i++)
        if (blocks[i] - blocks[i - 1] < least)
            least = (size_t)(blocks[i] - blocks[i - 1]);
    return least;
}

static void packing(void)
{
    char alignment[600] = "", distance[600] = "", takes[600] = "";
    CUdeviceptr blocks[BLOCKS];

    for (size_t i = 0; i < KIT_COUNT(sizes); i++) {
        size_t before = free_bytes();
        for (size_t k = 0; k < BLOCKS; k++)
            kit_must(cuMemAlloc_v2(&blocks[k], sizes[i]));
        append(takes, sizeof takes, "%s%zu=%zu", sizes[i], (before - free_bytes()) / BLOCKS);
        append(alignment, sizeof alignment, "%s%zu=%zu", sizes[i], alignment_of(blocks, BLOCKS));
        append(distance, sizeof distance, "%s%zu=%zu", sizes[i], distance_of(blocks, BLOCKS));
        for (size_t k = 0; k < BLOCKS; k++)
            kit_must(cuMemFree_v2(blocks[k]));
    }
    fact(cudaMalloc_alignment, "%s", alignment);
    fact(cudaMalloc_distance, "%s", distance);
    fact(cudaMalloc_takes, "%s", takes);
}

static void pool_alignment(void)
{
    char text[600] = "";
    CUdeviceptr blocks[BLOCKS];

    for (size_t i = 0; i < KIT_COUNT(sizes); i++) {
        for (size_t k = 0; k < BLOCKS; k++)
            kit_must(cuMemAllocAsync(&blocks[k], sizes[i], NULL));
        append(text, sizeof text, "%s%zu=%zu", sizes[i], alignment_of(blocks, BLOCKS));
        for (size_t k = 0; k < BLOCKS; k++)
            kit_must(cuMemFreeAsync(blocks[k], NULL));
        kit_must(cuStreamSynchronize(NULL));
    }
    fact(cudaMallocAsync_alignment, "%s", text);
}

static void pitches(void)
{
    static const size_t widths[] = {1, 32, 256, 511, 512, 513, 1000, 1024, 4097, 65537};
    char text[400] = "";

    for (size_t i = 0; i < KIT_COUNT(widths); i++) {
        void *p = NULL;
        size_t pitch = 0;
        kit_must(cudaMallocPitch(&p, &pitch, widths[i], 16));
        append(text, sizeof text, "%s%zu=%zu", widths[i], pitch);
        kit_must(cudaFree(p));
    }
    fact(pitch, "%s", text);
}

static void granularities(void)
{
    CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}};
    CUmulticastObjectProp many = {.numDevices = 1, .size = 2 * KIT_MIB};
    size_t least = 0, better = 0;
    int supported = 0;

    kit_must(cuMemGetAllocationGranularity(&least, &prop, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
    kit_must(cuMemGetAllocationGranularity(&better, &prop, CU_MEM_ALLOC_GRANULARITY_RECOMMENDED));
    fact(granularity_minimum, "%zu", least);
    fact(granularity_recommended, "%zu", better);
    cuDeviceGetAttribute(&supported, CU_DEVICE_ATTRIBUTE_MULTICAST_SUPPORTED, 0);
    CUresult status =
        supported ? cuMulticastGetGranularity(&least, &many, CU_MULTICAST_GRANULARITY_MINIMUM) : 0;
    CUresult other =
        supported ? cuMulticastGetGranularity(&better, &many, CU_MULTICAST_GRANULARITY_RECOMMENDED) : 0;
    if (!supported || status != CUDA_SUCCESS || other != CUDA_SUCCESS) {
        fact(granularity_multicast_minimum, "- multicast: supported %d, status %d", supported, (int)status);
        fact(granularity_multicast_recommended, "- multicast: supported %d, status %d", supported,
             (int)other);
        return;
    }
    fact(granularity_multicast_minimum, "%zu", least);
    fact(granularity_multicast_recommended, "%zu", better);
}

static void fresh(void)
{
    const size_t bytes = 64 * KIT_MIB;
    unsigned char *host = calloc(1, bytes);
    CUdeviceptr d;
    bool zero = true;

    if (!host)
        kit_give_up("no memory");
    kit_must(cuMemAlloc_v2(&d, bytes));
    kit_must(cuMemcpyDtoH_v2(host, d, bytes));
    for (size_t i = 0; i < bytes && zero; i++)
        zero = host[i] == 0;
    fact(fresh_memory_is_zero, "%s", zero ? "yes" : "no");
    kit_must(cuMemFree_v2(d));
    free(host);
}

void facts_sizes(int argc, char **argv)
{
    CUdeviceptr d, base;
    size_t bytes = 0, before = 0, total;
    int texture = 0, row = 0;
    CUcontext plain;

    (void)argc;
    (void)argv;
    kit_begin();
    fresh();
    before = free_bytes();
    if (cuCtxCreate_v2(&plain, 0, 0) == CUDA_SUCCESS) {
        kit_must(cuMemGetInfo_v2(&bytes, &total));
        fact(context_takes, "%zu", before > bytes ? (before - bytes) / KIT_MIB : 0);
        kit_must(cuCtxDestroy_v2(plain));
    } else {
        fact(context_takes, "- a second context cannot be made");
    }
    granularities();
    packing();
    pool_alignment();
    kit_must(cuMemAlloc_v2(&d, 1000));
    kit_must(cuMemGetAddressRange_v2(&base, &bytes, d));
    fact(cuMemGetAddressRange_of_1000, "%zu, base %s", bytes, base == d ? "its own" : "another");
    kit_must(cuMemFree_v2(d));
    pitches();
    kit_must(cuDeviceGetAttribute(&texture, CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT, 0));
    kit_must(cuDeviceGetAttribute(&row, CU_DEVICE_ATTRIBUTE_TEXTURE_PITCH_ALIGNMENT, 0));
    fact(texture_alignment, "%d %d", texture, row);
}

/* --- 8 -------------------------------------------------------------------------------------------------- */

static CUmemPoolProps on(CUmemLocationType type, int id)
{
    return (CUmemPoolProps){.allocType = CU_MEM_ALLOCATION_TYPE_PINNED, .location = {type, id}};
}

static void try_pool(enum fact_id id, const CUmemPoolProps *props)
{
    CUmemoryPool pool = NULL;
    CUresult status = cuMemPoolCreate(&pool, props);

    fact_say(id, "status %d", (int)status);
    if (status == CUDA_SUCCESS)
        cuMemPoolDestroy(pool);
}

/* A kernel on device 1 writes to memory of device 0. What is refused breaks device 1's context: it comes last
 * there. */
static const char *peer_writes(CUdeviceptr d, CUcontext peer)
{
    kit_must(cuCtxSetCurrent(peer));
    CUmodule module;
    CUfunction fill;
    extern const char kit_ptx[];
    uint32_t value = 7;
    uint64_t words = 1;
    void *parameters[] = {&d, &value, &words};

    kit_must(cuModuleLoadData(&module, kit_ptx));
    kit_must(cuModuleGetFunction(&fill, module, "memsim_fill"));
    CUresult status = cuLaunchKernel(fill, 1, 1, 1, 1, 1, 1, 0, NULL, parameters, NULL);
    if (status == CUDA_SUCCESS)
        status = cuCtxSynchronize();
    return status == CUDA_SUCCESS ? "yes" : status == CUDA_ERROR_ILLEGAL_ADDRESS ? "no" : "another error";
}

static void peers(CUcontext own)
{
    CUmemPoolProps props = on(CU_MEM_LOCATION_TYPE_DEVICE, 0);
    CUmemAccessDesc access = {.location = {CU_MEM_LOCATION_TYPE_DEVICE, 1},
                              .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    CUmemoryPool pool;
    CUdeviceptr plain, pooled;
    CUcontext peer;
    int can = 0;

    if (kit_devices() >= 2)
        cuDeviceCanAccessPeer(&can, 1, 0);
    if (!can) {
        fact(alloc_peer_access, "- it takes two devices that reach each other");
        fact(pool_peer_with_access, "- it takes two devices that reach each other");
        fact(pool_peer_without_access, "- it takes two devices that reach each other");
        return;
    }
    kit_must(cuMemPoolCreate(&pool, &props));
    kit_must(cuMemAllocFromPoolAsync(&pooled, KIT_MIB, pool, NULL));
    kit_must(cuMemAlloc_v2(&plain, KIT_MIB));
    kit_must(cuCtxSynchronize());
    kit_must(cuDevicePrimaryCtxRetain(&peer, 1));
    kit_must(cuMemPoolSetAccess(pool, &access, 1));
    fact(pool_peer_with_access, "%s", peer_writes(pooled, peer));
    kit_must(cuCtxEnablePeerAccess(own, 0));
    fact(alloc_peer_access, "%s", peer_writes(plain, peer));
    access.flags = CU_MEM_ACCESS_FLAGS_PROT_NONE;
    kit_must(cuMemPoolSetAccess(pool, &access, 1));
    fact(pool_peer_without_access, "%s", peer_writes(pooled, peer));
}

static void limits(void)
{
    CUmemPoolProps props = on(CU_MEM_LOCATION_TYPE_DEVICE, 0);
    CUmemLocation location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
    CUmemAccess_flags flags = CU_MEM_ACCESS_FLAGS_PROT_NONE;
    CUmemoryPool pool;
    CUdeviceptr d = 0;

    props.maxSize = 64 * KIT_MIB;
    kit_must(cuMemPoolCreate(&pool, &props));
    kit_must(cuMemPoolGetAccess(&flags, pool, &location));
    fact(pool_own_access, "%d", (int)flags);
    fact(pool_max_size_holds, "status %d", (int)cuMemAllocFromPoolAsync(&d, 256 * KIT_MIB, pool, NULL));
    kit_must(cuMemPoolDestroy(pool));
}

void facts_pools(int argc, char **argv)
{
    CUcontext own = kit_begin();
    CUmemPoolProps props;

    (void)argc;
    (void)argv;
    props = on(CU_MEM_LOCATION_TYPE_HOST, 0);
    try_pool(FACT_pool_on_host, &props);
    props = on(CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT, 0);
    try_pool(FACT_pool_on_host_numa_current, &props);
    props = on(CU_MEM_LOCATION_TYPE_HOST_NUMA, 0);
    try_pool(FACT_pool_on_host_numa, &props);
    props = on(CU_MEM_LOCATION_TYPE_DEVICE, 0);
    props.reserved[3] = 1;
    try_pool(FACT_pool_bad_reserved, &props);
    try_pool(FACT_pool_no_properties, NULL);
    props = on(CU_MEM_LOCATION_TYPE_DEVICE, 0);
    props.allocType = CU_MEM_ALLOCATION_TYPE_INVALID;
    try_pool(FACT_pool_bad_type, &props);
    props = on(CU_MEM_LOCATION_TYPE_DEVICE, 99);
    try_pool(FACT_pool_bad_device, &props);
    props = on(CU_MEM_LOCATION_TYPE_DEVICE, 0);
    props.allocType = CU_MEM_ALLOCATION_TYPE_MANAGED;
    try_pool(FACT_pool_managed, &props);
    props = on(CU_MEM_LOCATION_TYPE_DEVICE, 0);
    props.handleTypes = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
    try_pool(FACT_pool_posix_handles, &props);
    limits();
    peers(own);
}
