/*
 * Memory of another process. A handle may be of any address inside an allocation, and is the allocation's: to
 * open it leads to its first byte, as was recorded on MI100 with ROCm 6.4.1 and on MI308X with ROCm 7.2
 * (Mooncake#3546).
 */
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include "sim/hip/hip.h"

/* The last words of the 64 bytes; the rooms need fewer. */
struct tail {
    uint32_t pid, check;
};
enum { TAIL_AT = 64 - sizeof(struct tail), CHECK = 0x70696821 };

HIP_API hipIpcGetMemHandle(hipIpcMemHandle_t *handle, void *ptr)
{
    CUipcMemHandle made;
    CUdeviceptr base = 0;
    size_t bytes = 0;

    HIP_ENTER_DEVICE(hipIpcGetMemHandle);
    if (!handle || !ptr || cuMemGetAddressRange_v2(&base, &bytes, hip_address(ptr)) != CUDA_SUCCESS)
        return hip_leave(hipErrorInvalidValue);
    int status = (int)cuIpcGetMemHandle(&made, base);
    if (status != hipSuccess)
        return hip_leave(status);
    const struct tail tail = {.pid = (uint32_t)getpid(), .check = CHECK};
    memcpy(handle, &made, sizeof *handle);
    memcpy((char *)handle + TAIL_AT, &tail, sizeof tail);
    return hip_leave(hipSuccess);
}

HIP_API hipIpcOpenMemHandle(void **ptr, hipIpcMemHandle_t handle, unsigned flags)
{
    CUipcMemHandle made;
    CUdeviceptr base = 0;
    struct tail tail;

    HIP_ENTER_DEVICE(hipIpcOpenMemHandle);
    memcpy(&tail, (const char *)&handle + TAIL_AT, sizeof tail);
    if (!ptr ||
        (SIM_HIP < 6 ? flags > hipIpcMemLazyEnablePeerAccess : flags != hipIpcMemLazyEnablePeerAccess) ||
        tail.check != CHECK)
        return hip_leave(hipErrorInvalidValue);
    if (tail.pid == (uint32_t)getpid())
        return hip_leave(hipErrorInvalidContext);
    memcpy(&made, &handle, sizeof made);
    memset((char *)&made + TAIL_AT, 0, sizeof tail);
    int status = (int)cuIpcOpenMemHandle_v2(&base, made, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS);
    if (status == hipSuccess)
        *ptr = (void *)(uintptr_t)base;
    return hip_leave(status == hipSuccess || status == hipErrorInvalidContext
                         ? status
                         : (int)hipErrorInvalidDevicePointer);
}

HIP_API hipIpcCloseMemHandle(void *ptr)
{
    CUdeviceptr base = 0;
    size_t bytes = 0;

    HIP_ENTER_DEVICE(hipIpcCloseMemHandle);
    if (!ptr || cuMemGetAddressRange_v2(&base, &bytes, hip_address(ptr)) != CUDA_SUCCESS)
        return hip_leave(hipErrorInvalidValue);
    return hip_leave(cuIpcCloseMemHandle(base));
}

HIP_AS(hipIpcGetEventHandle, (hipIpcEventHandle_t * handle, hipEvent_t event),
       cuIpcGetEventHandle((CUipcEventHandle *)handle, (CUevent)event))

HIP_API hipIpcOpenEventHandle(hipEvent_t *event, hipIpcEventHandle_t handle)
{
    CUipcEventHandle made;

    HIP_ENTER_DEVICE(hipIpcOpenEventHandle);
    memcpy(&made, &handle, sizeof made);
    return hip_leave(event ? (int)cuIpcOpenEventHandle((CUevent *)event, made) : hipErrorInvalidValue);
}
