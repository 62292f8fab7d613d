/* graph_nodes.c - see graph_nodes.h. Keeps nothing. */
#include "hooks/follow/graph_nodes.h"

#include <sys/mman.h>

#include "vendor/context_scope.h"

enum { NODES_MAX = 1 << 20, DEPTH = 3 };

/* As many as there are: mapped, since a stack of the program's may be small. NULL for none. */
static CUgraphNode *map_nodes(const struct ms_gpu *gpu, CUgraph graph, size_t *count_p)
{
    CUgraphNode *nodes;
    size_t found = 0;

    if (gpu->graph_nodes(graph, NULL, &found) != CUDA_SUCCESS || !found || found > NODES_MAX)
        return NULL;
    *count_p = found;
    nodes = mmap(NULL, found * sizeof(*nodes), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (nodes == MAP_FAILED)
        return NULL;
    if (gpu->graph_nodes(graph, nodes, count_p) == CUDA_SUCCESS && *count_p == found)
        return nodes;
    munmap(nodes, found * sizeof(*nodes));
    return NULL;
}

static void go_through(const struct ms_gpu *gpu, CUgraph graph, unsigned depth, ms_graph_node_func_t each,
                       void *arg)
{
    size_t found;
    CUgraphNode *nodes = depth < DEPTH ? map_nodes(gpu, graph, &found) : NULL;
    CUgraphNodeType type;
    CUgraph child;

    for (size_t i = 0; nodes && i < found; i++) {
        if (gpu->graph_node_type(nodes[i], &type) != CUDA_SUCCESS)
            continue;
        if (type != CU_GRAPH_NODE_TYPE_GRAPH)
            each(gpu, nodes[i], type, arg);
        else if (gpu->graph_child && gpu->graph_child(nodes[i], &child) == CUDA_SUCCESS)
            go_through(gpu, child, depth + 1, each, arg);
    }
    if (nodes)
        munmap(nodes, found * sizeof(*nodes));
}

void ms_graph_nodes(const struct ms_gpu *gpu, uint64_t graph, ms_graph_node_func_t each, void *arg)
{
    struct ms_context_scope visit;

    if (!graph || !gpu || !gpu->graph_nodes || !gpu->graph_node_type)
        return;
    ms_context_scope_begin(&visit, gpu, 0);
    go_through(gpu, (CUgraph)(uintptr_t)graph, 0, each, arg);
    ms_context_scope_end(&visit);
}
