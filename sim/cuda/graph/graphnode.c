/*
 * Nodes of graphs: one description for all types, its parts, and the functions that add nodes and change
 * them. The functions of one type each are in graphtype.c.
 */
#include <stdlib.h>
#include <string.h>

#include "sim/cuda/graph/graph.h"

void sim_parts_drop(struct sim_parts *parts)
{
    sim_op_drop(parts->work);
    if (parts->ctx)
        sim_object_put(parts->ctx);
    if (parts->event)
        sim_object_put(parts->event);
    if (parts->child)
        sim_graph_end(parts->child);
    if (parts->memory)
        sim_graph_memory_put(parts->memory);
    if (parts->choice)
        sim_choice_end(parts->choice);
    *parts = (struct sim_parts){0};
}

/* The context of a node: the one it names, or the current one. */
static CUresult context_of(CUcontext handle, struct CUctx_st **ctx_p)
{
    struct CUctx_st *ctx;

    if (handle) {
        *ctx_p = sim_object_get(handle, SIM_CONTEXT);
        return *ctx_p ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT;
    }
    CUresult status = sim_context_current(&ctx);
    *ctx_p = status == CUDA_SUCCESS ? sim_object_ref(ctx) : NULL;
    return status;
}

static CUresult make_child(const CUDA_CHILD_GRAPH_NODE_PARAMS *params, struct sim_parts *parts)
{
    struct CUgraph_st *child = sim_object_get(params->graph, SIM_GRAPH);
    CUresult status = child && !child->owned ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;

    if (status == CUDA_SUCCESS && !child->has_choice &&
        params->ownership == CU_GRAPH_CHILD_GRAPH_OWNERSHIP_MOVE) {
        parts->child = child; /* the handle's own reference, which the parent has from now on */
    } else if (status == CUDA_SUCCESS && (child->has_memory || child->has_choice)) {
        status = CUDA_ERROR_NOT_SUPPORTED;
    } else if (status == CUDA_SUCCESS) {
        parts->child = sim_graph_copy(child);
        status = parts->child ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
    }
    if (parts->child)
        parts->child->owned = true;
    if (child)
        sim_object_put(child);
    return status;
}

static CUresult make_free(CUdeviceptr address, const struct CUgraph_st *graph, struct sim_parts *parts)
{
    struct sim_graph_memory *memory = sim_graph_memory_at(address);

    if (!memory || !sim_graph_memory_claim(memory, graph))
        return CUDA_ERROR_INVALID_VALUE;
    parts->memory = sim_graph_memory_ref(memory);
    return CUDA_SUCCESS;
}

static CUresult make_event(CUevent handle, struct sim_parts *parts)
{
    parts->event = sim_object_get(handle, SIM_EVENT);
    return parts->event ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

static CUresult make_kernel(const CUDA_KERNEL_NODE_PARAMS_v3 *in, struct sim_parts *parts)
{
    CUDA_KERNEL_NODE_PARAMS params;

    _Static_assert(sizeof *in == sizeof params, "the second and the third version are one");
    memcpy(&params, in, sizeof params);
    CUresult status = context_of(params.ctx, &parts->ctx);
    return status == CUDA_SUCCESS ? sim_kernel_work(&params, parts->ctx, &parts->work) : status;
}

static CUresult make_fill(const CUDA_MEMSET_NODE_PARAMS_v2 *in, struct sim_parts *parts)
{
    const CUDA_MEMSET_NODE_PARAMS params = {in->dst,         in->pitch, in->value,
                                            in->elementSize, in->width, in->height};
    CUresult status = context_of(in->ctx, &parts->ctx);

    return status == CUDA_SUCCESS ? sim_fill_work(&params, parts->ctx, &parts->work) : status;
}

static CUresult make_batch(const CUDA_BATCH_MEM_OP_NODE_PARAMS_v2 *in, struct sim_parts *parts)
{
    const CUDA_BATCH_MEM_OP_NODE_PARAMS params = {in->ctx, in->count, in->paramArray, in->flags};
    CUresult status = context_of(in->ctx, &parts->ctx);

    return status == CUDA_SUCCESS ? sim_batch_work(&params, &parts->work) : status;
}

static CUresult make_alloc(CUDA_MEM_ALLOC_NODE_PARAMS_v2 *in, const struct CUgraph_st *graph,
                           struct sim_parts *parts)
{
    CUDA_MEM_ALLOC_NODE_PARAMS params;

    _Static_assert(sizeof *in == sizeof params, "the first and the second version are one");
    memcpy(&params, in, sizeof params);
    CUresult status = sim_graph_memory_new(&params, graph, &parts->memory);
    if (status == CUDA_SUCCESS)
        in->dptr = sim_graph_memory_address(parts->memory);
    return status;
}

CUresult sim_parts_make(CUgraphNodeParams *params, struct CUgraph_st *graph, struct sim_parts *parts)
{
    CUresult status;

    *parts = (struct sim_parts){0};
    switch ((int)params->type) {
    case CU_GRAPH_NODE_TYPE_KERNEL:
        return make_kernel(&params->kernel, parts);
    case CU_GRAPH_NODE_TYPE_MEMCPY:
        if (params->memcpy.flags || params->memcpy.reserved)
            return CUDA_ERROR_INVALID_VALUE;
        status = context_of(params->memcpy.copyCtx, &parts->ctx);
        return status == CUDA_SUCCESS ? sim_copy_work(&params->memcpy.copyParams, parts->ctx, &parts->work)
                                      : status;
    case CU_GRAPH_NODE_TYPE_MEMSET:
        return make_fill(&params->memset, parts);
    case CU_GRAPH_NODE_TYPE_HOST:
        return sim_host_work(&(CUDA_HOST_NODE_PARAMS){params->host.fn, params->host.userData}, &parts->work);
    case CU_GRAPH_NODE_TYPE_GRAPH:
        return make_child(&params->graph, parts);
    case CU_GRAPH_NODE_TYPE_EMPTY:
        return CUDA_SUCCESS;
    case CU_GRAPH_NODE_TYPE_WAIT_EVENT:
        return make_event(params->eventWait.event, parts);
    case CU_GRAPH_NODE_TYPE_EVENT_RECORD:
        return make_event(params->eventRecord.event, parts);
    case CU_GRAPH_NODE_TYPE_MEM_ALLOC:
        return make_alloc(&params->alloc, graph, parts);
    case CU_GRAPH_NODE_TYPE_MEM_FREE:
        return make_free(params->free.dptr, graph, parts);
    case CU_GRAPH_NODE_TYPE_BATCH_MEM_OP:
        return make_batch(&params->memOp, parts);
    case CU_GRAPH_NODE_TYPE_CONDITIONAL:
        if (!graph)
            return CUDA_ERROR_NOT_SUPPORTED;
        status = context_of(params->conditional.ctx, &parts->ctx);
        return status == CUDA_SUCCESS ? sim_choice_make(&params->conditional, graph, &parts->choice) : status;
    case CU_GRAPH_NODE_TYPE_EXT_SEMAS_SIGNAL:
    case CU_GRAPH_NODE_TYPE_EXT_SEMAS_WAIT:
        return CUDA_ERROR_NOT_SUPPORTED;
    default:
        return CUDA_ERROR_INVALID_VALUE;
    }
}

static void read_kernel(const struct CUgraphNode_st *node, CUgraphNodeParams *params)
{
    CUDA_KERNEL_NODE_PARAMS plain;

    sim_kernel_params(node->work, &plain);
    plain.ctx = node->ctx;
    memcpy(&params->kernel, &plain, sizeof plain);
}

static void read_fill(const struct CUgraphNode_st *node, CUgraphNodeParams *params)
{
    CUDA_MEMSET_NODE_PARAMS plain;

    sim_fill_params(node->work, &plain);
    params->memset = (CUDA_MEMSET_NODE_PARAMS_v2){plain.dst,   plain.pitch,  plain.value, plain.elementSize,
                                                  plain.width, plain.height, node->ctx};
}

void sim_node_params(const struct CUgraphNode_st *node, CUgraphNodeParams *params)
{
    CUDA_HOST_NODE_PARAMS host;
    CUDA_BATCH_MEM_OP_NODE_PARAMS batch;
    CUDA_MEM_ALLOC_NODE_PARAMS memory;

    memset(params, 0, sizeof *params);
    params->type = node->type;
    switch ((int)node->type) {
    case CU_GRAPH_NODE_TYPE_KERNEL:
        read_kernel(node, params);
        break;
    case CU_GRAPH_NODE_TYPE_MEMCPY:
        params->memcpy.copyCtx = node->ctx;
        sim_copy_params(node->work, &params->memcpy.copyParams);
        break;
    case CU_GRAPH_NODE_TYPE_MEMSET:
        read_fill(node, params);
        break;
    case CU_GRAPH_NODE_TYPE_HOST:
        sim_host_params(node->work, &host);
        params->host = (CUDA_HOST_NODE_PARAMS_v2){host.fn, host.userData};
        break;
    case CU_GRAPH_NODE_TYPE_GRAPH:
        params->graph.graph = node->child;
        break;
    case CU_GRAPH_NODE_TYPE_WAIT_EVENT:
        params->eventWait.event = node->event;
        break;
    case CU_GRAPH_NODE_TYPE_EVENT_RECORD:
        params->eventRecord.event = node->event;
        break;
    case CU_GRAPH_NODE_TYPE_MEM_ALLOC:
        sim_graph_memory_params(node->memory, &memory);
        memcpy(&params->alloc, &memory, sizeof memory);
        break;
    case CU_GRAPH_NODE_TYPE_MEM_FREE:
        params->free.dptr = sim_graph_memory_address(node->memory);
        break;
    case CU_GRAPH_NODE_TYPE_BATCH_MEM_OP:
        sim_batch_params(node->work, &batch);
        params->memOp =
            (CUDA_BATCH_MEM_OP_NODE_PARAMS_v2){node->ctx, batch.count, batch.paramArray, batch.flags};
        break;
    case CU_GRAPH_NODE_TYPE_CONDITIONAL:
        sim_choice_params(node, &params->conditional);
        break;
    default:
        break;
    }
}

static void fill_node(struct CUgraphNode_st *node, struct sim_parts *parts)
{
    node->ctx = parts->ctx;
    node->event = parts->event;
    node->child = parts->child;
    node->memory = parts->memory;
    node->choice = parts->choice;
    node->graph->has_choice |= parts->choice != NULL;
    if (parts->memory || (parts->child && parts->child->has_memory))
        node->graph->has_memory = true;
}

/* Of a node that did not come about: what it had taken over is as before. */
static void give_back(struct sim_parts *parts, const CUgraphNodeParams *params,
                      const struct CUgraph_st *graph)
{
    if (params->type == CU_GRAPH_NODE_TYPE_MEM_FREE && parts->memory)
        sim_graph_memory_disclaim(parts->memory, graph);
    if (params->type == CU_GRAPH_NODE_TYPE_GRAPH &&
        params->graph.ownership == CU_GRAPH_CHILD_GRAPH_OWNERSHIP_MOVE && parts->child) {
        parts->child->owned = false;
        parts->child = NULL;
    }
    sim_parts_drop(parts);
}

/** Adds a node to a graph. The lock is held. */
CUresult sim_node_put(struct CUgraph_st *graph, const CUgraphNode *after, const CUgraphEdgeData *edges,
                      size_t count, CUgraphNodeParams *params, struct CUgraphNode_st **node_p)
{
    struct sim_parts parts;
    CUresult status = sim_parts_make(params, graph, &parts);

    if (status == CUDA_SUCCESS) {
        status = sim_node_add(graph, params->type, after, edges, count, parts.work, node_p);
        parts.work = NULL;
    }
    if (status == CUDA_SUCCESS)
        fill_node(*node_p, &parts);
    else
        give_back(&parts, params, graph);
    return status;
}

static bool is_blank(const CUgraphNodeParams *params)
{
    return !params->reserved0[0] && !params->reserved0[1] && !params->reserved0[2] && !params->reserved2;
}

CUresult sim_graph_add(CUgraphNode *node_p, CUgraph handle, const CUgraphNode *after,
                       const CUgraphEdgeData *edges, size_t count, CUgraphNodeParams *params)
{
    struct CUgraphNode_st *node;

    if (!node_p || !params || !is_blank(params))
        return CUDA_ERROR_INVALID_VALUE;
    sim_graph_lock();
    struct CUgraph_st *graph = sim_object_get(handle, SIM_GRAPH);
    CUresult status =
        graph ? sim_node_put(graph, after, edges, count, params, &node) : CUDA_ERROR_INVALID_VALUE;
    if (status == CUDA_SUCCESS)
        *node_p = node;
    if (graph)
        sim_object_put(graph);
    sim_graph_unlock();
    return status;
}

/** The parameters of a node, which has to be of this type. */
CUresult sim_node_get(CUgraphNode handle, CUgraphNodeType type, CUgraphNodeParams *params)
{
    sim_graph_lock();
    const struct CUgraphNode_st *node = sim_node_find(handle);
    bool good = node && node->type == type;
    if (good)
        sim_node_params(node, params);
    sim_graph_unlock();
    return good ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

/** Changes what a node is. Memory nodes stay what they are; so do child graphs. */
CUresult sim_node_set(CUgraphNode handle, CUgraphNodeParams *params)
{
    struct sim_parts parts;

    if (!params || !is_blank(params))
        return CUDA_ERROR_INVALID_VALUE;
    sim_graph_lock();
    struct CUgraphNode_st *node = sim_node_find(handle);
    CUresult status = node && node->type == params->type ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    if (status == CUDA_SUCCESS && (node->memory || node->child || node->choice))
        status = CUDA_ERROR_NOT_SUPPORTED;
    if (status == CUDA_SUCCESS)
        status = sim_parts_make(params, node->graph, &parts);
    if (status == CUDA_SUCCESS) {
        struct sim_parts old = {.work = node->work, .ctx = node->ctx, .event = node->event};
        node->work = parts.work;
        node->ctx = parts.ctx;
        node->event = parts.event;
        sim_parts_drop(&old);
    }
    sim_graph_unlock();
    return status;
}
