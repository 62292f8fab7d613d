/*
 * Streams: creation, order, callbacks, attributes, and the capture calls, which the driver answers. Handles
 * are the driver's. Allocates one small closure per callback and frees it once the callback has run.
 */
#include <stdlib.h>

#include "sim/cudart/runtime.h"

SIM_API cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned int flags)
{
    SIM_TRY(sim_context());
    SIM_CHECK(stream, cudaErrorInvalidValue);
    SIM_TRY(SIM_DRV(cuStreamCreate, stream, flags));
    return cudaSuccess;
}

SIM_API cudaError_t cudaStreamCreate(cudaStream_t *stream)
{
    return cudaStreamCreateWithFlags(stream, cudaStreamDefault);
}

SIM_API cudaError_t cudaStreamCreateWithPriority(cudaStream_t *stream, unsigned int flags, int priority)
{
    SIM_TRY(sim_context());
    SIM_CHECK(stream, cudaErrorInvalidValue);
    SIM_TRY(SIM_DRV(cuStreamCreateWithPriority, stream, flags, priority));
    return cudaSuccess;
}

SIM_API cudaError_t cudaStreamDestroy(cudaStream_t stream)
{
    SIM_TRY(sim_context());
    SIM_CHECK(stream != NULL && stream != cudaStreamLegacy && stream != cudaStreamPerThread,
              cudaErrorInvalidResourceHandle);
    SIM_TRY(SIM_DRV(cuStreamDestroy_v2, stream));
    return cudaSuccess;
}

static cudaError_t get_priority(int half, cudaStream_t stream, int *priority)
{
    SIM_TRY(sim_context());
    SIM_CHECK(priority, cudaErrorInvalidValue);
    SIM_TRY(SIM_DRV_OF(half, cuStreamGetPriority, stream, priority));
    return cudaSuccess;
}

static cudaError_t get_flags(int half, cudaStream_t stream, unsigned int *flags)
{
    SIM_TRY(sim_context());
    SIM_CHECK(flags, cudaErrorInvalidValue);
    SIM_TRY(SIM_DRV_OF(half, cuStreamGetFlags, stream, flags));
    return cudaSuccess;
}

static cudaError_t get_id(int half, cudaStream_t stream, unsigned long long *id)
{
    SIM_TRY(sim_context());
    SIM_CHECK(id, cudaErrorInvalidValue);
    SIM_TRY(SIM_DRV_OF(half, cuStreamGetId, stream, id));
    return cudaSuccess;
}

static cudaError_t get_device(int half, cudaStream_t stream, int *device)
{
    CUdevice handle;

    SIM_TRY(sim_context());
    SIM_CHECK(device, cudaErrorInvalidValue);
    SIM_TRY(SIM_DRV_OF(half, cuStreamGetDevice, stream, &handle));
    *device = (int)handle;
    return cudaSuccess;
}

static cudaError_t wait_event(int half, cudaStream_t stream, cudaEvent_t event, unsigned int flags)
{
    SIM_TRY(sim_context());
    SIM_TRY(SIM_DRV_OF(half, cuStreamWaitEvent, stream, event, flags));
    return cudaSuccess;
}

static cudaError_t synchronize(int half, cudaStream_t stream)
{
    SIM_TRY(sim_context());
    SIM_TRY(SIM_DRV_OF(half, cuStreamSynchronize, stream));
    return cudaSuccess;
}

static cudaError_t query(int half, cudaStream_t stream)
{
    SIM_TRY(sim_context());
    SIM_TRY(SIM_DRV_OF(half, cuStreamQuery, stream));
    return cudaSuccess;
}

SIM_TWINS(cudaStreamGetPriority, _ptsz, get_priority, (cudaStream_t stream, int *priority), stream, priority)
SIM_TWINS(cudaStreamGetFlags, _ptsz, get_flags, (cudaStream_t stream, unsigned int *flags), stream, flags)
SIM_TWINS(cudaStreamGetId, _ptsz, get_id, (cudaStream_t stream, unsigned long long *id), stream, id)
SIM_TWINS(cudaStreamGetDevice, _ptsz, get_device, (cudaStream_t stream, int *device), stream, device)
SIM_TWINS(cudaStreamWaitEvent, _ptsz, wait_event,
          (cudaStream_t stream, cudaEvent_t event, unsigned int flags), stream, event, flags)
SIM_TWINS(cudaStreamSynchronize, _ptsz, synchronize, (cudaStream_t stream), stream)
SIM_TWINS(cudaStreamQuery, _ptsz, query, (cudaStream_t stream), stream)

struct callback {
    cudaStreamCallback_t function;
    void *argument;
};

static void run_callback(CUstream stream, CUresult status, void *argument)
{
    struct callback *callback = argument;

    callback->function(stream, (cudaError_t)status, callback->argument);
    free(callback);
}

static cudaError_t add_callback(int half, cudaStream_t stream, cudaStreamCallback_t function, void *argument,
                                unsigned int flags)
{
    struct callback *callback;
    cudaError_t rc;

    SIM_TRY(sim_context());
    SIM_CHECK(function && flags == 0, cudaErrorInvalidValue);
    callback = malloc(sizeof(*callback));
    SIM_CHECK(callback, cudaErrorMemoryAllocation);
    callback->function = function;
    callback->argument = argument;
    rc = SIM_DRV_OF(half, cuStreamAddCallback, stream, run_callback, callback, 0);
    if (rc != cudaSuccess)
        free(callback);
    SIM_TRY(rc);
    return cudaSuccess;
}

static cudaError_t host_function(int half, cudaStream_t stream, cudaHostFn_t function, void *argument)
{
    SIM_TRY(sim_context());
    SIM_CHECK(function, cudaErrorInvalidValue);
    SIM_TRY(SIM_DRV_OF(half, cuLaunchHostFunc, stream, function, argument));
    return cudaSuccess;
}

SIM_TWINS(cudaStreamAddCallback, _ptsz, add_callback,
          (cudaStream_t stream, cudaStreamCallback_t function, void *argument, unsigned int flags), stream,
          function, argument, flags)
SIM_TWINS(cudaLaunchHostFunc, _ptsz, host_function,
          (cudaStream_t stream, cudaHostFn_t function, void *argument), stream, function, argument)

_Static_assert(sizeof(cudaLaunchAttributeValue) == sizeof(CUlaunchAttributeValue),
               "attribute values have one layout");

static cudaError_t copy_attributes(int half, cudaStream_t to, cudaStream_t from)
{
    SIM_TRY(sim_context());
    SIM_TRY(SIM_DRV_OF(half, cuStreamCopyAttributes, to, from));
    return cudaSuccess;
}

static cudaError_t get_attribute(int half, cudaStream_t stream, cudaLaunchAttributeID id,
                                 cudaLaunchAttributeValue *value)
{
    SIM_TRY(sim_context());
    SIM_CHECK(value, cudaErrorInvalidValue);
    SIM_TRY(SIM_DRV_OF(half, cuStreamGetAttribute, stream, (CUlaunchAttributeID)id,
                       (CUlaunchAttributeValue *)value));
    return cudaSuccess;
}

static cudaError_t set_attribute(int half, cudaStream_t stream, cudaLaunchAttributeID id,
                                 const cudaLaunchAttributeValue *value)
{
    SIM_TRY(sim_context());
    SIM_CHECK(value, cudaErrorInvalidValue);
    SIM_TRY(SIM_DRV_OF(half, cuStreamSetAttribute, stream, (CUlaunchAttributeID)id,
                       (const CUlaunchAttributeValue *)value));
    return cudaSuccess;
}

SIM_TWINS(cudaStreamCopyAttributes, _ptsz, copy_attributes, (cudaStream_t to, cudaStream_t from), to, from)
SIM_TWINS(cudaStreamGetAttribute, _ptsz, get_attribute,
          (cudaStream_t stream, cudaLaunchAttributeID id, cudaLaunchAttributeValue *value), stream, id, value)
SIM_TWINS(cudaStreamSetAttribute, _ptsz, set_attribute,
          (cudaStream_t stream, cudaLaunchAttributeID id, const cudaLaunchAttributeValue *value), stream, id,
          value)
