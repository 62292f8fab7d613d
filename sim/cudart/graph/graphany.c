/*
 * Nodes of any type, by one structure, and the handles of conditions: what the runtime says in the driver's
 * terms. What the driver writes into the structure (an address, bodies) goes back to the program's.
 */
#include <string.h>

#include "sim/cudart/runtime.h"

_Static_assert(sizeof(struct cudaKernelNodeParamsV2) == sizeof(struct cudaKernelNodeParams) &&
                   sizeof(CUDA_KERNEL_NODE_PARAMS_v3) == sizeof(CUDA_KERNEL_NODE_PARAMS),
               "kernels have one layout");
_Static_assert(sizeof(struct cudaMemAllocNodeParamsV2) == sizeof(CUDA_MEM_ALLOC_NODE_PARAMS_v2),
               "allocations have one layout");
_Static_assert((int)cudaGraphNodeTypeMemFree == (int)CU_GRAPH_NODE_TYPE_MEM_FREE &&
                   (int)cudaGraphNodeTypeConditional == (int)CU_GRAPH_NODE_TYPE_CONDITIONAL,
               "types have one number");

static void fill_of(const struct cudaMemsetParamsV2 *in, CUDA_MEMSET_NODE_PARAMS_v2 *out)
{
    out->dst = sim_devptr(in->dst);
    out->pitch = in->pitch;
    out->value = in->value;
    out->elementSize = in->elementSize;
    out->width = in->width;
    out->height = in->height;
}

/* A program's structure whose spare words are not 0 is of another version. */
static bool is_clean(const struct cudaGraphNodeParams *in)
{
    return in->reserved0[0] == 0 && in->reserved0[1] == 0 && in->reserved0[2] == 0 && in->reserved2 == 0;
}

static cudaError_t to_driver(const struct cudaGraphNodeParams *in, CUgraphNodeParams *out)
{
    memset(out, 0, sizeof(*out));
    SIM_CHECK(in && is_clean(in), cudaErrorInvalidValue);
    out->type = (CUgraphNodeType)in->type;
    switch (in->type) {
    case cudaGraphNodeTypeKernel:
        return sim_kernel_node((const struct cudaKernelNodeParams *)&in->kernel,
                               (CUDA_KERNEL_NODE_PARAMS *)&out->kernel);
    case cudaGraphNodeTypeMemcpy:
        out->memcpy.flags = in->memcpy.flags;
        return sim_copy_box(&in->memcpy.copyParams, &out->memcpy.copyParams);
    case cudaGraphNodeTypeMemset:
        fill_of(&in->memset, &out->memset);
        return cudaSuccess;
    case cudaGraphNodeTypeHost:
        out->host.fn = in->host.fn;
        out->host.userData = in->host.userData;
        return cudaSuccess;
    case cudaGraphNodeTypeGraph:
        out->graph.graph = in->graph.graph;
        out->graph.ownership = (CUgraphChildGraphNodeOwnership)in->graph.ownership;
        return cudaSuccess;
    case cudaGraphNodeTypeEmpty:
        return cudaSuccess;
    case cudaGraphNodeTypeWaitEvent:
        out->eventWait.event = in->eventWait.event;
        return cudaSuccess;
    case cudaGraphNodeTypeEventRecord:
        out->eventRecord.event = in->eventRecord.event;
        return cudaSuccess;
    case cudaGraphNodeTypeMemAlloc:
        memcpy(&out->alloc, &in->alloc, sizeof(out->alloc));
        return cudaSuccess;
    case cudaGraphNodeTypeMemFree:
        out->free.dptr = sim_devptr(in->free.dptr);
        return cudaSuccess;
    case cudaGraphNodeTypeConditional:
        out->conditional.handle = in->conditional.handle;
        out->conditional.type = (CUgraphConditionalNodeType)in->conditional.type;
        out->conditional.size = in->conditional.size;
        return cudaSuccess;
    default:
        return cudaErrorInvalidValue;
    }
}

static void from_driver(const CUgraphNodeParams *in, struct cudaGraphNodeParams *out)
{
    if (out->type == cudaGraphNodeTypeMemAlloc)
        out->alloc.dptr = sim_pointer(in->alloc.dptr);
    else if (out->type == cudaGraphNodeTypeConditional)
        out->conditional.phGraph_out = in->conditional.phGraph_out;
}

static cudaError_t add(cudaGraphNode_t *node, cudaGraph_t graph, const cudaGraphNode_t *after,
                       const cudaGraphEdgeData *edges, size_t count, struct cudaGraphNodeParams *params)
{
    CUgraphNodeParams wanted;

    SIM_TRY(sim_context());
    SIM_TRY(to_driver(params, &wanted));
    SIM_TRY(SIM_DRV(cuGraphAddNode_v2, node, graph, after, (const CUgraphEdgeData *)edges, count, &wanted));
    from_driver(&wanted, params);
    return cudaSuccess;
}

#if SIM_CUDART == 12
SIM_API cudaError_t cudaGraphAddNode(cudaGraphNode_t *node, cudaGraph_t graph, const cudaGraphNode_t *after,
                                     size_t count, struct cudaGraphNodeParams *params)
{
    return add(node, graph, after, NULL, count, params);
}

SIM_API cudaError_t cudaGraphAddNode_v2(cudaGraphNode_t *node, cudaGraph_t graph,
                                        const cudaGraphNode_t *after, const cudaGraphEdgeData *edges,
                                        size_t count, struct cudaGraphNodeParams *params)
{
    return add(node, graph, after, edges, count, params);
}
#else
SIM_API cudaError_t cudaGraphAddNode(cudaGraphNode_t *node, cudaGraph_t graph, const cudaGraphNode_t *after,
                                     const cudaGraphEdgeData *edges, size_t count,
                                     struct cudaGraphNodeParams *params)
{
    return add(node, graph, after, edges, count, params);
}
#endif

SIM_API cudaError_t cudaGraphNodeSetParams(cudaGraphNode_t node, struct cudaGraphNodeParams *params)
{
    CUgraphNodeParams wanted;

    SIM_TRY(sim_context());
    SIM_TRY(to_driver(params, &wanted));
    SIM_TRY(SIM_DRV(cuGraphNodeSetParams, node, &wanted));
    return cudaSuccess;
}

SIM_API cudaError_t cudaGraphExecNodeSetParams(cudaGraphExec_t exec, cudaGraphNode_t node,
                                               struct cudaGraphNodeParams *params)
{
    CUgraphNodeParams wanted;

    SIM_TRY(sim_context());
    SIM_TRY(to_driver(params, &wanted));
    SIM_TRY(SIM_DRV(cuGraphExecNodeSetParams, exec, node, &wanted));
    return cudaSuccess;
}

/* Of the current context, which the driver takes for none that is named. */
SIM_API cudaError_t cudaGraphConditionalHandleCreate(cudaGraphConditionalHandle *handle, cudaGraph_t graph,
                                                     unsigned int value, unsigned int flags)
{
    CUgraphConditionalHandle made = 0;

    SIM_TRY(sim_context());
    SIM_CHECK(handle, cudaErrorInvalidValue);
    SIM_TRY(SIM_DRV(cuGraphConditionalHandleCreate, &made, graph, NULL, value, flags));
    *handle = made;
    return cudaSuccess;
}
