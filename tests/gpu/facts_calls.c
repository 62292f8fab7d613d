/*
 * facts_calls.c: questions 3, 4 and 9: calls that ask for nothing, stream-ordered calls on the edge, frees
 * that are wrong.
 */
#include "facts.h"

#include <string.h>

#define UNTOUCHED ((void *)1)

void facts_nothing(int argc, char **argv)
{
    void *p = UNTOUCHED;
    CUdeviceptr d = 1;
    size_t pitch = 0;
    int status;

    (void)argc;
    (void)argv;
    kit_begin();
    status = cudaMalloc(&p, 0);
    fact(cudaMalloc_zero, "%s", fact_status(status, p));
    status = (int)cuMemAlloc_v2(&d, 0);
    fact(cuMemAlloc_zero, "%s", fact_status(status, (void *)(uintptr_t)d));
    p = UNTOUCHED;
    status = cudaMallocManaged(&p, 0, cudaMemAttachGlobal);
    fact(cudaMallocManaged_zero, "%s", fact_status(status, p));
    p = UNTOUCHED;
    status = cudaMallocHost(&p, 0);
    fact(cudaMallocHost_zero, "%s", fact_status(status, p));
    fact(cudaMalloc_no_pointer, "status %d", cudaMalloc(NULL, 16));
    p = UNTOUCHED;
    status = cudaMallocPitch(&p, &pitch, 0, 4);
    fact(cudaMallocPitch_zero, "%s", fact_status(status, p));
}

/* --- 4 -------------------------------------------------------------------------------------------------- */

struct async_free {
    cudaStream_t stream;
    void *p;
    int status;
};

static void prepare_async(void *data)
{
    struct async_free *it = data;

    kit_must(cudaMallocAsync(&it->p, KIT_MIB, it->stream));
    kit_must(cudaStreamSynchronize(it->stream));
}

static void free_it(void *data)
{
    struct async_free *it = data;

    it->status = cudaFree(it->p);
}

static size_t free_bytes(void)
{
    size_t left = 0, total = 0;

    kit_must(cuMemGetInfo_v2(&left, &total));
    return left;
}

static void gives_back(cudaStream_t stream)
{
    void *p = NULL;
    size_t before = free_bytes();

    kit_must(cudaMalloc(&p, 256 * KIT_MIB));
    size_t taken = before - free_bytes();
    int status = cudaFreeAsync(p, stream);
    kit_must(cudaStreamSynchronize(stream));
    size_t after = free_bytes();
    if (status != 0)
        fact(cudaFreeAsync_of_cudaMalloc_gives_back, "- it is refused with %d", status);
    else
        fact(cudaFreeAsync_of_cudaMalloc_gives_back, "%s", after + taken / 2 > before ? "yes" : "no");
    if (status != 0)
        cudaFree(p);
}

void facts_async(int argc, char **argv)
{
    struct async_free it = {0};
    const struct kit_question question = {prepare_async, free_it, NULL, &it};
    void *p = NULL;
    CUdeviceptr d = 1;
    int status;

    (void)argc;
    (void)argv;
    kit_begin();
    kit_must(cudaStreamCreateWithFlags(&it.stream, cudaStreamNonBlocking));
    kit_must(cudaMalloc(&p, KIT_MIB));
    fact(cudaFreeAsync_of_cudaMalloc, "status %d", cudaFreeAsync(p, it.stream));
    p = UNTOUCHED;
    status = cudaMallocAsync(&p, 0, it.stream);
    fact(cudaMallocAsync_zero, "%s", fact_status(status, p));
    fact(cudaFreeAsync_null, "status %d", cudaFreeAsync(NULL, it.stream));
    status = (int)cuMemAllocAsync(&d, 0, it.stream);
    fact(cuMemAllocAsync_zero, "%s", fact_status(status, (void *)(uintptr_t)d));
    fact(cuMemFreeAsync_null, "status %d", (int)cuMemFreeAsync(0, it.stream));
    prepare_async(&it);
    free_it(&it);
    fact(cudaFree_of_cudaMallocAsync, "status %d", it.status);
    if (it.status == 0)
        fact(cudaFree_of_cudaMallocAsync_waits, "%s", kit_waits(it.stream, &question));
    else
        fact(cudaFree_of_cudaMallocAsync_waits, "- it is refused with %d", it.status);
    gives_back(it.stream);
}

/* --- 9 -------------------------------------------------------------------------------------------------- */

static void *get(size_t bytes)
{
    void *p = NULL;

    kit_must(cudaMalloc(&p, bytes));
    return p;
}

static CUdeviceptr map_by_handle(void)
{
    CUmemAllocationProp prop = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                .location = {CU_MEM_LOCATION_TYPE_DEVICE, 0}};
    CUmemAccessDesc access = {.location = prop.location, .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    CUmemGenericAllocationHandle handle;
    CUdeviceptr d = 0;
    size_t bytes = 0;

    kit_must(cuMemGetAllocationGranularity(&bytes, &prop, CU_MEM_ALLOC_GRANULARITY_RECOMMENDED));
    kit_must(cuMemCreate(&handle, bytes, &prop, 0));
    kit_must(cuMemAddressReserve(&d, bytes, 0, 0, 0));
    kit_must(cuMemMap(d, bytes, 0, handle, 0));
    kit_must(cuMemSetAccess(d, bytes, &access, 1));
    return d;
}

static void frees_of_device(void)
{
    char *p = get(3 * KIT_MIB), *pinned = NULL;
    int local = 0;

    fact(cudaFree_interior, "status %d", cudaFree(p + 512));
    fact(cuMemFree_interior, "status %d", (int)cuMemFree_v2((uintptr_t)p + 512));
    kit_must(cudaFree(p));
    fact(cudaFree_twice, "status %d", cudaFree(p));
    fact(cuMemFree_twice, "status %d", (int)cuMemFree_v2((uintptr_t)p));
    fact(cudaFree_of_stack, "status %d", cudaFree(&local));
    fact(cuMemFree_of_stack, "status %d", (int)cuMemFree_v2((uintptr_t)&local));
    kit_must(cudaMallocHost((void **)&pinned, KIT_MIB));
    int status = cudaFree(pinned);
    fact(cudaFree_of_pinned, "status %d", status);
    if (status != 0)
        kit_must(cudaFreeHost(pinned));
    p = get(KIT_MIB);
    status = cudaFreeHost(p);
    fact(cudaFreeHost_of_device, "status %d", status);
    if (status != 0)
        kit_must(cudaFree(p));
    fact(cuMemFree_of_mapped, "status %d", (int)cuMemFree_v2(map_by_handle()));
    fact(cudaFree_null, "status %d", cudaFree(NULL));
    fact(cuMemFree_null, "status %d", (int)cuMemFree_v2(0));
}

static void frees_in_order(void)
{
    cudaStream_t stream;
    char *p = NULL;

    kit_must(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    kit_must(cudaMallocAsync((void **)&p, KIT_MIB, stream));
    fact(cudaFreeAsync_interior, "status %d", cudaFreeAsync(p + 512, stream));
    kit_must(cudaFreeAsync(p, stream));
    fact(cudaFreeAsync_twice, "status %d", cudaFreeAsync(p, stream));
    fact(cudaFree_after_cudaFreeAsync, "status %d", cudaFree(p));
    kit_must(cudaStreamSynchronize(stream));
}

void facts_frees(int argc, char **argv)
{
    CUcontext other = NULL, own;
    CUdeviceptr d;

    (void)argc;
    (void)argv;
    own = kit_begin();
    frees_of_device();
    frees_in_order();
    cudaGetLastError();
    void *p = get(KIT_MIB);
    fact(wrong_free_sticks, "%s",
         cudaDeviceSynchronize() == cudaSuccess && cudaFree(p) == cudaSuccess ? "no" : "yes");
    kit_must(cuMemAlloc_v2(&d, KIT_MIB));
    if (cuCtxCreate_v2(&other, 0, 0) != CUDA_SUCCESS) {
        fact(cuMemFree_in_other_context, "- a second context cannot be made");
        return;
    }
    fact(cuMemFree_in_other_context, "status %d", (int)cuMemFree_v2(d));
    kit_must(cuCtxDestroy_v2(other));
    kit_must(cuCtxSetCurrent(own));
}
