/*
 * The calling thread's last error. Until 6 every call leaves its status there, success too: memshim's own
 * questions would show. From 7 on an error stays until it is asked for (ROCm 7.0 release notes).
 */
#include <stdio.h>

#include "sim/hip/hip.h"

static _Thread_local hipError_t last;

hipError_t hip_leave(int status)
{
    if (SIM_HIP < 7 || (status != hipSuccess && status != hipErrorNotReady))
        last = (hipError_t)status;
    return (hipError_t)status;
}

HIP_API hipGetLastError(void)
{
    hipError_t was = last;
    int status = hip_enter(HIP_FN_hipGetLastError);

    if (status)
        return (hipError_t)status;
    last = hipSuccess;
    return was;
}

HIP_API hipPeekAtLastError(void)
{
    int status = hip_enter(HIP_FN_hipPeekAtLastError);

    return status ? (hipError_t)status : last;
}

#if SIM_HIP >= 6
HIP_API hipExtGetLastError(void)
{
    hipError_t was = last;
    int status = hip_enter(HIP_FN_hipExtGetLastError);

    if (status)
        return (hipError_t)status;
    last = hipSuccess;
    return was;
}
#endif

static const struct {
    hipError_t error;
    const char *name, *text;
} errors[] = {
    {hipSuccess, "hipSuccess", "no error"},
    {hipErrorInvalidValue, "hipErrorInvalidValue", "invalid argument"},
    {hipErrorOutOfMemory, "hipErrorOutOfMemory", "out of memory"},
    {hipErrorNotInitialized, "hipErrorNotInitialized", "initialization error"},
    {hipErrorInvalidDevicePointer, "hipErrorInvalidDevicePointer", "invalid device pointer"},
    {hipErrorNoDevice, "hipErrorNoDevice", "no ROCm-capable device is detected"},
    {hipErrorInvalidDevice, "hipErrorInvalidDevice", "invalid device ordinal"},
    {hipErrorInvalidContext, "hipErrorInvalidContext", "invalid device context"},
    {hipErrorInvalidHandle, "hipErrorInvalidHandle", "invalid resource handle"},
    {hipErrorNotFound, "hipErrorNotFound", "named symbol not found"},
    {hipErrorNotReady, "hipErrorNotReady", "device not ready"},
    {hipErrorIllegalAddress, "hipErrorIllegalAddress", "an illegal memory access was encountered"},
    {hipErrorLaunchFailure, "hipErrorLaunchFailure", "unspecified launch failure"},
    {hipErrorNotSupported, "hipErrorNotSupported", "operation not supported"},
    {hipErrorStreamCaptureUnsupported, "hipErrorStreamCaptureUnsupported",
     "operation not permitted when stream is capturing"},
    {hipErrorStreamCaptureInvalidated, "hipErrorStreamCaptureInvalidated",
     "operation failed due to a previous error during capture"},
};

__attribute__((visibility("default"))) const char *hipGetErrorName(hipError_t error)
{
    for (unsigned i = 0; i < sizeof errors / sizeof errors[0]; i++)
        if (errors[i].error == error)
            return errors[i].name;
    return "hipErrorUnknown";
}

__attribute__((visibility("default"))) const char *hipGetErrorString(hipError_t error)
{
    for (unsigned i = 0; i < sizeof errors / sizeof errors[0]; i++)
        if (errors[i].error == error)
            return errors[i].text;
    return "unknown error";
}
