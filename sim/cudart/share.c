/*
 * Memory and events shared with other processes and other interfaces: IPC handles and external memory.
 * Handles are the driver's own bytes; descriptors are translated, because CUDA 12's lack the reserved words
 * at their ends.
 */
#include <string.h>

#include "sim/cudart/runtime.h"

_Static_assert(sizeof(cudaIpcMemHandle_t) == sizeof(CUipcMemHandle), "memory handles have one layout");
_Static_assert(sizeof(cudaIpcEventHandle_t) == sizeof(CUipcEventHandle), "event handles have one layout");

SIM_API cudaError_t cudaIpcGetMemHandle(cudaIpcMemHandle_t *handle, void *pointer)
{
    SIM_TRY(sim_context());
    SIM_CHECK(handle, cudaErrorInvalidValue);
    SIM_TRY(SIM_DRV(cuIpcGetMemHandle, (CUipcMemHandle *)handle, sim_devptr(pointer)));
    return cudaSuccess;
}

SIM_API cudaError_t cudaIpcOpenMemHandle(void **pointer, cudaIpcMemHandle_t handle, unsigned int flags)
{
    CUipcMemHandle driver_handle;
    CUdeviceptr address;

    SIM_TRY(sim_context());
    SIM_CHECK(pointer, cudaErrorInvalidValue);
    memcpy(&driver_handle, &handle, sizeof(driver_handle));
    SIM_TRY(SIM_DRV(cuIpcOpenMemHandle_v2, &address, driver_handle, flags));
    *pointer = sim_pointer(address);
    return cudaSuccess;
}

SIM_API cudaError_t cudaIpcCloseMemHandle(void *pointer)
{
    SIM_TRY(sim_context());
    SIM_TRY(SIM_DRV(cuIpcCloseMemHandle, sim_devptr(pointer)));
    return cudaSuccess;
}

SIM_API cudaError_t cudaIpcGetEventHandle(cudaIpcEventHandle_t *handle, cudaEvent_t event)
{
    SIM_TRY(sim_context());
    SIM_CHECK(handle, cudaErrorInvalidValue);
    SIM_TRY(SIM_DRV(cuIpcGetEventHandle, (CUipcEventHandle *)handle, event));
    return cudaSuccess;
}

SIM_API cudaError_t cudaIpcOpenEventHandle(cudaEvent_t *event, cudaIpcEventHandle_t handle)
{
    CUipcEventHandle driver_handle;

    SIM_TRY(sim_context());
    SIM_CHECK(event, cudaErrorInvalidValue);
    memcpy(&driver_handle, &handle, sizeof(driver_handle));
    SIM_TRY(SIM_DRV(cuIpcOpenEventHandle, event, driver_handle));
    return cudaSuccess;
}

SIM_API cudaError_t cudaImportExternalMemory(cudaExternalMemory_t *memory,
                                             const struct cudaExternalMemoryHandleDesc *desc)
{
    CUDA_EXTERNAL_MEMORY_HANDLE_DESC driver_desc;

    SIM_TRY(sim_context());
    SIM_CHECK(memory && desc, cudaErrorInvalidValue);
    memset(&driver_desc, 0, sizeof(driver_desc));
    driver_desc.type = (CUexternalMemoryHandleType)desc->type;
    memcpy(&driver_desc.handle, &desc->handle, sizeof(driver_desc.handle));
    driver_desc.size = desc->size;
    driver_desc.flags = desc->flags;
    SIM_TRY(SIM_DRV(cuImportExternalMemory, (CUexternalMemory *)memory, &driver_desc));
    return cudaSuccess;
}

SIM_API cudaError_t cudaExternalMemoryGetMappedBuffer(void **pointer, cudaExternalMemory_t memory,
                                                      const struct cudaExternalMemoryBufferDesc *desc)
{
    CUDA_EXTERNAL_MEMORY_BUFFER_DESC driver_desc;
    CUdeviceptr address;

    SIM_TRY(sim_context());
    SIM_CHECK(pointer && desc, cudaErrorInvalidValue);
    memset(&driver_desc, 0, sizeof(driver_desc));
    driver_desc.offset = desc->offset;
    driver_desc.size = desc->size;
    driver_desc.flags = desc->flags;
    SIM_TRY(SIM_DRV(cuExternalMemoryGetMappedBuffer, &address, (CUexternalMemory)memory, &driver_desc));
    *pointer = sim_pointer(address);
    return cudaSuccess;
}

SIM_API cudaError_t
cudaExternalMemoryGetMappedMipmappedArray(cudaMipmappedArray_t *mipmap, cudaExternalMemory_t memory,
                                          const struct cudaExternalMemoryMipmappedArrayDesc *desc)
{
    CUDA_EXTERNAL_MEMORY_MIPMAPPED_ARRAY_DESC driver_desc;

    SIM_TRY(sim_context());
    SIM_CHECK(mipmap && desc, cudaErrorInvalidValue);
    memset(&driver_desc, 0, sizeof(driver_desc));
    driver_desc.offset = desc->offset;
    driver_desc.numLevels = desc->numLevels;
    driver_desc.arrayDesc.Width = desc->extent.width;
    driver_desc.arrayDesc.Height = desc->extent.height;
    driver_desc.arrayDesc.Depth = desc->extent.depth;
    driver_desc.arrayDesc.Flags = desc->flags;
    SIM_TRY(sim_array_format(&desc->formatDesc, &driver_desc.arrayDesc.Format,
                             &driver_desc.arrayDesc.NumChannels));
    SIM_TRY(SIM_DRV(cuExternalMemoryGetMappedMipmappedArray, (CUmipmappedArray *)mipmap,
                    (CUexternalMemory)memory, &driver_desc));
    return cudaSuccess;
}

SIM_API cudaError_t cudaDestroyExternalMemory(cudaExternalMemory_t memory)
{
    SIM_TRY(sim_context());
    SIM_TRY(SIM_DRV(cuDestroyExternalMemory, (CUexternalMemory)memory));
    return cudaSuccess;
}
