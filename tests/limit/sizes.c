/*
 * sizes.c - programs that size themselves by what a device has, or take it in their own way: for sizes.py,
 * which sets MEMSHIM_LIMIT on a larger device. Each prints "what value" lines of its own. With a second word
 * it makes its context first, and waits for a line.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/hip/as_cuda.h"
#include "vendor/abi/cuda_driver_fn.h"
#include "vendor/abi/cuda_runtime.h"
#include "vendor/abi/cuda_runtime_fn.h"
#include "vendor/abi/cuda_graph.h"
#include "vendor/abi/cuda_graph_fn.h"
#include "vendor/abi/nvml.h"

#define MIB ((size_t)1 << 20)
#define GIB ((size_t)1 << 30)

static const CUmemAllocationProp pages = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                          .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE}};
static const CUmemAccessDesc access = {.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE},
                                       .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};

static void say(const char *what, long long value)
{
    printf("%s %lld\n", what, value);
}

/* Memory in the order of a stream that is the host's. */
static int host_pool(void)
{
    const CUmemPoolProps props = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                                  .location = {.type = CU_MEM_LOCATION_TYPE_HOST}};
    CUmemoryPool pool;
    CUdeviceptr block;
    int status = (int)cuMemPoolCreate(&pool, &props);

    return status ? status : (int)cuMemAllocFromPoolAsync(&block, 64 * MIB, pool, NULL);
}

/* One request after the other of a gibibyte, in each of the ways that there are. */
static void ways(void)
{
    const CUDA_ARRAY_DESCRIPTOR flat = {4096, GIB / 65536, CU_AD_FORMAT_FLOAT, 4};
    CUmemGenericAllocationHandle handles[3];
    CUdeviceptr block;
    CUarray array;
    void *ordered;

    cudaFree(NULL);
    say("alloc_2g", cuMemAlloc_v2(&block, 2 * GIB));
    say("create_1", cuMemCreate(&handles[0], GIB, &pages, 0));
    say("create_2", cuMemCreate(&handles[1], GIB, &pages, 0));
    say("create_3", cuMemCreate(&handles[2], GIB, &pages, 0));
    say("managed", cuMemAllocManaged(&block, GIB, 1));
    say("array", cuArrayCreate_v2(&array, &flat));
    say("ordered", cudaMallocAsync(&ordered, GIB, NULL));
    say("alloc", cuMemAlloc_v2(&block, GIB));
    say("host_pool", host_pool());
    say("release", cuMemRelease(handles[0]));
    say("array_again", cuArrayCreate_v2(&array, &flat));
}

/* PyTorch's expandable segments: more addresses than there is memory, and pages behind them as they are
 * needed; where there is none, what is idle is unmapped and it is tried again. */
static void expandable(void)
{
    enum { PAGES = 64, PAGE_MIB = 20 };
    CUmemGenericAllocationHandle handles[PAGES];
    size_t left = 0, total = 0, page = PAGE_MIB * MIB;
    CUdeviceptr range = 0;
    int mapped = 0, status = 0, more = 0;

    cudaFree(NULL);
    cudaMemGetInfo(&left, &total);
    say("reserve", cuMemAddressReserve(&range, total + total / 8 / (2 * MIB) * (2 * MIB), 0, 0, 0));
    while (mapped < PAGES && (status = (int)cuMemCreate(&handles[mapped], page, &pages, 0)) == 0) {
        cuMemMap(range + (size_t)mapped * page, page, 0, handles[mapped], 0);
        cuMemSetAccess(range + (size_t)mapped * page, page, &access, 1);
        mapped++;
    }
    say("mapped_mib", mapped * PAGE_MIB);
    say("refused", status);
    for (int i = mapped - 5; i < mapped; i++) {
        cuMemUnmap(range + (size_t)i * page, page);
        cuMemRelease(handles[i]);
    }
    while (mapped - 5 + more < PAGES && cuMemCreate(&handles[mapped - 5 + more], page, &pages, 0) == 0)
        more++;
    say("again", more);
}

/* vLLM's allocator of cumem: a handle for each block, given back while the engine sleeps. The handle goes
 * first, and its mapping keeps the memory. */
static void sleeper(void)
{
    CUmemGenericAllocationHandle handle;
    size_t bytes = 800 * MIB;
    CUdeviceptr range = 0;
    void *other = NULL;

    cudaFree(NULL);
    say("reserve", cuMemAddressReserve(&range, bytes, 0, 0, 0));
    say("create", cuMemCreate(&handle, bytes, &pages, 0));
    say("map", cuMemMap(range, bytes, 0, handle, 0));
    say("access", cuMemSetAccess(range, bytes, &access, 1));
    say("release_mapped", cuMemRelease(handle));
    say("other", cudaMalloc(&other, 500 * MIB));
    say("unmap", cuMemUnmap(range, bytes));
    say("other_asleep", cudaMalloc(&other, 500 * MIB));
    say("wake_refused", cuMemCreate(&handle, bytes, &pages, 0));
    say("free", cudaFree(other));
    say("wake", cuMemCreate(&handle, bytes, &pages, 0));
    say("map_again", cuMemMap(range, bytes, 0, handle, 0));
}

/* JAX: three quarters of what the device has, in one block at the start. */
static void preallocates(void)
{
    size_t left = 0, total = 0;
    CUdeviceptr block = 0;
    CUcontext context;

    cuInit(0);
    cuDevicePrimaryCtxRetain(&context, 0);
    cuCtxSetCurrent(context);
    say("info", cuMemGetInfo_v2(&left, &total));
    say("total_mib", (long long)(total / MIB));
    say("left_mib", (long long)(left / MIB));
    say("block", cuMemAlloc_v2(&block, total / 4 * 3));
}

/* Nine tenths of what is free, as TensorFlow and servers do, and the rest in small pieces. */
static void nine_tenths(void)
{
    size_t left = 0, total = 0;
    void *block = NULL;
    int count = 0;

    cudaMemGetInfo(&left, &total);
    say("total_mib", (long long)(total / MIB));
    say("left_mib", (long long)(left / MIB));
    say("block", cudaMalloc(&block, left / 10 * 9));
    cudaMemGetInfo(&left, &total);
    while (cudaMalloc(&block, 2 * MIB) == cudaSuccess)
        count++;
    say("beyond_mib", 2LL * count - (long long)(left / MIB));
    cudaMemGetInfo(&left, &total);
    say("left_at_last_mib", (long long)(left / MIB));
}

/* A graph that allocates, and frees itself what it has allocated: the device keeps the memory for the next
 * launch. */
static void graphs(void)
{
    CUDA_MEM_ALLOC_NODE_PARAMS what = {.poolProps = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                                                     .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE}},
                                       .bytesize = 512 * MIB};
    size_t left = 0, total = 0;
    CUgraphNode node, end;
    CUgraphExec exec;
    CUgraph graph;
    void *block;

    say("block", cudaMalloc(&block, 600 * MIB));
    cuGraphCreate(&graph, 0);
    say("node", cuGraphAddMemAllocNode(&node, graph, NULL, 0, &what));
    cuGraphAddMemFreeNode(&end, graph, &node, 1, what.dptr);
    say("make", cuGraphInstantiateWithFlags(&exec, graph, 0));
    say("refused", cuGraphLaunch(exec, NULL));
    say("refused_last", cudaGetLastError());
    say("free", cudaFree(block));
    say("launch", cuGraphLaunch(exec, NULL));
    cudaMemGetInfo(&left, &total);
    say("left_mib", (long long)(left / MIB));
    say("beside", cudaMalloc(&block, 600 * MIB));
    say("again", cuGraphLaunch(exec, NULL));
    say("wait", cudaDeviceSynchronize());
    say("destroy", cuGraphExecDestroy(exec) + cuGraphDestroy(graph));
    say("trim", cuDeviceGraphMemTrim(0));
    say("block_again", cudaMalloc(&block, 600 * MIB));
}

#ifndef TEST_HIP
static void say_card(void *library, const char *when)
{
    __typeof__(&nvmlDeviceGetHandleByIndex_v2) find =
        (__typeof__(find))(uintptr_t)dlsym(library, "nvmlDeviceGetHandleByIndex_v2");
    __typeof__(&nvmlDeviceGetMemoryInfo) ask =
        (__typeof__(ask))(uintptr_t)dlsym(library, "nvmlDeviceGetMemoryInfo");
    __typeof__(&nvmlDeviceGetMemoryInfo_v2) ask_more =
        (__typeof__(ask_more))(uintptr_t)dlsym(library, "nvmlDeviceGetMemoryInfo_v2");
    nvmlMemory_v2_t two = {.version = nvmlMemory_v2};
    nvmlMemory_t one = {0};
    nvmlDevice_t device;

    if (find(0, &device) || ask(device, &one) || ask_more(device, &two))
        return;
    printf("%s_total_mib %llu\n%s_free_mib %llu\n%s_used_mib %llu\n%s_sum_mib %llu\n", when, one.total / MIB,
           when, two.free / MIB, when, one.used / MIB, when, (two.used + two.free + two.reserved) / MIB);
}

/* NVML is asked before there is a context and again with memory taken; the totals of properties once. */
static void cards(void)
{
    void *library = dlopen("libnvidia-ml.so.1", RTLD_NOW), *block = NULL;
    __typeof__(&nvmlInit_v2) begin =
        library ? (__typeof__(begin))(uintptr_t)dlsym(library, "nvmlInit_v2") : NULL;
    static struct cudaDeviceProp properties;
    size_t total = 0;

    if (!begin || begin())
        return;
    say_card(library, "first");
    say("block", cudaMalloc(&block, 100 * MIB));
    say_card(library, "then");
    cudaGetDeviceProperties(&properties, 0);
    cuDeviceTotalMem_v2(&total, 0);
    say("properties_mib", (long long)(properties.totalGlobalMem / MIB));
    say("device_mib", (long long)(total / MIB));
}
#endif

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*play)(void);
    } programs[] = {{"ways", ways},
                    {"expandable", expandable},
                    {"sleeper", sleeper},
                    {"preallocates", preallocates},
                    {"nine_tenths", nine_tenths},
#ifndef TEST_HIP
                    {"cards", cards},
#endif
                    {"graphs", graphs}};

    for (unsigned i = 0; i < sizeof(programs) / sizeof(programs[0]); i++) {
        if (argc >= 2 && !strcmp(argv[1], programs[i].name)) {
            if (argc == 3) {
                cudaFree(NULL);
                say("context", 0);
                fflush(stdout);
                getchar();
            }
            programs[i].play();
            return 0;
        }
    }
    return 99;
}
