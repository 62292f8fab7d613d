/*
 * Questions about no device: versions, texts of statuses, the name of a process. Allocates nothing.
 *
 * The driver's version is that of the release whose CUDA version the simulated driver has:
 * docs.nvidia.com/cuda, "CUDA Toolkit Release Notes", "CUDA Toolkit and Corresponding Driver Versions"
 * (13.0: 580.65.06). The texts are those that nvidia-ml-py has for the same statuses.
 */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "sim/nvml/nvml.h"

#define DRIVER_VERSION "580.65.06"
#define NVML_VERSION   "13." DRIVER_VERSION

SIM_NVML nvmlSystemGetDriverVersion(char *version, unsigned int length)
{
    SIM_NVML_TRY(sim_nvml_ready());
    return sim_nvml_text(version, length, DRIVER_VERSION);
}

/* This one and the next two can be asked at any time: the library's own version, and the CUDA version of the
 * driver. */
SIM_NVML nvmlSystemGetNVMLVersion(char *version, unsigned int length)
{
    return sim_nvml_text(version, length, NVML_VERSION);
}

SIM_NVML nvmlSystemGetCudaDriverVersion_v2(int *version_p)
{
    if (!version_p)
        return NVML_ERROR_INVALID_ARGUMENT;
    *version_p = CUDA_VERSION;
    return NVML_SUCCESS;
}

SIM_NVML nvmlSystemGetCudaDriverVersion(int *version_p)
{
    return nvmlSystemGetCudaDriverVersion_v2(version_p);
}

/* The program as it was started; cropped to what there is room for. */
SIM_NVML nvmlSystemGetProcessName(unsigned int pid, char *name, unsigned int length)
{
    char path[64], line[1024];
    ssize_t got;
    int file;

    SIM_NVML_TRY(sim_nvml_ready());
    if (!name || !length)
        return NVML_ERROR_INVALID_ARGUMENT;
    snprintf(path, sizeof path, "/proc/%u/cmdline", pid);
    file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0)
        return NVML_ERROR_NOT_FOUND;
    got = read(file, line, sizeof line - 1);
    close(file);
    if (got < 0)
        return NVML_ERROR_NO_PERMISSION;
    line[got] = '\0';
    snprintf(name, length, "%s", line);
    return NVML_SUCCESS;
}

SIM_NVML nvmlUnitGetCount(unsigned int *count_p)
{
    SIM_NVML_TRY(sim_nvml_ready());
    if (!count_p)
        return NVML_ERROR_INVALID_ARGUMENT;
    *count_p = 0;
    return NVML_SUCCESS;
}

SIM_NVML nvmlGetExcludedDeviceCount(unsigned int *count_p)
{
    if (!count_p)
        return NVML_ERROR_INVALID_ARGUMENT;
    *count_p = 0;
    return NVML_SUCCESS;
}

__attribute__((visibility("default"))) const char *nvmlErrorString(nvmlReturn_t result)
{
    static const char *const texts[] = {
        [NVML_SUCCESS] = "Success",
        [NVML_ERROR_UNINITIALIZED] = "Uninitialized",
        [NVML_ERROR_INVALID_ARGUMENT] = "Invalid Argument",
        [NVML_ERROR_NOT_SUPPORTED] = "Not Supported",
        [NVML_ERROR_NO_PERMISSION] = "Insufficient Permissions",
        [NVML_ERROR_ALREADY_INITIALIZED] = "Already Initialized",
        [NVML_ERROR_NOT_FOUND] = "Not Found",
        [NVML_ERROR_INSUFFICIENT_SIZE] = "Insufficient Size",
        [NVML_ERROR_INSUFFICIENT_POWER] = "Insufficient External Power",
        [NVML_ERROR_DRIVER_NOT_LOADED] = "Driver Not Loaded",
        [NVML_ERROR_TIMEOUT] = "Timeout",
        [NVML_ERROR_IRQ_ISSUE] = "Interrupt Request Issue",
        [NVML_ERROR_LIBRARY_NOT_FOUND] = "NVML Shared Library Not Found",
        [NVML_ERROR_FUNCTION_NOT_FOUND] = "Function Not Found",
        [NVML_ERROR_CORRUPTED_INFOROM] = "Corrupted infoROM",
        [NVML_ERROR_GPU_IS_LOST] = "GPU is lost",
        [NVML_ERROR_RESET_REQUIRED] = "GPU requires restart",
        [NVML_ERROR_LIB_RM_VERSION_MISMATCH] = "RM has detected an NVML/RM version mismatch.",
        [NVML_ERROR_MEMORY] = "Insufficient Memory",
    };
    unsigned which = (unsigned)result;

    return which < sizeof texts / sizeof texts[0] && texts[which] ? texts[which] : "Unknown Error";
}
