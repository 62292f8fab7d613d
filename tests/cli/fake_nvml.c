/* fake_nvml.c - a management library whose one device of 80 GiB is held as FAKE_NVML says: "PID:MIB ...",
 * each of the compute list, with a "g" before the number in the graphics list as well, and with "-" for MIB
 * where the driver does not say. 500 MiB are reserved, and FAKE_NVML_LOST MiB are in use and nobody's. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "vendor/abi/nvml.h"

#define MIB (1ULL << 20)
enum { ROWS = 16, RESERVED = 500, TOTAL = 81920 };

static unsigned read_rows(nvmlProcessInfo_t *rows, int graphics, unsigned long long *sum_p)
{
    const char *said = getenv("FAKE_NVML");
    char text[400], *rest = text, *word;
    unsigned count = 0;

    snprintf(text, sizeof text, "%s", said ? said : "");
    while (count < ROWS && (word = strsep(&rest, " ")) != NULL) {
        int both = *word == 'g';
        char *mib = strchr(word, ':');
        if (!mib || (graphics && !both))
            continue;
        rows[count] = (nvmlProcessInfo_t){.pid = (unsigned)atoi(word + both), .usedGpuMemory = ~0ULL};
        if (mib[1] != '-') {
            rows[count].usedGpuMemory = strtoull(mib + 1, NULL, 10) * MIB;
            *sum_p += rows[count].usedGpuMemory;
        }
        count++;
    }
    return count;
}

nvmlReturn_t nvmlInitWithFlags(unsigned int flags)
{
    return flags ? NVML_ERROR_INVALID_ARGUMENT : NVML_SUCCESS;
}

nvmlReturn_t nvmlShutdown(void)
{
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetCount_v2(unsigned int *count_p)
{
    *count_p = 1;
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetHandleByIndex_v2(unsigned int index, nvmlDevice_t *device_p)
{
    *device_p = (nvmlDevice_t)1;
    return index ? NVML_ERROR_INVALID_ARGUMENT : NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetName(nvmlDevice_t device, char *name, unsigned int length)
{
    snprintf(name, length, "Card");
    return device ? NVML_SUCCESS : NVML_ERROR_INVALID_ARGUMENT;
}

nvmlReturn_t nvmlDeviceGetMemoryInfo_v2(nvmlDevice_t device, nvmlMemory_v2_t *memory)
{
    nvmlProcessInfo_t rows[ROWS];
    const char *lost = getenv("FAKE_NVML_LOST");
    unsigned long long used = (lost ? strtoull(lost, NULL, 10) : 0) * MIB;

    if (!device || memory->version != nvmlMemory_v2)
        return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    read_rows(rows, 0, &used);
    memory->total = TOTAL * MIB;
    memory->reserved = RESERVED * MIB;
    memory->used = used + memory->reserved;
    memory->free = memory->total - memory->used;
    return NVML_SUCCESS;
}

static nvmlReturn_t put_rows(unsigned int *count_p, nvmlProcessInfo_t *rows, int graphics)
{
    unsigned long long sum = 0;

    if (*count_p < ROWS)
        return NVML_ERROR_INSUFFICIENT_SIZE;
    *count_p = read_rows(rows, graphics, &sum);
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetComputeRunningProcesses_v3(nvmlDevice_t device, unsigned int *count_p,
                                                     nvmlProcessInfo_t *rows)
{
    return device ? put_rows(count_p, rows, 0) : NVML_ERROR_INVALID_ARGUMENT;
}

nvmlReturn_t nvmlDeviceGetGraphicsRunningProcesses_v3(nvmlDevice_t device, unsigned int *count_p,
                                                      nvmlProcessInfo_t *rows)
{
    return device ? put_rows(count_p, rows, 1) : NVML_ERROR_INVALID_ARGUMENT;
}
