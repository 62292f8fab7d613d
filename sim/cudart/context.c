/*
 * Which context a call runs in. The runtime retains each device's primary context once and makes it current
 * in a thread that has none; a context the program made current through the driver is left alone. Owns the
 * per-thread choice of device and the table of retained contexts (one mutex, held across driver calls: this
 * library is a vendor's, not a hook).
 */
#include <pthread.h>

#include "sim/cudart/runtime.h"

struct device {
    CUcontext primary;   /* NULL until retained */
    unsigned generation; /* counts resets; read without the lock */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct device devices[SIM_MAX_DEVICES];

static __thread struct {
    int device;       /* the program's choice, plus one; 0: none yet */
    int bound_device; /* whose primary context this thread was given last */
    CUcontext bound;
    unsigned generation; /* of bound_device, when it was bound */
} thread;

cudaError_t sim_device(int ordinal, CUdevice *device_p)
{
    cudaError_t rc;
    int count;

    rc = SIM_DRV(cuDeviceGetCount, &count);
    if (rc != cudaSuccess)
        return rc;
    if (ordinal < 0 || ordinal >= count || ordinal >= SIM_MAX_DEVICES)
        return cudaErrorInvalidDevice;
    return SIM_DRV(cuDeviceGet, device_p, ordinal);
}

cudaError_t sim_primary_context(int ordinal, CUcontext *context_p)
{
    cudaError_t rc;
    CUdevice device;

    rc = sim_device(ordinal, &device);
    if (rc != cudaSuccess)
        return rc;
    pthread_mutex_lock(&lock);
    if (!devices[ordinal].primary)
        rc = SIM_DRV(cuDevicePrimaryCtxRetain, &devices[ordinal].primary, device);
    *context_p = devices[ordinal].primary;
    pthread_mutex_unlock(&lock);
    return rc;
}

static cudaError_t bind(int ordinal)
{
    unsigned generation = 0;
    CUcontext context;
    cudaError_t rc;

    if (ordinal >= 0 && ordinal < SIM_MAX_DEVICES)
        generation = __atomic_load_n(&devices[ordinal].generation, __ATOMIC_ACQUIRE);
    rc = sim_primary_context(ordinal, &context);
    if (rc == cudaSuccess)
        rc = SIM_DRV(cuCtxSetCurrent, context);
    if (rc != cudaSuccess)
        return rc;
    thread.bound = context;
    thread.bound_device = ordinal;
    thread.generation = generation;
    return cudaSuccess;
}

/* A context we bound may have been reset by another thread since. */
static bool is_stale(CUcontext context)
{
    return context == thread.bound &&
           thread.generation != __atomic_load_n(&devices[thread.bound_device].generation, __ATOMIC_ACQUIRE);
}

static int chosen_device(void)
{
    return thread.device ? thread.device - 1 : 0;
}

cudaError_t sim_context(void)
{
    CUcontext context = NULL;
    cudaError_t rc;

    rc = sim_runtime();
    if (rc == cudaSuccess)
        rc = SIM_DRV(cuCtxGetCurrent, &context);
    if (rc != cudaSuccess)
        return rc;
    if (context && !is_stale(context))
        return cudaSuccess;
    return bind(chosen_device());
}

cudaError_t sim_current_device(int *ordinal_p)
{
    CUcontext context = NULL;
    cudaError_t rc;
    CUdevice device;

    rc = SIM_DRV(cuCtxGetCurrent, &context);
    if (rc != cudaSuccess)
        return rc;
    if (!context || is_stale(context)) {
        *ordinal_p = chosen_device();
        return cudaSuccess;
    }
    rc = SIM_DRV(cuCtxGetDevice, &device);
    if (rc == cudaSuccess)
        *ordinal_p = (int)device;
    return rc;
}

SIM_API cudaError_t cudaSetDevice(int device)
{
    CUdevice handle;

    SIM_TRY(sim_runtime());
    SIM_TRY(sim_device(device, &handle));
    thread.device = device + 1;
    SIM_TRY(bind(device));
    return cudaSuccess;
}

SIM_API cudaError_t cudaGetDevice(int *device)
{
    SIM_TRY(sim_runtime());
    SIM_CHECK(device, cudaErrorInvalidValue);
    SIM_TRY(sim_current_device(device));
    return cudaSuccess;
}

SIM_API cudaError_t cudaInitDevice(int device, unsigned int device_flags, unsigned int flags)
{
    CUcontext context;
    CUdevice handle;

    SIM_TRY(sim_runtime());
    SIM_CHECK((flags & ~(unsigned)cudaInitDeviceFlagsAreValid) == 0, cudaErrorInvalidValue);
    SIM_TRY(sim_device(device, &handle));
    if (flags & cudaInitDeviceFlagsAreValid)
        SIM_TRY(SIM_DRV(cuDevicePrimaryCtxSetFlags_v2, handle, device_flags));
    SIM_TRY(sim_primary_context(device, &context));
    return cudaSuccess;
}

SIM_API cudaError_t cudaSetDeviceFlags(unsigned int flags)
{
    CUdevice handle;
    int ordinal;

    SIM_TRY(sim_runtime());
    SIM_CHECK((flags & ~(unsigned)cudaDeviceMask) == 0, cudaErrorInvalidValue);
    SIM_TRY(sim_current_device(&ordinal));
    SIM_TRY(sim_device(ordinal, &handle));
    /* Mapping host memory is always on and no flag of the driver's. */
    SIM_TRY(SIM_DRV(cuDevicePrimaryCtxSetFlags_v2, handle, flags & ~(unsigned)cudaDeviceMapHost));
    return cudaSuccess;
}

SIM_API cudaError_t cudaGetDeviceFlags(unsigned int *flags)
{
    CUdevice handle;
    int ordinal, active;

    SIM_TRY(sim_runtime());
    SIM_CHECK(flags, cudaErrorInvalidValue);
    SIM_TRY(sim_current_device(&ordinal));
    SIM_TRY(sim_device(ordinal, &handle));
    SIM_TRY(SIM_DRV(cuDevicePrimaryCtxGetState, handle, flags, &active));
    *flags |= cudaDeviceMapHost;
    return cudaSuccess;
}

SIM_API cudaError_t cudaDeviceReset(void)
{
    CUcontext current = NULL, primary;
    CUdevice handle;
    cudaError_t rc;
    int ordinal;

    SIM_TRY(sim_runtime());
    SIM_TRY(sim_current_device(&ordinal));
    SIM_TRY(sim_device(ordinal, &handle));
    SIM_TRY(SIM_DRV(cuCtxGetCurrent, &current));

    pthread_mutex_lock(&lock);
    rc = SIM_DRV(cuDevicePrimaryCtxReset_v2, handle);
    primary = devices[ordinal].primary;
    if (rc == cudaSuccess && primary) {
        rc = SIM_DRV(cuDevicePrimaryCtxRelease_v2, handle);
        devices[ordinal].primary = NULL;
        __atomic_add_fetch(&devices[ordinal].generation, 1, __ATOMIC_RELEASE);
    }
    pthread_mutex_unlock(&lock);
    SIM_TRY(rc);
    if (primary && current == primary)
        SIM_TRY(SIM_DRV(cuCtxSetCurrent, NULL));
    sim_error_clear();
    return cudaSuccess;
}

SIM_API cudaError_t cudaDeviceSynchronize(void)
{
    SIM_TRY(sim_context());
    SIM_TRY(SIM_DRV(cuCtxSynchronize));
    return cudaSuccess;
}

#if SIM_CUDART == 12
SIM_API cudaError_t cudaThreadSynchronize(void)
{
    return cudaDeviceSynchronize();
}

SIM_API cudaError_t cudaThreadExit(void)
{
    return cudaDeviceReset();
}
#endif
