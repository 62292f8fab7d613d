/*
 * Begin and end, which are counted, and the devices: how many, and their handles, which are good until the
 * process ends. The variables are read at the first init. One lock, for the count; allocates nothing.
 *
 * What they answer: docs.nvidia.com/deploy/nvml-api, "Initialization and Cleanup" and "Device Queries".
 */
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "sim/cuda/device/identity.h"
#include "sim/nvml/nvml.h"

struct nvmlDevice_st {
    int ordinal;
};

static struct nvmlDevice_st devices[SIM_MAX_DEVICES];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static unsigned users;

static void read_environment(void)
{
    sim_config_read();
    sim_card_read();
    for (int i = 0; i < SIM_MAX_DEVICES; i++)
        devices[i].ordinal = i;
}

SIM_NVML nvmlInitWithFlags(unsigned int flags)
{
    if (flags & ~(unsigned)(NVML_INIT_FLAG_NO_GPUS | NVML_INIT_FLAG_NO_ATTACH))
        return NVML_ERROR_INVALID_ARGUMENT;
    pthread_once(&once, read_environment);
    pthread_mutex_lock(&lock);
    users++;
    pthread_mutex_unlock(&lock);
    return NVML_SUCCESS;
}

SIM_NVML nvmlInit_v2(void)
{
    return nvmlInitWithFlags(0);
}

SIM_NVML nvmlInit(void)
{
    return nvmlInitWithFlags(0);
}

SIM_NVML nvmlShutdown(void)
{
    nvmlReturn_t result = NVML_ERROR_UNINITIALIZED;

    pthread_mutex_lock(&lock);
    if (users) {
        users--;
        result = NVML_SUCCESS;
    }
    pthread_mutex_unlock(&lock);
    return result;
}

nvmlReturn_t sim_nvml_ready(void)
{
    pthread_mutex_lock(&lock);
    bool ready = users > 0;
    pthread_mutex_unlock(&lock);
    return ready ? NVML_SUCCESS : NVML_ERROR_UNINITIALIZED;
}

nvmlReturn_t sim_nvml_device(nvmlDevice_t handle, const void *out, int *ordinal_p)
{
    SIM_NVML_TRY(sim_nvml_ready());
    for (unsigned i = 0; i < sim_config.devices; i++) {
        if (handle == &devices[i]) {
            *ordinal_p = (int)i;
            return out ? NVML_SUCCESS : NVML_ERROR_INVALID_ARGUMENT;
        }
    }
    return NVML_ERROR_INVALID_ARGUMENT;
}

nvmlDevice_t sim_nvml_handle(int ordinal)
{
    return &devices[ordinal];
}

nvmlReturn_t sim_nvml_text(char *to, unsigned int bytes, const char *text)
{
    size_t length = strlen(text) + 1;

    if (!to)
        return NVML_ERROR_INVALID_ARGUMENT;
    if (bytes < length)
        return NVML_ERROR_INSUFFICIENT_SIZE;
    memcpy(to, text, length);
    return NVML_SUCCESS;
}

SIM_NVML nvmlDeviceGetCount_v2(unsigned int *count_p)
{
    SIM_NVML_TRY(sim_nvml_ready());
    if (!count_p)
        return NVML_ERROR_INVALID_ARGUMENT;
    *count_p = sim_config.devices;
    return NVML_SUCCESS;
}

SIM_NVML nvmlDeviceGetCount(unsigned int *count_p)
{
    return nvmlDeviceGetCount_v2(count_p);
}

SIM_NVML nvmlDeviceGetHandleByIndex_v2(unsigned int index, nvmlDevice_t *device_p)
{
    SIM_NVML_TRY(sim_nvml_ready());
    if (!device_p || index >= sim_config.devices)
        return NVML_ERROR_INVALID_ARGUMENT;
    *device_p = &devices[index];
    return NVML_SUCCESS;
}

SIM_NVML nvmlDeviceGetHandleByIndex(unsigned int index, nvmlDevice_t *device_p)
{
    return nvmlDeviceGetHandleByIndex_v2(index, device_p);
}

SIM_NVML nvmlDeviceGetHandleByUUID(const char *uuid, nvmlDevice_t *device_p)
{
    char text[SIM_UUID_TEXT];

    SIM_NVML_TRY(sim_nvml_ready());
    if (!uuid || !device_p)
        return NVML_ERROR_INVALID_ARGUMENT;
    for (unsigned i = 0; i < sim_config.devices; i++) {
        sim_uuid_text((int)i, text);
        if (!strcmp(text, uuid)) {
            *device_p = &devices[i];
            return NVML_SUCCESS;
        }
    }
    return NVML_ERROR_NOT_FOUND;
}

SIM_NVML nvmlDeviceGetHandleByPciBusId_v2(const char *id, nvmlDevice_t *device_p)
{
    int ordinal;

    SIM_NVML_TRY(sim_nvml_ready());
    if (!id || !device_p || !sim_pci_parse(id, &ordinal))
        return NVML_ERROR_INVALID_ARGUMENT;
    if (ordinal < 0)
        return NVML_ERROR_NOT_FOUND;
    *device_p = &devices[ordinal];
    return NVML_SUCCESS;
}

SIM_NVML nvmlDeviceGetHandleByPciBusId(const char *id, nvmlDevice_t *device_p)
{
    return nvmlDeviceGetHandleByPciBusId_v2(id, device_p);
}
