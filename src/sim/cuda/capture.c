/*
 * What a program may ask about capture while nothing can be captured here: no stream is ever capturing.
 * Beginning one answers "not supported" (stubs.c).
 */
#include "sim.h"

static CUresult nothing_captured(CUstream stream, bool per_thread, CUstreamCaptureStatus *status_p, cuuint64_t *id_p)
{
    CUresult status = sim_stream_check(stream, per_thread);

    if (status != CUDA_SUCCESS)
        return status;
    if (!status_p)
        return CUDA_ERROR_INVALID_VALUE;
    *status_p = CU_STREAM_CAPTURE_STATUS_NONE;
    if (id_p)
        *id_p = 0;
    return CUDA_SUCCESS;
}

static CUresult no_graph(CUresult status, CUgraph *graph_p, const CUgraphNode **nodes_p, const CUgraphEdgeData **edges_p,
                         size_t *count_p)
{
    if (status != CUDA_SUCCESS)
        return status;
    if (graph_p)
        *graph_p = NULL;
    if (nodes_p)
        *nodes_p = NULL;
    if (edges_p)
        *edges_p = NULL;
    if (count_p)
        *count_p = 0;
    return CUDA_SUCCESS;
}

SIM_PAIR(cuStreamIsCapturing, ptsz, (CUstream stream, CUstreamCaptureStatus *status_p),
         nothing_captured(stream, per_thread, status_p, NULL))
SIM_PAIR(cuStreamGetCaptureInfo, ptsz, (CUstream stream, CUstreamCaptureStatus *status_p, cuuint64_t *id_p),
         nothing_captured(stream, per_thread, status_p, id_p))
SIM_PAIR(cuStreamGetCaptureInfo_v2, ptsz,
         (CUstream stream, CUstreamCaptureStatus *status_p, cuuint64_t *id_p, CUgraph *graph_p,
          const CUgraphNode **nodes_p, size_t *count_p),
         no_graph(nothing_captured(stream, per_thread, status_p, id_p), graph_p, nodes_p, NULL, count_p))
SIM_PAIR(cuStreamGetCaptureInfo_v3, ptsz,
         (CUstream stream, CUstreamCaptureStatus *status_p, cuuint64_t *id_p, CUgraph *graph_p,
          const CUgraphNode **nodes_p, const CUgraphEdgeData **edges_p, size_t *count_p),
         no_graph(nothing_captured(stream, per_thread, status_p, id_p), graph_p, nodes_p, edges_p, count_p))

SIM_API(cuThreadExchangeStreamCaptureMode)(CUstreamCaptureMode *mode)
{
    SIM_ENTER(cuThreadExchangeStreamCaptureMode);
    struct sim_thread *thread = sim_thread();

    if (!mode || !thread || (unsigned)*mode > CU_STREAM_CAPTURE_MODE_RELAXED)
        return CUDA_ERROR_INVALID_VALUE;
    CUstreamCaptureMode before = thread->capture_mode;
    thread->capture_mode = *mode;
    *mode = before;
    return CUDA_SUCCESS;
}
