/*
 * graph_memory.c - memory of allocation nodes: captured, or added in each of the three ways; launched or
 * never, freed inside or outside; trimmed. Prints "what value" lines for graph_memory.py; the last say what
 * the driver keeps for graphs on each device, and what it kept at most, for the report to be held against.
 *
 * The argument is how it ends: kept, trimmed, or reset.
 */
#include <stdio.h>
#include <string.h>

#include "tests/hip/as_cuda.h"
#include "vendor/abi/cuda_driver.h"
#include "vendor/abi/cuda_driver_fn.h"
#include "vendor/abi/cuda_graph.h"
#include "vendor/abi/cuda_graph_fn.h"
#include "vendor/abi/cuda_runtime.h"
#include "vendor/abi/cuda_runtime_fn.h"

#define MIB            ((size_t)1 << 20)
#define SAY(name, ...) printf("%s %d\n", name, (int)(__VA_ARGS__))

static cudaStream_t stream, other;
static cuuint64_t most;

static cuuint64_t reserved(int device)
{
    cuuint64_t bytes = 0;

    cuDeviceGetGraphMemAttribute(device, CU_GRAPH_MEM_ATTR_RESERVED_MEM_CURRENT, &bytes);
    return bytes;
}

static void note(void)
{
    most = reserved(0) > most ? reserved(0) : most;
}

/* Captured, and never launched: no memory is behind it. */
static void never_launched(void)
{
    cudaGraph_t graph = NULL;
    void *p = NULL;

    SAY("never.begin", cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    SAY("never.alloc", cudaMallocAsync(&p, 50 * MIB, stream));
    SAY("never.end", cudaStreamEndCapture(stream, &graph));
    SAY("never.free", cudaFreeAsync(p, stream) != 0);
    cudaStreamSynchronize(stream);
    SAY("never.destroy", cudaGraphDestroy(graph));
    note();
}

static cudaGraphExec_t captured(void **p)
{
    cudaGraph_t graph = NULL;
    cudaGraphExec_t exec = NULL;
    void *inside = NULL;

    SAY("captured.begin", cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    SAY("captured.inside", cudaMallocAsync(&inside, 20 * MIB, stream));
    SAY("captured.set", cudaMemsetAsync(inside, 1, 20 * MIB, stream));
    SAY("captured.free", cudaFreeAsync(inside, stream));
    /* a moment at which the driver may be asked */
    SAY("captured.wait_elsewhere", cudaStreamSynchronize(other));
    SAY("captured.kept", cudaMallocAsync(p, 6 * MIB, stream));
    SAY("captured.end", cudaStreamEndCapture(stream, &graph));
    SAY("captured.instantiate", cudaGraphInstantiateWithFlags(&exec, graph, 0));
    cudaGraphDestroy(graph);
    return exec;
}

static void launched(void)
{
    void *kept = NULL;
    cudaGraphExec_t exec = captured(&kept);

    for (int i = 0; i < 4; i++) {
        SAY("launched", cudaGraphLaunch(exec, stream));
        SAY("launched.wait", cudaStreamSynchronize(stream));
        note();
        SAY("launched.free", i % 2 ? cudaFree(kept) : cudaFreeAsync(kept, other));
        SAY("launched.wait_for_it", cudaDeviceSynchronize());
    }
    SAY("launched.destroy", cudaGraphExecDestroy(exec));
    note();
}

static CUDA_MEM_ALLOC_NODE_PARAMS request(size_t bytes, int device)
{
    CUDA_MEM_ALLOC_NODE_PARAMS params = {.bytesize = bytes};

    params.poolProps.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
    params.poolProps.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    params.poolProps.location.id = device;
    return params;
}

/* By each function that adds one; freed by nodes of the same graph. */
static void added(int device)
{
    CUDA_MEM_ALLOC_NODE_PARAMS params = request(30 * MIB, device);
    CUgraphNodeParams any = {.type = CU_GRAPH_NODE_TYPE_MEM_ALLOC},
                      empty = {.type = CU_GRAPH_NODE_TYPE_EMPTY};
    CUgraphNode nodes[6] = {NULL};
    CUgraph graph = NULL;
    CUgraphExec exec = NULL;

    cuGraphCreate(&graph, 0);
    SAY("added.node", cuGraphAddMemAllocNode(&nodes[0], graph, NULL, 0, &params));
    SAY("added.has_an_address", params.dptr != 0);
    SAY("added.free", cuGraphAddMemFreeNode(&nodes[1], graph, nodes, 1, params.dptr));
    params = request(10 * MIB, device);
    memcpy(&any.alloc, &params, sizeof params);
    SAY("added.any", cuGraphAddNode(&nodes[2], graph, NULL, 0, &any));
    SAY("added.any_has_an_address", any.alloc.dptr != 0);
    SAY("added.any_free", cuGraphAddMemFreeNode(&nodes[3], graph, &nodes[2], 1, any.alloc.dptr));
    SAY("added.empty", cuGraphAddNode(&nodes[4], graph, NULL, 0, &empty));
    any.alloc.dptr = 0;
#ifdef TEST_HIP /* which has no second version */
    SAY("added.any_v2", cuGraphAddNode(&nodes[4], graph, NULL, 0, &any));
#else
    SAY("added.any_v2", cuGraphAddNode_v2(&nodes[4], graph, NULL, NULL, 0, &any));
#endif
    SAY("added.any_v2_free", cuGraphAddMemFreeNode(&nodes[5], graph, &nodes[4], 1, any.alloc.dptr));
    SAY("added.nothing", cuGraphAddNode(&nodes[4], graph, NULL, 0, NULL) != 0);
    SAY("added.instantiate", cuGraphInstantiateWithFlags(&exec, graph, 0));
    SAY("added.launch", cuGraphLaunch(exec, (CUstream)stream));
    SAY("added.wait", cudaStreamSynchronize(stream));
    note();
    cuGraphExecDestroy(exec);
    cuGraphDestroy(graph);
    note();
}

int main(int argc, char **argv)
{
    const char *ends = argc > 1 ? argv[1] : "kept";
    void *p = NULL;

    cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
    cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking);
    never_launched();
    launched();
    added(0);
    added(1);
    SAY("beside", cudaMallocAsync(&p, MIB, stream)); /* lives at the end, so that both can be told apart */
    if (!strcmp(ends, "trimmed"))
        SAY("trim", cudaDeviceGraphMemTrim(0));
    if (!strcmp(ends, "reset"))
        SAY("reset", cudaDeviceReset());
    printf("reserved %llu\n", (unsigned long long)reserved(0));
    printf("reserved.other %llu\n", (unsigned long long)reserved(1));
    printf("most %llu\n", (unsigned long long)most);
    return 0;
}
