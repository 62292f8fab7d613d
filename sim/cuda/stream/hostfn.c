/*
 * Host functions in stream order. They run on a queue's thread, with no lock held; calls into the driver from
 * inside one answer "not permitted", as on hardware.
 */
#include "sim/cuda/graph/graph.h"

struct host_op {
    struct sim_op op;
    CUhostFn function;
    CUstreamCallback callback;
    CUstream stream;
    void *data;
};

static CUresult run_host(struct sim_op *op, struct sim_queue *queue)
{
    struct host_op *host = (struct host_op *)op;
    struct sim_thread *thread = sim_thread();

    (void)queue;
    if (!thread)
        return CUDA_ERROR_OUT_OF_MEMORY;
    thread->in_host_function = true;
    if (host->function)
        host->function(host->data);
    else
        host->callback(host->stream, op->status, host->data);
    thread->in_host_function = false;
    return CUDA_SUCCESS;
}

CUresult sim_host_work(const CUDA_HOST_NODE_PARAMS *params, struct sim_op **work_p)
{
    struct host_op *host;

    if (!params->fn)
        return CUDA_ERROR_INVALID_VALUE;
    host = sim_op_new(sizeof *host, run_host);
    if (!host)
        return CUDA_ERROR_OUT_OF_MEMORY;
    host->op.node = CU_GRAPH_NODE_TYPE_HOST;
    host->function = params->fn;
    host->data = params->userData;
    *work_p = &host->op;
    return CUDA_SUCCESS;
}

void sim_host_params(const struct sim_op *work, CUDA_HOST_NODE_PARAMS *params)
{
    const struct host_op *host = (const struct host_op *)work;

    *params = (CUDA_HOST_NODE_PARAMS){host->function, host->data};
}

static CUresult launch(CUstream stream, bool per_thread, CUhostFn function, void *data)
{
    struct sim_op *work = NULL;
    CUresult status = sim_host_work(&(CUDA_HOST_NODE_PARAMS){function, data}, &work);

    return status == CUDA_SUCCESS ? sim_stream_enqueue(stream, per_thread, work) : status;
}

/* Cannot be captured. */
static CUresult add_callback(CUstream stream, bool per_thread, CUstreamCallback callback, void *data,
                             unsigned flags)
{
    struct host_op *host;

    if (!callback || flags)
        return CUDA_ERROR_INVALID_VALUE;
    host = sim_op_new(sizeof *host, run_host);
    if (host) {
        host->callback = callback;
        host->stream = stream;
        host->data = data;
        host->op.always = true; /* a callback hears of errors */
    }
    return sim_stream_enqueue(stream, per_thread, (struct sim_op *)host);
}

SIM_PAIR(cuLaunchHostFunc, ptsz, (CUstream stream, CUhostFn function, void *data),
         launch(stream, per_thread, function, data))
SIM_PAIR(cuStreamAddCallback, ptsz, (CUstream stream, CUstreamCallback callback, void *data, unsigned flags),
         add_callback(stream, per_thread, callback, data, flags))
