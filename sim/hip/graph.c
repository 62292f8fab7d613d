/*
 * Captures, and graphs: those that captures make, and nodes that allocate and free, hold a graph, or are
 * empty.
 */
#include "vendor/abi/cuda_graph.h"
#include "vendor/abi/cuda_graph_fn.h"
#include "sim/hip/hip.h"

HIP_AS(hipStreamBeginCapture, (hipStream_t stream, hipStreamCaptureMode mode),
       cuStreamBeginCapture_v2(hip_stream(stream), (CUstreamCaptureMode)mode))
HIP_AS(hipStreamEndCapture, (hipStream_t stream, hipGraph_t *graph),
       cuStreamEndCapture(hip_stream(stream), (CUgraph *)graph))
HIP_AS(hipStreamIsCapturing, (hipStream_t stream, hipStreamCaptureStatus *status),
       cuStreamIsCapturing(hip_stream(stream), (CUstreamCaptureStatus *)status))
HIP_AS(hipStreamGetCaptureInfo, (hipStream_t stream, hipStreamCaptureStatus *status, unsigned long long *id),
       cuStreamGetCaptureInfo_v2(hip_stream(stream), (CUstreamCaptureStatus *)status, (cuuint64_t *)id, NULL,
                                 NULL, NULL))
HIP_AS(hipThreadExchangeStreamCaptureMode, (hipStreamCaptureMode * mode),
       cuThreadExchangeStreamCaptureMode((CUstreamCaptureMode *)mode))
HIP_AS(hipGraphCreate, (hipGraph_t * graph, unsigned flags), cuGraphCreate((CUgraph *)graph, flags))
HIP_AS(hipGraphClone, (hipGraph_t * clone, hipGraph_t graph), cuGraphClone((CUgraph *)clone, (CUgraph)graph))
HIP_AS(hipGraphDestroy, (hipGraph_t graph), cuGraphDestroy((CUgraph)graph))
HIP_AS(hipGraphInstantiate,
       (hipGraphExec_t * exec, hipGraph_t graph, hipGraphNode_t *node, char *log, size_t log_bytes),
       ((void)node, (void)log, (void)log_bytes,
        cuGraphInstantiateWithFlags((CUgraphExec *)exec, (CUgraph)graph, 0)))
HIP_AS(hipGraphInstantiateWithFlags, (hipGraphExec_t * exec, hipGraph_t graph, unsigned long long flags),
       cuGraphInstantiateWithFlags((CUgraphExec *)exec, (CUgraph)graph, flags))
HIP_AS(hipGraphLaunch, (hipGraphExec_t exec, hipStream_t stream),
       cuGraphLaunch((CUgraphExec)exec, hip_stream(stream)))
HIP_AS(hipGraphExecDestroy, (hipGraphExec_t exec), cuGraphExecDestroy((CUgraphExec)exec))
HIP_AS(hipGraphGetNodes, (hipGraph_t graph, hipGraphNode_t *nodes, size_t *count),
       cuGraphGetNodes((CUgraph)graph, (CUgraphNode *)nodes, count))
HIP_AS(hipGraphNodeGetType, (hipGraphNode_t node, hipGraphNodeType *type),
       cuGraphNodeGetType((CUgraphNode)node, (CUgraphNodeType *)type))
HIP_AS(hipGraphAddEmptyNode,
       (hipGraphNode_t * node, hipGraph_t graph, const hipGraphNode_t *after, size_t count),
       cuGraphAddEmptyNode((CUgraphNode *)node, (CUgraph)graph, (const CUgraphNode *)after, count))
HIP_AS(hipGraphAddChildGraphNode,
       (hipGraphNode_t * node, hipGraph_t graph, const hipGraphNode_t *after, size_t count, hipGraph_t child),
       cuGraphAddChildGraphNode((CUgraphNode *)node, (CUgraph)graph, (const CUgraphNode *)after, count,
                                (CUgraph)child))
HIP_AS(hipGraphChildGraphNodeGetGraph, (hipGraphNode_t node, hipGraph_t *graph),
       cuGraphChildGraphNodeGetGraph((CUgraphNode)node, (CUgraph *)graph))

#if SIM_HIP >= 6
HIP_AS(hipGraphInstantiateWithParams,
       (hipGraphExec_t * exec, hipGraph_t graph, hipGraphInstantiateParams *params),
       params ? cuGraphInstantiateWithParams((CUgraphExec *)exec, (CUgraph)graph, (void *)params)
              : CUDA_ERROR_INVALID_VALUE)
HIP_AS(hipGraphAddMemAllocNode,
       (hipGraphNode_t * node, hipGraph_t graph, const hipGraphNode_t *after, size_t count,
        hipMemAllocNodeParams *params),
       cuGraphAddMemAllocNode((CUgraphNode *)node, (CUgraph)graph, (const CUgraphNode *)after, count,
                              (CUDA_MEM_ALLOC_NODE_PARAMS *)params))
HIP_AS(hipGraphAddMemFreeNode,
       (hipGraphNode_t * node, hipGraph_t graph, const hipGraphNode_t *after, size_t count, void *ptr),
       cuGraphAddMemFreeNode((CUgraphNode *)node, (CUgraph)graph, (const CUgraphNode *)after, count,
                             hip_address(ptr)))
HIP_AS(hipDrvGraphAddMemFreeNode,
       (hipGraphNode_t * node, hipGraph_t graph, const hipGraphNode_t *after, size_t count,
        hipDeviceptr_t ptr),
       cuGraphAddMemFreeNode((CUgraphNode *)node, (CUgraph)graph, (const CUgraphNode *)after, count,
                             hip_address(ptr)))

/* Other types have parameters of HIP's own. */
static int add_node(hipGraphNode_t *node, hipGraph_t graph, const hipGraphNode_t *after, size_t count,
                    hipGraphNodeParams *params)
{
    if (!params)
        return hipErrorInvalidValue;
    switch (params->type) {
    case hipGraphNodeTypeEmpty:
    case hipGraphNodeTypeMemAlloc:
    case hipGraphNodeTypeMemFree:
        return (int)cuGraphAddNode((CUgraphNode *)node, (CUgraph)graph, (const CUgraphNode *)after, count,
                                   (CUgraphNodeParams *)params);
    default:
        return hipErrorNotSupported;
    }
}

HIP_AS(hipGraphAddNode,
       (hipGraphNode_t * node, hipGraph_t graph, const hipGraphNode_t *after, size_t count,
        hipGraphNodeParams *params),
       add_node(node, graph, after, count, params))
HIP_AS(hipGraphMemAllocNodeGetParams, (hipGraphNode_t node, hipMemAllocNodeParams *params),
       cuGraphMemAllocNodeGetParams((CUgraphNode)node, (CUDA_MEM_ALLOC_NODE_PARAMS *)params))
HIP_AS(hipGraphMemFreeNodeGetParams, (hipGraphNode_t node, void *ptr_p),
       cuGraphMemFreeNodeGetParams((CUgraphNode)node, (CUdeviceptr *)ptr_p))
HIP_AS(hipDeviceGetGraphMemAttribute, (int device, hipGraphMemAttributeType attribute, void *value),
       cuDeviceGetGraphMemAttribute(device, (CUgraphMem_attribute)attribute, value))
HIP_AS(hipDeviceSetGraphMemAttribute, (int device, hipGraphMemAttributeType attribute, void *value),
       cuDeviceSetGraphMemAttribute(device, (CUgraphMem_attribute)attribute, value))
HIP_AS(hipDeviceGraphMemTrim, (int device), cuDeviceGraphMemTrim(device))
#endif
