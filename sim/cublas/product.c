/*
 * Functions that are one kernel. Of the arguments the handle alone is looked at: matrices, sizes and factors
 * are not read, so that a row needs no prototype.
 */
#include "sim/cublas/cublas.h"

/* A capture may be replayed while the library's own workspaces are in use, so it has its own (cuBLAS, "CUDA
 * Graphs Support"). */
static cublasStatus_t in_capture(cublasHandle_t handle, const uint64_t *arguments)
{
    CUdeviceptr workspace;

    SIM_TRY(sim_cuda(SIM_DRV(cuMemAllocAsync, &workspace, handle->pool_bytes, handle->stream)));
    SIM_TRY(sim_launch(handle->stream, arguments));
    return sim_cuda(SIM_DRV(cuMemFreeAsync, workspace, handle->stream));
}

cublasStatus_t sim_product(cublasHandle_t handle, bool workspace, const uint64_t *arguments)
{
    CUstreamCaptureStatus capture = CU_STREAM_CAPTURE_STATUS_NONE;

    SIM_TRY(sim_handle(handle));
    if (workspace && !handle->workspace)
        SIM_TRY(sim_cuda(SIM_DRV(cuStreamIsCapturing, handle->stream, &capture)));
    return capture == CU_STREAM_CAPTURE_STATUS_ACTIVE ? in_capture(handle, arguments)
                                                      : sim_launch(handle->stream, arguments);
}

#define ONE(name, body)                                                                                      \
    SIM_API cublasStatus_t name(cublasHandle_t handle);                                                      \
    SIM_API cublasStatus_t name(cublasHandle_t handle)                                                       \
    {                                                                                                        \
        return body;                                                                                         \
    }

#define PRODUCT(name) ONE(name, sim_product(handle, false, NULL))
#define GEMM(name)    ONE(name, sim_product(handle, true, NULL))
#define SCALARS(name) ONE(name, sim_handle(handle))
#include "sim/cublas/rows.def"
