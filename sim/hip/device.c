/*
 * Devices: which one the thread has chosen, and the primary context behind each, retained at its first use
 * until the device is reset. Lock: one mutex around retaining and resetting.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "sim/hip/hip.h"
#include "sim/cuda/sim.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static CUcontext _Atomic contexts[SIM_MAX_DEVICES];
static _Thread_local int chosen;

int hip_device(void)
{
    return chosen;
}

int hip_device_count(void)
{
    int count = 0;

    return cuDeviceGetCount(&count) == CUDA_SUCCESS ? count : 0;
}

CUcontext hip_context(int device)
{
    CUcontext context;

    if (device < 0 || device >= hip_device_count())
        return NULL;
    context = atomic_load_explicit(&contexts[device], memory_order_acquire);
    if (context)
        return context;
    pthread_mutex_lock(&lock);
    context = atomic_load(&contexts[device]);
    if (!context && cuDevicePrimaryCtxRetain(&context, device) == CUDA_SUCCESS)
        atomic_store_explicit(&contexts[device], context, memory_order_release);
    pthread_mutex_unlock(&lock);
    return context;
}

int hip_bind_to(int device)
{
    CUcontext context, current = NULL;

    if (hip_device_count() == 0)
        return hipErrorNoDevice;
    context = hip_context(device);
    if (!context)
        return hipErrorInvalidDevice;
    if (cuCtxGetCurrent(&current) == CUDA_SUCCESS && current == context)
        return hipSuccess;
    return (int)cuCtxSetCurrent(context);
}

int hip_bind(void)
{
    return hip_bind_to(chosen);
}

HIP_API hipInit(unsigned flags)
{
    HIP_ENTER(hipInit);
    return hip_leave(flags ? hipErrorInvalidValue : hip_device_count() ? hipSuccess : hipErrorNoDevice);
}

/* A version is major * 10^7 + minor * 10^5 + patch (hip_version.h). */
static int version(int *out)
{
    if (!out)
        return hipErrorInvalidValue;
    *out = SIM_HIP == 5 ? 50221153 : SIM_HIP == 6 ? 60241133 : 70253211;
    return hipSuccess;
}

HIP_API hipDriverGetVersion(int *out)
{
    HIP_ENTER(hipDriverGetVersion);
    return hip_leave(version(out));
}

HIP_API hipRuntimeGetVersion(int *out)
{
    HIP_ENTER(hipRuntimeGetVersion);
    return hip_leave(version(out));
}

HIP_API hipGetDeviceCount(int *count)
{
    HIP_ENTER(hipGetDeviceCount);
    if (!count)
        return hip_leave(hipErrorInvalidValue);
    *count = hip_device_count();
    return hip_leave(*count ? hipSuccess : hipErrorNoDevice);
}

HIP_API hipGetDevice(int *device)
{
    HIP_ENTER(hipGetDevice);
    if (!device)
        return hip_leave(hipErrorInvalidValue);
    if (!hip_device_count())
        return hip_leave(hipErrorNoDevice);
    *device = chosen;
    return hip_leave(hipSuccess);
}

HIP_API hipSetDevice(int device)
{
    HIP_ENTER(hipSetDevice);
    if (!hip_device_count())
        return hip_leave(hipErrorNoDevice);
    if (device < 0 || device >= hip_device_count())
        return hip_leave(hipErrorInvalidDevice);
    chosen = device;
    return hip_leave(hipSuccess);
}

HIP_API hipDeviceGet(hipDevice_t *device, int ordinal)
{
    HIP_ENTER(hipDeviceGet);
    return hip_leave(cuDeviceGet(device, ordinal));
}

HIP_API hipDeviceGetName(char *name, int length, hipDevice_t device)
{
    HIP_ENTER(hipDeviceGetName);
    if (!name || length <= 0)
        return hip_leave(hipErrorInvalidValue);
    if (device < 0 || device >= hip_device_count())
        return hip_leave(hipErrorInvalidDevice);
    snprintf(name, (size_t)length, "Simulated HIP device");
    return hip_leave(hipSuccess);
}

HIP_API hipDeviceGetUuid(hipUUID *uuid, hipDevice_t device)
{
    HIP_ENTER(hipDeviceGetUuid);
    return hip_leave(uuid ? (int)cuDeviceGetUuid((CUuuid *)uuid, device) : hipErrorInvalidValue);
}

HIP_API hipDeviceTotalMem(size_t *bytes, hipDevice_t device)
{
    HIP_ENTER(hipDeviceTotalMem);
    return hip_leave(cuDeviceTotalMem_v2(bytes, device));
}

HIP_API hipDeviceComputeCapability(int *major, int *minor, hipDevice_t device)
{
    HIP_ENTER(hipDeviceComputeCapability);
    if (!major || !minor)
        return hip_leave(hipErrorInvalidValue);
    if (device < 0 || device >= hip_device_count())
        return hip_leave(hipErrorInvalidDevice);
    *major = 9;
    *minor = 4;
    return hip_leave(hipSuccess);
}

HIP_API hipDeviceGetPCIBusId(char *id, int length, int device)
{
    HIP_ENTER(hipDeviceGetPCIBusId);
    return hip_leave(id ? (int)cuDeviceGetPCIBusId(id, length, device) : hipErrorInvalidValue);
}

HIP_API hipDeviceGetByPCIBusId(int *device, const char *id)
{
    HIP_ENTER(hipDeviceGetByPCIBusId);
    return hip_leave(device && id ? (int)cuDeviceGetByPCIBusId(device, id) : hipErrorInvalidValue);
}

HIP_API hipDeviceCanAccessPeer(int *can, int device, int peer)
{
    HIP_ENTER(hipDeviceCanAccessPeer);
    return hip_leave(cuDeviceCanAccessPeer(can, device, peer));
}

HIP_API hipDeviceEnablePeerAccess(int peer, unsigned flags)
{
    HIP_ENTER_DEVICE(hipDeviceEnablePeerAccess);
    CUcontext context = hip_context(peer);
    return hip_leave(context ? (int)cuCtxEnablePeerAccess(context, flags) : hipErrorInvalidDevice);
}

HIP_API hipDeviceDisablePeerAccess(int peer)
{
    HIP_ENTER_DEVICE(hipDeviceDisablePeerAccess);
    CUcontext context = hip_context(peer);
    return hip_leave(context ? (int)cuCtxDisablePeerAccess(context) : hipErrorInvalidDevice);
}

HIP_AS(hipDeviceSynchronize, (void), cuCtxSynchronize())
HIP_AS(hipCtxSynchronize, (void), cuCtxSynchronize())
HIP_AS(hipDeviceGetStreamPriorityRange, (int *least, int *greatest),
       cuCtxGetStreamPriorityRange(least, greatest))
HIP_AS(hipGetDeviceFlags, (unsigned *flags), cuCtxGetFlags(flags))

HIP_API hipSetDeviceFlags(unsigned flags)
{
    HIP_ENTER(hipSetDeviceFlags);
    return hip_leave(cuDevicePrimaryCtxSetFlags_v2(chosen, flags));
}

/* Everything of the device's goes, whoever holds it, its pools too (clr, Device::Reset); the next use makes
 * it anew. */
static int reset(int device)
{
    CUcontext context = hip_context(device);
    int status;

    if (!context)
        return hip_device_count() ? hipErrorInvalidDevice : hipErrorNoDevice;
    if (hip_bind_to(device) == hipSuccess)
        sim_front_end_pools(device);
    pthread_mutex_lock(&lock);
    atomic_store(&contexts[device], NULL);
    status = (int)cuDevicePrimaryCtxReset_v2(device);
    pthread_mutex_unlock(&lock);
    return status;
}

HIP_API hipDeviceReset(void)
{
    HIP_ENTER(hipDeviceReset);
    return hip_leave(reset(chosen));
}

/* --- the device's context, which HIP has for those who come from CUDA's driver interface --- */

HIP_API hipCtxGetCurrent(hipCtx_t *context)
{
    HIP_ENTER(hipCtxGetCurrent);
    if (!context)
        return hip_leave(hipErrorInvalidValue);
    *context = (hipCtx_t)hip_context(chosen);
    return hip_leave(*context ? hipSuccess : hipErrorNoDevice);
}

HIP_API hipCtxSetCurrent(hipCtx_t context)
{
    HIP_ENTER(hipCtxSetCurrent);
    for (int device = 0; device < hip_device_count(); device++) {
        if (context && atomic_load(&contexts[device]) == (CUcontext)context) {
            chosen = device;
            return hip_leave(hipSuccess);
        }
    }
    return hip_leave(hipErrorInvalidContext);
}

HIP_API hipCtxGetDevice(hipDevice_t *device)
{
    HIP_ENTER(hipCtxGetDevice);
    if (!device)
        return hip_leave(hipErrorInvalidValue);
    *device = chosen;
    return hip_leave(hipSuccess);
}

HIP_API hipDevicePrimaryCtxGetState(hipDevice_t device, unsigned *flags, int *active)
{
    HIP_ENTER(hipDevicePrimaryCtxGetState);
    return hip_leave(cuDevicePrimaryCtxGetState(device, flags, active));
}

HIP_API hipDevicePrimaryCtxRetain(hipCtx_t *context, hipDevice_t device)
{
    HIP_ENTER(hipDevicePrimaryCtxRetain);
    if (!context)
        return hip_leave(hipErrorInvalidValue);
    *context = (hipCtx_t)hip_context(device);
    return hip_leave(*context ? hipSuccess : hipErrorInvalidDevice);
}

/* The device stays as it is: its memory is not counted by who retained it. */
HIP_API hipDevicePrimaryCtxRelease(hipDevice_t device)
{
    HIP_ENTER(hipDevicePrimaryCtxRelease);
    return hip_leave(hip_context(device) ? hipSuccess : hipErrorInvalidDevice);
}

HIP_API hipDevicePrimaryCtxReset(hipDevice_t device)
{
    HIP_ENTER(hipDevicePrimaryCtxReset);
    return hip_leave(hip_context(device) ? hipSuccess : hipErrorInvalidDevice);
}
