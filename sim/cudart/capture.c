/*
 * Stream capture: every question goes to the driver.
 */
#include "sim/cudart/runtime.h"

_Static_assert(sizeof(cudaGraphEdgeData) == sizeof(CUgraphEdgeData), "edge data has one layout");

static cudaError_t begin(int half, cudaStream_t stream, enum cudaStreamCaptureMode mode)
{
    SIM_TRY(sim_context());
    SIM_TRY(SIM_DRV_OF(half, cuStreamBeginCapture_v2, stream, (CUstreamCaptureMode)mode));
    return cudaSuccess;
}

static cudaError_t begin_to_graph(int half, cudaStream_t stream, cudaGraph_t graph,
                                  const cudaGraphNode_t *dependencies, const cudaGraphEdgeData *edges,
                                  size_t count, enum cudaStreamCaptureMode mode)
{
    SIM_TRY(sim_context());
    SIM_TRY(SIM_DRV_OF(half, cuStreamBeginCaptureToGraph, stream, graph, dependencies,
                       (const CUgraphEdgeData *)edges, count, (CUstreamCaptureMode)mode));
    return cudaSuccess;
}

static cudaError_t end(int half, cudaStream_t stream, cudaGraph_t *graph)
{
    SIM_TRY(sim_context());
    SIM_CHECK(graph, cudaErrorInvalidValue);
    SIM_TRY(SIM_DRV_OF(half, cuStreamEndCapture, stream, graph));
    return cudaSuccess;
}

static cudaError_t is_capturing(int half, cudaStream_t stream, enum cudaStreamCaptureStatus *status)
{
    CUstreamCaptureStatus found;

    SIM_TRY(sim_context());
    SIM_CHECK(status, cudaErrorInvalidValue);
    SIM_TRY(SIM_DRV_OF(half, cuStreamIsCapturing, stream, &found));
    *status = (enum cudaStreamCaptureStatus)found;
    return cudaSuccess;
}

static cudaError_t info(int half, cudaStream_t stream, enum cudaStreamCaptureStatus *status,
                        unsigned long long *id, cudaGraph_t *graph, const cudaGraphNode_t **dependencies,
                        const cudaGraphEdgeData **edges, size_t *count)
{
    CUstreamCaptureStatus found;
    cuuint64_t found_id = 0;

    SIM_TRY(sim_context());
    SIM_CHECK(status, cudaErrorInvalidValue);
    SIM_TRY(SIM_DRV_OF(half, cuStreamGetCaptureInfo_v3, stream, &found, &found_id, graph, dependencies,
                       (const CUgraphEdgeData **)edges, count));
    *status = (enum cudaStreamCaptureStatus)found;
    if (id)
        *id = found_id;
    return cudaSuccess;
}

SIM_TWINS(cudaStreamBeginCapture, _ptsz, begin, (cudaStream_t stream, enum cudaStreamCaptureMode mode),
          stream, mode)
SIM_TWINS(cudaStreamBeginCaptureToGraph, _ptsz, begin_to_graph,
          (cudaStream_t stream, cudaGraph_t graph, const cudaGraphNode_t *dependencies,
           const cudaGraphEdgeData *edges, size_t count, enum cudaStreamCaptureMode mode),
          stream, graph, dependencies, edges, count, mode)
SIM_TWINS(cudaStreamEndCapture, _ptsz, end, (cudaStream_t stream, cudaGraph_t *graph), stream, graph)
SIM_TWINS(cudaStreamIsCapturing, _ptsz, is_capturing,
          (cudaStream_t stream, enum cudaStreamCaptureStatus *status), stream, status)

static cudaError_t update(int half, cudaStream_t stream, cudaGraphNode_t *nodes,
                          const cudaGraphEdgeData *edges, size_t count, unsigned flags)
{
    SIM_TRY(sim_context());
    SIM_TRY(SIM_DRV_OF(half, cuStreamUpdateCaptureDependencies_v2, stream, nodes,
                       (const CUgraphEdgeData *)edges, count, flags));
    return cudaSuccess;
}

#if SIM_CUDART == 12
SIM_TWINS(cudaStreamUpdateCaptureDependencies, _ptsz, update,
          (cudaStream_t stream, cudaGraphNode_t *nodes, size_t count, unsigned flags), stream, nodes, NULL,
          count, flags)
SIM_TWINS(cudaStreamUpdateCaptureDependencies_v2, _ptsz, update,
          (cudaStream_t stream, cudaGraphNode_t *nodes, const cudaGraphEdgeData *edges, size_t count,
           unsigned flags),
          stream, nodes, edges, count, flags)
#else
SIM_TWINS(cudaStreamUpdateCaptureDependencies, _ptsz, update,
          (cudaStream_t stream, cudaGraphNode_t *nodes, const cudaGraphEdgeData *edges, size_t count,
           unsigned flags),
          stream, nodes, edges, count, flags)
#endif

#if SIM_CUDART == 12
/* CUDA 11 and 12's second form: without edge data. */
static cudaError_t info_plain(int half, cudaStream_t stream, enum cudaStreamCaptureStatus *status,
                              unsigned long long *id, cudaGraph_t *graph,
                              const cudaGraphNode_t **dependencies, size_t *count)
{
    CUstreamCaptureStatus found;
    cuuint64_t found_id = 0;

    SIM_TRY(sim_context());
    SIM_CHECK(status, cudaErrorInvalidValue);
    SIM_TRY(
        SIM_DRV_OF(half, cuStreamGetCaptureInfo_v2, stream, &found, &found_id, graph, dependencies, count));
    *status = (enum cudaStreamCaptureStatus)found;
    if (id)
        *id = found_id;
    return cudaSuccess;
}

/* The unsuffixed symbol is the first form: status and id alone. */
SIM_TWINS(cudaStreamGetCaptureInfo, _ptsz, info_plain,
          (cudaStream_t stream, enum cudaStreamCaptureStatus *status, unsigned long long *id), stream, status,
          id, NULL, NULL, NULL)
SIM_TWINS(cudaStreamGetCaptureInfo_v2, _ptsz, info_plain,
          (cudaStream_t stream, enum cudaStreamCaptureStatus *status, unsigned long long *id,
           cudaGraph_t *graph, const cudaGraphNode_t **dependencies, size_t *count),
          stream, status, id, graph, dependencies, count)
SIM_TWINS(cudaStreamGetCaptureInfo_v3, _ptsz, info,
          (cudaStream_t stream, enum cudaStreamCaptureStatus *status, unsigned long long *id,
           cudaGraph_t *graph, const cudaGraphNode_t **dependencies, const cudaGraphEdgeData **edges,
           size_t *count),
          stream, status, id, graph, dependencies, edges, count)
#else
SIM_TWINS(cudaStreamGetCaptureInfo, _ptsz, info,
          (cudaStream_t stream, enum cudaStreamCaptureStatus *status, unsigned long long *id,
           cudaGraph_t *graph, const cudaGraphNode_t **dependencies, const cudaGraphEdgeData **edges,
           size_t *count),
          stream, status, id, graph, dependencies, edges, count)
#endif

SIM_API cudaError_t cudaThreadExchangeStreamCaptureMode(enum cudaStreamCaptureMode *mode)
{
    CUstreamCaptureMode exchanged;

    SIM_TRY(sim_runtime());
    SIM_CHECK(mode, cudaErrorInvalidValue);
    exchanged = (CUstreamCaptureMode)*mode;
    SIM_TRY(SIM_DRV(cuThreadExchangeStreamCaptureMode, &exchanged));
    *mode = (enum cudaStreamCaptureMode)exchanged;
    return cudaSuccess;
}
