/*
 * The properties of a device: the structure of before 6.0 under the plain name, its successor under a name of
 * its own, and the attributes that programs of allocators ask for. The numbers of attributes are those of 5
 * and later (hip_runtime_api.h).
 */
#include <stdio.h>
#include <string.h>

#include "sim/hip/hip.h"

enum { MULTIPROCESSORS = 304, WARP = 64 };

static int fill(hipDeviceProp_tR0000 *p, int device)
{
    if (!p)
        return hipErrorInvalidValue;
    if (device < 0 || device >= hip_device_count())
        return hip_device_count() ? hipErrorInvalidDevice : hipErrorNoDevice;
    memset(p, 0, sizeof *p);
    snprintf(p->name, sizeof p->name, "Simulated HIP device");
    snprintf(p->gcnArchName, sizeof p->gcnArchName, "gfx942:sramecc+:xnack-");
    cuDeviceTotalMem_v2(&p->totalGlobalMem, device);
    p->sharedMemPerBlock = p->maxSharedMemoryPerMultiProcessor = 65536;
    p->regsPerBlock = 65536;
    p->warpSize = WARP;
    p->maxThreadsPerBlock = p->maxThreadsDim[0] = p->maxThreadsDim[1] = p->maxThreadsDim[2] = 1024;
    p->maxGridSize[0] = p->maxGridSize[1] = p->maxGridSize[2] = 2147483647;
    p->maxThreadsPerMultiProcessor = 2048;
    p->major = 9;
    p->minor = 4;
    p->multiProcessorCount = MULTIPROCESSORS;
    p->concurrentKernels = p->canMapHostMemory = 1;
    p->pciBusID = device + 1;
    return hipSuccess;
}

HIP_API hipGetDeviceProperties(hipDeviceProp_tR0000 *properties, int device)
{
    HIP_ENTER(hipGetDeviceProperties);
    return hip_leave(fill(properties, device));
}

#if SIM_HIP >= 6
HIP_API hipGetDevicePropertiesR0000(hipDeviceProp_tR0000 *properties, int device)
{
    HIP_ENTER(hipGetDevicePropertiesR0000);
    return hip_leave(fill(properties, device));
}

HIP_API hipGetDevicePropertiesR0600(hipDeviceProp_tR0600 *p, int device)
{
    hipDeviceProp_tR0000 old;

    HIP_ENTER(hipGetDevicePropertiesR0600);
    int status = p ? fill(&old, device) : hipErrorInvalidValue;
    if (status)
        return hip_leave(status);
    memset(p, 0, sizeof *p);
    memcpy(p->name, old.name, sizeof p->name);
    memcpy(p->gcnArchName, old.gcnArchName, sizeof p->gcnArchName);
    cuDeviceGetUuid((CUuuid *)&p->uuid, device);
    p->totalGlobalMem = old.totalGlobalMem;
    p->sharedMemPerBlock = p->maxSharedMemoryPerMultiProcessor = old.sharedMemPerBlock;
    p->regsPerBlock = old.regsPerBlock;
    p->warpSize = old.warpSize;
    p->maxThreadsPerBlock = old.maxThreadsPerBlock;
    memcpy(p->maxThreadsDim, old.maxThreadsDim, sizeof p->maxThreadsDim);
    memcpy(p->maxGridSize, old.maxGridSize, sizeof p->maxGridSize);
    p->major = old.major;
    p->minor = old.minor;
    p->multiProcessorCount = old.multiProcessorCount;
    p->concurrentKernels = p->canMapHostMemory = p->managedMemory = p->unifiedAddressing =
        p->memoryPoolsSupported = 1;
    p->pciBusID = old.pciBusID;
    return hip_leave(hipSuccess);
}
#endif

HIP_API hipDeviceGetAttribute(int *value, hipDeviceAttribute_t attribute, int device)
{
    HIP_ENTER(hipDeviceGetAttribute);
    if (!value)
        return hip_leave(hipErrorInvalidValue);
    if (device < 0 || device >= hip_device_count())
        return hip_leave(hipErrorInvalidDevice);
    switch ((int)attribute) {
    case hipDeviceAttributeMultiprocessorCount:
        *value = MULTIPROCESSORS;
        break;
    case hipDeviceAttributeWarpSize:
        *value = WARP;
        break;
    case hipDeviceAttributeManagedMemory:
    case hipDeviceAttributeMemoryPoolsSupported:
    case hipDeviceAttributeVirtualMemoryManagementSupported:
    case hipDeviceAttributeHostRegisterSupported:
        *value = 1;
        break;
    default:
        *value = 0;
        break;
    }
    return hip_leave(hipSuccess);
}
