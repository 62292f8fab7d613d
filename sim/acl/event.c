/*
 * Events. An event that was never recorded is complete. What waits for one is not counted: its wait status is
 * its own. No lock.
 */
#include "sim/acl/acl.h"

static aclError create(aclrtEvent *event_p)
{
    CUevent event;

    ACL_CHECK(event_p, ACL_ERROR_INVALID_PARAM);
    ACL_TRY(acl_context());
    ACL_TRY(acl_status(cuEventCreate(&event, CU_EVENT_DEFAULT)));
    *event_p = event;
    return ACL_SUCCESS;
}

ACL_API(aclrtCreateEvent)(aclrtEvent *event_p)
{
    ACL_ENTER(aclrtCreateEvent);
    return create(event_p);
}

ACL_API(aclrtCreateEventWithFlag)(aclrtEvent *event_p, uint32_t flag)
{
    ACL_ENTER(aclrtCreateEventWithFlag);
    (void)flag;
    return create(event_p);
}

ACL_API(aclrtCreateEventExWithFlag)(aclrtEvent *event_p, uint32_t flag)
{
    ACL_ENTER(aclrtCreateEventExWithFlag);
    (void)flag;
    return create(event_p);
}

ACL_API(aclrtDestroyEvent)(aclrtEvent event)
{
    ACL_ENTER(aclrtDestroyEvent);
    ACL_CHECK(event, ACL_ERROR_INVALID_PARAM);
    return acl_status(cuEventDestroy_v2(event));
}

ACL_API(aclrtRecordEvent)(aclrtEvent event, aclrtStream stream)
{
    ACL_ENTER(aclrtRecordEvent);
    ACL_CHECK(event, ACL_ERROR_INVALID_PARAM);
    ACL_CHECK(acl_stream_valid(stream), ACL_ERROR_RT_INVALID_HANDLE);
    return acl_status(cuEventRecord(event, stream));
}

/* Asks whether what was recorded is over. */
static aclError query(aclrtEvent event, bool *over_p)
{
    CUresult status = cuEventQuery(event);

    *over_p = status == CUDA_SUCCESS;
    return status == CUDA_ERROR_NOT_READY ? ACL_SUCCESS : acl_status(status);
}

ACL_API(aclrtQueryEvent)(aclrtEvent event, aclrtEventStatus *status_p)
{
    ACL_ENTER(aclrtQueryEvent);
    bool over;

    ACL_CHECK(event && status_p, ACL_ERROR_INVALID_PARAM);
    ACL_TRY(query(event, &over));
    *status_p = over ? ACL_EVENT_STATUS_COMPLETE : ACL_EVENT_STATUS_NOT_READY;
    return ACL_SUCCESS;
}

ACL_API(aclrtQueryEventStatus)(aclrtEvent event, aclrtEventRecordedStatus *status_p)
{
    ACL_ENTER(aclrtQueryEventStatus);
    bool over;

    ACL_CHECK(event && status_p, ACL_ERROR_INVALID_PARAM);
    ACL_TRY(query(event, &over));
    *status_p = over ? ACL_EVENT_RECORDED_STATUS_COMPLETE : ACL_EVENT_RECORDED_STATUS_NOT_READY;
    return ACL_SUCCESS;
}

ACL_API(aclrtQueryEventWaitStatus)(aclrtEvent event, aclrtEventWaitStatus *status_p)
{
    ACL_ENTER(aclrtQueryEventWaitStatus);
    bool over;

    ACL_CHECK(event && status_p, ACL_ERROR_INVALID_PARAM);
    ACL_TRY(query(event, &over));
    *status_p = over ? ACL_EVENT_WAIT_STATUS_COMPLETE : ACL_EVENT_WAIT_STATUS_NOT_READY;
    return ACL_SUCCESS;
}

ACL_API(aclrtSynchronizeEvent)(aclrtEvent event)
{
    ACL_ENTER(aclrtSynchronizeEvent);
    ACL_CHECK(event, ACL_ERROR_INVALID_PARAM);
    return acl_status(cuEventSynchronize(event));
}

static CUresult over(void *event)
{
    return cuEventQuery(event);
}

ACL_API(aclrtSynchronizeEventWithTimeout)(aclrtEvent event, int32_t timeout_ms)
{
    ACL_ENTER(aclrtSynchronizeEventWithTimeout);
    ACL_CHECK(event && timeout_ms >= -1, ACL_ERROR_INVALID_PARAM);
    return acl_wait(over, event, timeout_ms, ACL_ERROR_RT_EVENT_SYNC_TIMEOUT);
}

ACL_API(aclrtEventElapsedTime)(float *ms_p, aclrtEvent start, aclrtEvent end)
{
    ACL_ENTER(aclrtEventElapsedTime);
    ACL_CHECK(ms_p && start && end, ACL_ERROR_INVALID_PARAM);
    return acl_status(cuEventElapsedTime(ms_p, start, end));
}
