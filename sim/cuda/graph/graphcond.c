/*
 * Conditional nodes: handles that stand for a value of a graph's, and nodes that run one of their bodies by
 * it, none, or one again and again. No kernel here can set a value, so that it is known when the graph is
 * made ready: the handle's default if it is given at each launch, and 0 else (assumed). The body of a loop
 * whose value is not 0 runs once, as if what is in it had ended the loop.
 *
 * Handles belong to their graph. All of it under the graphs' lock.
 */
#include <stdlib.h>
#include <string.h>

#include "sim/cuda/graph/graph.h"

enum { BODIES_MAX = 1024 }; /* of one node: against a size that is none */

struct sim_condition {
    struct sim_condition *next; /* of the same graph */
    unsigned long long id;
    struct CUctx_st *ctx; /* referenced */
    unsigned value;
    bool used;
};

struct sim_choice {
    CUgraphConditionalHandle handle;
    CUgraphConditionalNodeType type;
    unsigned value, count;
    CUgraph bodies[]; /* owned; what programs are given is this very list */
};

void sim_condition_drop(struct CUgraph_st *graph)
{
    while (graph->conditions) {
        struct sim_condition *next = graph->conditions->next;
        sim_object_put(graph->conditions->ctx);
        free(graph->conditions);
        graph->conditions = next;
    }
}

bool sim_condition_unused(const struct CUgraph_st *graph)
{
    for (const struct sim_condition *condition = graph->conditions; condition; condition = condition->next)
        if (!condition->used)
            return true;
    return false;
}

/* A handle is good in its own graph and in bodies inside that. */
static struct sim_condition *find(const struct CUgraph_st *graph, CUgraphConditionalHandle handle)
{
    for (; graph; graph = graph->parent)
        for (struct sim_condition *condition = graph->conditions; condition; condition = condition->next)
            if (condition->id == handle)
                return condition;
    return NULL;
}

static bool is_size(CUgraphConditionalNodeType type, unsigned count)
{
    switch ((int)type) {
    case CU_GRAPH_COND_TYPE_IF:
        return count == 1 || count == 2;
    case CU_GRAPH_COND_TYPE_WHILE:
        return count == 1;
    case CU_GRAPH_COND_TYPE_SWITCH:
        return count > 0 && count <= BODIES_MAX;
    default:
        return false;
    }
}

void sim_choice_end(struct sim_choice *choice)
{
    for (unsigned i = 0; i < choice->count; i++)
        sim_graph_end(choice->bodies[i]);
    free(choice);
}

CUresult sim_choice_make(CUDA_CONDITIONAL_NODE_PARAMS *params, struct CUgraph_st *graph,
                         struct sim_choice **choice_p)
{
    struct sim_condition *condition = find(graph, params->handle);
    struct sim_choice *choice;

    if (!condition || !is_size(params->type, params->size) || (params->ctx && params->ctx != condition->ctx))
        return CUDA_ERROR_INVALID_VALUE;
    choice = calloc(1, sizeof *choice + params->size * sizeof choice->bodies[0]);
    if (!choice)
        return CUDA_ERROR_OUT_OF_MEMORY;
    choice->handle = params->handle;
    choice->type = params->type;
    choice->value = condition->value;
    for (; choice->count < params->size; choice->count++) {
        struct CUgraph_st *body = sim_graph_new();
        if (!body) {
            sim_choice_end(choice);
            return CUDA_ERROR_OUT_OF_MEMORY;
        }
        body->owned = true;
        body->parent = graph;
        sim_object_publish(body);
        choice->bodies[choice->count] = body;
    }
    condition->used = true;
    params->phGraph_out = choice->bodies;
    *choice_p = choice;
    return CUDA_SUCCESS;
}

void sim_choice_params(const struct CUgraphNode_st *node, CUDA_CONDITIONAL_NODE_PARAMS *params)
{
    struct sim_choice *choice = node->choice;

    *params = (CUDA_CONDITIONAL_NODE_PARAMS){choice->handle, choice->type, choice->count, choice->bodies,
                                             node->ctx};
}

const struct CUgraph_st *sim_choice_body(const struct sim_choice *choice)
{
    unsigned place = choice->value;

    if (choice->type != CU_GRAPH_COND_TYPE_SWITCH)
        place = choice->value ? 0 : choice->type == CU_GRAPH_COND_TYPE_IF ? 1 : choice->count;
    return place < choice->count ? choice->bodies[place] : NULL;
}

/* Driver API, CUDA_CONDITIONAL_NODE_PARAMS: what bodies may hold, and what is in them. */
static bool is_allowed(const struct CUgraph_st *body)
{
    for (const struct CUgraphNode_st *node = body->nodes; node; node = node->next)
        switch ((int)node->type) {
        case CU_GRAPH_NODE_TYPE_KERNEL:
        case CU_GRAPH_NODE_TYPE_EMPTY:
        case CU_GRAPH_NODE_TYPE_MEMCPY:
        case CU_GRAPH_NODE_TYPE_MEMSET:
            break;
        case CU_GRAPH_NODE_TYPE_GRAPH:
            if (!is_allowed(node->child))
                return false;
            break;
        case CU_GRAPH_NODE_TYPE_CONDITIONAL:
            if (!sim_choice_is_allowed(node->choice))
                return false;
            break;
        default:
            return false;
        }
    return true;
}

bool sim_choice_is_allowed(const struct sim_choice *choice)
{
    for (unsigned i = 0; i < choice->count; i++)
        if (!is_allowed(choice->bodies[i]))
            return false;
    return true;
}

static CUresult add_condition(CUgraphConditionalHandle *handle_p, struct CUgraph_st *graph,
                              struct CUctx_st *ctx, unsigned value)
{
    struct sim_condition *condition = calloc(1, sizeof *condition);

    if (!condition)
        return CUDA_ERROR_OUT_OF_MEMORY;
    condition->id = sim_next_id();
    condition->ctx = sim_object_ref(ctx);
    condition->value = value;
    condition->next = graph->conditions;
    graph->conditions = condition;
    *handle_p = condition->id;
    return CUDA_SUCCESS;
}

SIM_API(cuGraphConditionalHandleCreate)
(CUgraphConditionalHandle *handle_p, CUgraph graph_handle, CUcontext ctx_handle, unsigned value,
 unsigned flags)
{
    SIM_ENTER(cuGraphConditionalHandleCreate);
    struct CUctx_st *ctx = NULL;
    CUresult status = CUDA_SUCCESS;

    if (!handle_p || !graph_handle || (flags & ~(unsigned)CU_GRAPH_COND_ASSIGN_DEFAULT))
        return CUDA_ERROR_INVALID_VALUE;
    if (ctx_handle)
        ctx = sim_object_get(ctx_handle, SIM_CONTEXT);
    else if ((status = sim_context_current(&ctx)) == CUDA_SUCCESS)
        sim_object_ref(ctx);
    if (status != CUDA_SUCCESS || !ctx)
        return status == CUDA_SUCCESS ? CUDA_ERROR_INVALID_VALUE : status;
    sim_graph_lock();
    struct CUgraph_st *graph = sim_object_get(graph_handle, SIM_GRAPH);
    status = graph ? add_condition(handle_p, graph, ctx, flags & CU_GRAPH_COND_ASSIGN_DEFAULT ? value : 0)
                   : CUDA_ERROR_INVALID_VALUE;
    if (graph)
        sim_object_put(graph);
    sim_graph_unlock();
    sim_object_put(ctx);
    return status;
}
