/*
 * See driver.h. Owns the driver table, which is read-only once it is filled, and the primary contexts that
 * the library has retained.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sim/embedded/driver.h"

enum { LEAST_DRIVER = 13000, DEVICES = 64 };

struct sim_driver sim_driver;

static pthread_once_t once = PTHREAD_ONCE_INIT;
static const char *trouble = "CUDA driver version is insufficient for CUDA runtime version", *own_prefix;
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

/* Costs and faults belong to the driver's functions, under which every call of the library ends. */
static void check_environment(const char *variable)
{
    const char *value = secure_getenv(variable);
    char *copy = value ? strdup(value) : NULL, *rest = copy, *item;

    while (rest && (item = strsep(&rest, ",")) != NULL) {
        if (strncmp(item, own_prefix, strlen(own_prefix)) == 0)
            fprintf(stderr,
                    "memsim: %s=%s: expected the name of a driver function, like cuMemCreate; ignored\n",
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
#include "sim/embedded/embedded.def"
#include SIM_DRIVER_DEF
#undef DRIVER
    if (SIM_DRV(cuDriverGetVersion, &version) != CUDA_SUCCESS || version < LEAST_DRIVER)
        return;
    trouble = SIM_DRV(cuInit, 0) == CUDA_SUCCESS ? NULL : "no CUDA-capable device is detected";
}

const char *sim_driver_open(const char *prefix)
{
    __atomic_store_n(&own_prefix, prefix, __ATOMIC_RELAXED);
    pthread_once(&once, open_driver);
    return trouble;
}

CUresult sim_driver_primary(CUdevice device, CUcontext *context_p)
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

/* A primary context that a reset has emptied is active again with the first call that needs it, as in the
 * runtime that the real library contains. */
static CUresult awake(CUcontext current)
{
    CUcontext same;
    CUdevice device = 0;

    pthread_mutex_lock(&lock);
    while (device < DEVICES && primary[device] != current)
        device++;
    pthread_mutex_unlock(&lock);
    return device < DEVICES ? sim_driver_primary(device, &same) : CUDA_SUCCESS;
}

CUresult sim_driver_context(void)
{
    CUcontext current = NULL;
    CUresult status = SIM_DRV(cuCtxGetCurrent, &current);

    if (status != CUDA_SUCCESS || current)
        return status ? status : awake(current);
    status = sim_driver_primary(0, &current);
    return status ? status : SIM_DRV(cuCtxSetCurrent, current);
}

void sim_driver_unsupported(const char *name, unsigned long long *calls)
{
    unsigned long long nth = __atomic_add_fetch(calls, 1, __ATOMIC_RELAXED);
    const char *path = secure_getenv("MEMSIM_LOG");
    int saved_errno = errno, length, file;
    char line[160];

    if (!path || !*path)
        return;
    length = snprintf(line, sizeof(line), "%d unsupported %s %llu\n", (int)getpid(), name, nth);
    file = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
    if (file >= 0) {
        if (write(file, line, (size_t)length) < 0)
            fprintf(stderr, "memsim: cannot write %s\n", path);
        close(file);
    }
    errno = saved_errno;
}
