/*
 * cuInit, the version, and fork: a child finds the driver not initialised and can never use it, as on
 * hardware. So no lock of the parent's is ever waited for in a child.
 */
#include "sim/cuda/sim.h"

atomic_int sim_initialized;

static pthread_once_t once = PTHREAD_ONCE_INIT;

static void forked_child(void)
{
    atomic_store(&sim_initialized, -1);
}

static void initialize(void)
{
    for (unsigned i = 0; i < sim_config.devices; i++) {
        sim_devices[i].ordinal = (int)i;
        sim_devices[i].arena.fd = -1;
    }
    pthread_atfork(NULL, NULL, forked_child);
    atomic_store_explicit(&sim_initialized, 1, memory_order_release);
}

SIM_API(cuInit)(unsigned flags)
{
    SIM_ENTER_RAW(cuInit);
    if (atomic_load(&sim_initialized) < 0)
        return CUDA_ERROR_NOT_INITIALIZED;
    if (flags)
        return CUDA_ERROR_INVALID_VALUE;
    if (!sim_config.devices)
        return CUDA_ERROR_NO_DEVICE;
    pthread_once(&once, initialize);
    return CUDA_SUCCESS;
}

SIM_API(cuDriverGetVersion)(int *version_p)
{
    SIM_ENTER_RAW(cuDriverGetVersion);
    if (!version_p)
        return CUDA_ERROR_INVALID_VALUE;
    *version_p = CUDA_VERSION;
    return CUDA_SUCCESS;
}

SIM_API(cuGetExportTable)(const void **table_p, const CUuuid *id)
{
    SIM_ENTER_RAW(cuGetExportTable);
    (void)id;
    if (!table_p)
        return CUDA_ERROR_INVALID_VALUE;
    *table_p = NULL;
    return CUDA_ERROR_NOT_FOUND; /* private tables are not simulated */
}

SIM_API(cuProfilerStart)(void)
{
    SIM_ENTER(cuProfilerStart);
    return CUDA_SUCCESS;
}

SIM_API(cuProfilerStop)(void)
{
    SIM_ENTER(cuProfilerStop);
    return CUDA_SUCCESS;
}
