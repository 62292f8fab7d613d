/*
 * Questions about devices and the settings of the current one: versions, counts, attributes, limits, peers.
 * Thin over the driver; holds no state. Properties are in props.c.
 */
#include "sim/cudart/runtime.h"

SIM_API cudaError_t cudaDriverGetVersion(int *version)
{
    SIM_CHECK(version, cudaErrorInvalidValue);
    *version = sim_driver_version();
    return cudaSuccess;
}

SIM_API cudaError_t cudaRuntimeGetVersion(int *version)
{
    SIM_CHECK(version, cudaErrorInvalidValue);
    *version = SIM_CUDART_VERSION;
    return cudaSuccess;
}

SIM_API cudaError_t cudaGetDeviceCount(int *count)
{
    int found;

    SIM_TRY(sim_runtime());
    SIM_CHECK(count, cudaErrorInvalidValue);
    SIM_TRY(SIM_DRV(cuDeviceGetCount, &found));
    *count = found;
    SIM_CHECK(found > 0, cudaErrorNoDevice);
    return cudaSuccess;
}

SIM_API cudaError_t cudaDeviceGetAttribute(int *value, enum cudaDeviceAttr attr, int device)
{
    CUdevice handle;

    SIM_TRY(sim_runtime());
    SIM_CHECK(value, cudaErrorInvalidValue);
    SIM_TRY(sim_device(device, &handle));
    SIM_TRY(SIM_DRV(cuDeviceGetAttribute, value, (CUdevice_attribute)attr, handle));
    return cudaSuccess;
}

SIM_API cudaError_t cudaDeviceGetByPCIBusId(int *device, const char *id)
{
    CUdevice handle;

    SIM_TRY(sim_runtime());
    SIM_CHECK(device && id, cudaErrorInvalidValue);
    SIM_TRY(SIM_DRV(cuDeviceGetByPCIBusId, &handle, id));
    *device = (int)handle;
    return cudaSuccess;
}

SIM_API cudaError_t cudaDeviceGetPCIBusId(char *id, int length, int device)
{
    CUdevice handle;

    SIM_TRY(sim_runtime());
    SIM_CHECK(id && length > 0, cudaErrorInvalidValue);
    SIM_TRY(sim_device(device, &handle));
    SIM_TRY(SIM_DRV(cuDeviceGetPCIBusId, id, length, handle));
    return cudaSuccess;
}

SIM_API cudaError_t cudaDeviceGetP2PAttribute(int *value, enum cudaDeviceP2PAttr attr, int source,
                                              int destination)
{
    CUdevice from, to;

    SIM_TRY(sim_runtime());
    SIM_CHECK(value, cudaErrorInvalidValue);
    SIM_TRY(sim_device(source, &from));
    SIM_TRY(sim_device(destination, &to));
    SIM_TRY(SIM_DRV(cuDeviceGetP2PAttribute, value, (CUdevice_P2PAttribute)attr, from, to));
    return cudaSuccess;
}

SIM_API cudaError_t cudaDeviceCanAccessPeer(int *can_access, int device, int peer)
{
    CUdevice from, to;

    SIM_TRY(sim_runtime());
    SIM_CHECK(can_access, cudaErrorInvalidValue);
    SIM_TRY(sim_device(device, &from));
    SIM_TRY(sim_device(peer, &to));
    SIM_TRY(SIM_DRV(cuDeviceCanAccessPeer, can_access, from, to));
    return cudaSuccess;
}

SIM_API cudaError_t cudaDeviceEnablePeerAccess(int peer, unsigned int flags)
{
    CUcontext context;

    SIM_TRY(sim_context());
    SIM_TRY(sim_primary_context(peer, &context));
    SIM_TRY(SIM_DRV(cuCtxEnablePeerAccess, context, flags));
    return cudaSuccess;
}

SIM_API cudaError_t cudaDeviceDisablePeerAccess(int peer)
{
    CUcontext context;

    SIM_TRY(sim_context());
    SIM_TRY(sim_primary_context(peer, &context));
    SIM_TRY(SIM_DRV(cuCtxDisablePeerAccess, context));
    return cudaSuccess;
}

SIM_API cudaError_t cudaDeviceGetLimit(size_t *value, enum cudaLimit limit)
{
    SIM_TRY(sim_context());
    SIM_CHECK(value, cudaErrorInvalidValue);
    SIM_TRY(SIM_DRV(cuCtxGetLimit, value, (CUlimit)limit));
    return cudaSuccess;
}

SIM_API cudaError_t cudaDeviceSetLimit(enum cudaLimit limit, size_t value)
{
    SIM_TRY(sim_context());
    SIM_TRY(SIM_DRV(cuCtxSetLimit, (CUlimit)limit, value));
    return cudaSuccess;
}

SIM_API cudaError_t cudaDeviceGetCacheConfig(enum cudaFuncCache *config)
{
    CUfunc_cache value;

    SIM_TRY(sim_context());
    SIM_CHECK(config, cudaErrorInvalidValue);
    SIM_TRY(SIM_DRV(cuCtxGetCacheConfig, &value));
    *config = (enum cudaFuncCache)value;
    return cudaSuccess;
}

SIM_API cudaError_t cudaDeviceSetCacheConfig(enum cudaFuncCache config)
{
    SIM_TRY(sim_context());
    SIM_TRY(SIM_DRV(cuCtxSetCacheConfig, (CUfunc_cache)config));
    return cudaSuccess;
}

SIM_API cudaError_t cudaDeviceGetSharedMemConfig(enum cudaSharedMemConfig *config)
{
    CUsharedconfig value;

    SIM_TRY(sim_context());
    SIM_CHECK(config, cudaErrorInvalidValue);
    SIM_TRY(SIM_DRV(cuCtxGetSharedMemConfig, &value));
    *config = (enum cudaSharedMemConfig)value;
    return cudaSuccess;
}

SIM_API cudaError_t cudaDeviceSetSharedMemConfig(enum cudaSharedMemConfig config)
{
    SIM_TRY(sim_context());
    SIM_TRY(SIM_DRV(cuCtxSetSharedMemConfig, (CUsharedconfig)config));
    return cudaSuccess;
}

SIM_API cudaError_t cudaDeviceGetStreamPriorityRange(int *least, int *greatest)
{
    SIM_TRY(sim_context());
    SIM_TRY(SIM_DRV(cuCtxGetStreamPriorityRange, least, greatest));
    return cudaSuccess;
}

SIM_API cudaError_t cudaCtxResetPersistingL2Cache(void)
{
    SIM_TRY(sim_context());
    SIM_TRY(SIM_DRV(cuCtxResetPersistingL2Cache));
    return cudaSuccess;
}

/* There is no profiler to start; the real functions succeed without one too. */
SIM_API cudaError_t cudaProfilerStart(void)
{
    SIM_TRY(sim_context());
    return cudaSuccess;
}

SIM_API cudaError_t cudaProfilerStop(void)
{
    SIM_TRY(sim_context());
    return cudaSuccess;
}

#if SIM_CUDART == 12
SIM_API cudaError_t cudaThreadGetLimit(size_t *value, enum cudaLimit limit)
{
    return cudaDeviceGetLimit(value, limit);
}

SIM_API cudaError_t cudaThreadSetLimit(enum cudaLimit limit, size_t value)
{
    return cudaDeviceSetLimit(limit, value);
}

SIM_API cudaError_t cudaThreadGetCacheConfig(enum cudaFuncCache *config)
{
    return cudaDeviceGetCacheConfig(config);
}

SIM_API cudaError_t cudaThreadSetCacheConfig(enum cudaFuncCache config)
{
    return cudaDeviceSetCacheConfig(config);
}
#endif
