/*
 * Questions about a device: the answers agree with the driver's, since both ask the same rooms. Devices have
 * no links, are not split, and reach each other over the bus if the card's record says so. No lock, allocates
 * nothing.
 *
 * What they answer: docs.nvidia.com/deploy/nvml-api, "Device Queries".
 */
#include <stdio.h>
#include <string.h>

#include "sim/cuda/device/identity.h"
#include "sim/nvml/nvml.h"

SIM_NVML nvmlDeviceGetName(nvmlDevice_t device, char *name, unsigned int length)
{
    int ordinal;

    SIM_NVML_TRY(sim_nvml_device(device, name, &ordinal));
    return sim_nvml_text(name, length, sim_card_name());
}

SIM_NVML nvmlDeviceGetUUID(nvmlDevice_t device, char *uuid, unsigned int length)
{
    char text[SIM_UUID_TEXT];
    int ordinal;

    SIM_NVML_TRY(sim_nvml_device(device, uuid, &ordinal));
    sim_uuid_text(ordinal, text);
    return sim_nvml_text(uuid, length, text);
}

SIM_NVML nvmlDeviceGetIndex(nvmlDevice_t device, unsigned int *index_p)
{
    int ordinal;

    SIM_NVML_TRY(sim_nvml_device(device, index_p, &ordinal));
    *index_p = (unsigned)ordinal;
    return NVML_SUCCESS;
}

/* The N of /dev/nvidiaN. */
SIM_NVML nvmlDeviceGetMinorNumber(nvmlDevice_t device, unsigned int *minor_p)
{
    return nvmlDeviceGetIndex(device, minor_p);
}

/* The earlier forms have a shorter identifier, and end before the longer one. */
static nvmlReturn_t pci(nvmlDevice_t device, nvmlPciInfo_t *info, size_t bytes)
{
    nvmlPciInfo_t told = {.pciDeviceId = (unsigned)sim_card_attribute(CU_DEVICE_ATTRIBUTE_GPU_PCI_DEVICE_ID),
                          .pciSubSystemId =
                              (unsigned)sim_card_attribute(CU_DEVICE_ATTRIBUTE_GPU_PCI_SUBSYSTEM_ID)};
    int ordinal;

    SIM_NVML_TRY(sim_nvml_device(device, info, &ordinal));
    told.bus = (unsigned)sim_pci_bus(ordinal);
    snprintf(told.busIdLegacy, sizeof told.busIdLegacy, "%04X:%02X:%02X.0", told.domain, told.bus,
             told.device);
    snprintf(told.busId, sizeof told.busId, "%08X:%02X:%02X.0", told.domain, told.bus, told.device);
    memcpy(info, &told, bytes);
    return NVML_SUCCESS;
}

SIM_NVML nvmlDeviceGetPciInfo_v3(nvmlDevice_t device, nvmlPciInfo_t *info)
{
    return pci(device, info, sizeof *info);
}

SIM_NVML nvmlDeviceGetPciInfo_v2(nvmlDevice_t device, nvmlPciInfo_t *info)
{
    return pci(device, info, offsetof(nvmlPciInfo_t, busId));
}

SIM_NVML nvmlDeviceGetPciInfo(nvmlDevice_t device, nvmlPciInfo_t *info)
{
    return pci(device, info, offsetof(nvmlPciInfo_t, pciSubSystemId));
}

SIM_NVML nvmlDeviceGetCudaComputeCapability(nvmlDevice_t device, int *major_p, int *minor_p)
{
    int ordinal;

    SIM_NVML_TRY(sim_nvml_device(device, major_p, &ordinal));
    if (!minor_p)
        return NVML_ERROR_INVALID_ARGUMENT;
    *major_p = sim_card_attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
    *minor_p = sim_card_attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
    return NVML_SUCCESS;
}

SIM_NVML nvmlDeviceGetArchitecture(nvmlDevice_t device, unsigned int *architecture_p)
{
    int major = 0, minor = 0;

    if (!architecture_p)
        return sim_nvml_ready() == NVML_SUCCESS ? NVML_ERROR_INVALID_ARGUMENT : NVML_ERROR_UNINITIALIZED;
    SIM_NVML_TRY(nvmlDeviceGetCudaComputeCapability(device, &major, &minor));
    if (major >= 10)
        *architecture_p = NVML_DEVICE_ARCH_BLACKWELL;
    else if (major == 9)
        *architecture_p = NVML_DEVICE_ARCH_HOPPER;
    else
        *architecture_p = minor == 9 ? NVML_DEVICE_ARCH_ADA : NVML_DEVICE_ARCH_AMPERE;
    return NVML_SUCCESS;
}

static nvmlReturn_t attribute(nvmlDevice_t device, CUdevice_attribute which, int unit, unsigned int *value_p)
{
    int ordinal;

    SIM_NVML_TRY(sim_nvml_device(device, value_p, &ordinal));
    *value_p = (unsigned)(sim_card_attribute(which) / unit);
    return NVML_SUCCESS;
}

SIM_NVML nvmlDeviceGetMemoryBusWidth(nvmlDevice_t device, unsigned int *bits_p)
{
    return attribute(device, CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH, 1, bits_p);
}

/* In MHz; the driver tells kHz. */
SIM_NVML nvmlDeviceGetMaxClockInfo(nvmlDevice_t device, nvmlClockType_t which, unsigned int *mhz_p)
{
    if (which == NVML_CLOCK_MEM)
        return attribute(device, CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE, 1000, mhz_p);
    if (which == NVML_CLOCK_SM || which == NVML_CLOCK_GRAPHICS)
        return attribute(device, CU_DEVICE_ATTRIBUTE_CLOCK_RATE, 1000, mhz_p);
    SIM_NVML_TRY(sim_nvml_ready());
    return which == NVML_CLOCK_VIDEO ? NVML_ERROR_NOT_SUPPORTED : NVML_ERROR_INVALID_ARGUMENT;
}

SIM_NVML nvmlDeviceGetComputeMode(nvmlDevice_t device, unsigned int *mode_p)
{
    return attribute(device, CU_DEVICE_ATTRIBUTE_COMPUTE_MODE, 1, mode_p);
}

SIM_NVML nvmlDeviceGetEccMode(nvmlDevice_t device, nvmlEnableState_t *now_p, nvmlEnableState_t *next_p)
{
    unsigned enabled = 0;

    SIM_NVML_TRY(attribute(device, CU_DEVICE_ATTRIBUTE_ECC_ENABLED, 1, &enabled));
    if (!now_p || !next_p)
        return NVML_ERROR_INVALID_ARGUMENT;
    *now_p = *next_p = enabled ? NVML_FEATURE_ENABLED : NVML_FEATURE_DISABLED;
    return NVML_SUCCESS;
}

static nvmlReturn_t nothing(nvmlDevice_t device, unsigned int *value_p)
{
    int ordinal;

    SIM_NVML_TRY(sim_nvml_device(device, value_p, &ordinal));
    *value_p = 0;
    return NVML_SUCCESS;
}

SIM_NVML nvmlDeviceIsMigDeviceHandle(nvmlDevice_t device, unsigned int *is_p)
{
    return nothing(device, is_p);
}

SIM_NVML nvmlDeviceGetMaxMigDeviceCount(nvmlDevice_t device, unsigned int *count_p)
{
    return nothing(device, count_p);
}

SIM_NVML nvmlDeviceGetP2PStatus(nvmlDevice_t one, nvmlDevice_t other, nvmlGpuP2PCapsIndex_t which,
                                nvmlGpuP2PStatus_t *status_p)
{
    int from, to;

    SIM_NVML_TRY(sim_nvml_device(one, status_p, &from));
    SIM_NVML_TRY(sim_nvml_device(other, status_p, &to));
    if ((int)which < 0 || which >= NVML_P2P_CAPS_INDEX_UNKNOWN)
        return NVML_ERROR_INVALID_ARGUMENT;
    *status_p = which != NVML_P2P_CAPS_INDEX_NVLINK && sim_card_peers() ? NVML_P2P_STATUS_OK
                                                                        : NVML_P2P_STATUS_NOT_SUPPORTED;
    return NVML_SUCCESS;
}
