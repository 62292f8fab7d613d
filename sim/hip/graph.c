/*
 * Captures, and graphs as far as captures make them.
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
