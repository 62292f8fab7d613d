/*
 * Nodes: what the runtime says of one, in the driver's terms and back. Kernels are known to programs by their
 * host stubs.
 */
#include <string.h>

#include "sim/cudart/runtime.h"

#define ADD_ARGUMENTS cudaGraphNode_t *node, cudaGraph_t graph, const cudaGraphNode_t *after, size_t count

/* --- kernels -------------------------------------------------------------------------------------------- */

cudaError_t sim_kernel_node(const struct cudaKernelNodeParams *in, CUDA_KERNEL_NODE_PARAMS *out)
{
    memset(out, 0, sizeof(*out));
    if (!in)
        return cudaErrorInvalidValue;
    out->gridDimX = in->gridDim.x;
    out->gridDimY = in->gridDim.y;
    out->gridDimZ = in->gridDim.z;
    out->blockDimX = in->blockDim.x;
    out->blockDimY = in->blockDim.y;
    out->blockDimZ = in->blockDim.z;
    out->sharedMemBytes = in->sharedMemBytes;
    out->kernelParams = in->kernelParams;
    out->extra = in->extra;
    return sim_kernel(in->func, &out->kern);
}

SIM_API cudaError_t cudaGraphAddKernelNode(ADD_ARGUMENTS, const struct cudaKernelNodeParams *in)
{
    CUDA_KERNEL_NODE_PARAMS params;

    SIM_TRY(sim_context());
    SIM_TRY(sim_kernel_node(in, &params));
    SIM_TRY(SIM_DRV(cuGraphAddKernelNode_v2, node, graph, after, count, &params));
    return cudaSuccess;
}

SIM_API cudaError_t cudaGraphKernelNodeGetParams(cudaGraphNode_t node, struct cudaKernelNodeParams *out)
{
    CUDA_KERNEL_NODE_PARAMS params;

    SIM_TRY(sim_context());
    SIM_CHECK(out, cudaErrorInvalidValue);
    SIM_TRY(SIM_DRV(cuGraphKernelNodeGetParams_v2, node, &params));
    memset(out, 0, sizeof(*out));
    out->func = params.kern ? (void *)(uintptr_t)sim_kernel_stub(params.kern) : (void *)params.func;
    out->gridDim = (dim3){params.gridDimX, params.gridDimY, params.gridDimZ};
    out->blockDim = (dim3){params.blockDimX, params.blockDimY, params.blockDimZ};
    out->sharedMemBytes = params.sharedMemBytes;
    out->kernelParams = params.kernelParams;
    return cudaSuccess;
}

SIM_API cudaError_t cudaGraphKernelNodeSetParams(cudaGraphNode_t node, const struct cudaKernelNodeParams *in)
{
    CUDA_KERNEL_NODE_PARAMS params;

    SIM_TRY(sim_context());
    SIM_TRY(sim_kernel_node(in, &params));
    SIM_TRY(SIM_DRV(cuGraphKernelNodeSetParams_v2, node, &params));
    return cudaSuccess;
}

SIM_API cudaError_t cudaGraphExecKernelNodeSetParams(cudaGraphExec_t exec, cudaGraphNode_t node,
                                                     const struct cudaKernelNodeParams *in)
{
    CUDA_KERNEL_NODE_PARAMS params;

    SIM_TRY(sim_context());
    SIM_TRY(sim_kernel_node(in, &params));
    SIM_TRY(SIM_DRV(cuGraphExecKernelNodeSetParams_v2, exec, node, &params));
    return cudaSuccess;
}

/* --- copies --------------------------------------------------------------------------------------------- */

static struct cudaMemcpy3DParms row_of(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind)
{
    struct cudaMemcpy3DParms parms;

    memset(&parms, 0, sizeof(parms));
    parms.srcPtr.ptr = (void *)(uintptr_t)from;
    parms.srcPtr.pitch = parms.dstPtr.pitch = bytes;
    parms.srcPtr.ysize = parms.dstPtr.ysize = 1;
    parms.dstPtr.ptr = to;
    parms.extent.width = bytes;
    parms.extent.height = parms.extent.depth = 1;
    parms.kind = kind;
    return parms;
}

static cudaError_t add_copy(ADD_ARGUMENTS, const struct cudaMemcpy3DParms *in)
{
    CUDA_MEMCPY3D copy;

    SIM_TRY(sim_context());
    SIM_CHECK(in, cudaErrorInvalidValue);
    SIM_TRY(sim_copy_box(in, &copy));
    SIM_TRY(SIM_DRV(cuGraphAddMemcpyNode, node, graph, after, count, &copy, NULL));
    return cudaSuccess;
}

SIM_API cudaError_t cudaGraphAddMemcpyNode(ADD_ARGUMENTS, const struct cudaMemcpy3DParms *in)
{
    return add_copy(node, graph, after, count, in);
}

SIM_API cudaError_t cudaGraphAddMemcpyNode1D(ADD_ARGUMENTS, void *to, const void *from, size_t bytes,
                                             enum cudaMemcpyKind kind)
{
    struct cudaMemcpy3DParms parms = row_of(to, from, bytes, kind);

    return add_copy(node, graph, after, count, &parms);
}

static cudaError_t set_copy(cudaGraphExec_t exec, cudaGraphNode_t node, const struct cudaMemcpy3DParms *in)
{
    CUDA_MEMCPY3D copy;

    SIM_TRY(sim_context());
    SIM_CHECK(in, cudaErrorInvalidValue);
    SIM_TRY(sim_copy_box(in, &copy));
    if (exec)
        SIM_TRY(SIM_DRV(cuGraphExecMemcpyNodeSetParams, exec, node, &copy, NULL));
    else
        SIM_TRY(SIM_DRV(cuGraphMemcpyNodeSetParams, node, &copy));
    return cudaSuccess;
}

SIM_API cudaError_t cudaGraphMemcpyNodeSetParams(cudaGraphNode_t node, const struct cudaMemcpy3DParms *in)
{
    return set_copy(NULL, node, in);
}

SIM_API cudaError_t cudaGraphMemcpyNodeSetParams1D(cudaGraphNode_t node, void *to, const void *from,
                                                   size_t bytes, enum cudaMemcpyKind kind)
{
    struct cudaMemcpy3DParms parms = row_of(to, from, bytes, kind);

    return set_copy(NULL, node, &parms);
}

SIM_API cudaError_t cudaGraphExecMemcpyNodeSetParams(cudaGraphExec_t exec, cudaGraphNode_t node,
                                                     const struct cudaMemcpy3DParms *in)
{
    SIM_CHECK(exec, cudaErrorInvalidValue);
    return set_copy(exec, node, in);
}

SIM_API cudaError_t cudaGraphExecMemcpyNodeSetParams1D(cudaGraphExec_t exec, cudaGraphNode_t node, void *to,
                                                       const void *from, size_t bytes,
                                                       enum cudaMemcpyKind kind)
{
    struct cudaMemcpy3DParms parms = row_of(to, from, bytes, kind);

    SIM_CHECK(exec, cudaErrorInvalidValue);
    return set_copy(exec, node, &parms);
}

SIM_API cudaError_t cudaGraphMemcpyNodeGetParams(cudaGraphNode_t node, struct cudaMemcpy3DParms *out)
{
    CUDA_MEMCPY3D copy;

    SIM_TRY(sim_context());
    SIM_CHECK(out, cudaErrorInvalidValue);
    SIM_TRY(SIM_DRV(cuGraphMemcpyNodeGetParams, node, &copy));
    SIM_TRY(sim_copy_unbox(&copy, out));
    return cudaSuccess;
}

/* --- fills and host functions --------------------------------------------------------------------------- */

_Static_assert(sizeof(struct cudaMemsetParams) == sizeof(CUDA_MEMSET_NODE_PARAMS), "fills have one layout");
_Static_assert(sizeof(struct cudaHostNodeParams) == sizeof(CUDA_HOST_NODE_PARAMS),
               "host functions have one layout");

SIM_API cudaError_t cudaGraphAddMemsetNode(ADD_ARGUMENTS, const struct cudaMemsetParams *in)
{
    SIM_TRY(sim_context());
    SIM_TRY(
        SIM_DRV(cuGraphAddMemsetNode, node, graph, after, count, (const CUDA_MEMSET_NODE_PARAMS *)in, NULL));
    return cudaSuccess;
}

SIM_API cudaError_t cudaGraphMemsetNodeGetParams(cudaGraphNode_t node, struct cudaMemsetParams *out)
{
    SIM_TRY(sim_context());
    SIM_TRY(SIM_DRV(cuGraphMemsetNodeGetParams, node, (CUDA_MEMSET_NODE_PARAMS *)out));
    return cudaSuccess;
}

SIM_API cudaError_t cudaGraphMemsetNodeSetParams(cudaGraphNode_t node, const struct cudaMemsetParams *in)
{
    SIM_TRY(sim_context());
    SIM_TRY(SIM_DRV(cuGraphMemsetNodeSetParams, node, (const CUDA_MEMSET_NODE_PARAMS *)in));
    return cudaSuccess;
}

SIM_API cudaError_t cudaGraphExecMemsetNodeSetParams(cudaGraphExec_t exec, cudaGraphNode_t node,
                                                     const struct cudaMemsetParams *in)
{
    SIM_TRY(sim_context());
    SIM_TRY(SIM_DRV(cuGraphExecMemsetNodeSetParams, exec, node, (const CUDA_MEMSET_NODE_PARAMS *)in, NULL));
    return cudaSuccess;
}

SIM_API cudaError_t cudaGraphAddHostNode(ADD_ARGUMENTS, const struct cudaHostNodeParams *in)
{
    SIM_TRY(sim_context());
    SIM_TRY(SIM_DRV(cuGraphAddHostNode, node, graph, after, count, (const CUDA_HOST_NODE_PARAMS *)in));
    return cudaSuccess;
}

SIM_API cudaError_t cudaGraphHostNodeGetParams(cudaGraphNode_t node, struct cudaHostNodeParams *out)
{
    SIM_TRY(sim_context());
    SIM_TRY(SIM_DRV(cuGraphHostNodeGetParams, node, (CUDA_HOST_NODE_PARAMS *)out));
    return cudaSuccess;
}

SIM_API cudaError_t cudaGraphHostNodeSetParams(cudaGraphNode_t node, const struct cudaHostNodeParams *in)
{
    SIM_TRY(sim_context());
    SIM_TRY(SIM_DRV(cuGraphHostNodeSetParams, node, (const CUDA_HOST_NODE_PARAMS *)in));
    return cudaSuccess;
}

SIM_API cudaError_t cudaGraphExecHostNodeSetParams(cudaGraphExec_t exec, cudaGraphNode_t node,
                                                   const struct cudaHostNodeParams *in)
{
    SIM_TRY(sim_context());
    SIM_TRY(SIM_DRV(cuGraphExecHostNodeSetParams, exec, node, (const CUDA_HOST_NODE_PARAMS *)in));
    return cudaSuccess;
}

/* --- order ---------------------------------------------------------------------------------------------- */

SIM_API cudaError_t cudaGraphAddEmptyNode(ADD_ARGUMENTS)
{
    SIM_TRY(sim_context());
    SIM_TRY(SIM_DRV(cuGraphAddEmptyNode, node, graph, after, count));
    return cudaSuccess;
}

SIM_API cudaError_t cudaGraphAddChildGraphNode(ADD_ARGUMENTS, cudaGraph_t child)
{
    SIM_TRY(sim_context());
    SIM_TRY(SIM_DRV(cuGraphAddChildGraphNode, node, graph, after, count, child));
    return cudaSuccess;
}

SIM_API cudaError_t cudaGraphChildGraphNodeGetGraph(cudaGraphNode_t node, cudaGraph_t *graph)
{
    SIM_TRY(sim_context());
    SIM_TRY(SIM_DRV(cuGraphChildGraphNodeGetGraph, node, graph));
    return cudaSuccess;
}

#define SIM_EVENT_NODE(word)                                                                                 \
    SIM_API cudaError_t cudaGraphAddEvent##word##Node(ADD_ARGUMENTS, cudaEvent_t event)                      \
    {                                                                                                        \
        SIM_TRY(sim_context());                                                                              \
        SIM_TRY(SIM_DRV(cuGraphAddEvent##word##Node, node, graph, after, count, event));                     \
        return cudaSuccess;                                                                                  \
    }                                                                                                        \
    SIM_API cudaError_t cudaGraphEvent##word##NodeGetEvent(cudaGraphNode_t node, cudaEvent_t *event)         \
    {                                                                                                        \
        SIM_TRY(sim_context());                                                                              \
        SIM_TRY(SIM_DRV(cuGraphEvent##word##NodeGetEvent, node, event));                                     \
        return cudaSuccess;                                                                                  \
    }                                                                                                        \
    SIM_API cudaError_t cudaGraphEvent##word##NodeSetEvent(cudaGraphNode_t node, cudaEvent_t event)          \
    {                                                                                                        \
        SIM_TRY(sim_context());                                                                              \
        SIM_TRY(SIM_DRV(cuGraphEvent##word##NodeSetEvent, node, event));                                     \
        return cudaSuccess;                                                                                  \
    }                                                                                                        \
    SIM_API cudaError_t cudaGraphExecEvent##word##NodeSetEvent(cudaGraphExec_t exec, cudaGraphNode_t node,   \
                                                               cudaEvent_t event)                            \
    {                                                                                                        \
        SIM_TRY(sim_context());                                                                              \
        SIM_TRY(SIM_DRV(cuGraphExecEvent##word##NodeSetEvent, exec, node, event));                           \
        return cudaSuccess;                                                                                  \
    }

SIM_EVENT_NODE(Record)
SIM_EVENT_NODE(Wait)
