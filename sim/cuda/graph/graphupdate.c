/*
 * Changing graphs that were made ready to run: one node, or all of them after another graph of the same
 * shape.
 */
#include <stdlib.h>

#include "sim/cuda/graph/graphexec.h"

static struct sim_step *find_step(struct CUgraphExec_st *exec, CUgraphNode handle)
{
    const struct CUgraphNode_st *node = sim_node_find(handle);

    for (size_t i = 0; node && i < exec->count; i++)
        if (exec->steps[i].origin == node->id)
            return &exec->steps[i];
    return NULL;
}

static CUresult set_step(struct sim_step *step, CUgraphNodeParams *params)
{
    struct sim_parts parts;

    if (step->type != params->type)
        return CUDA_ERROR_INVALID_VALUE;
    if (step->memory || step->type == CU_GRAPH_NODE_TYPE_GRAPH ||
        step->type == CU_GRAPH_NODE_TYPE_CONDITIONAL)
        return CUDA_ERROR_NOT_SUPPORTED;
    CUresult status = sim_parts_make(params, NULL, &parts);
    if (status == CUDA_SUCCESS && parts.ctx && parts.ctx != step->ctx)
        status = CUDA_ERROR_INVALID_VALUE; /* a node stays in its context */
    if (status == CUDA_SUCCESS) {
        struct sim_op *work = step->work;
        struct CUevent_st *event = step->event;
        step->work = parts.work;
        step->event = parts.event;
        parts.work = work;
        parts.event = event;
    }
    sim_parts_drop(&parts);
    return status;
}

CUresult sim_exec_set(CUgraphExec handle, CUgraphNode node, CUgraphNodeParams *params)
{
    struct CUgraphExec_st *exec = params ? sim_object_get(handle, SIM_EXEC) : NULL;

    if (!exec)
        return CUDA_ERROR_INVALID_VALUE;
    sim_graph_lock();
    struct sim_step *step = find_step(exec, node);
    CUresult status = step ? set_step(step, params) : CUDA_ERROR_INVALID_VALUE;
    sim_graph_unlock();
    sim_object_put(exec);
    return status;
}

/* Only what does something by itself can be left out. */
static bool can_disable(const struct sim_step *step)
{
    return step && (step->type == CU_GRAPH_NODE_TYPE_KERNEL || step->type == CU_GRAPH_NODE_TYPE_MEMCPY ||
                    step->type == CU_GRAPH_NODE_TYPE_MEMSET);
}

SIM_API(cuGraphNodeSetEnabled)(CUgraphExec handle, CUgraphNode node, unsigned enabled)
{
    SIM_ENTER(cuGraphNodeSetEnabled);
    struct CUgraphExec_st *exec = sim_object_get(handle, SIM_EXEC);

    if (!exec)
        return CUDA_ERROR_INVALID_VALUE;
    sim_graph_lock();
    struct sim_step *step = find_step(exec, node);
    bool good = can_disable(step);
    if (good)
        step->disabled = !enabled;
    sim_graph_unlock();
    sim_object_put(exec);
    return good ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

SIM_API(cuGraphNodeGetEnabled)(CUgraphExec handle, CUgraphNode node, unsigned *enabled_p)
{
    SIM_ENTER(cuGraphNodeGetEnabled);
    struct CUgraphExec_st *exec = enabled_p ? sim_object_get(handle, SIM_EXEC) : NULL;

    if (!exec)
        return CUDA_ERROR_INVALID_VALUE;
    sim_graph_lock();
    struct sim_step *step = find_step(exec, node);
    bool good = can_disable(step);
    if (good)
        *enabled_p = !step->disabled;
    sim_graph_unlock();
    sim_object_put(exec);
    return good ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

/* --- the whole graph ------------------------------------------------------------------------------------ */

static CUgraphNode node_of(const struct CUgraph_st *graph, unsigned long long id)
{
    for (struct CUgraphNode_st *node = graph->nodes; node; node = node->next)
        if (node->id == id)
            return node;
    return NULL;
}

static CUgraphExecUpdateResult compare(const struct sim_step *step, const struct sim_step *other)
{
    if (step->type != other->type)
        return CU_GRAPH_EXEC_UPDATE_ERROR_NODE_TYPE_CHANGED;
    if (step->after_count != other->after_count)
        return CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED;
    for (size_t i = 0; i < step->after_count; i++)
        if (step->after[i] != other->after[i])
            return CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED;
    if (other->ctx && step->ctx != other->ctx)
        return step->type == CU_GRAPH_NODE_TYPE_KERNEL
                   ? CU_GRAPH_EXEC_UPDATE_ERROR_UNSUPPORTED_FUNCTION_CHANGE
                   : CU_GRAPH_EXEC_UPDATE_ERROR_PARAMETERS_CHANGED;
    if (step->memory || other->memory)
        return CU_GRAPH_EXEC_UPDATE_ERROR_NOT_SUPPORTED;
    return CU_GRAPH_EXEC_UPDATE_SUCCESS;
}

/* The graph is taken apart as it was at first; if each of its steps fits, they change places. */
static CUresult update_steps(struct CUgraphExec_st *exec, struct CUgraph_st *graph,
                             CUgraphExecUpdateResultInfo *info)
{
    struct CUgraphExec_st fresh = {.count = 0};
    CUresult status = sim_exec_flatten(&fresh, graph, NULL, 0);

    if (status == CUDA_SUCCESS && fresh.count != exec->count)
        info->result = CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED;
    for (size_t i = 0; status == CUDA_SUCCESS && !info->result && i < exec->count; i++) {
        info->result = compare(&exec->steps[i], &fresh.steps[i]);
        if (info->result)
            info->errorNode = node_of(graph, fresh.steps[i].origin);
    }
    for (size_t i = 0; status == CUDA_SUCCESS && !info->result && i < exec->count; i++) {
        struct sim_op *work = exec->steps[i].work;
        struct CUevent_st *event = exec->steps[i].event;
        exec->steps[i].work = fresh.steps[i].work;
        exec->steps[i].event = fresh.steps[i].event;
        fresh.steps[i].work = work;
        fresh.steps[i].event = event;
    }
    for (size_t i = 0; i < fresh.count; i++)
        sim_step_drop(&fresh.steps[i]);
    free(fresh.steps);
    if (status != CUDA_SUCCESS)
        info->result = CU_GRAPH_EXEC_UPDATE_ERROR;
    return status == CUDA_SUCCESS && info->result ? CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE : status;
}

static CUresult update(CUgraphExec handle, CUgraph graph_handle, CUgraphExecUpdateResultInfo *info)
{
    struct CUgraphExec_st *exec = sim_object_get(handle, SIM_EXEC);

    *info = (CUgraphExecUpdateResultInfo){0};
    if (!exec)
        return CUDA_ERROR_INVALID_VALUE;
    sim_graph_lock();
    struct CUgraph_st *graph = sim_object_get(graph_handle, SIM_GRAPH);
    CUresult status = graph && !graph->owned ? update_steps(exec, graph, info) : CUDA_ERROR_INVALID_VALUE;
    sim_graph_unlock();
    if (graph)
        sim_object_put(graph);
    sim_object_put(exec);
    return status;
}

SIM_API(cuGraphExecUpdate_v2)(CUgraphExec exec, CUgraph graph, CUgraphExecUpdateResultInfo *info)
{
    SIM_ENTER(cuGraphExecUpdate_v2);
    CUgraphExecUpdateResultInfo unwanted;

    return update(exec, graph, info ? info : &unwanted);
}

SIM_API(cuGraphExecUpdate)
(CUgraphExec exec, CUgraph graph, CUgraphNode *error_p, CUgraphExecUpdateResult *result_p)
{
    SIM_ENTER(cuGraphExecUpdate);
    CUgraphExecUpdateResultInfo info;
    CUresult status = update(exec, graph, &info);

    if (error_p)
        *error_p = info.errorNode;
    if (result_p)
        *result_p = info.result;
    return status;
}

/* A child's steps lie behind the one that begins it, up to the one that ends it. */
static CUresult replace_child(struct CUgraphExec_st *exec, struct sim_step *begin,
                              const struct CUgraph_st *child)
{
    size_t first = (size_t)(begin - exec->steps);
    struct CUgraphExec_st fresh = {.count = 0};
    CUresult status = begin->type == CU_GRAPH_NODE_TYPE_GRAPH ? sim_exec_flatten(&fresh, child, NULL, 0)
                                                              : CUDA_ERROR_INVALID_VALUE;

    for (size_t i = 0; i < fresh.count && status == CUDA_SUCCESS; i++) {
        const struct sim_step *step = &exec->steps[first + 1 + i];
        bool same = first + 1 + i < exec->count && !step->origin == !fresh.steps[i].origin &&
                    step->type == fresh.steps[i].type &&
                    (!fresh.steps[i].ctx || step->ctx == fresh.steps[i].ctx) && !fresh.steps[i].memory;
        status = same ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    }
    if (status == CUDA_SUCCESS &&
        (first + 1 + fresh.count >= exec->count || exec->steps[first + 1 + fresh.count].origin))
        status = CUDA_ERROR_INVALID_VALUE;
    for (size_t i = 0; i < fresh.count && status == CUDA_SUCCESS; i++) {
        struct sim_step *step = &exec->steps[first + 1 + i];
        struct sim_op *work = step->work;
        step->work = fresh.steps[i].work;
        fresh.steps[i].work = work;
    }
    for (size_t i = 0; i < fresh.count; i++)
        sim_step_drop(&fresh.steps[i]);
    free(fresh.steps);
    return status;
}

SIM_API(cuGraphExecChildGraphNodeSetParams)(CUgraphExec handle, CUgraphNode node, CUgraph child_handle)
{
    SIM_ENTER(cuGraphExecChildGraphNodeSetParams);
    struct CUgraphExec_st *exec = sim_object_get(handle, SIM_EXEC);

    if (!exec)
        return CUDA_ERROR_INVALID_VALUE;
    sim_graph_lock();
    struct CUgraph_st *child = sim_object_get(child_handle, SIM_GRAPH);
    struct sim_step *step = child ? find_step(exec, node) : NULL;
    CUresult status = step ? replace_child(exec, step, child) : CUDA_ERROR_INVALID_VALUE;
    sim_graph_unlock();
    if (child)
        sim_object_put(child);
    sim_object_put(exec);
    return status;
}
