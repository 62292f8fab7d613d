/*
 * Streams. No stream waits for another unless it is told to, the context's default stream (a null handle)
 * included. No lock.
 */
#include "sim/acl/acl.h"

#define POLL_NS 50000

bool acl_stream_valid(aclrtStream stream)
{
    return !stream || (uintptr_t)stream > (uintptr_t)CU_STREAM_PER_THREAD;
}

aclError acl_wait(CUresult (*over)(void *object), void *object, int32_t timeout_ms, aclError late)
{
    uint64_t end = sim_now_ns() + (uint64_t)(timeout_ms < 0 ? 0 : timeout_ms) * 1000000U;

    for (;;) {
        CUresult status = over(object);
        if (status != CUDA_ERROR_NOT_READY)
            return acl_status(status);
        if (timeout_ms >= 0 && sim_now_ns() >= end)
            return late;
        sim_spend(POLL_NS);
    }
}

static aclError create(aclrtStream *stream_p)
{
    CUstream stream;

    ACL_CHECK(stream_p, ACL_ERROR_INVALID_PARAM);
    ACL_TRY(acl_context());
    ACL_TRY(acl_status(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING)));
    *stream_p = stream;
    return ACL_SUCCESS;
}

ACL_API(aclrtCreateStream)(aclrtStream *stream_p)
{
    ACL_ENTER(aclrtCreateStream);
    return create(stream_p);
}

ACL_API(aclrtCreateStreamWithConfig)(aclrtStream *stream_p, uint32_t priority, uint32_t flag)
{
    ACL_ENTER(aclrtCreateStreamWithConfig);
    (void)priority;
    (void)flag;
    return create(stream_p);
}

static aclError destroy(aclrtStream stream)
{
    ACL_CHECK(stream, ACL_ERROR_INVALID_PARAM);
    ACL_CHECK(acl_stream_valid(stream), ACL_ERROR_RT_INVALID_HANDLE);
    return acl_status(cuStreamDestroy_v2(stream));
}

ACL_API(aclrtDestroyStream)(aclrtStream stream)
{
    ACL_ENTER(aclrtDestroyStream);
    return destroy(stream);
}

ACL_API(aclrtDestroyStreamForce)(aclrtStream stream)
{
    ACL_ENTER(aclrtDestroyStreamForce);
    return destroy(stream);
}

ACL_API(aclrtSynchronizeStream)(aclrtStream stream)
{
    ACL_ENTER(aclrtSynchronizeStream);
    ACL_CHECK(acl_stream_valid(stream), ACL_ERROR_RT_INVALID_HANDLE);
    return acl_status(cuStreamSynchronize(stream));
}

static CUresult idle(void *stream)
{
    return cuStreamQuery(stream);
}

ACL_API(aclrtSynchronizeStreamWithTimeout)(aclrtStream stream, int32_t timeout_ms)
{
    ACL_ENTER(aclrtSynchronizeStreamWithTimeout);
    ACL_CHECK(acl_stream_valid(stream), ACL_ERROR_RT_INVALID_HANDLE);
    ACL_CHECK(timeout_ms >= -1, ACL_ERROR_INVALID_PARAM);
    return acl_wait(idle, stream, timeout_ms, ACL_ERROR_RT_STREAM_SYNC_TIMEOUT);
}

ACL_API(aclrtStreamQuery)(aclrtStream stream, aclrtStreamStatus *status_p)
{
    ACL_ENTER(aclrtStreamQuery);
    ACL_CHECK(status_p, ACL_ERROR_INVALID_PARAM);
    ACL_CHECK(acl_stream_valid(stream), ACL_ERROR_RT_INVALID_HANDLE);
    CUresult status = cuStreamQuery(stream);
    if (status != CUDA_ERROR_NOT_READY)
        ACL_TRY(acl_status(status));
    *status_p = status == CUDA_SUCCESS ? ACL_STREAM_STATUS_COMPLETE : ACL_STREAM_STATUS_NOT_READY;
    return ACL_SUCCESS;
}

ACL_API(aclrtStreamWaitEvent)(aclrtStream stream, aclrtEvent event)
{
    ACL_ENTER(aclrtStreamWaitEvent);
    ACL_CHECK(event, ACL_ERROR_INVALID_PARAM);
    ACL_CHECK(acl_stream_valid(stream), ACL_ERROR_RT_INVALID_HANDLE);
    return acl_status(cuStreamWaitEvent(stream, event, 0));
}

ACL_API(aclrtLaunchHostFunc)(aclrtStream stream, aclrtHostFunc function, void *args)
{
    ACL_ENTER(aclrtLaunchHostFunc);
    ACL_CHECK(function, ACL_ERROR_INVALID_PARAM);
    ACL_CHECK(acl_stream_valid(stream), ACL_ERROR_RT_INVALID_HANDLE);
    ACL_TRY(acl_context());
    return acl_status(cuLaunchHostFunc(stream, function, args));
}
