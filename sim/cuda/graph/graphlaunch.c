/*
 * Launching graphs: see graphexec.c. A launch into a captured stream becomes a child of the graph that is
 * captured.
 */
#include <stdlib.h>

#include "sim/cuda/graph/graphexec.h"

struct launch {
    struct CUgraphExec_st *exec;
    struct sim_queue *queue;
    struct sim_ticket *done; /* for each step, whose queue is not referenced */
    bool *entered;           /* for each lane, whether it has work of this launch */
    uint64_t start;          /* what the stream had before */
};

static struct sim_queue *lane_queue(const struct launch *launch, unsigned lane, struct CUctx_st *ctx)
{
    struct sim_queue **own = &launch->exec->lanes[lane];

    if (!lane && (!ctx || ctx == launch->queue->ctx))
        return launch->queue;
    if (!*own)
        *own = sim_queue_new(ctx ? ctx : launch->queue->ctx, false, false);
    return *own;
}

/* Adds what a step waits for that its own queue does not order. */
static bool add_tickets(const struct launch *launch, const struct sim_step *step, struct sim_queue *queue,
                        struct sim_op *op)
{
    bool first = !launch->entered[step->lane];

    for (size_t i = 0; i < step->after_count; i++) {
        const struct sim_ticket *before = &launch->done[step->after[i]];
        if (before->queue != queue && !sim_op_after(op, before->queue, before->seq))
            return false;
    }
    launch->entered[step->lane] = true;
    if (first && queue != launch->queue && !sim_op_after(op, launch->queue, launch->start))
        return false;
    return !first || !launch->exec->last.queue || launch->exec->last.queue == queue ||
           sim_op_after(op, launch->exec->last.queue, launch->exec->last.seq);
}

static struct sim_op *step_work(const struct sim_step *step)
{
    if (step->memory)
        return sim_graph_memory_op(step->memory, step->type == CU_GRAPH_NODE_TYPE_MEM_ALLOC);
    if (!step->work || step->disabled)
        return sim_op_new(sizeof(struct sim_op), NULL);
    return sim_op_copy(step->work);
}

static CUresult push_step(const struct launch *launch, size_t place)
{
    const struct sim_step *step = &launch->exec->steps[place];
    struct sim_queue *queue = lane_queue(launch, step->lane, step->ctx);
    struct sim_op *op = queue ? step_work(step) : NULL;
    CUresult status = op && add_tickets(launch, step, queue, op) ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;

    if (status == CUDA_SUCCESS && step->event && step->type == CU_GRAPH_NODE_TYPE_WAIT_EVENT)
        status = sim_event_add_wait(step->event, op);
    if (status != CUDA_SUCCESS) {
        sim_op_drop(op);
        return status;
    }
    launch->done[place] = (struct sim_ticket){queue, sim_queue_push(queue, op)};
    if (step->event && step->type == CU_GRAPH_NODE_TYPE_EVENT_RECORD) {
        status = sim_event_record(step->event, queue, NULL, 0);
        launch->done[place].seq = sim_queue_position(queue);
    }
    return status;
}

/* The stream goes on when every lane is over. */
static CUresult push_end(const struct launch *launch)
{
    struct CUgraphExec_st *exec = launch->exec;
    struct sim_op *op = sim_op_new(sizeof *op, NULL);
    bool done = op != NULL;

    for (unsigned i = 0; done && i < exec->lane_count; i++)
        if (launch->entered[i] && exec->lanes[i])
            done = sim_op_after(op, exec->lanes[i], sim_queue_position(exec->lanes[i]));
    if (!done) {
        sim_op_drop(op);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    uint64_t seq = sim_queue_push(launch->queue, op);
    sim_queue_put(exec->last.queue);
    exec->last = (struct sim_ticket){sim_queue_ref(launch->queue), seq};
    return CUDA_SUCCESS;
}

/* Takes what the nodes allocate before anything runs: a launch that cannot have its memory does nothing. */
static CUresult reserve(const struct CUgraphExec_st *exec)
{
    CUresult status = CUDA_SUCCESS;
    size_t i;

    for (i = 0; i < exec->count && status == CUDA_SUCCESS; i++)
        if (exec->steps[i].memory)
            status = sim_graph_memory_launch(exec->steps[i].memory,
                                             exec->steps[i].type == CU_GRAPH_NODE_TYPE_MEM_ALLOC);
    if (status != CUDA_SUCCESS)
        for (i--; i-- > 0;)
            if (exec->steps[i].memory)
                sim_graph_memory_relent(exec->steps[i].memory,
                                        exec->steps[i].type == CU_GRAPH_NODE_TYPE_MEM_ALLOC);
    return status;
}

/* With the flag for it, what an earlier launch left allocated is freed first. */
static CUresult free_first(const struct CUgraphExec_st *exec, struct sim_queue *queue)
{
    CUresult status = CUDA_SUCCESS;

    for (size_t i = 0; i < exec->count && status == CUDA_SUCCESS; i++) {
        const struct sim_step *step = &exec->steps[i];
        if (step->memory && step->type == CU_GRAPH_NODE_TYPE_MEM_ALLOC &&
            sim_graph_memory_is_out(step->memory))
            status = sim_graph_memory_free_later(step->memory, queue);
    }
    return status;
}

static CUresult launch_exec(struct CUgraphExec_st *exec, struct sim_queue *queue)
{
    struct launch launch = {exec, queue, calloc(exec->count + 1, sizeof *launch.done),
                            calloc(exec->lane_count + 1, sizeof *launch.entered), 0};
    CUresult status = launch.done && launch.entered ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;

    if (status == CUDA_SUCCESS && (exec->flags & CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH))
        status = free_first(exec, queue);
    if (status == CUDA_SUCCESS)
        status = reserve(exec);
    launch.start = sim_queue_position(queue);
    for (size_t i = 0; i < exec->count && status == CUDA_SUCCESS; i++)
        status = push_step(&launch, i);
    if (status == CUDA_SUCCESS)
        status = push_end(&launch);
    free(launch.done);
    free(launch.entered);
    return status;
}

/* The steps as nodes of a graph. With the graphs' lock held. */
static CUresult copy_steps(const struct CUgraphExec_st *exec, struct CUgraph_st *graph)
{
    struct CUgraphNode_st **nodes = calloc(exec->count + 1, sizeof *nodes), **after = NULL;
    CUresult status = nodes ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;

    for (size_t i = 0; i < exec->count && status == CUDA_SUCCESS; i++) {
        const struct sim_step *step = &exec->steps[i];
        struct sim_op *work = step->work && !step->disabled ? sim_op_copy(step->work) : NULL;
        bool plain = !work && !step->event; /* a child's beginning, or left out */
        after = malloc((step->after_count + 1) * sizeof *after);
        for (size_t j = 0; after && j < step->after_count; j++)
            after[j] = nodes[step->after[j]];
        status = after ? sim_node_add(graph, plain ? CU_GRAPH_NODE_TYPE_EMPTY : step->type, after, NULL,
                                      step->after_count, work, &nodes[i])
                       : CUDA_ERROR_OUT_OF_MEMORY;
        free(after);
        if (status != CUDA_SUCCESS)
            break;
        nodes[i]->ctx = step->ctx ? sim_object_ref(step->ctx) : NULL;
        nodes[i]->event = step->event ? sim_object_ref(step->event) : NULL;
    }
    free(nodes);
    return status;
}

/* A graph that is launched into a captured stream becomes a child of the stream's graph, as it is now. */
static CUresult add_child(struct CUgraph_st *graph, const CUgraphNode *after, size_t count,
                          struct sim_queue *queue, void *data, struct CUgraphNode_st **node_p)
{
    const struct CUgraphExec_st *exec = data;
    bool single = exec->graph->has_memory || exec->graph->has_choice; /* what no child may have */
    struct CUgraph_st *child = single ? NULL : sim_graph_new();

    (void)queue;
    if (!child)
        return single ? CUDA_ERROR_NOT_SUPPORTED : CUDA_ERROR_OUT_OF_MEMORY;
    sim_object_publish(child);
    CUresult status = copy_steps(exec, child);
    if (status == CUDA_SUCCESS)
        status = sim_node_add(graph, CU_GRAPH_NODE_TYPE_GRAPH, after, NULL, count, NULL, node_p);
    if (status == CUDA_SUCCESS) {
        child->owned = true;
        (*node_p)->child = child;
    } else {
        sim_graph_end(child);
    }
    return status;
}

static CUresult launch(CUgraphExec handle, CUstream stream, bool per_thread)
{
    struct CUgraphExec_st *exec = sim_object_get(handle, SIM_EXEC);
    struct sim_queue *queue;

    if (!exec)
        return CUDA_ERROR_INVALID_VALUE;
    CUresult status = sim_stream_queue(stream, per_thread, &queue);
    if (status == CUDA_SUCCESS) {
        status = atomic_load(&queue->captured) ? sim_capture_append(queue, add_child, exec)
                                               : launch_exec(exec, queue);
        sim_queue_put(queue);
    }
    sim_object_put(exec);
    return status;
}

SIM_PAIR(cuGraphLaunch, ptsz, (CUgraphExec exec, CUstream stream), launch(exec, stream, per_thread))

/* Nothing has to be brought to the device. */
static CUresult upload(CUgraphExec handle, CUstream stream, bool per_thread)
{
    struct CUgraphExec_st *exec = sim_object_get(handle, SIM_EXEC);

    if (!exec)
        return CUDA_ERROR_INVALID_VALUE;
    sim_object_put(exec);
    return sim_stream_check(stream, per_thread);
}

SIM_PAIR(cuGraphUpload, ptsz, (CUgraphExec exec, CUstream stream), upload(exec, stream, per_thread))
