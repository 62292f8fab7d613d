/*
 * The edges of graphs, as programs ask for them, add and remove them. Their data (ports and types) is kept
 * and given back; every edge is a full dependency here. All of it under the graphs' lock.
 */
#include <stdlib.h>
#include <string.h>

#include "sim/cuda/graph/graph.h"

/* The place where a list of edges goes: edges that do not fit are counted, too. */
struct edge_list {
    CUgraphNode *from, *to;
    CUgraphEdgeData *data;
    size_t room, found;
    bool lossy; /* data that is not zero and nowhere to put it */
};

static void put_edge(struct edge_list *list, CUgraphNode from, CUgraphNode to, const CUgraphEdgeData *data)
{
    static const CUgraphEdgeData plain;

    if (list->found < list->room) {
        if (list->from)
            list->from[list->found] = from;
        if (list->to)
            list->to[list->found] = to;
        if (list->data)
            list->data[list->found] = *data;
    }
    if (!list->data && memcmp(data, &plain, sizeof plain))
        list->lossy = true;
    list->found++;
}

static void put_edges_of(struct edge_list *list, struct CUgraphNode_st *node)
{
    for (size_t i = 0; i < node->after_count; i++)
        put_edge(list, node->after[i], node, &node->edges[i]);
}

static CUresult end_list(struct edge_list *list, size_t *count_p)
{
    bool queried = list->from || list->to;

    if (queried && list->lossy)
        return CUDA_ERROR_LOSSY_QUERY;
    for (size_t i = list->found; i < list->room; i++) {
        if (list->from)
            list->from[i] = NULL;
        if (list->to)
            list->to[i] = NULL;
    }
    *count_p = queried && list->found > list->room ? list->room : list->found;
    return CUDA_SUCCESS;
}

static CUresult get_edges(CUgraph handle, CUgraphNode *from, CUgraphNode *to, CUgraphEdgeData *data,
                          size_t *count_p)
{
    if (!count_p || !from != !to || (data && !from))
        return CUDA_ERROR_INVALID_VALUE;
    struct edge_list list = {from, to, data, from ? *count_p : 0, 0, false};
    CUresult status = CUDA_ERROR_INVALID_VALUE;
    sim_graph_lock();
    struct CUgraph_st *graph = sim_object_get(handle, SIM_GRAPH);
    if (graph) {
        for (struct CUgraphNode_st *node = graph->nodes; node; node = node->next)
            put_edges_of(&list, node);
        status = end_list(&list, count_p);
        sim_object_put(graph);
    }
    sim_graph_unlock();
    return status;
}

static CUresult get_dependencies(CUgraphNode handle, CUgraphNode *nodes, CUgraphEdgeData *data,
                                 size_t *count_p)
{
    if (!count_p || (data && !nodes))
        return CUDA_ERROR_INVALID_VALUE;
    struct edge_list list = {nodes, NULL, data, nodes ? *count_p : 0, 0, false};
    CUresult status = CUDA_ERROR_INVALID_VALUE;
    sim_graph_lock();
    struct CUgraphNode_st *node = sim_node_find(handle);
    if (node) {
        put_edges_of(&list, node);
        status = end_list(&list, count_p);
    }
    sim_graph_unlock();
    return status;
}

static CUresult get_dependents(CUgraphNode handle, CUgraphNode *nodes, CUgraphEdgeData *data, size_t *count_p)
{
    if (!count_p || (data && !nodes))
        return CUDA_ERROR_INVALID_VALUE;
    struct edge_list list = {NULL, nodes, data, nodes ? *count_p : 0, 0, false};
    CUresult status = CUDA_ERROR_INVALID_VALUE;
    sim_graph_lock();
    struct CUgraphNode_st *node = sim_node_find(handle);
    if (node) {
        for (struct CUgraphNode_st *other = node->graph->nodes; other; other = other->next)
            for (size_t i = 0; i < other->after_count; i++)
                if (other->after[i] == node)
                    put_edge(&list, node, other, &other->edges[i]);
        status = end_list(&list, count_p);
    }
    sim_graph_unlock();
    return status;
}

/* The place of an edge among those of its end; SIZE_MAX if there is none. */
static size_t find_edge(const struct CUgraphNode_st *from, const struct CUgraphNode_st *to)
{
    for (size_t i = 0; i < to->after_count; i++)
        if (to->after[i] == from)
            return i;
    return SIZE_MAX;
}

static CUresult add_edge(struct CUgraph_st *graph, CUgraphNode from, CUgraphNode to,
                         const CUgraphEdgeData *data)
{
    if (from == to || find_edge(from, to) != SIZE_MAX)
        return CUDA_ERROR_INVALID_VALUE;
    if (!sim_graph_mark(graph, &from, 1))
        return CUDA_ERROR_OUT_OF_MEMORY;
    if (to->place) /* a circle */
        return CUDA_ERROR_INVALID_VALUE;
    CUgraphNode *after = realloc(to->after, (to->after_count + 1) * sizeof *after);
    if (after)
        to->after = after;
    CUgraphEdgeData *edges = after ? realloc(to->edges, (to->after_count + 1) * sizeof *edges) : NULL;
    if (!edges)
        return CUDA_ERROR_OUT_OF_MEMORY;
    to->edges = edges;
    memset(&edges[to->after_count], 0, sizeof *edges);
    if (data)
        edges[to->after_count] = *data;
    after[to->after_count++] = from;
    return CUDA_SUCCESS;
}

static CUresult remove_edge(struct CUgraph_st *graph, CUgraphNode from, CUgraphNode to,
                            const CUgraphEdgeData *data)
{
    size_t i = find_edge(from, to);

    if (graph->has_memory)
        return CUDA_ERROR_NOT_SUPPORTED;
    if (i == SIZE_MAX || (data && memcmp(data, &to->edges[i], sizeof *data)))
        return CUDA_ERROR_INVALID_VALUE;
    to->after_count--;
    memmove(&to->after[i], &to->after[i + 1], (to->after_count - i) * sizeof *to->after);
    memmove(&to->edges[i], &to->edges[i + 1], (to->after_count - i) * sizeof *to->edges);
    return CUDA_SUCCESS;
}

static CUresult change(CUgraph handle, const CUgraphNode *from, const CUgraphNode *to,
                       const CUgraphEdgeData *data, size_t count,
                       CUresult (*one)(struct CUgraph_st *graph, CUgraphNode from, CUgraphNode to,
                                       const CUgraphEdgeData *data))
{
    if (count && (!from || !to))
        return CUDA_ERROR_INVALID_VALUE;
    sim_graph_lock();
    struct CUgraph_st *graph = sim_object_get(handle, SIM_GRAPH);
    CUresult status = graph ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    for (size_t i = 0; i < count && status == CUDA_SUCCESS; i++) {
        struct CUgraphNode_st *start = sim_node_find(from[i]), *end = sim_node_find(to[i]);
        if (!start || !end || start->graph != graph || end->graph != graph)
            status = CUDA_ERROR_INVALID_VALUE;
        else
            status = one(graph, start, end, data ? &data[i] : NULL);
    }
    if (graph)
        sim_object_put(graph);
    sim_graph_unlock();
    return status;
}

SIM_API(cuGraphGetEdges)(CUgraph graph, CUgraphNode *from, CUgraphNode *to, size_t *count_p)
{
    SIM_ENTER(cuGraphGetEdges);
    return get_edges(graph, from, to, NULL, count_p);
}

SIM_API(cuGraphGetEdges_v2)
(CUgraph graph, CUgraphNode *from, CUgraphNode *to, CUgraphEdgeData *data, size_t *count_p)
{
    SIM_ENTER(cuGraphGetEdges_v2);
    return get_edges(graph, from, to, data, count_p);
}

SIM_API(cuGraphNodeGetDependencies)(CUgraphNode node, CUgraphNode *nodes, size_t *count_p)
{
    SIM_ENTER(cuGraphNodeGetDependencies);
    return get_dependencies(node, nodes, NULL, count_p);
}

SIM_API(cuGraphNodeGetDependencies_v2)
(CUgraphNode node, CUgraphNode *nodes, CUgraphEdgeData *data, size_t *count_p)
{
    SIM_ENTER(cuGraphNodeGetDependencies_v2);
    return get_dependencies(node, nodes, data, count_p);
}

SIM_API(cuGraphNodeGetDependentNodes)(CUgraphNode node, CUgraphNode *nodes, size_t *count_p)
{
    SIM_ENTER(cuGraphNodeGetDependentNodes);
    return get_dependents(node, nodes, NULL, count_p);
}

SIM_API(cuGraphNodeGetDependentNodes_v2)
(CUgraphNode node, CUgraphNode *nodes, CUgraphEdgeData *data, size_t *count_p)
{
    SIM_ENTER(cuGraphNodeGetDependentNodes_v2);
    return get_dependents(node, nodes, data, count_p);
}

SIM_API(cuGraphAddDependencies)(CUgraph graph, const CUgraphNode *from, const CUgraphNode *to, size_t count)
{
    SIM_ENTER(cuGraphAddDependencies);
    return change(graph, from, to, NULL, count, add_edge);
}

SIM_API(cuGraphAddDependencies_v2)
(CUgraph graph, const CUgraphNode *from, const CUgraphNode *to, const CUgraphEdgeData *data, size_t count)
{
    SIM_ENTER(cuGraphAddDependencies_v2);
    return change(graph, from, to, data, count, add_edge);
}

SIM_API(cuGraphRemoveDependencies)
(CUgraph graph, const CUgraphNode *from, const CUgraphNode *to, size_t count)
{
    SIM_ENTER(cuGraphRemoveDependencies);
    return change(graph, from, to, NULL, count, remove_edge);
}

SIM_API(cuGraphRemoveDependencies_v2)
(CUgraph graph, const CUgraphNode *from, const CUgraphNode *to, const CUgraphEdgeData *data, size_t count)
{
    SIM_ENTER(cuGraphRemoveDependencies_v2);
    return change(graph, from, to, data, count, remove_edge);
}
