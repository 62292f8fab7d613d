/*
 * Graphs as a whole: making, ending, copying, asking for nodes and edges, user objects. Every call goes to
 * the driver with what it was given.
 */
#include "sim/cudart/runtime.h"

/* A function of the runtime that is the driver's, arguments and all. */
#define SIM_SAME(name, driver, parameters, ...)                                                              \
    SIM_API cudaError_t name parameters                                                                      \
    {                                                                                                        \
        SIM_TRY(sim_context());                                                                              \
        SIM_TRY(SIM_DRV(driver, __VA_ARGS__));                                                               \
        return cudaSuccess;                                                                                  \
    }

SIM_SAME(cudaGraphCreate, cuGraphCreate, (cudaGraph_t * graph, unsigned flags), graph, flags)
SIM_SAME(cudaGraphDestroy, cuGraphDestroy, (cudaGraph_t graph), graph)
SIM_SAME(cudaGraphClone, cuGraphClone, (cudaGraph_t * clone, cudaGraph_t graph), clone, graph)
SIM_SAME(cudaGraphNodeFindInClone, cuGraphNodeFindInClone,
         (cudaGraphNode_t * node, cudaGraphNode_t original, cudaGraph_t clone), node, original, clone)
SIM_SAME(cudaGraphGetNodes, cuGraphGetNodes, (cudaGraph_t graph, cudaGraphNode_t *nodes, size_t *count),
         graph, nodes, count)
SIM_SAME(cudaGraphGetRootNodes, cuGraphGetRootNodes,
         (cudaGraph_t graph, cudaGraphNode_t *nodes, size_t *count), graph, nodes, count)
SIM_SAME(cudaGraphNodeGetType, cuGraphNodeGetType, (cudaGraphNode_t node, enum cudaGraphNodeType *type), node,
         (CUgraphNodeType *)type)
SIM_SAME(cudaGraphDestroyNode, cuGraphDestroyNode, (cudaGraphNode_t node), node)
SIM_SAME(cudaGraphDebugDotPrint, cuGraphDebugDotPrint, (cudaGraph_t graph, const char *path, unsigned flags),
         graph, path, flags)
SIM_SAME(cudaUserObjectCreate, cuUserObjectCreate,
         (cudaUserObject_t * object, void *data, cudaHostFn_t destroy, unsigned count, unsigned flags),
         object, data, destroy, count, flags)
SIM_SAME(cudaUserObjectRetain, cuUserObjectRetain, (cudaUserObject_t object, unsigned count), object, count)
SIM_SAME(cudaUserObjectRelease, cuUserObjectRelease, (cudaUserObject_t object, unsigned count), object, count)
SIM_SAME(cudaGraphRetainUserObject, cuGraphRetainUserObject,
         (cudaGraph_t graph, cudaUserObject_t object, unsigned count, unsigned flags), graph, object, count,
         flags)
SIM_SAME(cudaGraphReleaseUserObject, cuGraphReleaseUserObject,
         (cudaGraph_t graph, cudaUserObject_t object, unsigned count), graph, object, count)

/* Edges, with their data; CUDA 12 has a form without it under the plain name. */
#if SIM_CUDART == 12
#define SIM_EDGES(name) name##_v2
SIM_SAME(cudaGraphGetEdges, cuGraphGetEdges,
         (cudaGraph_t graph, cudaGraphNode_t *from, cudaGraphNode_t *to, size_t *count), graph, from, to,
         count)
SIM_SAME(cudaGraphNodeGetDependencies, cuGraphNodeGetDependencies,
         (cudaGraphNode_t node, cudaGraphNode_t *nodes, size_t *count), node, nodes, count)
SIM_SAME(cudaGraphNodeGetDependentNodes, cuGraphNodeGetDependentNodes,
         (cudaGraphNode_t node, cudaGraphNode_t *nodes, size_t *count), node, nodes, count)
SIM_SAME(cudaGraphAddDependencies, cuGraphAddDependencies,
         (cudaGraph_t graph, const cudaGraphNode_t *from, const cudaGraphNode_t *to, size_t count), graph,
         from, to, count)
SIM_SAME(cudaGraphRemoveDependencies, cuGraphRemoveDependencies,
         (cudaGraph_t graph, const cudaGraphNode_t *from, const cudaGraphNode_t *to, size_t count), graph,
         from, to, count)
#else
#define SIM_EDGES(name) name
#endif

SIM_SAME(SIM_EDGES(cudaGraphGetEdges), cuGraphGetEdges_v2,
         (cudaGraph_t graph, cudaGraphNode_t *from, cudaGraphNode_t *to, cudaGraphEdgeData *data,
          size_t *count),
         graph, from, to, (CUgraphEdgeData *)data, count)
SIM_SAME(SIM_EDGES(cudaGraphNodeGetDependencies), cuGraphNodeGetDependencies_v2,
         (cudaGraphNode_t node, cudaGraphNode_t *nodes, cudaGraphEdgeData *data, size_t *count), node, nodes,
         (CUgraphEdgeData *)data, count)
SIM_SAME(SIM_EDGES(cudaGraphNodeGetDependentNodes), cuGraphNodeGetDependentNodes_v2,
         (cudaGraphNode_t node, cudaGraphNode_t *nodes, cudaGraphEdgeData *data, size_t *count), node, nodes,
         (CUgraphEdgeData *)data, count)
SIM_SAME(SIM_EDGES(cudaGraphAddDependencies), cuGraphAddDependencies_v2,
         (cudaGraph_t graph, const cudaGraphNode_t *from, const cudaGraphNode_t *to,
          const cudaGraphEdgeData *data, size_t count),
         graph, from, to, (const CUgraphEdgeData *)data, count)
SIM_SAME(SIM_EDGES(cudaGraphRemoveDependencies), cuGraphRemoveDependencies_v2,
         (cudaGraph_t graph, const cudaGraphNode_t *from, const cudaGraphNode_t *to,
          const cudaGraphEdgeData *data, size_t count),
         graph, from, to, (const CUgraphEdgeData *)data, count)
