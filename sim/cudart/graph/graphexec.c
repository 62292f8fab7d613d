/*
 * Graphs that were made ready to run: making, launching, changing and ending them. Every call goes to the
 * driver.
 */
#include "sim/cudart/runtime.h"

_Static_assert(sizeof(cudaGraphInstantiateParams) == sizeof(CUDA_GRAPH_INSTANTIATE_PARAMS), "one layout");
_Static_assert(sizeof(cudaGraphExecUpdateResultInfo) == sizeof(CUgraphExecUpdateResultInfo), "one layout");

static cudaError_t instantiate(cudaGraphExec_t *exec, cudaGraph_t graph, unsigned long long flags)
{
    SIM_TRY(sim_context());
    SIM_TRY(SIM_DRV(cuGraphInstantiateWithFlags, exec, graph, flags));
    return cudaSuccess;
}

SIM_API cudaError_t cudaGraphInstantiate(cudaGraphExec_t *exec, cudaGraph_t graph, unsigned long long flags)
{
    return instantiate(exec, graph, flags);
}

SIM_API cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t *exec, cudaGraph_t graph,
                                                  unsigned long long flags)
{
    return instantiate(exec, graph, flags);
}

static cudaError_t instantiate_with(int half, cudaGraphExec_t *exec, cudaGraph_t graph,
                                    cudaGraphInstantiateParams *params)
{
    SIM_TRY(sim_context());
    SIM_TRY(
        SIM_DRV_OF(half, cuGraphInstantiateWithParams, exec, graph, (CUDA_GRAPH_INSTANTIATE_PARAMS *)params));
    return cudaSuccess;
}

SIM_TWINS(cudaGraphInstantiateWithParams, _ptsz, instantiate_with,
          (cudaGraphExec_t * exec, cudaGraph_t graph, cudaGraphInstantiateParams *params), exec, graph,
          params)

static cudaError_t launch(int half, cudaGraphExec_t exec, cudaStream_t stream)
{
    SIM_TRY(sim_context());
    SIM_TRY(SIM_DRV_OF(half, cuGraphLaunch, exec, stream));
    return cudaSuccess;
}

static cudaError_t upload(int half, cudaGraphExec_t exec, cudaStream_t stream)
{
    SIM_TRY(sim_context());
    SIM_TRY(SIM_DRV_OF(half, cuGraphUpload, exec, stream));
    return cudaSuccess;
}

SIM_TWINS(cudaGraphLaunch, _ptsz, launch, (cudaGraphExec_t exec, cudaStream_t stream), exec, stream)
SIM_TWINS(cudaGraphUpload, _ptsz, upload, (cudaGraphExec_t exec, cudaStream_t stream), exec, stream)

SIM_API cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec)
{
    SIM_TRY(sim_context());
    SIM_TRY(SIM_DRV(cuGraphExecDestroy, exec));
    return cudaSuccess;
}

SIM_API cudaError_t cudaGraphExecGetFlags(cudaGraphExec_t exec, unsigned long long *flags)
{
    cuuint64_t found;

    SIM_TRY(sim_context());
    SIM_CHECK(flags, cudaErrorInvalidValue);
    SIM_TRY(SIM_DRV(cuGraphExecGetFlags, exec, &found));
    *flags = found;
    return cudaSuccess;
}

SIM_API cudaError_t cudaGraphExecUpdate(cudaGraphExec_t exec, cudaGraph_t graph,
                                        cudaGraphExecUpdateResultInfo *info)
{
    SIM_TRY(sim_context());
    SIM_TRY(SIM_DRV(cuGraphExecUpdate_v2, exec, graph, (CUgraphExecUpdateResultInfo *)info));
    return cudaSuccess;
}

SIM_API cudaError_t cudaGraphNodeSetEnabled(cudaGraphExec_t exec, cudaGraphNode_t node, unsigned enabled)
{
    SIM_TRY(sim_context());
    SIM_TRY(SIM_DRV(cuGraphNodeSetEnabled, exec, node, enabled));
    return cudaSuccess;
}

SIM_API cudaError_t cudaGraphNodeGetEnabled(cudaGraphExec_t exec, cudaGraphNode_t node, unsigned *enabled)
{
    SIM_TRY(sim_context());
    SIM_TRY(SIM_DRV(cuGraphNodeGetEnabled, exec, node, enabled));
    return cudaSuccess;
}

SIM_API cudaError_t cudaGraphExecChildGraphNodeSetParams(cudaGraphExec_t exec, cudaGraphNode_t node,
                                                         cudaGraph_t child)
{
    SIM_TRY(sim_context());
    SIM_TRY(SIM_DRV(cuGraphExecChildGraphNodeSetParams, exec, node, child));
    return cudaSuccess;
}
