/*
 * The driver and the context of a call, in NCCL's statuses: sim/embedded/driver.h has how it is reached.
 */
#include "sim/nccl/nccl.h"

ncclResult_t sim_cuda(CUresult status)
{
    if (status == CUDA_SUCCESS)
        return ncclSuccess;
    return sim_fail(ncclUnhandledCudaError, "Cuda failure %d", (int)status);
}

ncclResult_t sim_runtime(void)
{
    const char *trouble = sim_driver_open("nccl");

    if (trouble)
        return sim_fail(ncclUnhandledCudaError, "Cuda failure '%s'", trouble);
    return sim_cuda(sim_driver_context());
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
    return sim_cuda(sim_driver_primary(device, context_p));
}
