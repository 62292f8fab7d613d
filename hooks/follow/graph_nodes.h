/* graph_nodes.h - the nodes of a graph, as the driver tells them, with those of the graphs inside it.
 *
 * Floor 3. The program's call that has just made something of the graph holds it meanwhile; the driver is
 * asked inside a hook scope, in a visit, with no lock held. */
#ifndef MS_HOOKS_FOLLOW_GRAPH_NODES_H
#define MS_HOOKS_FOLLOW_GRAPH_NODES_H

#include "vendor/gpu.h"

/** One node; `arg` is the caller's. */
typedef void (*ms_graph_node_func_t)(const struct ms_gpu *gpu, CUgraphNode node, CUgraphNodeType type,
                                     void *arg);

/** Calls `each` for every node, but for those that hold a graph, whose own nodes come instead. A graph of
 * more than a million nodes, or that lies deeper than three, is left out. */
void ms_graph_nodes(const struct ms_gpu *gpu, uint64_t graph, ms_graph_node_func_t each, void *arg);

#endif
