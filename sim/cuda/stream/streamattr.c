/*
 * Attributes of streams: priority, and what is kept to be asked for again (window of the level 2 cache, how
 * the host waits, domains of memory order), since nothing here runs differently for it. They belong to the
 * queue, so that the streams without a handle have them too. Lock: one for all, held for a copy.
 *
 * What they answer: docs.nvidia.com/cuda/cuda-driver-api, "Stream Management", cuStreamSetAttribute and
 * CUlaunchAttributeID, which says of each whether it is one of streams; other attributes are 1, as
 * recorded.
 */
#include <pthread.h>

#include "sim/cuda/graph/graph.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static CUresult get(struct sim_queue *queue, const struct CUstream_st *stream, CUstreamAttrID which,
                    CUstreamAttrValue *value)
{
    const struct sim_stream_attributes *kept = &queue->attributes;

    switch ((int)which) {
    case CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW:
        value->accessPolicyWindow = kept->window;
        return CUDA_SUCCESS;
    case CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY:
        value->syncPolicy = kept->policy ? kept->policy : CU_SYNC_POLICY_AUTO;
        return CUDA_SUCCESS;
    case CU_LAUNCH_ATTRIBUTE_PRIORITY:
        value->priority = stream ? stream->priority : 0;
        return CUDA_SUCCESS;
    case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP:
        value->memSyncDomainMap = kept->domains;
        return CUDA_SUCCESS;
    case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN:
        value->memSyncDomain = kept->domain;
        return CUDA_SUCCESS;
    default:
        return CUDA_ERROR_INVALID_VALUE;
    }
}

static CUresult set(struct sim_queue *queue, struct CUstream_st *stream, CUstreamAttrID which,
                    const CUstreamAttrValue *value)
{
    struct sim_stream_attributes *kept = &queue->attributes;

    switch ((int)which) {
    case CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW:
        if (!(value->accessPolicyWindow.hitRatio >= 0 && value->accessPolicyWindow.hitRatio <= 1))
            return CUDA_ERROR_INVALID_VALUE;
        kept->window = value->accessPolicyWindow;
        return CUDA_SUCCESS;
    case CU_LAUNCH_ATTRIBUTE_SYNCHRONIZATION_POLICY:
        if (value->syncPolicy < CU_SYNC_POLICY_AUTO || value->syncPolicy > CU_SYNC_POLICY_BLOCKING_SYNC)
            return CUDA_ERROR_INVALID_VALUE;
        kept->policy = value->syncPolicy;
        return CUDA_SUCCESS;
    case CU_LAUNCH_ATTRIBUTE_PRIORITY:
        if (!stream || value->priority > SIM_PRIORITY_LOWEST || value->priority < SIM_PRIORITY_GREATEST)
            return CUDA_ERROR_INVALID_VALUE;
        stream->priority = value->priority;
        return CUDA_SUCCESS;
    case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP:
        kept->domains = value->memSyncDomainMap;
        return CUDA_SUCCESS;
    case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN:
        kept->domain = value->memSyncDomain;
        return CUDA_SUCCESS;
    default:
        return CUDA_ERROR_INVALID_VALUE;
    }
}

/* Either `to` or `from` is given. */
static CUresult exchange(CUstream handle, bool per_thread, CUstreamAttrID which, CUstreamAttrValue *to,
                         const CUstreamAttrValue *from)
{
    struct CUstream_st *stream = (uintptr_t)handle > 2 ? sim_object_get(handle, SIM_STREAM) : NULL;
    struct sim_queue *queue = NULL;
    CUresult status = to || from ? sim_stream_find(handle, per_thread, &queue) : CUDA_ERROR_INVALID_VALUE;

    if (status == CUDA_SUCCESS) {
        pthread_mutex_lock(&lock);
        status = to ? get(queue, stream, which, to) : set(queue, stream, which, from);
        pthread_mutex_unlock(&lock);
        sim_queue_put(queue);
    }
    if (stream)
        sim_object_put(stream);
    return status;
}

/* All that are kept; a stream's priority stays its own. */
static CUresult copy(CUstream to, CUstream from, bool per_thread)
{
    struct sim_queue *target = NULL, *source = NULL;
    CUresult status = sim_stream_find(to, per_thread, &target);

    if (status == CUDA_SUCCESS)
        status = sim_stream_find(from, per_thread, &source);
    if (status == CUDA_SUCCESS && target->ctx != source->ctx)
        status = CUDA_ERROR_INVALID_VALUE;
    if (status == CUDA_SUCCESS) {
        pthread_mutex_lock(&lock);
        target->attributes = source->attributes;
        pthread_mutex_unlock(&lock);
    }
    sim_queue_put(source);
    sim_queue_put(target);
    return status;
}

SIM_PAIR(cuStreamGetAttribute, ptsz, (CUstream stream, CUstreamAttrID which, CUstreamAttrValue *value),
         exchange(stream, per_thread, which, value, NULL))
SIM_PAIR(cuStreamSetAttribute, ptsz, (CUstream stream, CUstreamAttrID which, const CUstreamAttrValue *value),
         exchange(stream, per_thread, which, NULL, value))
SIM_PAIR(cuStreamCopyAttributes, ptsz, (CUstream to, CUstream from), copy(to, from, per_thread))
