/*
 * Host functions in stream order. They run on a queue's thread, with no lock held; calls into the driver from inside one
 * answer "not permitted", as on hardware.
 */
#include "sim.h"

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

static CUresult launch(CUstream stream, bool per_thread, CUhostFn function, void *data)
{
    struct host_op *host;

    if (!function)
        return CUDA_ERROR_INVALID_VALUE;
    host = sim_op_new(sizeof *host, run_host);
    if (host) {
        host->function = function;
        host->data = data;
    }
    return sim_stream_enqueue(stream, per_thread, (struct sim_op *)host);
}

static CUresult add_callback(CUstream stream, bool per_thread, CUstreamCallback callback, void *data, unsigned flags)
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
