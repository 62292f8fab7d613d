/*
 * Devices: how many, and what they say of themselves. Nothing here changes after cuInit.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/cuda/device/identity.h"
#include "sim/cuda/books.h"
#include "sim/cuda/sim.h"

struct sim_device sim_devices[SIM_MAX_DEVICES];

struct sim_device *sim_device(CUdevice ordinal)
{
    return ordinal >= 0 && (unsigned)ordinal < sim_config.devices ? &sim_devices[ordinal] : NULL;
}

long long sim_device_count(const char *name)
{
    static const char *const names[] = {"used_bytes", "peak_bytes", "others_bytes"};
    size_t length = strcspn(name, " ");
    unsigned long ordinal = name[length] ? strtoul(name + length, NULL, 10) : 0;
    int which = 0;

    while (which < 3 && (length != strlen(names[which]) || strncmp(name, names[which], length) != 0))
        which++;
    if (which == 3 || ordinal >= SIM_MAX_DEVICES)
        return -1;
    sim_memory_read_lock();
    size_t bytes = which == 0   ? sim_devices[ordinal].used_bytes
                   : which == 1 ? sim_devices[ordinal].peak_bytes
                                : sim_books_others((int)ordinal);
    sim_memory_unlock();
    return (long long)bytes;
}

SIM_API(cuDeviceGetCount)(int *count_p)
{
    SIM_ENTER(cuDeviceGetCount);
    if (!count_p)
        return CUDA_ERROR_INVALID_VALUE;
    *count_p = (int)sim_config.devices;
    return CUDA_SUCCESS;
}

SIM_API(cuDeviceGet)(CUdevice *device_p, int ordinal)
{
    SIM_ENTER(cuDeviceGet);
    if (!device_p)
        return CUDA_ERROR_INVALID_VALUE;
    if (!sim_device(ordinal))
        return CUDA_ERROR_INVALID_DEVICE;
    *device_p = ordinal;
    return CUDA_SUCCESS;
}

SIM_API(cuDeviceGetName)(char *name, int length, CUdevice device)
{
    SIM_ENTER(cuDeviceGetName);
    if (!sim_device(device))
        return CUDA_ERROR_INVALID_DEVICE;
    if (!name || length <= 0)
        return CUDA_ERROR_INVALID_VALUE;
    snprintf(name, (size_t)length, "%s", sim_card_name());
    return CUDA_SUCCESS;
}

static CUresult get_uuid(CUuuid *uuid_p, CUdevice device)
{
    if (!sim_device(device))
        return CUDA_ERROR_INVALID_DEVICE;
    if (!uuid_p)
        return CUDA_ERROR_INVALID_VALUE;
    sim_uuid(device, uuid_p);
    return CUDA_SUCCESS;
}

SIM_API(cuDeviceGetUuid_v2)(CUuuid *uuid_p, CUdevice device)
{
    SIM_ENTER(cuDeviceGetUuid_v2);
    return get_uuid(uuid_p, device);
}

SIM_API(cuDeviceGetUuid)(CUuuid *uuid_p, CUdevice device)
{
    SIM_ENTER(cuDeviceGetUuid);
    return get_uuid(uuid_p, device);
}

SIM_API(cuDeviceTotalMem_v2)(size_t *bytes_p, CUdevice device)
{
    SIM_ENTER(cuDeviceTotalMem_v2);
    if (!sim_device(device))
        return CUDA_ERROR_INVALID_DEVICE;
    if (!bytes_p)
        return CUDA_ERROR_INVALID_VALUE;
    *bytes_p = sim_config.memory_bytes;
    return CUDA_SUCCESS;
}

SIM_API(cuDeviceTotalMem)(unsigned *bytes_p, CUdevice device)
{
    SIM_ENTER(cuDeviceTotalMem);
    if (!sim_device(device))
        return CUDA_ERROR_INVALID_DEVICE;
    if (!bytes_p)
        return CUDA_ERROR_INVALID_VALUE;
    *bytes_p = sim_config.memory_bytes < UINT32_MAX ? (unsigned)sim_config.memory_bytes : UINT32_MAX;
    return CUDA_SUCCESS;
}

SIM_API(cuDeviceGetAttribute)(int *value_p, CUdevice_attribute attribute, CUdevice device)
{
    SIM_ENTER(cuDeviceGetAttribute);
    if (!value_p || (int)attribute <= 0 || attribute >= CU_DEVICE_ATTRIBUTE_MAX)
        return CUDA_ERROR_INVALID_VALUE;
    if (!sim_device(device))
        return CUDA_ERROR_INVALID_DEVICE;
    *value_p =
        attribute == CU_DEVICE_ATTRIBUTE_PCI_BUS_ID ? sim_pci_bus(device) : sim_card_attribute(attribute);
    return CUDA_SUCCESS;
}

SIM_API(cuDeviceComputeCapability)(int *major_p, int *minor_p, CUdevice device)
{
    SIM_ENTER(cuDeviceComputeCapability);
    if (!sim_device(device))
        return CUDA_ERROR_INVALID_DEVICE;
    if (!major_p || !minor_p)
        return CUDA_ERROR_INVALID_VALUE;
    *major_p = sim_card_attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
    *minor_p = sim_card_attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
    return CUDA_SUCCESS;
}

SIM_API(cuDeviceGetProperties)(CUdevprop *prop, CUdevice device)
{
    SIM_ENTER(cuDeviceGetProperties);
    if (!sim_device(device))
        return CUDA_ERROR_INVALID_DEVICE;
    if (!prop)
        return CUDA_ERROR_INVALID_VALUE;
    *prop = (CUdevprop){
        .maxThreadsPerBlock = sim_card_attribute(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK),
        .maxThreadsDim = {1024, 1024, 64},
        .maxGridSize = {2147483647, 65535, 65535},
        .sharedMemPerBlock = sim_card_attribute(CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK),
        .totalConstantMemory = sim_card_attribute(CU_DEVICE_ATTRIBUTE_TOTAL_CONSTANT_MEMORY),
        .SIMDWidth = sim_card_attribute(CU_DEVICE_ATTRIBUTE_WARP_SIZE),
        .memPitch = sim_card_attribute(CU_DEVICE_ATTRIBUTE_MAX_PITCH),
        .regsPerBlock = sim_card_attribute(CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK),
        .clockRate = sim_card_attribute(CU_DEVICE_ATTRIBUTE_CLOCK_RATE),
        .textureAlign = sim_card_attribute(CU_DEVICE_ATTRIBUTE_TEXTURE_ALIGNMENT),
    };
    return CUDA_SUCCESS;
}

SIM_API(cuDeviceGetPCIBusId)(char *id, int length, CUdevice device)
{
    SIM_ENTER(cuDeviceGetPCIBusId);
    if (!sim_device(device))
        return CUDA_ERROR_INVALID_DEVICE;
    if (!id || length < 13)
        return CUDA_ERROR_INVALID_VALUE;
    snprintf(id, (size_t)length, "0000:%02X:00.0", sim_pci_bus(device));
    return CUDA_SUCCESS;
}

SIM_API(cuDeviceGetByPCIBusId)(CUdevice *device_p, const char *id)
{
    SIM_ENTER(cuDeviceGetByPCIBusId);
    int ordinal;

    if (!device_p || !id || !sim_pci_parse(id, &ordinal))
        return CUDA_ERROR_INVALID_VALUE;
    if (ordinal < 0)
        return CUDA_ERROR_INVALID_DEVICE;
    *device_p = ordinal;
    return CUDA_SUCCESS;
}

SIM_API(cuDeviceGetTexture1DLinearMaxWidth)
(size_t *width_p, CUarray_format format, unsigned channels, CUdevice device)
{
    SIM_ENTER(cuDeviceGetTexture1DLinearMaxWidth);
    (void)format;
    if (!sim_device(device))
        return CUDA_ERROR_INVALID_DEVICE;
    if (!width_p || (channels != 1 && channels != 2 && channels != 4))
        return CUDA_ERROR_INVALID_VALUE;
    *width_p = (size_t)sim_card_attribute(CU_DEVICE_ATTRIBUTE_MAXIMUM_TEXTURE1D_LINEAR_WIDTH);
    return CUDA_SUCCESS;
}

SIM_API(cuDeviceGetExecAffinitySupport)(int *supported_p, CUexecAffinityType type, CUdevice device)
{
    SIM_ENTER(cuDeviceGetExecAffinitySupport);
    (void)type;
    if (!sim_device(device))
        return CUDA_ERROR_INVALID_DEVICE;
    if (!supported_p)
        return CUDA_ERROR_INVALID_VALUE;
    *supported_p = 0;
    return CUDA_SUCCESS;
}
