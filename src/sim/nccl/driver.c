/*
 * Reaching the driver as the library with its embedded runtime does: one dlopen of libcuda.so.1, one dlsym of
 * cuGetProcAddress_v2, and everything else through the pointer that gives, cuGetProcAddress included. Done once per process,
 * in the first call that needs a device. Owns the driver table, which is read-only afterwards.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/nccl/nccl.h"

enum { LEAST_DRIVER = 13000, DEVICES = 64 };

struct sim_driver sim_driver;

static pthread_once_t once = PTHREAD_ONCE_INIT;
static const char *trouble = "CUDA driver version is insufficient for CUDA runtime version";
static __typeof__(&cuGetProcAddress_v2) lookup;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static CUcontext primary[DEVICES];

static void *ask(const char *name, int version)
{
    void *function = NULL;

    return lookup(name, &function, version, 0, NULL) == CUDA_SUCCESS ? function : NULL;
}

static void fill(void *slot, const char *name, int version)
{
    void *function = ask(name, version);

    memcpy(slot, &function, sizeof(function));
}

/* Costs and faults belong to the driver's functions, under which every call of this library ends. */
static void check_environment(const char *variable)
{
    const char *value = secure_getenv(variable);
    char *copy = value ? strdup(value) : NULL, *rest = copy, *item;

    while (rest && (item = strsep(&rest, ",")) != NULL) {
        if (strncmp(item, "nccl", 4) == 0)
            fprintf(stderr, "memsim: %s=%s: expected the name of a driver function, like cuMemCreate; ignored\n",
                    variable, item);
    }
    free(copy);
}

static void open_driver(void)
{
    void *handle = dlopen("libcuda.so.1", RTLD_NOW), *found;
    int version = 0;

    if (!handle)
        return;
    check_environment("MEMSIM_COST");
    check_environment("MEMSIM_FAIL");
    lookup = (__typeof__(lookup))dlsym(handle, "cuGetProcAddress_v2");
    if (!lookup)
        return;
    lookup("", &found, 0, 0, NULL);
    found = ask("cuGetProcAddress", 12000);
    if (found)
        lookup = (__typeof__(lookup))found;
#define DRIVER(symbol, name, version) fill(&sim_driver.symbol, name, version);
#include "sim/nccl/driver.def"
#undef DRIVER
    if (SIM_DRV(cuDriverGetVersion, &version) != CUDA_SUCCESS || version < LEAST_DRIVER)
        return;
    trouble = SIM_DRV(cuInit, 0) == CUDA_SUCCESS ? NULL : "no CUDA-capable device is detected";
}

ncclResult_t sim_cuda(CUresult status)
{
    if (status == CUDA_SUCCESS)
        return ncclSuccess;
    return sim_fail(ncclUnhandledCudaError, "Cuda failure %d", (int)status);
}

/* Retained at its first use, and again when a reset has emptied it. */
static CUresult primary_of(CUdevice device, CUcontext *context_p)
{
    CUresult status = CUDA_SUCCESS;
    unsigned flags;
    int active = 0;

    pthread_mutex_lock(&lock);
    bool known = device >= 0 && device < DEVICES && primary[device];
    if (known)
        status = SIM_DRV(cuDevicePrimaryCtxGetState, device, &flags, &active);
    if (device >= 0 && device < DEVICES && !active)
        status = SIM_DRV(cuDevicePrimaryCtxRetain, &primary[device], device);
    *context_p = device >= 0 && device < DEVICES ? primary[device] : NULL;
    pthread_mutex_unlock(&lock);
    return *context_p ? status : CUDA_ERROR_INVALID_DEVICE;
}

/* A primary context that a reset has emptied is active again with the first call that needs it, as in the runtime that
 * the real library contains. */
static CUresult awake(CUcontext current)
{
    CUcontext same;
    CUdevice device = 0;

    pthread_mutex_lock(&lock);
    while (device < DEVICES && primary[device] != current)
        device++;
    pthread_mutex_unlock(&lock);
    return device < DEVICES ? primary_of(device, &same) : CUDA_SUCCESS;
}

ncclResult_t sim_runtime(void)
{
    CUcontext current = NULL;
    CUresult status;

    pthread_once(&once, open_driver);
    if (trouble)
        return sim_fail(ncclUnhandledCudaError, "Cuda failure '%s'", trouble);
    status = SIM_DRV(cuCtxGetCurrent, &current);
    if (status != CUDA_SUCCESS || current)
        return sim_cuda(status ? status : awake(current));
    status = primary_of(0, &current);
    return sim_cuda(status ? status : SIM_DRV(cuCtxSetCurrent, current));
}

ncclResult_t sim_device(CUdevice *device_p)
{
    SIM_TRY(sim_runtime());
    return sim_cuda(SIM_DRV(cuCtxGetDevice, device_p));
}

/** The context of a device that the program names by number. */
ncclResult_t sim_context_of(int ordinal, CUcontext *context_p)
{
    CUdevice device;

    SIM_TRY(sim_runtime());
    SIM_TRY(sim_cuda(SIM_DRV(cuDeviceGet, &device, ordinal)));
    return sim_cuda(primary_of(device, context_p));
}
