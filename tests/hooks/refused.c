/*
 * refused.c - allocates and frees in every class, three times over, and takes every refusal in its stride.
 *
 * Prints each status, then how often each interface was called and refused, and the device memory that is
 * still live: fail_nth.py makes the driver refuse one call after another and compares that with the same run
 * under memshim, and with the report. Nothing that was refused is freed; what the driver would not free stays
 * live.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "vendor/abi/cuda_driver_fn.h"
#include "vendor/abi/cuda_runtime_fn.h"

#define ROUNDS 3

static struct tally {
    const char *api;
    int calls, refused;
} tallies[40];
static unsigned long long live;
static size_t unit;

/* Counts and prints; true if the call succeeded. */
static int done(const char *api, int status)
{
    struct tally *t = tallies;

    while (t->api && strcmp(t->api, api) != 0)
        t++;
    t->api = api;
    t->calls++;
    t->refused += status != 0;
    printf("%s %d\n", api, status);
    return status == 0;
}

static void drop(const char *api, int status, unsigned long long bytes)
{
    if (done(api, status))
        live -= bytes;
}

/* Every other round keeps what it took. */
static void runtime_memory(int keep, cudaStream_t stream)
{
    struct cudaChannelFormatDesc desc = {32, 0, 0, 0, cudaChannelFormatKindFloat};
    struct cudaExtent extent = {8, 4, 4};
    cudaArray_t array = NULL;
    size_t pitch = 0;
    void *p = NULL;

    if (done("cudaMalloc", cudaMalloc(&p, 5000))) {
        live += 5000;
        if (!keep)
            drop("cudaFree", cudaFree(p), 5000);
    }
    if (done("cudaMallocPitch", cudaMallocPitch(&p, &pitch, 100, 10))) {
        live += pitch * 10;
        if (!keep)
            drop("cudaFree", cudaFree(p), pitch * 10);
    }
    if (done("cudaMallocManaged", cudaMallocManaged(&p, 6000, cudaMemAttachGlobal))) {
        live += 6000;
        if (!keep)
            drop("cudaFree", cudaFree(p), 6000);
    }
    if (done("cudaMallocArray", cudaMallocArray(&array, &desc, 16, 16, 0))) {
        live += 1024;
        if (!keep)
            drop("cudaFreeArray", cudaFreeArray(array), 1024);
    }
    if (done("cudaMalloc3DArray", cudaMalloc3DArray(&array, &desc, extent, 0))) {
        live += 512;
        if (!keep)
            drop("cudaFreeArray", cudaFreeArray(array), 512);
    }
    if (done("cudaMallocAsync", cudaMallocAsync(&p, 7000, stream))) {
        live += 7000;
        if (!keep)
            drop("cudaFreeAsync", cudaFreeAsync(p, stream), 7000);
    }
    if (done("cudaHostAlloc", cudaHostAlloc(&p, 8000, 0)) && !keep)
        drop("cudaFreeHost", cudaFreeHost(p), 0);
}

static void driver_memory(int keep, CUstream stream)
{
    CUDA_ARRAY3D_DESCRIPTOR deep = {
        .Width = 8, .Height = 8, .Depth = 4, .Format = CU_AD_FORMAT_FLOAT, .NumChannels = 1};
    CUmipmappedArray mipmapped = NULL;
    CUdeviceptr p = 0;
    void *host = NULL;

    if (done("cuMemAlloc_v2", cuMemAlloc_v2(&p, 9000))) {
        live += 9000;
        if (!keep)
            drop("cuMemFree_v2", cuMemFree_v2(p), 9000);
    }
    if (done("cuMemAllocAsync", cuMemAllocAsync(&p, 10000, stream))) {
        live += 10000;
        if (!keep)
            drop("cuMemFreeAsync", cuMemFreeAsync(p, stream), 10000);
    }
    if (done("cuMipmappedArrayCreate", cuMipmappedArrayCreate(&mipmapped, &deep, 1))) {
        live += 1024;
        if (!keep)
            drop("cuMipmappedArrayDestroy", cuMipmappedArrayDestroy(mipmapped), 1024);
    }
    if (done("cuMemAllocHost_v2", cuMemAllocHost_v2(&host, 11000)) && !keep)
        drop("cuMemFreeHost", cuMemFreeHost(host), 0);
}

static void registered_memory(void)
{
    static char memory[8192] __attribute__((aligned(4096)));

    if (done("cuMemHostRegister_v2", cuMemHostRegister_v2(memory, sizeof(memory), 0)))
        drop("cuMemHostUnregister", cuMemHostUnregister(memory), 0);
}

/* A handle lives while it is held or mapped; each step may be refused. */
static void mapped_memory(CUdeviceptr base)
{
    CUmemAllocationProp prop;
    CUmemGenericAllocationHandle handle;
    int held = 1, mapped;

    memset(&prop, 0, sizeof(prop));
    prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    prop.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    if (!done("cuMemCreate", cuMemCreate(&handle, unit, &prop, 0)))
        return;
    live += unit;
    mapped = cuMemMap(base, unit, 0, handle, 0) == CUDA_SUCCESS;
    printf("mapped %d\n", mapped);
    if (done("cuMemRelease", cuMemRelease(handle)))
        held = 0;
    if (mapped && cuMemUnmap(base, unit) == CUDA_SUCCESS)
        mapped = 0;
    printf("held %d, still mapped %d\n", held, mapped);
    if (!held && !mapped)
        live -= unit;
}

int main(void)
{
    CUmemAllocationProp prop;
    CUdeviceptr base = 0;
    cudaStream_t stream = NULL;

    memset(&prop, 0, sizeof(prop));
    prop.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    prop.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    done("cudaFree", cudaFree(NULL));
    printf("stream %d\n", cudaStreamCreate(&stream));
    printf("granularity %d\n", cuMemGetAllocationGranularity(&unit, &prop, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
    printf("reserve %d\n", cuMemAddressReserve(&base, ROUNDS * unit, 0, 0, 0));
    for (int round = 0; round < ROUNDS; round++) {
        runtime_memory(round % 2, stream);
        driver_memory(round % 2, stream);
        registered_memory();
        if (unit && base)
            mapped_memory(base + (unsigned long long)round * unit);
        printf("last %d\n", cudaGetLastError());
    }
    for (struct tally *t = tallies; t->api; t++)
        printf("tally %s %d %d\n", t->api, t->calls, t->refused);
    printf("live %llu\n", live);
    return 0;
}
