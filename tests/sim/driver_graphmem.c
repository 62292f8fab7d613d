/* The simulated driver: memory that graphs allocate and free. */
#include <stdlib.h>

#include "driver.h"

static CUstream a, b;

static cuuint64_t figure(CUgraphMem_attribute attribute)
{
    cuuint64_t value = 99;

    must(cuDeviceGetGraphMemAttribute(0, attribute, &value));
    return value;
}

static CUDA_MEM_ALLOC_NODE_PARAMS wish(size_t bytes)
{
    CUDA_MEM_ALLOC_NODE_PARAMS params = {0};

    params.poolProps.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
    params.poolProps.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    params.bytesize = bytes;
    return params;
}

static size_t free_bytes(void)
{
    size_t free_p, total;

    must(cuMemGetInfo_v2(&free_p, &total));
    return free_p;
}

static void inside(void)
{
    CUDA_MEM_ALLOC_NODE_PARAMS params = wish(4 * MIB), read;
    CUDA_MEMSET_NODE_PARAMS set;
    CUgraph graph, clone;
    CUgraphExec exec, second;
    CUgraphNode alloc, fill, free_node;
    CUdeviceptr address, base;
    CUcontext ctx;
    size_t before = free_bytes(), range;

    must(cuCtxGetCurrent(&ctx));
    must(cuGraphCreate(&graph, 0));
    answers(cuGraphAddMemAllocNode(&alloc, graph, NULL, 0, &params), CUDA_SUCCESS);
    ok(params.dptr != 0, "a node's address is known at once");
    is_u64(free_bytes(), before, "and costs nothing yet");
    answers(cuMemGetAddressRange_v2(&base, &range, params.dptr + 5), CUDA_ERROR_NOT_FOUND);
    set = (CUDA_MEMSET_NODE_PARAMS){params.dptr, 0, 1, 1, 4 * MIB, 1};
    must(cuGraphAddMemsetNode(&fill, graph, &alloc, 1, &set, ctx));
    answers(cuGraphAddMemFreeNode(&free_node, graph, &fill, 1, params.dptr + 512), CUDA_ERROR_INVALID_VALUE);
    answers(cuGraphAddMemFreeNode(&free_node, graph, &fill, 1, params.dptr), CUDA_SUCCESS);
    answers(cuGraphAddMemFreeNode(&free_node, graph, &fill, 1, params.dptr), CUDA_ERROR_INVALID_VALUE);
    answers(cuGraphMemAllocNodeGetParams(alloc, &read), CUDA_SUCCESS);
    ok(read.dptr == params.dptr && read.bytesize == 4 * MIB, "a node tells what it allocates");
    answers(cuGraphMemFreeNodeGetParams(free_node, &address), CUDA_SUCCESS);
    ok(address == params.dptr, "and what it frees");
    answers(cuGraphClone(&clone, graph), CUDA_ERROR_NOT_SUPPORTED);
    answers(cuGraphDestroyNode(fill), CUDA_ERROR_NOT_SUPPORTED);
    answers(cuGraphInstantiateWithFlags(&exec, graph, 0), CUDA_SUCCESS);
    answers(cuGraphInstantiateWithFlags(&second, graph, 0), CUDA_ERROR_NOT_SUPPORTED);
    answers(cuGraphLaunch(exec, a), CUDA_SUCCESS);
    answers(cuGraphLaunch(exec, b), CUDA_SUCCESS);
    answers(cuGraphLaunch(exec, a), CUDA_SUCCESS);
    must(cuStreamSynchronize(b));
    must(cuStreamSynchronize(a));
    is_u64(figure(CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT), 32 * MIB, "it belongs to a graph that was launched");
    is_u64(figure(CU_GRAPH_MEM_ATTR_USED_MEM_HIGH), 32 * MIB, "and so it did at most");
    is_u64(figure(CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT), 32 * MIB,
           "the device keeps it for the next launch");
    is_u64(free_bytes(), before - 32 * MIB, "where others do not find it");
    answers(cuDeviceGraphMemTrim(0), CUDA_SUCCESS);
    is_u64(figure(CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT), 0, "until it is trimmed");
    is_u64(free_bytes(), before, "then all is as before");
    cuuint64_t zero = 0;
    answers(cuDeviceSetGraphMemAttribute(0, CU_GRAPH_MEM_ATTR_USED_MEM_HIGH, &zero), CUDA_SUCCESS);
    is_u64(figure(CU_GRAPH_MEM_ATTR_USED_MEM_HIGH), 0, "a high-water mark is set back to what is current");
    answers(cuDeviceSetGraphMemAttribute(0, CU_GRAPH_MEM_ATTR_USED_MEM_CURRENT, &zero),
            CUDA_ERROR_INVALID_VALUE);
    must(cuGraphExecDestroy(exec));
    answers(cuGraphInstantiateWithFlags(&exec, graph, 0), CUDA_SUCCESS);
    must(cuGraphExecDestroy(exec));
    must(cuGraphDestroy(graph));
    answers(cuMemGetAddressRange_v2(&base, &range, params.dptr), CUDA_ERROR_NOT_FOUND);
}

static void outside(void)
{
    CUdeviceptr p = 0, q;
    CUgraph graph, freeing;
    CUgraphExec exec, freeing_exec;
    CUgraphNode node;
    char byte = 0;
    size_t count = 4;
    CUgraphNode nodes[4];
    CUgraphNodeType type;

    must(cuStreamBeginCapture_v2(a, CU_STREAM_CAPTURE_MODE_GLOBAL));
    answers(cuMemAllocAsync(&p, 100, a), CUDA_SUCCESS);
    answers(cuMemsetD8Async(p, 7, 100, a), CUDA_SUCCESS);
    must(cuStreamEndCapture(a, &graph));
    must(cuGraphGetNodes(graph, nodes, &count));
    must(cuGraphNodeGetType(nodes[0], &type));
    ok(count == 2 && type == CU_GRAPH_NODE_TYPE_MEM_ALLOC, "a captured cuMemAllocAsync is a node");
    must(cuGraphInstantiateWithFlags(&exec, graph, 0));
    answers(cuMemFreeAsync(p, a), CUDA_ERROR_INVALID_VALUE);
    answers(cuGraphLaunch(exec, a), CUDA_SUCCESS);
    answers(cuGraphLaunch(exec, a), CUDA_ERROR_INVALID_VALUE);
    answers(cuMemcpyDtoHAsync_v2(&byte, p, 1, a), CUDA_SUCCESS);
    must(cuStreamSynchronize(a));
    is_int(byte, 7, "the stream uses what the graph allocated");
    answers(cuMemFreeAsync(p, a), CUDA_SUCCESS);
    answers(cuMemFreeAsync(p, a), CUDA_ERROR_INVALID_VALUE);
    answers(cuGraphLaunch(exec, a), CUDA_SUCCESS);
    must(cuStreamSynchronize(a));
    answers(cuMemFree_v2(p), CUDA_SUCCESS);
    answers(cuMemFree_v2(p), CUDA_ERROR_INVALID_VALUE);
    is_u64(figure(CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT), 32 * MIB, "both ways free it");

    must(cuStreamBeginCapture_v2(b, CU_STREAM_CAPTURE_MODE_GLOBAL));
    answers(cuMemFreeAsync(p, b), CUDA_SUCCESS);
    must(cuStreamEndCapture(b, &freeing));
    must(cuGraphInstantiateWithFlags(&freeing_exec, freeing, 0));
    answers(cuGraphLaunch(freeing_exec, a), CUDA_ERROR_INVALID_VALUE);
    must(cuGraphLaunch(exec, a));
    answers(cuGraphLaunch(freeing_exec, a), CUDA_SUCCESS);
    answers(cuGraphLaunch(exec, a), CUDA_SUCCESS);
    must(cuStreamSynchronize(a));
    is_u64(figure(CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT), 32 * MIB, "another graph frees it");
    must(cuGraphExecDestroy(freeing_exec));
    must(cuGraphDestroy(freeing));
    must(cuGraphExecDestroy(exec));
    must(cuGraphDestroy(graph));
    byte = 0;
    answers(cuMemcpyDtoH_v2(&byte, p, 1), CUDA_SUCCESS);
    is_int(byte, 7, "a graph that ends does not free it");
    answers(cuMemFree_v2(p), CUDA_SUCCESS);

    must(cuMemAllocAsync(&q, 64, a));
    must(cuStreamBeginCapture_v2(a, CU_STREAM_CAPTURE_MODE_RELAXED));
    answers(cuMemFreeAsync(q, a), CUDA_ERROR_INVALID_VALUE);
    must(cuStreamEndCapture(a, &graph));
    must(cuGraphDestroy(graph));
    must(cuMemFree_v2(q));
    must(cuGraphCreate(&graph, 0));
    answers(cuGraphAddMemFreeNode(&node, graph, NULL, 0, 0x1000), CUDA_ERROR_INVALID_VALUE);
    must(cuGraphDestroy(graph));
    must(cuDeviceGraphMemTrim(0));
    is_u64(figure(CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT), 0, "nothing is kept");
}

static void freed_at_launch(void)
{
    CUDA_MEM_ALLOC_NODE_PARAMS params = wish(MIB);
    CUgraph graph;
    CUgraphExec exec;
    CUgraphNode node;

    must(cuGraphCreate(&graph, 0));
    must(cuGraphAddMemAllocNode(&node, graph, NULL, 0, &params));
    must(cuGraphInstantiateWithFlags(&exec, graph, CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH));
    for (int i = 0; i < 3; i++)
        answers(cuGraphLaunch(exec, a), CUDA_SUCCESS);
    must(cuStreamSynchronize(a));
    is_u64(figure(CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT), 32 * MIB,
           "each launch frees what the last one left");
    must(cuMemFree_v2(params.dptr));
    must(cuGraphExecDestroy(exec));
    must(cuGraphDestroy(graph));
}

static void too_much(void)
{
    CUDA_MEM_ALLOC_NODE_PARAMS params = wish(40 * MIB), more = wish(40 * MIB), absurd = wish(1UL << 40);
    CUgraph graph;
    CUgraphExec exec;
    CUgraphNode node;

    must(cuDeviceGraphMemTrim(0));
    size_t before = free_bytes();
    must(cuGraphCreate(&graph, 0));
    answers(cuGraphAddMemAllocNode(&node, graph, NULL, 0, &absurd), CUDA_ERROR_OUT_OF_MEMORY);
    answers(cuGraphAddMemAllocNode(&node, graph, NULL, 0, &(CUDA_MEM_ALLOC_NODE_PARAMS){.bytesize = 4}),
            CUDA_ERROR_INVALID_VALUE);
    must(cuGraphAddMemAllocNode(&node, graph, NULL, 0, &params));
    must(cuGraphAddMemAllocNode(&node, graph, &node, 1, &more));
    must(cuGraphInstantiateWithFlags(&exec, graph, 0));
    answers(cuGraphLaunch(exec, a), CUDA_ERROR_OUT_OF_MEMORY);
    must(cuStreamSynchronize(a));
    must(cuDeviceGraphMemTrim(0));
    is_u64(figure(CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT), 0, "a launch that cannot have all takes nothing");
    must(cuDeviceGraphMemTrim(0));
    ok(free_bytes() >= before, "and keeps nothing");
    must(cuGraphExecDestroy(exec));
    must(cuGraphDestroy(graph));
}

/* The last: it breaks the context. */
static void touched_when_gone(void)
{
    CUDA_MEM_ALLOC_NODE_PARAMS params = wish(MIB);
    CUgraph graph;
    CUgraphExec exec;
    CUgraphNode node;

    must(cuGraphCreate(&graph, 0));
    must(cuGraphAddMemAllocNode(&node, graph, NULL, 0, &params));
    must(cuGraphInstantiateWithFlags(&exec, graph, 0));
    must(cuGraphLaunch(exec, a));
    must(cuMemFreeAsync(params.dptr, a));
    answers(cuMemsetD8Async(params.dptr, 1, 64, a), CUDA_SUCCESS);
    answers(cuStreamSynchronize(a), CUDA_ERROR_ILLEGAL_ADDRESS);
    answers(cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
}

int main(void)
{
    setenv("MEMSIM_MEMORY", "64M", 1);
    plan(0);
    begin();
    must(cuStreamCreate(&a, CU_STREAM_NON_BLOCKING));
    must(cuStreamCreate(&b, CU_STREAM_NON_BLOCKING));
    inside();
    outside();
    freed_at_launch();
    too_much();
    touched_when_gone();
    return done();
}
