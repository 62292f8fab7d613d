/*
 * Stream capture as programs call it. The rules are in capture.c.
 */
#include <stdlib.h>

#include "sim/cuda/graph/graph.h"

static CUresult begin(CUstream stream, bool per_thread, CUstreamCaptureMode mode)
{
    struct sim_queue *queue;
    CUresult status = sim_stream_queue(stream, per_thread, &queue);

    if (status != CUDA_SUCCESS)
        return status;
    sim_graph_lock();
    if ((unsigned)mode > CU_STREAM_CAPTURE_MODE_RELAXED)
        status = CUDA_ERROR_INVALID_VALUE;
    else if (queue->is_legacy)
        status = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    else if (atomic_load(&queue->captured))
        status = CUDA_ERROR_ILLEGAL_STATE;
    else
        status = sim_capture_begin(queue, mode, NULL, NULL, NULL, 0);
    sim_graph_unlock();
    sim_queue_put(queue);
    return status;
}

SIM_PAIR(cuStreamBeginCapture, ptsz, (CUstream stream),
         begin(stream, per_thread, CU_STREAM_CAPTURE_MODE_GLOBAL))
SIM_PAIR(cuStreamBeginCapture_v2, ptsz, (CUstream stream, CUstreamCaptureMode mode),
         begin(stream, per_thread, mode))

static bool are_of(const CUgraphNode *nodes, size_t count, const struct CUgraph_st *graph)
{
    for (size_t i = 0; i < count; i++) {
        const struct CUgraphNode_st *node = sim_node_find(nodes[i]);
        if (!node || node->graph != graph)
            return false;
    }
    return true;
}

static CUresult begin_into(CUstream stream, bool per_thread, CUgraph handle, const CUgraphNode *nodes,
                           const CUgraphEdgeData *edges, size_t count, CUstreamCaptureMode mode)
{
    struct sim_queue *queue;
    CUresult status = sim_stream_queue(stream, per_thread, &queue);

    if (status != CUDA_SUCCESS)
        return status;
    sim_graph_lock();
    struct CUgraph_st *graph = sim_object_get(handle, SIM_GRAPH);
    if (!graph || (count && !nodes) || (unsigned)mode > CU_STREAM_CAPTURE_MODE_RELAXED ||
        !are_of(nodes, count, graph))
        status = CUDA_ERROR_INVALID_VALUE;
    else if (queue->is_legacy)
        status = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    else if (atomic_load(&queue->captured))
        status = CUDA_ERROR_ILLEGAL_STATE;
    if (status == CUDA_SUCCESS)
        status = sim_capture_begin(queue, mode, graph, nodes, edges, count);
    else if (graph)
        sim_object_put(graph);
    sim_graph_unlock();
    sim_queue_put(queue);
    return status;
}

SIM_PAIR(cuStreamBeginCaptureToGraph, ptsz,
         (CUstream stream, CUgraph graph, const CUgraphNode *nodes, const CUgraphEdgeData *edges,
          size_t count, CUstreamCaptureMode mode),
         begin_into(stream, per_thread, graph, nodes, edges, count, mode))

static CUresult end(CUstream stream, bool per_thread, CUgraph *graph_p)
{
    struct sim_queue *queue;
    CUgraph unwanted;
    CUresult status = sim_stream_find(stream, per_thread, &queue);

    if (status != CUDA_SUCCESS)
        return status;
    sim_graph_lock();
    status = sim_capture_end(queue, graph_p ? graph_p : &unwanted);
    sim_graph_unlock();
    sim_queue_put(queue);
    return status;
}

SIM_PAIR(cuStreamEndCapture, ptsz, (CUstream stream, CUgraph *graph_p), end(stream, per_thread, graph_p))

/* A program may ask for less than all of these; the lists are the capture's own until the stream is used
 * again. */
struct answer {
    CUstreamCaptureStatus *status_p;
    cuuint64_t *id_p;
    CUgraph *graph_p;
    const CUgraphNode **nodes_p;
    const CUgraphEdgeData **edges_p;
    size_t *count_p;
};

static void say(const struct answer *answer, const struct sim_member *member)
{
    bool active = member && !member->capture->broken;

    *answer->status_p = active   ? CU_STREAM_CAPTURE_STATUS_ACTIVE
                        : member ? CU_STREAM_CAPTURE_STATUS_INVALIDATED
                                 : CU_STREAM_CAPTURE_STATUS_NONE;
    if (answer->id_p)
        *answer->id_p = active ? member->capture->id : 0;
    if (answer->graph_p)
        *answer->graph_p = active ? member->capture->graph : NULL;
    if (answer->nodes_p)
        *answer->nodes_p = active ? member->front : NULL;
    if (answer->edges_p)
        *answer->edges_p = active ? member->edges : NULL;
    if (answer->count_p)
        *answer->count_p = active ? member->count : 0;
}

static CUresult ask(CUstream stream, bool per_thread, const struct answer *answer)
{
    struct sim_queue *queue;
    CUresult status = sim_stream_find(stream, per_thread, &queue);

    if (status != CUDA_SUCCESS)
        return status;
    sim_graph_lock();
    status = sim_context_error(queue->ctx);
    if (status == CUDA_SUCCESS && !answer->status_p)
        status = CUDA_ERROR_INVALID_VALUE;
    else if (status == CUDA_SUCCESS && sim_capture_legacy(queue))
        status = CUDA_ERROR_STREAM_CAPTURE_IMPLICIT; /* and nothing is broken by asking */
    if (status == CUDA_SUCCESS)
        say(answer, atomic_load(&queue->captured));
    sim_graph_unlock();
    sim_queue_put(queue);
    return status;
}

SIM_PAIR(cuStreamIsCapturing, ptsz, (CUstream stream, CUstreamCaptureStatus *status_p),
         ask(stream, per_thread, &(struct answer){.status_p = status_p}))
SIM_PAIR(cuStreamGetCaptureInfo, ptsz, (CUstream stream, CUstreamCaptureStatus *status_p, cuuint64_t *id_p),
         ask(stream, per_thread, &(struct answer){status_p, id_p, NULL, NULL, NULL, NULL}))
SIM_PAIR(cuStreamGetCaptureInfo_v2, ptsz,
         (CUstream stream, CUstreamCaptureStatus *status_p, cuuint64_t *id_p, CUgraph *graph_p,
          const CUgraphNode **nodes_p, size_t *count_p),
         ask(stream, per_thread, &(struct answer){status_p, id_p, graph_p, nodes_p, NULL, count_p}))
SIM_PAIR(cuStreamGetCaptureInfo_v3, ptsz,
         (CUstream stream, CUstreamCaptureStatus *status_p, cuuint64_t *id_p, CUgraph *graph_p,
          const CUgraphNode **nodes_p, const CUgraphEdgeData **edges_p, size_t *count_p),
         ask(stream, per_thread, &(struct answer){status_p, id_p, graph_p, nodes_p, edges_p, count_p}))

static CUresult add_front(struct sim_member *member, const CUgraphNode *nodes, const CUgraphEdgeData *edges,
                          size_t count)
{
    CUgraphNode *all = malloc((member->count + count + 1) * sizeof *all);
    CUgraphEdgeData *data = calloc(member->count + count + 1, sizeof *data);
    size_t found = member->count;
    bool done = all && data;

    for (size_t i = 0; done && i < found; i++) {
        all[i] = member->front[i];
        data[i] = member->edges[i];
    }
    for (size_t i = 0; done && i < count; i++) {
        size_t j = 0;
        while (j < found && all[j] != nodes[i])
            j++;
        if (j < found)
            continue;
        all[found] = nodes[i];
        if (edges)
            data[found] = edges[i];
        found++;
    }
    done = done && sim_capture_move(member, all, data, found);
    free(all);
    free(data);
    return done ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

static CUresult update(CUstream stream, bool per_thread, const CUgraphNode *nodes,
                       const CUgraphEdgeData *edges, size_t count, unsigned flags)
{
    struct sim_queue *queue;
    CUresult status = sim_stream_queue(stream, per_thread, &queue);

    if (status != CUDA_SUCCESS)
        return status;
    sim_graph_lock();
    struct sim_member *member = atomic_load(&queue->captured);
    if (!member)
        status = CUDA_ERROR_ILLEGAL_STATE;
    else if (flags > CU_STREAM_SET_CAPTURE_DEPENDENCIES || (count && !nodes) ||
             !are_of(nodes, count, member->capture->graph))
        status = CUDA_ERROR_INVALID_VALUE;
    else if (flags == CU_STREAM_ADD_CAPTURE_DEPENDENCIES)
        status = add_front(member, nodes, edges, count);
    else if (!sim_capture_move(member, nodes, edges, count))
        status = CUDA_ERROR_OUT_OF_MEMORY;
    sim_graph_unlock();
    sim_queue_put(queue);
    return status;
}

SIM_PAIR(cuStreamUpdateCaptureDependencies, ptsz,
         (CUstream stream, CUgraphNode *nodes, size_t count, unsigned flags),
         update(stream, per_thread, nodes, NULL, count, flags))
SIM_PAIR(cuStreamUpdateCaptureDependencies_v2, ptsz,
         (CUstream stream, CUgraphNode *nodes, const CUgraphEdgeData *edges, size_t count, unsigned flags),
         update(stream, per_thread, nodes, edges, count, flags))

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
