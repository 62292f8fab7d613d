/*
 * The use of a device's memory: how much, over all processes that this one may look at, and by which of them.
 * Nothing is kept: each question goes through /proc (usage.h). What processes of other users take is not
 * seen, as their descriptors are not.
 *
 * The total is what the card's record tells, the driver's own total and what the card reserves; free is
 * what the driver would tell if all processes were one. What they answer: docs.nvidia.com/deploy/nvml-api,
 * nvmlMemory_t, nvmlMemory_v2_t and nvmlDeviceGetComputeRunningProcesses_v3.
 */
#include <stdlib.h>
#include <string.h>

#include "sim/cuda/device/usage.h"
#include "sim/nvml/nvml.h"

/* The sum over processes, and a list of those with a context on the device. */
struct survey {
    int ordinal;
    unsigned long long used;
    unsigned count, room;
    nvmlProcessInfo_t *processes;
};

static void look_at(void *arg, const struct sim_usage *usage)
{
    struct survey *survey = arg;

    survey->used += usage->devices[survey->ordinal].used_bytes;
    if (!usage->devices[survey->ordinal].contexts)
        return;
    if (survey->count < survey->room)
        survey->processes[survey->count] =
            (nvmlProcessInfo_t){.pid = (unsigned)usage->pid,
                                .usedGpuMemory = usage->devices[survey->ordinal].used_bytes,
                                .gpuInstanceId = ~0u,
                                .computeInstanceId = ~0u};
    survey->count++;
}

SIM_NVML nvmlDeviceGetMemoryInfo_v2(nvmlDevice_t device, nvmlMemory_v2_t *memory)
{
    struct survey survey = {0};

    SIM_NVML_TRY(sim_nvml_device(device, memory, &survey.ordinal));
    if (memory->version != nvmlMemory_v2)
        return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    sim_usage_survey(look_at, &survey);
    memory->total = sim_config.memory_bytes + sim_card_reserved();
    memory->reserved = sim_card_reserved();
    memory->used = survey.used < sim_config.memory_bytes ? survey.used : sim_config.memory_bytes;
    memory->free = sim_config.memory_bytes - memory->used;
    return NVML_SUCCESS;
}

SIM_NVML nvmlDeviceGetMemoryInfo(nvmlDevice_t device, nvmlMemory_t *memory)
{
    nvmlMemory_v2_t told = {.version = nvmlMemory_v2};
    int ordinal;

    SIM_NVML_TRY(sim_nvml_device(device, memory, &ordinal));
    SIM_NVML_TRY(nvmlDeviceGetMemoryInfo_v2(device, &told));
    *memory = (nvmlMemory_t){.total = told.total, .free = told.free, .used = told.used + told.reserved};
    return NVML_SUCCESS;
}

SIM_NVML nvmlDeviceGetComputeRunningProcesses_v3(nvmlDevice_t device, unsigned int *count_p,
                                                 nvmlProcessInfo_t *processes)
{
    struct survey survey = {.processes = processes};

    SIM_NVML_TRY(sim_nvml_device(device, count_p, &survey.ordinal));
    if (*count_p && !processes)
        return NVML_ERROR_INVALID_ARGUMENT;
    survey.room = *count_p;
    sim_usage_survey(look_at, &survey);
    *count_p = survey.count;
    return survey.count > survey.room ? NVML_ERROR_INSUFFICIENT_SIZE : NVML_SUCCESS;
}

SIM_NVML nvmlDeviceGetComputeRunningProcesses_v2(nvmlDevice_t device, unsigned int *count_p,
                                                 nvmlProcessInfo_t *processes)
{
    return nvmlDeviceGetComputeRunningProcesses_v3(device, count_p, processes);
}

SIM_NVML nvmlDeviceGetComputeRunningProcesses(nvmlDevice_t device, unsigned int *count_p,
                                              nvmlProcessInfo_v1_t *processes)
{
    unsigned room = count_p ? *count_p : 0;
    nvmlProcessInfo_t *all = room ? calloc(room, sizeof *all) : NULL;
    nvmlReturn_t result = NVML_ERROR_MEMORY;

    if (!room || all)
        result = room && !processes ? NVML_ERROR_INVALID_ARGUMENT
                                    : nvmlDeviceGetComputeRunningProcesses_v3(device, count_p, all);
    if (result == NVML_SUCCESS || result == NVML_ERROR_INSUFFICIENT_SIZE)
        for (unsigned i = 0; i < *count_p && i < room; i++)
            processes[i] = (nvmlProcessInfo_v1_t){.pid = all[i].pid, .usedGpuMemory = all[i].usedGpuMemory};
    free(all);
    return result;
}

/* Nobody draws, and nobody shares a device by a server. */
static nvmlReturn_t none(nvmlDevice_t device, unsigned int *count_p)
{
    int ordinal;

    SIM_NVML_TRY(sim_nvml_device(device, count_p, &ordinal));
    *count_p = 0;
    return NVML_SUCCESS;
}

#define NONE(name, type)                                                                                     \
    SIM_NVML name(nvmlDevice_t device, unsigned int *count_p, type *processes)                               \
    {                                                                                                        \
        (void)processes;                                                                                     \
        return none(device, count_p);                                                                        \
    }
NONE(nvmlDeviceGetGraphicsRunningProcesses, nvmlProcessInfo_v1_t)
NONE(nvmlDeviceGetGraphicsRunningProcesses_v2, nvmlProcessInfo_t)
NONE(nvmlDeviceGetGraphicsRunningProcesses_v3, nvmlProcessInfo_t)
NONE(nvmlDeviceGetMPSComputeRunningProcesses, nvmlProcessInfo_v1_t)
NONE(nvmlDeviceGetMPSComputeRunningProcesses_v2, nvmlProcessInfo_t)
NONE(nvmlDeviceGetMPSComputeRunningProcesses_v3, nvmlProcessInfo_t)
