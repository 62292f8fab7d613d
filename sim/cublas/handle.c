/*
 * Handles: what belongs to one, and the device memory that it has for its workspaces from its making to its
 * end. The sizes are those of CUBLAS_WORKSPACE_CONFIG, whose default and form are documented (cuBLAS,
 * "Results Reproducibility"), and 32 MiB from compute capability 9.0 on (cuBLAS, cublasSetWorkspace). That
 * the memory is there from the beginning is an assumption: the documentation says that the making allocates,
 * not how much.
 */
#include <stdlib.h>
#include <string.h>

#include "sim/cublas/cublas.h"

#define KIB ((size_t)1024)
enum { HOPPER = 9, ALIGNMENT = 256 };

/* ":size in KiB:count", any number of times; 0 if it is not that. */
static size_t configured(const char *text)
{
    size_t bytes = 0;

    while (*text == ':') {
        char *end;
        size_t size = strtoul(text + 1, &end, 10);
        if (end == text + 1 || *end != ':')
            return 0;
        text = end;
        bytes += size * KIB * strtoul(text + 1, &end, 10);
        if (end == text + 1)
            return 0;
        text = end;
    }
    return *text ? 0 : bytes;
}

static size_t pool_bytes(CUdevice device)
{
    const char *text = secure_getenv("CUBLAS_WORKSPACE_CONFIG");
    size_t bytes = text ? configured(text) : 0;
    int major = 0;

    if (bytes)
        return bytes;
    SIM_DRV(cuDeviceGetAttribute, &major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device);
    return major >= HOPPER ? 32768 * KIB : configured(":4096:2:16:8");
}

cublasStatus_t sim_handle(cublasHandle_t handle)
{
    CUcontext current = NULL;

    if (!handle || handle->magic != SIM_HANDLE_MAGIC)
        return CUBLAS_STATUS_NOT_INITIALIZED;
    SIM_TRY(sim_runtime());
    SIM_TRY(sim_cuda(SIM_DRV(cuCtxGetCurrent, &current)));
    return current == handle->context ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_NOT_INITIALIZED;
}

SIM_API cublasStatus_t cublasCreate_v2(cublasHandle_t *handle_p)
{
    struct cublasContext *handle;
    CUdevice device;

    if (!handle_p)
        return CUBLAS_STATUS_INVALID_VALUE;
    SIM_TRY(sim_runtime());
    SIM_TRY(sim_cuda(SIM_DRV(cuCtxGetDevice, &device)));
    handle = calloc(1, sizeof *handle);
    if (!handle)
        return CUBLAS_STATUS_ALLOC_FAILED;
    handle->pool_bytes = pool_bytes(device);
    cublasStatus_t status = sim_cuda(SIM_DRV(cuCtxGetCurrent, &handle->context));
    if (status == CUBLAS_STATUS_SUCCESS)
        status = sim_cuda(SIM_DRV(cuMemAlloc_v2, &handle->pool, handle->pool_bytes));
    if (status != CUBLAS_STATUS_SUCCESS) {
        free(handle);
        return status;
    }
    handle->magic = SIM_HANDLE_MAGIC;
    *handle_p = handle;
    return CUBLAS_STATUS_SUCCESS;
}

/* It waits for the device, as documented. */
SIM_API cublasStatus_t cublasDestroy_v2(cublasHandle_t handle)
{
    if (!handle || handle->magic != SIM_HANDLE_MAGIC)
        return CUBLAS_STATUS_NOT_INITIALIZED;
    if (sim_handle(handle) == CUBLAS_STATUS_SUCCESS) {
        SIM_DRV(cuCtxSynchronize);
        SIM_DRV(cuMemFree_v2, handle->pool);
    }
    handle->magic = 0;
    free(handle);
    return CUBLAS_STATUS_SUCCESS;
}

/* The library's own workspaces come back into use with any stream that is set. */
SIM_API cublasStatus_t cublasSetStream_v2(cublasHandle_t handle, CUstream stream)
{
    SIM_TRY(sim_handle(handle));
    handle->stream = stream;
    handle->workspace = 0;
    return CUBLAS_STATUS_SUCCESS;
}

SIM_API cublasStatus_t cublasGetStream_v2(cublasHandle_t handle, CUstream *stream_p)
{
    SIM_TRY(sim_handle(handle));
    if (!stream_p)
        return CUBLAS_STATUS_INVALID_VALUE;
    *stream_p = handle->stream;
    return CUBLAS_STATUS_SUCCESS;
}

SIM_API cublasStatus_t cublasSetWorkspace_v2(cublasHandle_t handle, void *workspace, size_t bytes)
{
    SIM_TRY(sim_handle(handle));
    if ((uintptr_t)workspace % ALIGNMENT)
        return CUBLAS_STATUS_INVALID_VALUE;
    handle->workspace = bytes ? (uintptr_t)workspace : 0;
    return CUBLAS_STATUS_SUCCESS;
}

#define STATE(name, field, good)                                                                             \
    SIM_API cublasStatus_t cublasSet##name(cublasHandle_t handle, int value)                                 \
    {                                                                                                        \
        SIM_TRY(sim_handle(handle));                                                                         \
        if (!(good))                                                                                         \
            return CUBLAS_STATUS_INVALID_VALUE;                                                              \
        handle->field = value;                                                                               \
        return CUBLAS_STATUS_SUCCESS;                                                                        \
    }                                                                                                        \
    SIM_API cublasStatus_t cublasGet##name(cublasHandle_t handle, int *value_p)                              \
    {                                                                                                        \
        SIM_TRY(sim_handle(handle));                                                                         \
        if (!value_p)                                                                                        \
            return CUBLAS_STATUS_INVALID_VALUE;                                                              \
        *value_p = handle->field;                                                                            \
        return CUBLAS_STATUS_SUCCESS;                                                                        \
    }

STATE(PointerMode_v2, pointer_mode, value == CUBLAS_POINTER_MODE_HOST || value == CUBLAS_POINTER_MODE_DEVICE)
STATE(AtomicsMode, atomics_mode, value == 0 || value == 1)
STATE(MathMode, math_mode, value >= 0)
STATE(SmCountTarget, sm_count, value >= 0)
STATE(EmulationStrategy, emulation, value >= 0)
