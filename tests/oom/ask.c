/* ask.c - see ask.h. By the CUDA driver, in the context that is current. */
#include "tests/oom/ask.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "vendor/abi/cuda_driver_fn.h"
#include "vendor/abi/cuda_graph.h"
#include "vendor/abi/cuda_graph_fn.h"

int cudaMalloc(void **pointer, size_t bytes);
int cudaMallocAsync(void **pointer, size_t bytes, void *stream);

#define ROW_BYTES ((size_t)65536)
#define PAGE      ((size_t)2 << 20)
static const char code[] = ".version 7.0\n.target sm_70\n.address_size 64\n.visible .entry k(){ret;}\n";

static int ask_device(size_t bytes)
{
    void *block;

    return cudaMalloc(&block, bytes);
}

static int ask_async(size_t bytes)
{
    void *block;

    return cudaMallocAsync(&block, bytes, NULL);
}

static int ask_managed(size_t bytes)
{
    CUdeviceptr block;

    return (int)cuMemAllocManaged(&block, bytes, 1);
}

static int ask_array(size_t bytes)
{
    const CUDA_ARRAY_DESCRIPTOR what = {
        .Width = ROW_BYTES / 16, .Height = bytes / ROW_BYTES, .Format = CU_AD_FORMAT_FLOAT, .NumChannels = 4};
    CUarray array;

    return (int)cuArrayCreate_v2(&array, &what);
}

static const CUmemAllocationProp pages = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                          .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE}};

static int ask_handle(size_t bytes)
{
    CUmemGenericAllocationHandle handle;

    return (int)cuMemCreate(&handle, bytes, &pages, 0);
}

static int add_node(CUgraph graph, size_t bytes)
{
    CUDA_MEM_ALLOC_NODE_PARAMS what = {.poolProps = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                                                     .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE}},
                                       .bytesize = bytes};
    CUgraphNode node;

    return (int)cuGraphAddMemAllocNode(&node, graph, NULL, 0, &what);
}

static int ask_graph(size_t bytes)
{
    CUgraph graph;
    int status = (int)cuGraphCreate(&graph, 0);

    return status ? status : add_node(graph, bytes);
}

static CUgraph graph_of(size_t bytes)
{
    CUgraph graph;

    return cuGraphCreate(&graph, 0) || (bytes && add_node(graph, bytes)) ? NULL : graph;
}

static int ask_pinned(size_t bytes)
{
    void *block;

    return (int)cuMemHostAlloc(&block, bytes, 0);
}

static int ask_registered(size_t bytes)
{
    static void *host; /* registered to the end, and reachable */

    host = aligned_alloc(4096, PAGE);
    return (int)cuMemHostRegister_v2(host, bytes < PAGE ? bytes : PAGE, 0);
}

static int ask_addresses(size_t bytes)
{
    CUdeviceptr range;

    return (int)cuMemAddressReserve(&range, bytes, 0, 0, 0);
}

static int map(bool with_access)
{
    const CUmemAccessDesc access = {.location = {.type = CU_MEM_LOCATION_TYPE_DEVICE},
                                    .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    CUmemGenericAllocationHandle handle;
    CUdeviceptr range;
    int status;

    if (cuMemAddressReserve(&range, PAGE, 0, 0, 0) || cuMemCreate(&handle, PAGE, &pages, 0))
        return -1;
    status = (int)cuMemMap(range, PAGE, 0, handle, 0);
    return status || !with_access ? status : (int)cuMemSetAccess(range, PAGE, &access, 1);
}

static int ask_mapping(size_t bytes)
{
    (void)bytes;
    return map(false);
}

static int ask_access(size_t bytes)
{
    (void)bytes;
    return map(true);
}

static int ask_imported(size_t bytes)
{
    CUmemGenericAllocationHandle handle;

    (void)bytes;
    return (int)cuMemImportFromShareableHandle(&handle, NULL, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
}

static int ask_pool(size_t bytes)
{
    const CUmemPoolProps what = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                                 .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE}};
    CUmemoryPool pool;

    (void)bytes;
    return (int)cuMemPoolCreate(&pool, &what);
}

static int ask_context(size_t bytes)
{
    CUcontext context;

    (void)bytes;
    return (int)cuCtxCreate_v2(&context, 0, 0);
}

static int ask_code(size_t bytes)
{
    CUmodule module;

    (void)bytes;
    return (int)cuModuleLoadData(&module, code);
}

static int ask_stream(size_t bytes)
{
    CUstream stream;

    (void)bytes;
    return (int)cuStreamCreate(&stream, 0);
}

static int ask_event(size_t bytes)
{
    CUevent event;

    (void)bytes;
    return (int)cuEventCreate(&event, 0);
}

static int ask_copy(size_t bytes)
{
    CUdeviceptr block;
    int status = (int)cuMemAlloc_v2(&block, PAGE);

    (void)bytes;
    return status ? status : (int)cuMemcpyDtoD_v2(block, block + PAGE / 2, PAGE / 2);
}

static int ask_copy_host(size_t bytes)
{
    static char host[4096];
    CUdeviceptr block;
    int status = (int)cuMemAlloc_v2(&block, PAGE);

    (void)bytes;
    return status ? status : (int)cuMemcpyHtoDAsync_v2(block, host, sizeof(host), NULL);
}

static int ask_copy_fill(size_t bytes)
{
    CUdeviceptr block;
    int status = (int)cuMemAlloc_v2(&block, PAGE);

    (void)bytes;
    return status ? status : (int)cuMemsetD8Async(block, 1, PAGE, NULL);
}

static int ask_stream_flags(size_t bytes)
{
    CUstream stream;
    unsigned flags;
    int status = (int)cuStreamCreate(&stream, 0);

    (void)bytes;
    return status ? status : (int)cuStreamGetFlags(stream, &flags);
}

static int ask_stream_priority(size_t bytes)
{
    CUstream stream;
    int status = (int)cuStreamCreate(&stream, 0), priority;

    (void)bytes;
    return status ? status : (int)cuStreamGetPriority(stream, &priority);
}

static int ask_launch(size_t bytes)
{
    CUmodule module;
    CUfunction kernel;

    (void)bytes;
    if (cuModuleLoadData(&module, code) || cuModuleGetFunction(&kernel, module, "k"))
        return -1;
    return (int)cuLaunchKernel(kernel, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, NULL);
}

static int ask_exec(size_t bytes)
{
    CUgraphExec exec;
    CUgraph graph;

    if (!(graph = graph_of(bytes)) || cuGraphInstantiateWithFlags(&exec, graph, 0))
        return -1;
    return (int)cuGraphLaunch(exec, NULL);
}

int ask_for(const char *kind, size_t bytes)
{
    static const struct {
        const char *name;
        int (*ask)(size_t);
    } kinds[] = {{"device", ask_device},
                 {"async", ask_async},
                 {"managed", ask_managed},
                 {"array", ask_array},
                 {"handle", ask_handle},
                 {"graph", ask_graph},
                 {"pinned", ask_pinned},
                 {"registered", ask_registered},
                 {"imported", ask_imported},
                 {"addresses", ask_addresses},
                 {"mapping", ask_mapping},
                 {"access", ask_access},
                 {"pool", ask_pool},
                 {"context", ask_context},
                 {"code", ask_code},
                 {"stream", ask_stream},
                 {"event", ask_event},
                 {"launch", ask_launch},
                 {"copy", ask_copy},
                 {"copy-host", ask_copy_host},
                 {"copy-fill", ask_copy_fill},
                 {"stream-flags", ask_stream_flags},
                 {"stream-priority", ask_stream_priority},
                 {"graph-launch", ask_exec}};

    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
        if (!strcmp(kind, kinds[i].name))
            return kinds[i].ask(bytes);
    return -1;
}
