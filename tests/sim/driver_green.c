/* The simulated driver: green contexts, their parts of a device, their streams, and events over one of them.
 */
#include <stdlib.h>

#include "driver.h"

static CUcontext primary;

static void split(CUgreenCtx *one, CUgreenCtx *two)
{
    CUdevResource all, parts[2], rest, again[2], small;
    CUdevResourceDesc desc;
    CUgreenCtx none;
    unsigned groups = 0;
    int count;

    must(cuDeviceGetAttribute(&count, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 0));
    answers(cuDeviceGetDevResource(0, &all, CU_DEV_RESOURCE_TYPE_SM), CUDA_SUCCESS);
    is_int((int)all.sm.smCount, count, "a device has all of its multiprocessors");
    answers(cuDeviceGetDevResource(0, &all, CU_DEV_RESOURCE_TYPE_INVALID), CUDA_ERROR_INVALID_RESOURCE_TYPE);
    answers(cuDevSmResourceSplitByCount(NULL, &groups, &all, NULL, 0, 12), CUDA_SUCCESS);
    is_int((int)groups, count / 16, "a part has a multiple of eight");
    groups = 2;
    answers(cuDevSmResourceSplitByCount(parts, &groups, &all, &rest, 0, 60), CUDA_SUCCESS);
    ok(groups == 2 && parts[0].sm.smCount == 64 && parts[1].sm.smCount == 64 && rest.sm.smCount == 4,
       "two parts and a rest");
    answers(cuDevSmResourceSplitByCount(again, &groups, &parts[0], NULL, 0, 8),
            CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION);
    answers(cuDevSmResourceSplitByCount(again, &groups, &all, NULL, 0, 1000), CUDA_ERROR_INVALID_VALUE);
    answers(cuDevResourceGenerateDesc(&desc, &parts[0], 1), CUDA_SUCCESS);
    answers(cuGreenCtxCreate(&none, desc, 0, 0), CUDA_ERROR_INVALID_VALUE);
    answers(cuGreenCtxCreate(one, desc, 0, CU_GREEN_CTX_DEFAULT_STREAM), CUDA_SUCCESS);
    answers(cuDevResourceGenerateDesc(&desc, &parts[1], 1), CUDA_SUCCESS);
    answers(cuGreenCtxCreate(two, desc, 0, CU_GREEN_CTX_DEFAULT_STREAM), CUDA_SUCCESS);
    answers(cuGreenCtxGetDevResource(*one, &small, CU_DEV_RESOURCE_TYPE_SM), CUDA_SUCCESS);
    is_int((int)small.sm.smCount, 64, "a green context has its part");
    answers(cuDevResourceGenerateDesc(&desc, (CUdevResource[]){parts[0], all}, 2),
            CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION);
}

static void handles(CUgreenCtx green)
{
    CUcontext view, found;
    CUgreenCtx back = NULL;
    CUstream own, made;
    CUdevice device = 9;
    CUdeviceptr p;
    unsigned long long id = 0, primary_id = 0;

    answers(cuCtxFromGreenCtx(&view, green), CUDA_SUCCESS);
    ok(view != primary, "as a context it is another than the primary one");
    answers(cuGreenCtxStreamCreate(&own, green, CU_STREAM_DEFAULT, 0), CUDA_ERROR_INVALID_VALUE);
    answers(cuGreenCtxStreamCreate(&own, green, CU_STREAM_NON_BLOCKING, 0), CUDA_SUCCESS);
    answers(cuStreamGetCtx(own, &found), CUDA_SUCCESS);
    is_ptr(found, view, "a stream's context is the green one");
    answers(cuStreamGetCtx_v2(own, &found, &back), CUDA_SUCCESS);
    ok(found == primary && back == green, "the newer call tells both");
    answers(cuStreamGetGreenCtx(own, &back), CUDA_SUCCESS);
    ok(back == green, "so does the question for the green one");
    answers(cuStreamGetGreenCtx(NULL, &back), CUDA_SUCCESS);
    is_ptr(back, NULL, "the legacy stream of the primary context has none");
    must(cuCtxSetCurrent(view));
    must(cuCtxGetCurrent(&found));
    is_ptr(found, view, "it can be current");
    must(cuCtxGetDevice(&device));
    is_int(device, 0, "on its device");
    must(cuCtxGetId(view, &id));
    must(cuCtxGetId(primary, &primary_id));
    ok(id != primary_id, "with an id of its own");
    answers(cuCtxDestroy_v2(view), CUDA_ERROR_INVALID_CONTEXT);
    answers(cuStreamQuery(CU_STREAM_PER_THREAD), CUDA_ERROR_INVALID_HANDLE);
    must(cuStreamCreate(&made, CU_STREAM_NON_BLOCKING));
    must(cuStreamGetGreenCtx(made, &back));
    ok(back == green, "a stream that is made there is its own");
    must(cuMemAlloc_v2(&p, 64));
    must(cuMemsetD8_v2(p, 1, 64));
    answers(cuCtxSynchronize(), CUDA_SUCCESS);
    must(cuCtxSetCurrent(primary));
    answers(cuMemFree_v2(p), CUDA_SUCCESS);
    must(cuStreamDestroy_v2(own));
    must(cuStreamDestroy_v2(made));
}

static void waiting(CUgreenCtx one, CUgreenCtx two)
{
    CUstream first, second, plain;
    CUcontext view;
    CUevent event;
    atomic_int go = 0, done_there = 0;

    must(cuCtxFromGreenCtx(&view, one));
    must(cuGreenCtxStreamCreate(&first, one, CU_STREAM_NON_BLOCKING, 0));
    must(cuGreenCtxStreamCreate(&second, two, CU_STREAM_NON_BLOCKING, 0));
    must(cuStreamCreate(&plain, CU_STREAM_NON_BLOCKING));
    must(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
    must(cuLaunchHostFunc(second, hold, &go));
    must(cuCtxPushCurrent_v2(view));
    answers(cuCtxSynchronize(), CUDA_SUCCESS);
    must(cuCtxPopCurrent_v2(NULL));
    answers(cuGreenCtxRecordEvent(one, event), CUDA_SUCCESS);
    answers(cuEventQuery(event), CUDA_SUCCESS);
    answers(cuCtxRecordEvent(view, event), CUDA_SUCCESS);
    answers(cuEventQuery(event), CUDA_SUCCESS);
    answers(cuGreenCtxRecordEvent(two, event), CUDA_SUCCESS);
    answers(cuEventQuery(event), CUDA_ERROR_NOT_READY);
    answers(cuCtxRecordEvent(primary, event), CUDA_SUCCESS);
    answers(cuEventQuery(event), CUDA_ERROR_NOT_READY);

    /* the first green context waits for the second; the primary one's streams do not */
    answers(cuGreenCtxWaitEvent(one, event), CUDA_SUCCESS);
    must(cuLaunchHostFunc(first, hold, &done_there));
    atomic_store(&done_there, 1);
    pause_ms(10);
    answers(cuStreamQuery(first), CUDA_ERROR_NOT_READY);
    must(cuLaunchHostFunc(plain, hold, &done_there));
    answers(cuStreamSynchronize(plain), CUDA_SUCCESS);
    answers(cuCtxWaitEvent(primary, event), CUDA_SUCCESS);
    must(cuLaunchHostFunc(plain, hold, &done_there));
    pause_ms(10);
    answers(cuStreamQuery(plain), CUDA_ERROR_NOT_READY);
    atomic_store(&go, 1);
    answers(cuStreamSynchronize(plain), CUDA_SUCCESS);
    answers(cuStreamSynchronize(first), CUDA_SUCCESS);
    answers(cuCtxSynchronize(), CUDA_SUCCESS);
    must(cuEventDestroy_v2(event));
    must(cuStreamDestroy_v2(first));
    must(cuStreamDestroy_v2(second));
    must(cuStreamDestroy_v2(plain));
}

static void captures(CUgreenCtx one, CUgreenCtx two)
{
    CUstream stream;
    CUevent event;
    CUgraph graph;

    must(cuGreenCtxStreamCreate(&stream, one, CU_STREAM_NON_BLOCKING, 0));
    must(cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
    must(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
    answers(cuGreenCtxRecordEvent(two, event), CUDA_SUCCESS);
    answers(cuGreenCtxRecordEvent(one, event), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    answers(cuStreamEndCapture(stream, &graph), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    must(cuStreamBeginCapture_v2(stream, CU_STREAM_CAPTURE_MODE_RELAXED));
    answers(cuCtxRecordEvent(primary, event), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    answers(cuStreamEndCapture(stream, &graph), CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    must(cuStreamDestroy_v2(stream));
    must(cuEventDestroy_v2(event));
}

static void ends(CUgreenCtx one, CUgreenCtx two)
{
    CUstream stream;
    CUcontext view, found;
    int active = 0;
    unsigned flags;

    must(cuCtxFromGreenCtx(&view, one));
    must(cuGreenCtxStreamCreate(&stream, one, CU_STREAM_NON_BLOCKING, 0));
    answers(cuGreenCtxDestroy(one), CUDA_SUCCESS);
    answers(cuGreenCtxDestroy(one), CUDA_ERROR_INVALID_CONTEXT);
    answers(cuStreamQuery(stream), CUDA_ERROR_CONTEXT_IS_DESTROYED);
    answers(cuStreamDestroy_v2(stream), CUDA_ERROR_CONTEXT_IS_DESTROYED);
    answers(cuCtxSetCurrent(view), CUDA_ERROR_INVALID_CONTEXT);
    must(cuDevicePrimaryCtxRelease_v2(0));
    must(cuDevicePrimaryCtxGetState(0, &flags, &active));
    is_int(active, 1, "a green context keeps the primary one");
    must(cuCtxFromGreenCtx(&found, two));
    must(cuGreenCtxDestroy(two));
    must(cuDevicePrimaryCtxGetState(0, &flags, &active));
    is_int(active, 0, "until it ends");
}

int main(void)
{
    CUgreenCtx one, two;

    plan(0);
    primary = begin();
    split(&one, &two);
    handles(one);
    waiting(one, two);
    captures(one, two);
    ends(one, two);
    return done();
}
