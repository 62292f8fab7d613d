/*
 * Questions about an address. The kinds of memory have other numbers from 6 on, and what is unknown to HIP is
 * an error before 7.
 */
#include <string.h>

#include "sim/hip/hip.h"

static unsigned kind_of(CUdeviceptr address, int managed)
{
    unsigned type = 0;

    cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, address);
    if (SIM_HIP < 6)
        return type == CU_MEMORYTYPE_HOST ? hipMemoryType5Host : hipMemoryType5Device;
    if (managed)
        return hipMemoryType6Managed;
    return type == CU_MEMORYTYPE_HOST ? hipMemoryType6Host : hipMemoryType6Device;
}

HIP_API hipPointerGetAttributes(hipPointerAttribute_t *attributes, const void *ptr)
{
    CUdeviceptr address = hip_address(ptr), device_pointer = 0;
    void *host_pointer = NULL;
    int ordinal = -1, managed = 0;

    HIP_ENTER_DEVICE(hipPointerGetAttributes);
    if (!attributes || !ptr)
        return hip_leave(hipErrorInvalidValue);
    memset(attributes, 0, sizeof *attributes);
    if (cuPointerGetAttribute(&ordinal, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, address) != CUDA_SUCCESS) {
        attributes->device = -2;
        attributes->type = hipMemoryType6Unregistered;
        return hip_leave(SIM_HIP < 7 ? hipErrorInvalidValue : hipSuccess);
    }
    cuPointerGetAttribute(&managed, CU_POINTER_ATTRIBUTE_IS_MANAGED, address);
    if (cuPointerGetAttribute(&device_pointer, CU_POINTER_ATTRIBUTE_DEVICE_POINTER, address) == CUDA_SUCCESS)
        attributes->devicePointer = (void *)(uintptr_t)device_pointer;
    if (cuPointerGetAttribute(&host_pointer, CU_POINTER_ATTRIBUTE_HOST_POINTER, address) == CUDA_SUCCESS)
        attributes->hostPointer = host_pointer;
    attributes->type = kind_of(address, managed & 1);
    attributes->device = ordinal;
    attributes->isManaged = managed & 1;
    return hip_leave(hipSuccess);
}

/* Numbers and answers are the driver's, but for those that HIP does not have. */
static int one(void *data, int attribute, hipDeviceptr_t ptr)
{
    switch (attribute) {
    case HIP_POINTER_ATTRIBUTE_MEMORY_TYPE:
    case HIP_POINTER_ATTRIBUTE_DEVICE_POINTER:
    case HIP_POINTER_ATTRIBUTE_HOST_POINTER:
    case HIP_POINTER_ATTRIBUTE_BUFFER_ID:
    case HIP_POINTER_ATTRIBUTE_IS_MANAGED:
    case HIP_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
    case HIP_POINTER_ATTRIBUTE_RANGE_START_ADDR:
    case HIP_POINTER_ATTRIBUTE_RANGE_SIZE:
        return (int)cuPointerGetAttribute(data, (CUpointer_attribute)attribute, hip_address(ptr));
    default:
        return hipErrorNotSupported;
    }
}

HIP_API hipPointerGetAttribute(void *data, hipPointer_attribute attribute, hipDeviceptr_t ptr)
{
    HIP_ENTER_DEVICE(hipPointerGetAttribute);
    return hip_leave(data && ptr ? one(data, (int)attribute, ptr) : hipErrorInvalidValue);
}

HIP_API hipDrvPointerGetAttributes(unsigned count, hipPointer_attribute *attributes, void **data,
                                   hipDeviceptr_t ptr)
{
    HIP_ENTER_DEVICE(hipDrvPointerGetAttributes);
    if (!attributes || !data || !count)
        return hip_leave(hipErrorInvalidValue);
    for (unsigned i = 0; i < count; i++) {
        int status = one(data[i], (int)attributes[i], ptr);
        if (status != hipSuccess && status != hipErrorInvalidValue)
            return hip_leave(status);
    }
    return hip_leave(hipSuccess);
}
