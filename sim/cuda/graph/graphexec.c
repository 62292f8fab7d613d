/*
 * Making graphs ready to run, and launching them.
 *
 * A launch puts copies of the nodes' work into queues: what forms a chain into the stream's own, what runs
 * beside it into lanes that the graph keeps, with tickets where one waits for another; the stream goes on
 * when all are over. So branches really run beside each other. A graph does not overlap with its own earlier
 * launch. The graphs' lock is not held while work is enqueued.
 */
#include <stdlib.h>
#include <string.h>

#include "sim/cuda/graph/graphexec.h"

void sim_step_drop(struct sim_step *step)
{
    sim_op_drop(step->work);
    if (step->ctx)
        sim_object_put(step->ctx);
    if (step->event)
        sim_object_put(step->event);
    if (step->memory)
        sim_graph_memory_put(step->memory);
    free(step->after);
    *step = (struct sim_step){0};
}

static void dispose_exec(void *object)
{
    struct CUgraphExec_st *exec = object;

    for (size_t i = 0; i < exec->count; i++)
        sim_step_drop(&exec->steps[i]);
    free(exec->steps);
    for (unsigned i = 0; i < exec->lane_count; i++)
        if (exec->lanes[i]) {
            sim_queue_close(exec->lanes[i]);
            sim_queue_put(exec->lanes[i]);
        }
    free(exec->lanes);
    sim_queue_put(exec->last.queue);
    sim_graph_lock();
    exec->graph->instances--;
    sim_graph_unlock();
    sim_object_put(exec->graph);
}

/* --- making --------------------------------------------------------------------------------------------- */

static struct sim_step *add_step(struct CUgraphExec_st *exec, const size_t *after, size_t count)
{
    if (exec->count == exec->room) {
        size_t room = exec->room ? 2 * exec->room : 16;
        struct sim_step *grown = realloc(exec->steps, room * sizeof *grown);
        if (!grown)
            return NULL;
        exec->steps = grown;
        exec->room = room;
    }
    struct sim_step *step = &exec->steps[exec->count];
    *step = (struct sim_step){.type = CU_GRAPH_NODE_TYPE_EMPTY};
    step->after = malloc((count + 1) * sizeof *step->after);
    if (!step->after)
        return NULL;
    if (count)
        memcpy(step->after, after, count * sizeof *after);
    step->after_count = count;
    exec->count++;
    return step;
}

static CUresult add_node(struct CUgraphExec_st *exec, const struct CUgraphNode_st *node, const size_t *after,
                         size_t count)
{
    struct sim_step *step = add_step(exec, after, count);

    if (!step)
        return CUDA_ERROR_OUT_OF_MEMORY;
    step->type = node->type;
    step->origin = node->id;
    step->work = node->work ? sim_op_copy(node->work) : NULL;
    step->ctx = node->ctx ? sim_object_ref(node->ctx) : NULL;
    step->event = node->event ? sim_object_ref(node->event) : NULL;
    step->memory = node->memory ? sim_graph_memory_ref(node->memory) : NULL;
    return step->work || !node->work ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

/* A child graph between two steps that are only an order; the second waits for all of the child's. */
static CUresult add_child(struct CUgraphExec_st *exec, const struct CUgraph_st *child)
{
    size_t first = exec->count - 1;
    CUresult status = sim_exec_flatten(exec, child, &first, 1);
    size_t count = exec->count - first;
    size_t *all = status == CUDA_SUCCESS ? malloc(count * sizeof *all) : NULL;

    if (!all)
        return status == CUDA_SUCCESS ? CUDA_ERROR_OUT_OF_MEMORY : status;
    for (size_t i = 0; i < count; i++)
        all[i] = first + i;
    status = add_step(exec, all, count) ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
    free(all);
    return status;
}

/* A node that waits for nothing in its graph waits for what the graph waits for. */
static CUresult flatten_node(struct CUgraphExec_st *exec, const struct CUgraphNode_st *node,
                             const size_t *ends, const size_t *after, size_t count)
{
    size_t *own = malloc((node->after_count + 1) * sizeof *own);

    if (!own)
        return CUDA_ERROR_OUT_OF_MEMORY;
    for (size_t i = 0; i < node->after_count; i++)
        own[i] = ends[node->after[i]->place];
    bool root = node->after_count == 0;
    const struct CUgraph_st *child = node->choice ? sim_choice_body(node->choice) : node->child;
    CUresult status = add_node(exec, node, root ? after : own, root ? count : node->after_count);
    free(own);
    return status == CUDA_SUCCESS && child ? add_child(exec, child) : status;
}

CUresult sim_exec_flatten(struct CUgraphExec_st *exec, const struct CUgraph_st *graph, const size_t *after,
                          size_t count)
{
    CUresult status;
    struct CUgraphNode_st **order = sim_graph_sort(graph, &status);
    size_t *ends = order ? malloc((graph->count + 1) * sizeof *ends) : NULL;

    if (order && !ends)
        status = CUDA_ERROR_OUT_OF_MEMORY;
    for (size_t i = 0; i < graph->count && status == CUDA_SUCCESS; i++) {
        status = flatten_node(exec, order[i], ends, after, count);
        ends[i] = exec->count - 1;
    }
    free(order);
    free(ends);
    return status;
}

static bool same_place(const struct sim_step *step, const struct sim_step *before)
{
    return !step->ctx || !before->ctx || step->ctx == before->ctx;
}

/* A step goes on in the lane of the first step that it waits for, if nothing else does; else it begins one.
 * What does not say where it runs runs where that did. */
static bool choose_lanes(struct CUgraphExec_st *exec)
{
    bool *continued = calloc(exec->count + 1, sizeof *continued);
    unsigned lanes = 1;
    bool stream_used = false;

    for (size_t i = 0; continued && i < exec->count; i++) {
        struct sim_step *step = &exec->steps[i];
        size_t j = 0;
        while (j < step->after_count &&
               (continued[step->after[j]] || !same_place(step, &exec->steps[step->after[j]])))
            j++;
        if (j < step->after_count) {
            const struct sim_step *before = &exec->steps[step->after[j]];
            continued[step->after[j]] = true;
            step->lane = before->lane;
            if (!step->ctx && before->ctx)
                step->ctx = sim_object_ref(before->ctx);
        } else if (!stream_used) {
            stream_used = true;
            step->lane = 0;
        } else {
            step->lane = lanes++;
        }
    }
    free(continued);
    exec->lanes = continued ? calloc(lanes, sizeof *exec->lanes) : NULL;
    exec->lane_count = exec->lanes ? lanes : 0;
    return exec->lanes != NULL;
}

/** Makes a graph ready to run. The lock is held. */
static CUresult instantiate(CUgraphExec *exec_p, struct CUgraph_st *graph, cuuint64_t flags)
{
    const cuuint64_t known = CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH |
                             CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD |
                             CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY;

    if ((flags & ~known) || graph->owned)
        return flags & CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH ? CUDA_ERROR_NOT_SUPPORTED
                                                                 : CUDA_ERROR_INVALID_VALUE;
    if ((graph->has_memory || graph->has_choice) && graph->instances)
        return CUDA_ERROR_NOT_SUPPORTED;
    if (sim_condition_unused(graph))
        return CUDA_ERROR_INVALID_VALUE;
    for (const struct CUgraphNode_st *node = graph->nodes; node; node = node->next)
        if (node->choice && !sim_choice_is_allowed(node->choice))
            return CUDA_ERROR_NOT_SUPPORTED;
    struct CUgraphExec_st *exec = sim_object_new(sizeof *exec, SIM_EXEC, dispose_exec);
    if (!exec)
        return CUDA_ERROR_OUT_OF_MEMORY;
    exec->graph = sim_object_ref(graph);
    exec->flags = flags;
    graph->instances++;
    CUresult status = sim_exec_flatten(exec, graph, NULL, 0);
    if (status == CUDA_SUCCESS && !choose_lanes(exec))
        status = CUDA_ERROR_OUT_OF_MEMORY;
    *exec_p = exec;
    return status;
}

static CUresult make(CUgraphExec *exec_p, CUgraph handle, cuuint64_t flags)
{
    struct CUctx_st *ctx;
    CUgraphExec exec = NULL;
    CUresult status = sim_context_current(&ctx);

    if (status != CUDA_SUCCESS || !exec_p)
        return status == CUDA_SUCCESS ? CUDA_ERROR_INVALID_VALUE : status;
    sim_graph_lock();
    struct CUgraph_st *graph = sim_object_get(handle, SIM_GRAPH);
    status = graph ? instantiate(&exec, graph, flags) : CUDA_ERROR_INVALID_VALUE;
    sim_graph_unlock();
    if (graph)
        sim_object_put(graph);
    if (status != CUDA_SUCCESS) {
        if (exec)
            sim_object_put(exec);
        return status;
    }
    sim_object_publish(exec);
    *exec_p = exec;
    return CUDA_SUCCESS;
}

SIM_API(cuGraphInstantiateWithFlags)(CUgraphExec *exec_p, CUgraph graph, unsigned long long flags)
{
    SIM_ENTER(cuGraphInstantiateWithFlags);
    return make(exec_p, graph, flags & ~(unsigned long long)CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD);
}

static CUresult make_logged(CUgraphExec *exec_p, CUgraph graph, CUgraphNode *error_p, char *log,
                            size_t log_bytes)
{
    if (error_p)
        *error_p = NULL;
    if (log && log_bytes)
        *log = '\0';
    return make(exec_p, graph, 0);
}

SIM_API(cuGraphInstantiate)
(CUgraphExec *exec_p, CUgraph graph, CUgraphNode *error_p, char *log, size_t log_bytes)
{
    SIM_ENTER(cuGraphInstantiate);
    return make_logged(exec_p, graph, error_p, log, log_bytes);
}

SIM_API(cuGraphInstantiate_v2)
(CUgraphExec *exec_p, CUgraph graph, CUgraphNode *error_p, char *log, size_t log_bytes)
{
    SIM_ENTER(cuGraphInstantiate_v2);
    return make_logged(exec_p, graph, error_p, log, log_bytes);
}

static CUresult make_with(CUgraphExec *exec_p, CUgraph graph, CUDA_GRAPH_INSTANTIATE_PARAMS *params,
                          bool per_thread)
{
    if (!params)
        return CUDA_ERROR_INVALID_VALUE;
    CUresult status = params->flags & CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD
                          ? sim_stream_check(params->hUploadStream, per_thread)
                          : CUDA_SUCCESS;
    if (status == CUDA_SUCCESS)
        status = make(exec_p, graph, params->flags);
    params->hErrNode_out = NULL;
    params->result_out =
        status == CUDA_SUCCESS ? CUDA_GRAPH_INSTANTIATE_SUCCESS : CUDA_GRAPH_INSTANTIATE_ERROR;
    return status;
}

SIM_PAIR(cuGraphInstantiateWithParams, ptsz,
         (CUgraphExec * exec_p, CUgraph graph, CUDA_GRAPH_INSTANTIATE_PARAMS *params),
         make_with(exec_p, graph, params, per_thread))

SIM_API(cuGraphExecDestroy)(CUgraphExec handle)
{
    SIM_ENTER(cuGraphExecDestroy);
    struct CUgraphExec_st *exec = sim_object_get(handle, SIM_EXEC);

    if (!exec)
        return CUDA_ERROR_INVALID_VALUE;
    if (sim_object_retire(exec))
        sim_object_put(exec);
    sim_object_put(exec);
    return CUDA_SUCCESS;
}

SIM_API(cuGraphExecGetFlags)(CUgraphExec handle, cuuint64_t *flags_p)
{
    SIM_ENTER(cuGraphExecGetFlags);
    struct CUgraphExec_st *exec = flags_p ? sim_object_get(handle, SIM_EXEC) : NULL;

    if (!exec)
        return CUDA_ERROR_INVALID_VALUE;
    *flags_p = exec->flags;
    sim_object_put(exec);
    return CUDA_SUCCESS;
}
