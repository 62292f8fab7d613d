/*
 * The library, its devices and contexts. A device is set by threads and counted; its default context is the
 * primary context of the rooms below, made by the first set and ended by the last reset. Own: the table of
 * contexts, under one mutex.
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sim/acl/acl.h"

struct context {
    struct context *next;
    CUcontext below;
    CUstream sync; /* made when it is first needed; dies with the context */
    bool is_default;
    int device;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct context *contexts;
static unsigned set_counts[SIM_MAX_DEVICES];
static bool initialized, finalized;

static struct context *find_below(CUcontext below)
{
    struct context *context = contexts;

    while (context && context->below != below)
        context = context->next;
    return context;
}

static struct context *find_default(int device)
{
    struct context *context = contexts;

    while (context && (!context->is_default || context->device != device))
        context = context->next;
    return context;
}

static struct context *find_handle(aclrtContext handle)
{
    struct context *context = contexts;

    while (context && context != handle)
        context = context->next;
    return context;
}

static struct context *enter(CUcontext below, int device, bool is_default)
{
    struct context *context = calloc(1, sizeof *context);

    if (!context)
        return NULL;
    *context = (struct context){.next = contexts, .below = below, .device = device, .is_default = is_default};
    contexts = context;
    return context;
}

static void drop(struct context *context)
{
    struct context **link = &contexts;

    while (*link != context)
        link = &(*link)->next;
    *link = context->next;
    free(context);
}

aclError acl_context(void)
{
    struct CUctx_st *ctx;

    return acl_status(sim_context_current(&ctx));
}

int acl_device(void)
{
    struct CUctx_st *ctx;

    return sim_context_peek(&ctx) == CUDA_SUCCESS ? ctx->device->ordinal : -1;
}

aclError acl_sync_stream(CUstream *stream_p)
{
    CUcontext below = NULL;
    CUresult status = CUDA_SUCCESS;

    ACL_TRY(acl_context());
    cuCtxGetCurrent(&below);
    pthread_mutex_lock(&lock);
    struct context *context = find_below(below);
    if (!context)
        status = CUDA_ERROR_INVALID_CONTEXT;
    else if (!context->sync)
        status = cuStreamCreate(&context->sync, CU_STREAM_NON_BLOCKING);
    if (status == CUDA_SUCCESS)
        *stream_p = context->sync;
    pthread_mutex_unlock(&lock);
    return acl_status(status);
}

ACL_API(aclInit)(const char *config_path)
{
    ACL_ENTER(aclInit);
    (void)config_path;
    pthread_mutex_lock(&lock);
    bool again = initialized;
    initialized = true;
    finalized = false;
    pthread_mutex_unlock(&lock);
    return again ? ACL_ERROR_REPEAT_INITIALIZE : ACL_SUCCESS;
}

ACL_API(aclFinalize)(void)
{
    ACL_ENTER(aclFinalize);
    pthread_mutex_lock(&lock);
    aclError status = initialized ? ACL_SUCCESS
                      : finalized ? ACL_ERROR_REPEAT_FINALIZE
                                  : ACL_ERROR_UNINITIALIZE;
    finalized = finalized || initialized;
    initialized = false;
    pthread_mutex_unlock(&lock);
    return status;
}

ACL_API(aclrtGetDeviceCount)(uint32_t *count_p)
{
    ACL_ENTER(aclrtGetDeviceCount);
    ACL_CHECK(count_p, ACL_ERROR_INVALID_PARAM);
    *count_p = sim_config.devices;
    return ACL_SUCCESS;
}

ACL_API(aclrtSetDevice)(int32_t device)
{
    ACL_ENTER(aclrtSetDevice);
    CUcontext below = NULL;
    CUresult status = CUDA_SUCCESS;

    ACL_CHECK(sim_device(device), ACL_ERROR_RT_INVALID_DEVICEID);
    pthread_mutex_lock(&lock);
    struct context *context = find_default(device);
    if (!context) {
        status = cuDevicePrimaryCtxRetain(&below, device);
        context = status == CUDA_SUCCESS ? enter(below, device, true) : NULL;
    }
    if (context)
        set_counts[device]++;
    below = context ? context->below : NULL;
    pthread_mutex_unlock(&lock);
    if (!below)
        return acl_status(status == CUDA_SUCCESS ? CUDA_ERROR_OUT_OF_MEMORY : status);
    return acl_status(cuCtxSetCurrent(below));
}

/* The default context ends when nobody has set the device any more; a reset too many changes nothing. */
static aclError reset(int32_t device, bool force)
{
    CUcontext current = NULL, below = NULL;

    ACL_CHECK(sim_device(device), ACL_ERROR_RT_INVALID_DEVICEID);
    cuCtxGetCurrent(&current);
    pthread_mutex_lock(&lock);
    struct context *context = find_default(device);
    if (set_counts[device])
        set_counts[device] = force ? 0 : set_counts[device] - 1;
    if (context && !set_counts[device]) {
        below = context->below;
        drop(context);
    }
    pthread_mutex_unlock(&lock);
    if (!below)
        return ACL_SUCCESS;
    if (current == below)
        cuCtxSetCurrent(NULL);
    return acl_status(cuDevicePrimaryCtxRelease_v2(device));
}

ACL_API(aclrtResetDevice)(int32_t device)
{
    ACL_ENTER(aclrtResetDevice);
    return reset(device, false);
}

ACL_API(aclrtResetDeviceForce)(int32_t device)
{
    ACL_ENTER(aclrtResetDeviceForce);
    return reset(device, true);
}

ACL_API(aclrtGetDevice)(int32_t *device_p)
{
    ACL_ENTER(aclrtGetDevice);
    int device = acl_device();

    ACL_CHECK(device_p, ACL_ERROR_INVALID_PARAM);
    ACL_CHECK(device >= 0, ACL_ERROR_RT_CONTEXT_NULL);
    *device_p = device;
    return ACL_SUCCESS;
}

ACL_API(aclrtCreateContext)(aclrtContext *context_p, int32_t device)
{
    ACL_ENTER(aclrtCreateContext);
    CUcontext below, popped;

    ACL_CHECK(context_p, ACL_ERROR_INVALID_PARAM);
    ACL_CHECK(sim_device(device), ACL_ERROR_RT_INVALID_DEVICEID);
    ACL_TRY(acl_status(cuCtxCreate_v2(&below, 0, device)));
    cuCtxPopCurrent_v2(&popped);
    pthread_mutex_lock(&lock);
    struct context *context = enter(below, device, false);
    pthread_mutex_unlock(&lock);
    if (!context) {
        cuCtxDestroy_v2(below);
        return ACL_ERROR_RT_MEMORY_ALLOCATION;
    }
    *context_p = context;
    return acl_status(cuCtxSetCurrent(below));
}

ACL_API(aclrtDestroyContext)(aclrtContext handle)
{
    ACL_ENTER(aclrtDestroyContext);
    CUcontext current = NULL, below = NULL;

    ACL_CHECK(handle, ACL_ERROR_INVALID_PARAM);
    cuCtxGetCurrent(&current);
    pthread_mutex_lock(&lock);
    struct context *context = find_handle(handle);
    if (context && !context->is_default) {
        below = context->below;
        drop(context);
    }
    pthread_mutex_unlock(&lock);
    ACL_CHECK(below, ACL_ERROR_RT_CONTEXT_NULL);
    if (current == below)
        cuCtxSetCurrent(NULL);
    return acl_status(cuCtxDestroy_v2(below));
}

ACL_API(aclrtSetCurrentContext)(aclrtContext handle)
{
    ACL_ENTER(aclrtSetCurrentContext);
    ACL_CHECK(handle, ACL_ERROR_INVALID_PARAM);
    pthread_mutex_lock(&lock);
    struct context *context = find_handle(handle);
    CUcontext below = context ? context->below : NULL;
    pthread_mutex_unlock(&lock);
    return below ? acl_status(cuCtxSetCurrent(below)) : ACL_ERROR_RT_CONTEXT_NULL;
}

ACL_API(aclrtGetCurrentContext)(aclrtContext *handle_p)
{
    ACL_ENTER(aclrtGetCurrentContext);
    CUcontext below = NULL;

    ACL_CHECK(handle_p, ACL_ERROR_INVALID_PARAM);
    cuCtxGetCurrent(&below);
    pthread_mutex_lock(&lock);
    struct context *context = below ? find_below(below) : NULL;
    pthread_mutex_unlock(&lock);
    ACL_CHECK(context, ACL_ERROR_RT_CONTEXT_NULL);
    *handle_p = context;
    return ACL_SUCCESS;
}

ACL_API(aclrtSynchronizeDevice)(void)
{
    ACL_ENTER(aclrtSynchronizeDevice);
    ACL_TRY(acl_context());
    return acl_status(cuCtxSynchronize());
}

static CUresult drained(void *object)
{
    const struct CUctx_st *ctx = object;

    return atomic_load(&ctx->pending) ? CUDA_ERROR_NOT_READY : CUDA_SUCCESS;
}

ACL_API(aclrtSynchronizeDeviceWithTimeout)(int32_t timeout_ms)
{
    ACL_ENTER(aclrtSynchronizeDeviceWithTimeout);
    struct CUctx_st *ctx;

    ACL_CHECK(timeout_ms >= -1, ACL_ERROR_INVALID_PARAM);
    ACL_TRY(acl_status(sim_context_current(&ctx)));
    ACL_TRY(acl_wait(drained, ctx, timeout_ms, ACL_ERROR_RT_STREAM_SYNC_TIMEOUT));
    return acl_context();
}

ACL_API(aclrtGetPrimaryCtxState)(int32_t device, uint32_t *flags_p, int32_t *active_p)
{
    ACL_ENTER(aclrtGetPrimaryCtxState);
    ACL_CHECK(sim_device(device), ACL_ERROR_RT_INVALID_DEVICEID);
    pthread_mutex_lock(&lock);
    bool active = find_default(device) != NULL;
    pthread_mutex_unlock(&lock);
    if (flags_p)
        *flags_p = 0;
    if (active_p)
        *active_p = active;
    return ACL_SUCCESS;
}

ACL_API(aclrtDeviceGetBareTgid)(int32_t *pid_p)
{
    ACL_ENTER(aclrtDeviceGetBareTgid);
    ACL_CHECK(pid_p, ACL_ERROR_INVALID_PARAM);
    *pid_p = (int32_t)getpid();
    return ACL_SUCCESS;
}

ACL_API(aclrtGetRunMode)(aclrtRunMode *mode_p)
{
    ACL_ENTER(aclrtGetRunMode);
    ACL_CHECK(mode_p, ACL_ERROR_INVALID_PARAM);
    *mode_p = ACL_HOST;
    return ACL_SUCCESS;
}

__attribute__((visibility("default"))) const char *aclrtGetSocName(void)
{
    return sim_front_enter(ACL_FN_aclrtGetSocName) ? NULL : "Ascend910B (simulated)";
}

ACL_API(aclrtGetVersion)(int32_t *major_p, int32_t *minor_p, int32_t *patch_p)
{
    ACL_ENTER(aclrtGetVersion);
    ACL_CHECK(major_p && minor_p && patch_p, ACL_ERROR_INVALID_PARAM);
    *major_p = 1;
    *minor_p = 17;
    *patch_p = 0;
    return ACL_SUCCESS;
}

ACL_API(aclrtDeviceCanAccessPeer)(int32_t *can_p, int32_t device, int32_t peer)
{
    ACL_ENTER(aclrtDeviceCanAccessPeer);
    int can;

    ACL_CHECK(can_p, ACL_ERROR_INVALID_PARAM);
    ACL_TRY(acl_status(cuDeviceCanAccessPeer(&can, device, peer)));
    *can_p = can;
    return ACL_SUCCESS;
}

/* Peer access is between devices: each has its default context for it. */
static aclError peer_access(int32_t peer, bool enable)
{
    struct CUctx_st *ctx;

    ACL_TRY(acl_status(sim_context_current(&ctx)));
    ACL_CHECK(sim_device(peer), ACL_ERROR_RT_INVALID_DEVICEID);
    ACL_CHECK(peer != ctx->device->ordinal, ACL_ERROR_RT_PARAM_INVALID);
    if (enable)
        atomic_fetch_or(&ctx->peers, 1U << peer);
    else
        atomic_fetch_and(&ctx->peers, ~(1U << peer));
    return ACL_SUCCESS;
}

ACL_API(aclrtDeviceEnablePeerAccess)(int32_t peer, uint32_t flags)
{
    ACL_ENTER(aclrtDeviceEnablePeerAccess);
    ACL_CHECK(!flags, ACL_ERROR_INVALID_PARAM);
    return peer_access(peer, true);
}

ACL_API(aclrtDeviceDisablePeerAccess)(int32_t peer)
{
    ACL_ENTER(aclrtDeviceDisablePeerAccess);
    return peer_access(peer, false);
}
