/*
 * Streams and events, and host functions in them.
 */
#include <stdlib.h>

#include "sim/hip/hip.h"

HIP_AS(hipStreamCreate, (hipStream_t * stream), cuStreamCreate((CUstream *)stream, CU_STREAM_DEFAULT))
HIP_AS(hipStreamCreateWithFlags, (hipStream_t * stream, unsigned flags),
       cuStreamCreate((CUstream *)stream, flags))
HIP_AS(hipStreamCreateWithPriority, (hipStream_t * stream, unsigned flags, int priority),
       cuStreamCreateWithPriority((CUstream *)stream, flags, priority))
HIP_AS(hipExtStreamCreateWithCUMask, (hipStream_t * stream, uint32_t words, const uint32_t *mask),
       words &&mask ? cuStreamCreate((CUstream *)stream, CU_STREAM_DEFAULT) : CUDA_ERROR_INVALID_VALUE)
#if SIM_HIP >= 7
/* Of any execution context: there are none to be made here. */
HIP_AS(hipExecutionCtxStreamCreate,
       (hipStream_t * stream, hipExecutionCtx_t context, unsigned flags, int priority),
       context ? cuStreamCreateWithPriority((CUstream *)stream, flags, priority) : CUDA_ERROR_INVALID_VALUE)
#endif
HIP_AS(hipStreamDestroy, (hipStream_t stream),
       stream ? cuStreamDestroy_v2(hip_stream(stream)) : CUDA_ERROR_INVALID_HANDLE)
HIP_AS(hipStreamSynchronize, (hipStream_t stream), cuStreamSynchronize(hip_stream(stream)))
HIP_AS(hipStreamSynchronize_spt, (hipStream_t stream), cuStreamSynchronize_ptsz(hip_stream(stream)))
/* Before 7 a question breaks captures that are open in global mode, whatever the thread's own mode is
 * (rocm-systems#3176; clr, Stream::StreamCaptureOngoing). */
static int ask(CUresult (*question)(void *), void *of)
{
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_GLOBAL;

    if (SIM_HIP < 7)
        cuThreadExchangeStreamCaptureMode(&mode);
    int status = (int)question(of);
    if (SIM_HIP < 7)
        cuThreadExchangeStreamCaptureMode(&mode);
    return status;
}

static CUresult query_stream(void *stream)
{
    return cuStreamQuery(hip_stream(stream));
}

static CUresult query_event(void *event)
{
    return cuEventQuery(event);
}

HIP_AS(hipStreamQuery, (hipStream_t stream), ask(query_stream, stream))
HIP_AS(hipStreamQuery_spt, (hipStream_t stream), cuStreamQuery_ptsz(hip_stream(stream)))
HIP_AS(hipStreamWaitEvent, (hipStream_t stream, hipEvent_t event, unsigned flags),
       cuStreamWaitEvent(hip_stream(stream), (CUevent)event, flags))
HIP_AS(hipStreamWaitEvent_spt, (hipStream_t stream, hipEvent_t event, unsigned flags),
       cuStreamWaitEvent_ptsz(hip_stream(stream), (CUevent)event, flags))
HIP_AS(hipStreamGetFlags, (hipStream_t stream, unsigned *flags), cuStreamGetFlags(hip_stream(stream), flags))
HIP_AS(hipStreamGetPriority, (hipStream_t stream, int *priority),
       cuStreamGetPriority(hip_stream(stream), priority))
#if SIM_HIP >= 6
HIP_AS(hipStreamGetDevice, (hipStream_t stream, hipDevice_t *device),
       cuStreamGetDevice(hip_stream(stream), device))
#endif
HIP_AS(hipStreamWaitValue32, (hipStream_t stream, void *ptr, uint32_t value, unsigned flags, uint32_t mask),
       ((void)mask, cuStreamWaitValue32_v2(hip_stream(stream), hip_address(ptr), value, flags)))
HIP_AS(hipStreamWaitValue64, (hipStream_t stream, void *ptr, uint64_t value, unsigned flags, uint64_t mask),
       ((void)mask, cuStreamWaitValue64_v2(hip_stream(stream), hip_address(ptr), value, flags)))
HIP_AS(hipStreamWriteValue32, (hipStream_t stream, void *ptr, uint32_t value, unsigned flags),
       cuStreamWriteValue32_v2(hip_stream(stream), hip_address(ptr), value, flags))
HIP_AS(hipStreamWriteValue64, (hipStream_t stream, void *ptr, uint64_t value, unsigned flags),
       cuStreamWriteValue64_v2(hip_stream(stream), hip_address(ptr), value, flags))
#if SIM_HIP >= 6
HIP_AS(hipLaunchHostFunc, (hipStream_t stream, hipHostFn_t function, void *data),
       cuLaunchHostFunc(hip_stream(stream), (CUhostFn)function, data))
#endif

struct callback {
    hipStreamCallback_t function;
    hipStream_t stream;
    void *data;
};

static void call_back(void *data)
{
    struct callback callback = *(struct callback *)data;

    free(data);
    callback.function(callback.stream, hipSuccess, callback.data);
}

HIP_API hipStreamAddCallback(hipStream_t stream, hipStreamCallback_t function, void *data, unsigned flags)
{
    struct callback *callback;

    HIP_ENTER_DEVICE(hipStreamAddCallback);
    if (!function || flags || !(callback = malloc(sizeof *callback)))
        return hip_leave(hipErrorInvalidValue);
    *callback = (struct callback){function, stream, data};
    int status = (int)cuLaunchHostFunc(hip_stream(stream), call_back, callback);
    if (status != hipSuccess)
        free(callback);
    return hip_leave(status);
}

HIP_AS(hipEventCreate, (hipEvent_t * event), cuEventCreate((CUevent *)event, CU_EVENT_DEFAULT))
HIP_AS(hipEventCreateWithFlags, (hipEvent_t * event, unsigned flags),
       cuEventCreate((CUevent *)event, flags & 7))
HIP_AS(hipEventDestroy, (hipEvent_t event), cuEventDestroy_v2((CUevent)event))
HIP_AS(hipEventRecord, (hipEvent_t event, hipStream_t stream),
       cuEventRecord((CUevent)event, hip_stream(stream)))
#if SIM_HIP >= 6
HIP_AS(hipEventRecord_spt, (hipEvent_t event, hipStream_t stream),
       cuEventRecord_ptsz((CUevent)event, hip_stream(stream)))
#endif
HIP_AS(hipEventQuery, (hipEvent_t event), ask(query_event, event))
HIP_AS(hipEventSynchronize, (hipEvent_t event), cuEventSynchronize((CUevent)event))
HIP_AS(hipEventElapsedTime, (float *ms, hipEvent_t start, hipEvent_t stop),
       cuEventElapsedTime(ms, (CUevent)start, (CUevent)stop))
