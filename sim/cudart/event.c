/*
 * Events. Handles and flags are the driver's.
 */
#include "sim/cudart/runtime.h"

SIM_API cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned int flags)
{
    SIM_TRY(sim_context());
    SIM_CHECK(event, cudaErrorInvalidValue);
    SIM_TRY(SIM_DRV(cuEventCreate, event, flags));
    return cudaSuccess;
}

SIM_API cudaError_t cudaEventCreate(cudaEvent_t *event)
{
    return cudaEventCreateWithFlags(event, cudaEventDefault);
}

SIM_API cudaError_t cudaEventDestroy(cudaEvent_t event)
{
    SIM_TRY(sim_context());
    SIM_CHECK(event, cudaErrorInvalidResourceHandle);
    SIM_TRY(SIM_DRV(cuEventDestroy_v2, event));
    return cudaSuccess;
}

static cudaError_t record(int half, cudaEvent_t event, cudaStream_t stream)
{
    SIM_TRY(sim_context());
    SIM_TRY(SIM_DRV_OF(half, cuEventRecord, event, stream));
    return cudaSuccess;
}

static cudaError_t record_with_flags(int half, cudaEvent_t event, cudaStream_t stream, unsigned int flags)
{
    SIM_TRY(sim_context());
    SIM_TRY(SIM_DRV_OF(half, cuEventRecordWithFlags, event, stream, flags));
    return cudaSuccess;
}

SIM_TWINS(cudaEventRecord, _ptsz, record, (cudaEvent_t event, cudaStream_t stream), event, stream)
SIM_TWINS(cudaEventRecordWithFlags, _ptsz, record_with_flags,
          (cudaEvent_t event, cudaStream_t stream, unsigned int flags), event, stream, flags)

SIM_API cudaError_t cudaEventQuery(cudaEvent_t event)
{
    SIM_TRY(sim_context());
    SIM_TRY(SIM_DRV(cuEventQuery, event));
    return cudaSuccess;
}

SIM_API cudaError_t cudaEventSynchronize(cudaEvent_t event)
{
    SIM_TRY(sim_context());
    SIM_TRY(SIM_DRV(cuEventSynchronize, event));
    return cudaSuccess;
}

SIM_API cudaError_t cudaEventElapsedTime(float *milliseconds, cudaEvent_t start, cudaEvent_t end)
{
    SIM_TRY(sim_context());
    SIM_CHECK(milliseconds, cudaErrorInvalidValue);
    SIM_TRY(SIM_DRV(cuEventElapsedTime, milliseconds, start, end));
    return cudaSuccess;
}

#if SIM_CUDART == 12
SIM_API cudaError_t cudaEventElapsedTime_v2(float *milliseconds, cudaEvent_t start, cudaEvent_t end)
{
    return cudaEventElapsedTime(milliseconds, start, end);
}
#endif
