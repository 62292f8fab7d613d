/*
 * Graphs: nodes, what they wait for, and what can be asked about both. Owns the graphs' lock.
 */
#include <stdlib.h>
#include <string.h>

#include "sim/cuda/graph/graph.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

void sim_graph_lock(void)
{
    pthread_mutex_lock(&lock);
}

void sim_graph_unlock(void)
{
    pthread_mutex_unlock(&lock);
}

/** An empty graph, not yet a valid handle. */
struct CUgraph_st *sim_graph_new(void)
{
    struct CUgraph_st *graph = sim_object_new(sizeof *graph, SIM_GRAPH, NULL);

    if (graph)
        graph->end = &graph->nodes;
    return graph;
}

struct CUgraphNode_st *sim_node_find(CUgraphNode handle)
{
    struct CUgraphNode_st *node = sim_object_get(handle, SIM_NODE);

    if (node)
        sim_object_put(node); /* the set's own reference is let go of under the lock only */
    return node;
}

/* Lets go of what a node holds; the node itself may be looked at until its last reference goes. */
static void strip_node(struct CUgraphNode_st *node)
{
    free(node->after);
    free(node->edges);
    node->after = NULL;
    node->edges = NULL;
    node->after_count = 0;
    sim_op_drop(node->work);
    node->work = NULL;
    if (node->ctx)
        sim_object_put(node->ctx);
    if (node->event)
        sim_object_put(node->event);
    if (node->child)
        sim_graph_end(node->child);
    if (node->memory)
        sim_graph_memory_put(node->memory);
    if (node->choice)
        sim_choice_end(node->choice);
    node->choice = NULL;
    node->ctx = NULL;
    node->event = NULL;
    node->child = NULL;
    node->memory = NULL;
}

/** Ends a graph, and the caller's reference to it. The lock is held. */
void sim_graph_end(struct CUgraph_st *graph)
{
    while (graph->nodes) {
        struct CUgraphNode_st *node = graph->nodes;
        graph->nodes = node->next;
        strip_node(node);
        if (sim_object_retire(node))
            sim_object_put(node);
    }
    graph->end = &graph->nodes;
    graph->count = 0;
    sim_user_drop(graph);
    sim_condition_drop(graph);
    sim_object_retire(graph);
    sim_object_put(graph);
}

static bool set_after(struct CUgraphNode_st *node, const CUgraphNode *after, const CUgraphEdgeData *edges,
                      size_t count)
{
    node->after = malloc((count + 1) * sizeof *node->after);
    node->edges = calloc(count + 1, sizeof *node->edges);
    if (!node->after || !node->edges)
        return false;
    if (count)
        memcpy(node->after, after, count * sizeof *after);
    if (edges && count)
        memcpy(node->edges, edges, count * sizeof *edges);
    node->after_count = count;
    return true;
}

CUresult sim_node_add(struct CUgraph_st *graph, CUgraphNodeType type, const CUgraphNode *after,
                      const CUgraphEdgeData *edges, size_t count, struct sim_op *work,
                      struct CUgraphNode_st **node_p)
{
    struct CUgraphNode_st *node = NULL;
    CUresult status = count && !after ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;

    for (size_t i = 0; i < count && status == CUDA_SUCCESS; i++) {
        struct CUgraphNode_st *before = sim_node_find(after[i]);
        if (!before || before->graph != graph)
            status = CUDA_ERROR_INVALID_VALUE;
        for (size_t j = 0; j < i; j++)
            if (after[j] == after[i])
                status = CUDA_ERROR_INVALID_VALUE;
    }
    if (status == CUDA_SUCCESS) {
        node = sim_object_new(sizeof *node, SIM_NODE, NULL);
        if (!node || !set_after(node, after, edges, count))
            status = CUDA_ERROR_OUT_OF_MEMORY;
    }
    if (status != CUDA_SUCCESS) {
        sim_op_drop(work);
        if (node)
            strip_node(node);
        free(node);
        return status;
    }
    node->graph = graph;
    node->type = type;
    node->work = work;
    node->id = sim_next_id();
    *graph->end = node;
    graph->end = &node->next;
    graph->count++;
    sim_object_publish(node);
    *node_p = node;
    return CUDA_SUCCESS;
}

/** Marks (place is 1, else 0) some nodes of a graph and all that they wait for; false when memory ran out. */
bool sim_graph_mark(const struct CUgraph_st *graph, const CUgraphNode *from, size_t count)
{
    struct CUgraphNode_st **stack = malloc((graph->count + 1) * sizeof *stack);
    size_t depth = 0;

    for (struct CUgraphNode_st *node = graph->nodes; node; node = node->next)
        node->place = 0;
    for (size_t i = 0; stack && i < count; i++)
        if (!from[i]->place) {
            from[i]->place = 1;
            stack[depth++] = from[i];
        }
    while (depth) {
        struct CUgraphNode_st *node = stack[--depth];
        for (size_t i = 0; i < node->after_count; i++)
            if (!node->after[i]->place) {
                node->after[i]->place = 1;
                stack[depth++] = node->after[i];
            }
    }
    free(stack);
    return stack != NULL;
}

struct CUgraphNode_st **sim_graph_sort(const struct CUgraph_st *graph, CUresult *status_p)
{
    struct CUgraphNode_st **order = malloc((graph->count + 1) * sizeof *order);
    size_t done = 0, before = 1;

    *status_p = order ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
    if (!order)
        return NULL;
    for (struct CUgraphNode_st *node = graph->nodes; node; node = node->next)
        node->place = SIZE_MAX;
    while (done < graph->count && done != before) {
        before = done;
        for (struct CUgraphNode_st *node = graph->nodes; node; node = node->next) {
            bool ready = node->place == SIZE_MAX;
            for (size_t i = 0; ready && i < node->after_count; i++)
                ready = node->after[i]->place != SIZE_MAX;
            if (ready) {
                node->place = done;
                order[done++] = node;
            }
        }
    }
    if (done == graph->count)
        return order;
    free(order);
    *status_p = CUDA_ERROR_INVALID_VALUE; /* a circle */
    return NULL;
}

static bool copy_node(const struct CUgraphNode_st *node, struct CUgraph_st *to,
                      struct CUgraphNode_st **places)
{
    struct CUgraphNode_st **after = malloc((node->after_count + 1) * sizeof *after), *copy = NULL;
    struct sim_op *work = node->work ? sim_op_copy(node->work) : NULL;
    bool done = after && (work || !node->work);

    for (size_t i = 0; done && i < node->after_count; i++)
        after[i] = places[node->after[i]->place];
    done = done &&
           sim_node_add(to, node->type, after, node->edges, node->after_count, work, &copy) == CUDA_SUCCESS;
    free(after);
    if (!done)
        return false;
    copy->origin = node->id;
    copy->ctx = node->ctx ? sim_object_ref(node->ctx) : NULL;
    copy->event = node->event ? sim_object_ref(node->event) : NULL;
    copy->child = node->child ? sim_graph_copy(node->child) : NULL;
    if (copy->child)
        copy->child->owned = true;
    places[node->place] = copy;
    return copy->child || !node->child;
}

/** A graph like this one, without memory nodes; NULL when memory ran out. The lock is held. */
struct CUgraph_st *sim_graph_copy(const struct CUgraph_st *graph)
{
    CUresult status;
    struct CUgraphNode_st **order = sim_graph_sort(graph, &status);
    struct CUgraphNode_st **places = calloc(graph->count + 1, sizeof *places);
    struct CUgraph_st *copy = order && places ? sim_graph_new() : NULL;
    bool done = copy != NULL;

    for (size_t i = 0; done && i < graph->count; i++)
        done = copy_node(order[i], copy, places);
    free(order);
    free(places);
    if (copy)
        sim_user_copy(copy, graph);
    if (done) {
        sim_object_publish(copy);
        return copy;
    }
    if (copy)
        sim_graph_end(copy);
    return NULL;
}

/* The graph of a handle, referenced, with the lock held; without it and NULL if there is none. */
static struct CUgraph_st *open_graph(CUgraph handle)
{
    sim_graph_lock();
    struct CUgraph_st *graph = sim_object_get(handle, SIM_GRAPH);

    if (!graph)
        sim_graph_unlock();
    return graph;
}

static CUresult close_graph(struct CUgraph_st *graph, CUresult status)
{
    sim_graph_unlock();
    sim_object_put(graph);
    return status;
}

SIM_API(cuGraphCreate)(CUgraph *graph_p, unsigned flags)
{
    SIM_ENTER(cuGraphCreate);
    if (!graph_p || flags)
        return CUDA_ERROR_INVALID_VALUE;
    struct CUgraph_st *graph = sim_graph_new();
    if (!graph)
        return CUDA_ERROR_OUT_OF_MEMORY;
    sim_object_publish(graph);
    *graph_p = graph;
    return CUDA_SUCCESS;
}

SIM_API(cuGraphDestroy)(CUgraph handle)
{
    SIM_ENTER(cuGraphDestroy);
    struct CUgraph_st *graph = open_graph(handle);

    if (!graph)
        return CUDA_ERROR_INVALID_VALUE;
    if (graph->owned)
        return close_graph(graph, CUDA_ERROR_INVALID_VALUE);
    sim_graph_end(graph); /* with the handle's reference */
    return close_graph(graph, CUDA_SUCCESS);
}

SIM_API(cuGraphClone)(CUgraph *clone_p, CUgraph handle)
{
    SIM_ENTER(cuGraphClone);
    struct CUgraph_st *graph = clone_p ? open_graph(handle) : NULL;

    if (!graph)
        return CUDA_ERROR_INVALID_VALUE;
    if (graph->has_memory || graph->has_choice)
        return close_graph(graph, CUDA_ERROR_NOT_SUPPORTED);
    struct CUgraph_st *clone = sim_graph_copy(graph);
    if (clone)
        *clone_p = clone;
    return close_graph(graph, clone ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY);
}

SIM_API(cuGraphNodeFindInClone)(CUgraphNode *node_p, CUgraphNode handle, CUgraph clone)
{
    SIM_ENTER(cuGraphNodeFindInClone);
    struct CUgraph_st *graph = node_p ? open_graph(clone) : NULL;

    if (!graph)
        return CUDA_ERROR_INVALID_VALUE;
    const struct CUgraphNode_st *original = sim_node_find(handle);
    struct CUgraphNode_st *node = original ? graph->nodes : NULL;
    while (node && node->origin != original->id)
        node = node->next;
    if (node)
        *node_p = node;
    return close_graph(graph, node ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE);
}

static CUresult list_nodes(CUgraph handle, CUgraphNode *nodes, size_t *count_p, bool roots)
{
    struct CUgraph_st *graph = count_p ? open_graph(handle) : NULL;
    size_t found = 0, room = nodes && graph ? *count_p : 0;

    if (!graph)
        return CUDA_ERROR_INVALID_VALUE;
    for (struct CUgraphNode_st *node = graph->nodes; node; node = node->next) {
        if (roots && node->after_count)
            continue;
        if (found < room)
            nodes[found] = node;
        found++;
    }
    for (size_t i = found; i < room; i++)
        nodes[i] = NULL;
    *count_p = nodes && found > room ? room : found;
    return close_graph(graph, CUDA_SUCCESS);
}

SIM_API(cuGraphGetNodes)(CUgraph graph, CUgraphNode *nodes, size_t *count_p)
{
    SIM_ENTER(cuGraphGetNodes);
    return list_nodes(graph, nodes, count_p, false);
}

SIM_API(cuGraphGetRootNodes)(CUgraph graph, CUgraphNode *nodes, size_t *count_p)
{
    SIM_ENTER(cuGraphGetRootNodes);
    return list_nodes(graph, nodes, count_p, true);
}

SIM_API(cuGraphNodeGetType)(CUgraphNode handle, CUgraphNodeType *type_p)
{
    SIM_ENTER(cuGraphNodeGetType);
    sim_graph_lock();
    const struct CUgraphNode_st *node = type_p ? sim_node_find(handle) : NULL;
    if (node)
        *type_p = node->type;
    sim_graph_unlock();
    return node ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

static void forget_node(struct CUgraphNode_st *node)
{
    struct CUgraphNode_st **link = &node->graph->nodes;

    while (*link != node)
        link = &(*link)->next;
    *link = node->next;
    if (node->graph->end == &node->next)
        node->graph->end = link;
    node->graph->count--;
    for (struct CUgraphNode_st *other = node->graph->nodes; other; other = other->next)
        for (size_t i = 0; i < other->after_count; i++)
            if (other->after[i] == node) {
                other->after_count--;
                other->after[i] = other->after[other->after_count];
                other->edges[i] = other->edges[other->after_count];
                break;
            }
}

SIM_API(cuGraphDestroyNode)(CUgraphNode handle)
{
    SIM_ENTER(cuGraphDestroyNode);
    CUresult status = CUDA_ERROR_INVALID_VALUE;

    sim_graph_lock();
    struct CUgraphNode_st *node = sim_node_find(handle);
    if (node && node->graph->has_memory) {
        status = CUDA_ERROR_NOT_SUPPORTED;
    } else if (node && sim_object_retire(node)) {
        forget_node(node);
        strip_node(node);
        sim_object_put(node);
        status = CUDA_SUCCESS;
    }
    sim_graph_unlock();
    return status;
}
