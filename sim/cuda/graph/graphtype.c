/*
 * The functions that add, read and change nodes of one type each: all of them through the one description of
 * graphnode.c.
 */
#include <stdlib.h>
#include <string.h>

#include "sim/cuda/graph/graph.h"

#define ADD_ARGUMENTS CUgraphNode *node_p, CUgraph graph, const CUgraphNode *after, size_t count

static CUresult add(CUgraphNode *node_p, CUgraph graph, const CUgraphNode *after, size_t count,
                    CUgraphNodeParams params)
{
    return sim_graph_add(node_p, graph, after, NULL, count, &params);
}

static CUresult set(CUgraphNode node, CUgraphNodeParams params)
{
    return sim_node_set(node, &params);
}

static CUresult set_in(CUgraphExec exec, CUgraphNode node, CUgraphNodeParams params)
{
    return sim_exec_set(exec, node, &params);
}

/* --- kernels -------------------------------------------------------------------------------------------- */

static CUgraphNodeParams of_kernel(const CUDA_KERNEL_NODE_PARAMS *in)
{
    CUgraphNodeParams params = {.type = CU_GRAPH_NODE_TYPE_KERNEL};

    memcpy(&params.kernel, in, sizeof *in);
    return params;
}

static CUgraphNodeParams of_kernel_v1(const CUDA_KERNEL_NODE_PARAMS_v1 *in)
{
    CUDA_KERNEL_NODE_PARAMS wide = {0};

    memcpy(&wide, in, sizeof *in);
    return of_kernel(&wide);
}

SIM_API(cuGraphAddKernelNode)(ADD_ARGUMENTS, const CUDA_KERNEL_NODE_PARAMS_v1 *in)
{
    SIM_ENTER(cuGraphAddKernelNode);
    return in ? add(node_p, graph, after, count, of_kernel_v1(in)) : CUDA_ERROR_INVALID_VALUE;
}

SIM_API(cuGraphAddKernelNode_v2)(ADD_ARGUMENTS, const CUDA_KERNEL_NODE_PARAMS *in)
{
    SIM_ENTER(cuGraphAddKernelNode_v2);
    return in ? add(node_p, graph, after, count, of_kernel(in)) : CUDA_ERROR_INVALID_VALUE;
}

SIM_API(cuGraphKernelNodeGetParams_v2)(CUgraphNode node, CUDA_KERNEL_NODE_PARAMS *out)
{
    SIM_ENTER(cuGraphKernelNodeGetParams_v2);
    CUgraphNodeParams params;
    CUresult status = out ? sim_node_get(node, CU_GRAPH_NODE_TYPE_KERNEL, &params) : CUDA_ERROR_INVALID_VALUE;

    if (status == CUDA_SUCCESS)
        memcpy(out, &params.kernel, sizeof *out);
    return status;
}

SIM_API(cuGraphKernelNodeGetParams)(CUgraphNode node, CUDA_KERNEL_NODE_PARAMS_v1 *out)
{
    SIM_ENTER(cuGraphKernelNodeGetParams);
    CUgraphNodeParams params;
    CUresult status = out ? sim_node_get(node, CU_GRAPH_NODE_TYPE_KERNEL, &params) : CUDA_ERROR_INVALID_VALUE;

    if (status != CUDA_SUCCESS)
        return status;
    memcpy(out, &params.kernel, sizeof *out);
    if (!out->func)
        out->func = (CUfunction)params.kernel.kern;
    return CUDA_SUCCESS;
}

SIM_API(cuGraphKernelNodeSetParams)(CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS_v1 *in)
{
    SIM_ENTER(cuGraphKernelNodeSetParams);
    return in ? set(node, of_kernel_v1(in)) : CUDA_ERROR_INVALID_VALUE;
}

SIM_API(cuGraphKernelNodeSetParams_v2)(CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS *in)
{
    SIM_ENTER(cuGraphKernelNodeSetParams_v2);
    return in ? set(node, of_kernel(in)) : CUDA_ERROR_INVALID_VALUE;
}

SIM_API(cuGraphExecKernelNodeSetParams)
(CUgraphExec exec, CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS_v1 *in)
{
    SIM_ENTER(cuGraphExecKernelNodeSetParams);
    return in ? set_in(exec, node, of_kernel_v1(in)) : CUDA_ERROR_INVALID_VALUE;
}

SIM_API(cuGraphExecKernelNodeSetParams_v2)
(CUgraphExec exec, CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS *in)
{
    SIM_ENTER(cuGraphExecKernelNodeSetParams_v2);
    return in ? set_in(exec, node, of_kernel(in)) : CUDA_ERROR_INVALID_VALUE;
}

/* --- copies and fills ----------------------------------------------------------------------------------- */

static CUgraphNodeParams of_copy(const CUDA_MEMCPY3D *in, CUcontext ctx)
{
    CUgraphNodeParams params = {.type = CU_GRAPH_NODE_TYPE_MEMCPY};

    params.memcpy.copyCtx = ctx;
    params.memcpy.copyParams = *in;
    return params;
}

SIM_API(cuGraphAddMemcpyNode)(ADD_ARGUMENTS, const CUDA_MEMCPY3D *in, CUcontext ctx)
{
    SIM_ENTER(cuGraphAddMemcpyNode);
    return in ? add(node_p, graph, after, count, of_copy(in, ctx)) : CUDA_ERROR_INVALID_VALUE;
}

SIM_API(cuGraphMemcpyNodeGetParams)(CUgraphNode node, CUDA_MEMCPY3D *out)
{
    SIM_ENTER(cuGraphMemcpyNodeGetParams);
    CUgraphNodeParams params;
    CUresult status = out ? sim_node_get(node, CU_GRAPH_NODE_TYPE_MEMCPY, &params) : CUDA_ERROR_INVALID_VALUE;

    if (status == CUDA_SUCCESS)
        *out = params.memcpy.copyParams;
    return status;
}

/* A node stays in its context. */
SIM_API(cuGraphMemcpyNodeSetParams)(CUgraphNode node, const CUDA_MEMCPY3D *in)
{
    SIM_ENTER(cuGraphMemcpyNodeSetParams);
    CUgraphNodeParams params;
    CUresult status = in ? sim_node_get(node, CU_GRAPH_NODE_TYPE_MEMCPY, &params) : CUDA_ERROR_INVALID_VALUE;

    return status == CUDA_SUCCESS ? set(node, of_copy(in, params.memcpy.copyCtx)) : status;
}

SIM_API(cuGraphExecMemcpyNodeSetParams)
(CUgraphExec exec, CUgraphNode node, const CUDA_MEMCPY3D *in, CUcontext ctx)
{
    SIM_ENTER(cuGraphExecMemcpyNodeSetParams);
    return in ? set_in(exec, node, of_copy(in, ctx)) : CUDA_ERROR_INVALID_VALUE;
}

static CUgraphNodeParams of_fill(const CUDA_MEMSET_NODE_PARAMS *in, CUcontext ctx)
{
    CUgraphNodeParams params = {.type = CU_GRAPH_NODE_TYPE_MEMSET};

    params.memset = (CUDA_MEMSET_NODE_PARAMS_v2){in->dst,   in->pitch,  in->value, in->elementSize,
                                                 in->width, in->height, ctx};
    return params;
}

SIM_API(cuGraphAddMemsetNode)(ADD_ARGUMENTS, const CUDA_MEMSET_NODE_PARAMS *in, CUcontext ctx)
{
    SIM_ENTER(cuGraphAddMemsetNode);
    return in ? add(node_p, graph, after, count, of_fill(in, ctx)) : CUDA_ERROR_INVALID_VALUE;
}

SIM_API(cuGraphMemsetNodeGetParams)(CUgraphNode node, CUDA_MEMSET_NODE_PARAMS *out)
{
    SIM_ENTER(cuGraphMemsetNodeGetParams);
    CUgraphNodeParams params;
    CUresult status = out ? sim_node_get(node, CU_GRAPH_NODE_TYPE_MEMSET, &params) : CUDA_ERROR_INVALID_VALUE;

    if (status == CUDA_SUCCESS)
        *out =
            (CUDA_MEMSET_NODE_PARAMS){params.memset.dst,         params.memset.pitch, params.memset.value,
                                      params.memset.elementSize, params.memset.width, params.memset.height};
    return status;
}

SIM_API(cuGraphMemsetNodeSetParams)(CUgraphNode node, const CUDA_MEMSET_NODE_PARAMS *in)
{
    SIM_ENTER(cuGraphMemsetNodeSetParams);
    CUgraphNodeParams params;
    CUresult status = in ? sim_node_get(node, CU_GRAPH_NODE_TYPE_MEMSET, &params) : CUDA_ERROR_INVALID_VALUE;

    return status == CUDA_SUCCESS ? set(node, of_fill(in, params.memset.ctx)) : status;
}

SIM_API(cuGraphExecMemsetNodeSetParams)
(CUgraphExec exec, CUgraphNode node, const CUDA_MEMSET_NODE_PARAMS *in, CUcontext ctx)
{
    SIM_ENTER(cuGraphExecMemsetNodeSetParams);
    return in ? set_in(exec, node, of_fill(in, ctx)) : CUDA_ERROR_INVALID_VALUE;
}

/* --- host functions, words in memory -------------------------------------------------------------------- */

static CUgraphNodeParams of_host(const CUDA_HOST_NODE_PARAMS *in)
{
    CUgraphNodeParams params = {.type = CU_GRAPH_NODE_TYPE_HOST};

    params.host = (CUDA_HOST_NODE_PARAMS_v2){in->fn, in->userData};
    return params;
}

SIM_API(cuGraphAddHostNode)(ADD_ARGUMENTS, const CUDA_HOST_NODE_PARAMS *in)
{
    SIM_ENTER(cuGraphAddHostNode);
    return in ? add(node_p, graph, after, count, of_host(in)) : CUDA_ERROR_INVALID_VALUE;
}

SIM_API(cuGraphHostNodeGetParams)(CUgraphNode node, CUDA_HOST_NODE_PARAMS *out)
{
    SIM_ENTER(cuGraphHostNodeGetParams);
    CUgraphNodeParams params;
    CUresult status = out ? sim_node_get(node, CU_GRAPH_NODE_TYPE_HOST, &params) : CUDA_ERROR_INVALID_VALUE;

    if (status == CUDA_SUCCESS)
        *out = (CUDA_HOST_NODE_PARAMS){params.host.fn, params.host.userData};
    return status;
}

SIM_API(cuGraphHostNodeSetParams)(CUgraphNode node, const CUDA_HOST_NODE_PARAMS *in)
{
    SIM_ENTER(cuGraphHostNodeSetParams);
    return in ? set(node, of_host(in)) : CUDA_ERROR_INVALID_VALUE;
}

SIM_API(cuGraphExecHostNodeSetParams)(CUgraphExec exec, CUgraphNode node, const CUDA_HOST_NODE_PARAMS *in)
{
    SIM_ENTER(cuGraphExecHostNodeSetParams);
    return in ? set_in(exec, node, of_host(in)) : CUDA_ERROR_INVALID_VALUE;
}

static CUgraphNodeParams of_batch(const CUDA_BATCH_MEM_OP_NODE_PARAMS *in)
{
    CUgraphNodeParams params = {.type = CU_GRAPH_NODE_TYPE_BATCH_MEM_OP};

    params.memOp = (CUDA_BATCH_MEM_OP_NODE_PARAMS_v2){in->ctx, in->count, in->paramArray, in->flags};
    return params;
}

SIM_API(cuGraphAddBatchMemOpNode)(ADD_ARGUMENTS, const CUDA_BATCH_MEM_OP_NODE_PARAMS *in)
{
    SIM_ENTER(cuGraphAddBatchMemOpNode);
    return in ? add(node_p, graph, after, count, of_batch(in)) : CUDA_ERROR_INVALID_VALUE;
}

SIM_API(cuGraphBatchMemOpNodeGetParams)(CUgraphNode node, CUDA_BATCH_MEM_OP_NODE_PARAMS *out)
{
    SIM_ENTER(cuGraphBatchMemOpNodeGetParams);
    CUgraphNodeParams params;
    CUresult status =
        out ? sim_node_get(node, CU_GRAPH_NODE_TYPE_BATCH_MEM_OP, &params) : CUDA_ERROR_INVALID_VALUE;

    if (status == CUDA_SUCCESS)
        *out = (CUDA_BATCH_MEM_OP_NODE_PARAMS){params.memOp.ctx, params.memOp.count, params.memOp.paramArray,
                                               params.memOp.flags};
    return status;
}

SIM_API(cuGraphBatchMemOpNodeSetParams)(CUgraphNode node, const CUDA_BATCH_MEM_OP_NODE_PARAMS *in)
{
    SIM_ENTER(cuGraphBatchMemOpNodeSetParams);
    return in ? set(node, of_batch(in)) : CUDA_ERROR_INVALID_VALUE;
}

SIM_API(cuGraphExecBatchMemOpNodeSetParams)
(CUgraphExec exec, CUgraphNode node, const CUDA_BATCH_MEM_OP_NODE_PARAMS *in)
{
    SIM_ENTER(cuGraphExecBatchMemOpNodeSetParams);
    return in ? set_in(exec, node, of_batch(in)) : CUDA_ERROR_INVALID_VALUE;
}

/* --- order ---------------------------------------------------------------------------------------------- */

SIM_API(cuGraphAddEmptyNode)(ADD_ARGUMENTS)
{
    SIM_ENTER(cuGraphAddEmptyNode);
    return add(node_p, graph, after, count, (CUgraphNodeParams){.type = CU_GRAPH_NODE_TYPE_EMPTY});
}

static CUgraphNodeParams of_event(CUgraphNodeType type, CUevent event)
{
    CUgraphNodeParams params = {.type = type};

    if (type == CU_GRAPH_NODE_TYPE_EVENT_RECORD)
        params.eventRecord.event = event;
    else
        params.eventWait.event = event;
    return params;
}

static CUresult get_event(CUgraphNode node, CUgraphNodeType type, CUevent *event_p)
{
    CUgraphNodeParams params;
    CUresult status = event_p ? sim_node_get(node, type, &params) : CUDA_ERROR_INVALID_VALUE;

    if (status == CUDA_SUCCESS)
        *event_p =
            type == CU_GRAPH_NODE_TYPE_EVENT_RECORD ? params.eventRecord.event : params.eventWait.event;
    return status;
}

#define SIM_EVENT_NODE(word, type)                                                                           \
    SIM_API(cuGraphAddEvent##word##Node)(ADD_ARGUMENTS, CUevent event)                                       \
    {                                                                                                        \
        SIM_ENTER(cuGraphAddEvent##word##Node);                                                              \
        return add(node_p, graph, after, count, of_event(type, event));                                      \
    }                                                                                                        \
    SIM_API(cuGraphEvent##word##NodeGetEvent)(CUgraphNode node, CUevent * event_p)                           \
    {                                                                                                        \
        SIM_ENTER(cuGraphEvent##word##NodeGetEvent);                                                         \
        return get_event(node, type, event_p);                                                               \
    }                                                                                                        \
    SIM_API(cuGraphEvent##word##NodeSetEvent)(CUgraphNode node, CUevent event)                               \
    {                                                                                                        \
        SIM_ENTER(cuGraphEvent##word##NodeSetEvent);                                                         \
        return set(node, of_event(type, event));                                                             \
    }                                                                                                        \
    SIM_API(cuGraphExecEvent##word##NodeSetEvent)(CUgraphExec exec, CUgraphNode node, CUevent event)         \
    {                                                                                                        \
        SIM_ENTER(cuGraphExecEvent##word##NodeSetEvent);                                                     \
        return set_in(exec, node, of_event(type, event));                                                    \
    }

SIM_EVENT_NODE(Record, CU_GRAPH_NODE_TYPE_EVENT_RECORD)
SIM_EVENT_NODE(Wait, CU_GRAPH_NODE_TYPE_WAIT_EVENT)

/* --- child graphs --------------------------------------------------------------------------------------- */

SIM_API(cuGraphAddChildGraphNode)(ADD_ARGUMENTS, CUgraph child)
{
    SIM_ENTER(cuGraphAddChildGraphNode);
    CUgraphNodeParams params = {.type = CU_GRAPH_NODE_TYPE_GRAPH};

    params.graph.graph = child;
    return add(node_p, graph, after, count, params);
}

SIM_API(cuGraphChildGraphNodeGetGraph)(CUgraphNode node, CUgraph *graph_p)
{
    SIM_ENTER(cuGraphChildGraphNodeGetGraph);
    CUgraphNodeParams params;
    CUresult status =
        graph_p ? sim_node_get(node, CU_GRAPH_NODE_TYPE_GRAPH, &params) : CUDA_ERROR_INVALID_VALUE;

    if (status == CUDA_SUCCESS)
        *graph_p = params.graph.graph;
    return status;
}

/* --- any type ------------------------------------------------------------------------------------------- */

SIM_API(cuGraphAddNode)(ADD_ARGUMENTS, CUgraphNodeParams *params)
{
    SIM_ENTER(cuGraphAddNode);
    return sim_graph_add(node_p, graph, after, NULL, count, params);
}

SIM_API(cuGraphAddNode_v2)
(CUgraphNode *node_p, CUgraph graph, const CUgraphNode *after, const CUgraphEdgeData *edges, size_t count,
 CUgraphNodeParams *params)
{
    SIM_ENTER(cuGraphAddNode_v2);
    return sim_graph_add(node_p, graph, after, edges, count, params);
}

SIM_API(cuGraphNodeSetParams)(CUgraphNode node, CUgraphNodeParams *params)
{
    SIM_ENTER(cuGraphNodeSetParams);
    return sim_node_set(node, params);
}

SIM_API(cuGraphExecNodeSetParams)(CUgraphExec exec, CUgraphNode node, CUgraphNodeParams *params)
{
    SIM_ENTER(cuGraphExecNodeSetParams);
    return sim_exec_set(exec, node, params);
}
