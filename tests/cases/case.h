/* case.h - what the programs of tests/cases share: sizes, and what a simulated device has given. */
#ifndef MS_TESTS_CASE_H
#define MS_TESTS_CASE_H

#include <dlfcn.h>
#include <stddef.h>

#include "tests/program.h"

#define MIB ((size_t)1 << 20)

/** The simulator's count of this name (MEMSIM_COUNT=1), or -1 without a simulator. used_bytes is what is
 * taken of the device. */
__attribute__((unused)) static long long counted(const char *name)
{
    void *driver = dlopen("libcuda.so.1", RTLD_NOW);
    long long (*count)(const char *) = NULL;

    if (driver)
        *(void **)&count = dlsym(driver, "memsim_count");
    return count ? count(name) : -1;
}

/** What is taken of the device, in MiB: by the simulator's count, or on a real device by NVML's, which is of
 * all processes. -1 where neither is. */
__attribute__((unused)) static long long used_mib(void)
{
    struct {
        unsigned long long total, free, used;
    } memory;
    void *nvml, *device;
    int (*begin)(void), (*by_index)(unsigned, void **), (*ask)(void *, void *);

    if (counted("used_bytes") >= 0)
        return counted("used_bytes") >> 20;
    nvml = dlopen("libnvidia-ml.so.1", RTLD_NOW);
    if (!nvml)
        return -1;
    *(void **)&begin = dlsym(nvml, "nvmlInit_v2");
    *(void **)&by_index = dlsym(nvml, "nvmlDeviceGetHandleByIndex_v2");
    *(void **)&ask = dlsym(nvml, "nvmlDeviceGetMemoryInfo");
    if (!begin || !by_index || !ask || begin() || by_index(0, &device) || ask(device, &memory))
        return -1;
    return (long long)(memory.used >> 20);
}

#endif
