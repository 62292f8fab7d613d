/*
 * See driver.h. Owns the driver table, which is read-only once it is filled, and the primary contexts that
 * the library has retained.
 */
#include <pthread.h>
#include <stdbool.h>
#include <string.h>

#include "sim/embedded/driver.h"
#include "sim/embedded/entry.h"

enum { LEAST_DRIVER = 13000, DEVICES = 64 };

struct sim_driver sim_driver;

static pthread_once_t once = PTHREAD_ONCE_INIT;
static const char *trouble = "CUDA driver version is insufficient for CUDA runtime version", *own_prefix;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static CUcontext primary[DEVICES];

static void fill(void *slot, const char *name, int version)
{
    void *function = sim_entry_ask(name, version, 0);

    memcpy(slot, &function, sizeof(function));
}

static void open_driver(void)
{
    __typeof__(&cuInit) init = sim_entry_open(__atomic_load_n(&own_prefix, __ATOMIC_RELAXED));
    int version = 0;

    if (!init)
        return;
#define DRIVER(symbol, name, version) fill(&sim_driver.symbol, name, version);
#include "sim/embedded/embedded.def"
#include SIM_DRIVER_DEF
#undef DRIVER
    if (SIM_DRV(cuDriverGetVersion, &version) != CUDA_SUCCESS || version < LEAST_DRIVER)
        return;
    trouble = init(0) == CUDA_SUCCESS ? NULL : "no CUDA-capable device is detected";
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
