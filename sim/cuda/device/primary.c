/*
 * Primary contexts: one per device, counted, activated by the first retain and emptied by the last release or
 * a reset. The handle of a device's primary context never changes; its id does with each activation.
 */
#include "sim/cuda/sim.h"

CUresult sim_primary_retain(CUcontext *ctx_p, CUdevice ordinal)
{
    struct sim_device *device = sim_device(ordinal);
    CUresult status = CUDA_SUCCESS;

    if (!ctx_p)
        return CUDA_ERROR_INVALID_VALUE;
    if (!device)
        return CUDA_ERROR_INVALID_DEVICE;
    sim_context_lock();
    if (device->spoiled)
        status = CUDA_ERROR_DEVICE_UNAVAILABLE;
    if (status == CUDA_SUCCESS && !device->primary) {
        status = sim_context_new(device, device->primary_flags, 3020, &device->primary);
        if (status == CUDA_SUCCESS) {
            device->primary->primary = true;
            sim_object_publish(device->primary);
        }
    }
    if (status == CUDA_SUCCESS && !device->primary->alive) {
        device->primary->flags = device->primary_flags;
        status = sim_context_open(device->primary);
    }
    if (status == CUDA_SUCCESS) {
        device->primary_refs++;
        *ctx_p = device->primary;
    }
    sim_context_unlock();
    return status;
}

CUresult sim_primary_release(CUdevice ordinal)
{
    struct sim_device *device = sim_device(ordinal);

    if (!device)
        return CUDA_ERROR_INVALID_DEVICE;
    sim_context_lock();
    if (!device->primary_refs) {
        sim_context_unlock();
        return CUDA_ERROR_INVALID_CONTEXT;
    }
    bool last = !--device->primary_refs && sim_context_doom(device->primary);
    sim_context_unlock();
    if (last)
        sim_context_close(device->primary);
    return CUDA_SUCCESS;
}

/* A reset empties the context but keeps it retained: who still holds it finds it destroyed until it is
 * retained again, which after a fault it never is in the process. */
static CUresult reset(CUdevice ordinal)
{
    struct sim_device *device = sim_device(ordinal);

    if (!device)
        return CUDA_ERROR_INVALID_DEVICE;
    sim_context_lock();
    if (device->primary && device->primary->alive && !device->spoiled)
        device->spoiled = sim_context_error(device->primary);
    bool mine = sim_context_doom(device->primary);
    sim_context_unlock();
    if (mine)
        sim_context_close(device->primary);
    return CUDA_SUCCESS;
}

static CUresult set_flags(CUdevice ordinal, unsigned flags)
{
    struct sim_device *device = sim_device(ordinal);

    if (!device)
        return CUDA_ERROR_INVALID_DEVICE;
    if (flags & ~(unsigned)CU_CTX_FLAGS_MASK)
        return CUDA_ERROR_INVALID_VALUE;
    sim_context_lock();
    device->primary_flags = flags;
    if (device->primary)
        device->primary->flags = flags;
    sim_context_unlock();
    return CUDA_SUCCESS;
}

SIM_API(cuDevicePrimaryCtxRetain)(CUcontext *ctx_p, CUdevice device)
{
    SIM_ENTER(cuDevicePrimaryCtxRetain);
    return sim_primary_retain(ctx_p, device);
}

SIM_API(cuDevicePrimaryCtxRelease_v2)(CUdevice device)
{
    SIM_ENTER(cuDevicePrimaryCtxRelease_v2);
    return sim_primary_release(device);
}

SIM_API(cuDevicePrimaryCtxRelease)(CUdevice device)
{
    SIM_ENTER(cuDevicePrimaryCtxRelease);
    return sim_primary_release(device);
}

SIM_API(cuDevicePrimaryCtxReset_v2)(CUdevice device)
{
    SIM_ENTER(cuDevicePrimaryCtxReset_v2);
    return reset(device);
}

SIM_API(cuDevicePrimaryCtxReset)(CUdevice device)
{
    SIM_ENTER(cuDevicePrimaryCtxReset);
    return reset(device);
}

SIM_API(cuDevicePrimaryCtxSetFlags_v2)(CUdevice device, unsigned flags)
{
    SIM_ENTER(cuDevicePrimaryCtxSetFlags_v2);
    return set_flags(device, flags);
}

SIM_API(cuDevicePrimaryCtxSetFlags)(CUdevice device, unsigned flags)
{
    SIM_ENTER(cuDevicePrimaryCtxSetFlags);
    return set_flags(device, flags);
}

SIM_API(cuDevicePrimaryCtxGetState)(CUdevice ordinal, unsigned *flags_p, int *active_p)
{
    SIM_ENTER(cuDevicePrimaryCtxGetState);
    struct sim_device *device = sim_device(ordinal);

    if (!device)
        return CUDA_ERROR_INVALID_DEVICE;
    if (!flags_p || !active_p)
        return CUDA_ERROR_INVALID_VALUE;
    sim_context_lock();
    *flags_p = device->primary_flags;
    *active_p = device->primary && device->primary->alive;
    sim_context_unlock();
    return CUDA_SUCCESS;
}
