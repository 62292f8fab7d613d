/*
 * Questions about kernels: handles, attributes, occupancy. The driver answers; a kernel handle stands for a
 * function wherever the driver takes one.
 */
#include <string.h>

#include "sim/cudart/runtime.h"

static cudaError_t kernel_and_device(const void *func, CUkernel *kernel_p, CUdevice *device_p)
{
    cudaError_t rc;
    int ordinal;

    rc = sim_context();
    if (rc == cudaSuccess)
        rc = sim_kernel(func, kernel_p);
    if (rc == cudaSuccess)
        rc = sim_current_device(&ordinal);
    if (rc == cudaSuccess)
        rc = sim_device(ordinal, device_p);
    return rc;
}

static cudaError_t get_kernel(cudaKernel_t *kernel_p, const void *func)
{
    CUkernel kernel;

    SIM_TRY(sim_context());
    SIM_CHECK(kernel_p, cudaErrorInvalidValue);
    SIM_TRY(sim_kernel(func, &kernel));
    sim_kernel_publish(kernel);
    *kernel_p = kernel;
    return cudaSuccess;
}

SIM_API cudaError_t cudaGetKernel(cudaKernel_t *kernel, const void *func)
{
    return get_kernel(kernel, func);
}

SIM_API cudaError_t __cudaGetKernel(cudaKernel_t *kernel, const void *func)
{
    return get_kernel(kernel, func);
}

/* Asked for nothing, it only says whether there is such a kernel (recorded of a real card). */
SIM_API cudaError_t cudaGetFuncBySymbol(cudaFunction_t *function, const void *func)
{
    CUkernel kernel;
    CUfunction found;

    SIM_TRY(sim_context());
    SIM_TRY(sim_kernel(func, &kernel));
    SIM_TRY(SIM_DRV(cuKernelGetFunction, &found, kernel));
    if (function)
        *function = found;
    return cudaSuccess;
}

SIM_API cudaError_t cudaFuncGetName(const char **name, const void *func)
{
    CUkernel kernel;

    SIM_TRY(sim_context());
    SIM_CHECK(name, cudaErrorInvalidValue);
    SIM_TRY(sim_kernel(func, &kernel));
    SIM_TRY(SIM_DRV(cuKernelGetName, name, kernel));
    return cudaSuccess;
}

SIM_API cudaError_t cudaFuncGetParamInfo(const void *func, size_t index, size_t *offset, size_t *bytes)
{
    CUkernel kernel;

    SIM_TRY(sim_context());
    SIM_TRY(sim_kernel(func, &kernel));
    SIM_TRY(SIM_DRV(cuKernelGetParamInfo, kernel, index, offset, bytes));
    return cudaSuccess;
}

SIM_API cudaError_t cudaFuncGetAttributes(struct cudaFuncAttributes *attributes, const void *func)
{
    static const CUfunction_attribute names[] = {
        CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES,
        CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES,
        CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES,
        CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK,
        CU_FUNC_ATTRIBUTE_NUM_REGS,
        CU_FUNC_ATTRIBUTE_PTX_VERSION,
        CU_FUNC_ATTRIBUTE_BINARY_VERSION,
        CU_FUNC_ATTRIBUTE_CACHE_MODE_CA,
        CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
        CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT,
    };
    int values[sizeof(names) / sizeof(names[0])] = {0};
    CUkernel kernel;
    CUdevice device;

    SIM_TRY(kernel_and_device(func, &kernel, &device));
    SIM_CHECK(attributes, cudaErrorInvalidValue);
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        SIM_TRY(SIM_DRV(cuKernelGetAttribute, &values[i], names[i], kernel, device));
    memset(attributes, 0, sizeof(*attributes));
    attributes->sharedSizeBytes = (size_t)values[0];
    attributes->constSizeBytes = (size_t)values[1];
    attributes->localSizeBytes = (size_t)values[2];
    attributes->maxThreadsPerBlock = values[3];
    attributes->numRegs = values[4];
    attributes->ptxVersion = values[5];
    attributes->binaryVersion = values[6];
    attributes->cacheModeCA = values[7];
    attributes->maxDynamicSharedSizeBytes = values[8];
    attributes->preferredShmemCarveout = values[9];
    return cudaSuccess;
}

SIM_API cudaError_t cudaFuncSetAttribute(const void *func, enum cudaFuncAttribute attribute, int value)
{
    CUkernel kernel;
    CUdevice device;

    SIM_TRY(kernel_and_device(func, &kernel, &device));
    SIM_TRY(SIM_DRV(cuKernelSetAttribute, (CUfunction_attribute)attribute, value, kernel, device));
    return cudaSuccess;
}

SIM_API cudaError_t cudaKernelSetAttributeForDevice(cudaKernel_t kernel, enum cudaFuncAttribute attribute,
                                                    int value, int device)
{
    CUdevice handle;

    SIM_TRY(sim_context());
    SIM_TRY(sim_device(device, &handle));
    SIM_TRY(SIM_DRV(cuKernelSetAttribute, (CUfunction_attribute)attribute, value, kernel, handle));
    return cudaSuccess;
}

SIM_API cudaError_t cudaFuncSetCacheConfig(const void *func, enum cudaFuncCache config)
{
    CUkernel kernel;
    CUdevice device;

    SIM_TRY(kernel_and_device(func, &kernel, &device));
    SIM_TRY(SIM_DRV(cuKernelSetCacheConfig, kernel, (CUfunc_cache)config, device));
    return cudaSuccess;
}

SIM_API cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int *blocks, const void *func,
                                                                           int block_size,
                                                                           size_t shared_bytes,
                                                                           unsigned int flags)
{
    CUkernel kernel;

    SIM_TRY(sim_context());
    SIM_CHECK(blocks, cudaErrorInvalidValue);
    SIM_TRY(sim_kernel(func, &kernel));
    SIM_TRY(SIM_DRV(cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags, blocks, (CUfunction)kernel,
                    block_size, shared_bytes, flags));
    return cudaSuccess;
}

SIM_API cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, const void *func,
                                                                  int block_size, size_t shared_bytes)
{
    return cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(blocks, func, block_size, shared_bytes,
                                                                  cudaOccupancyDefault);
}

SIM_API cudaError_t cudaOccupancyAvailableDynamicSMemPerBlock(size_t *shared_bytes, const void *func,
                                                              int blocks, int block_size)
{
    CUkernel kernel;

    SIM_TRY(sim_context());
    SIM_CHECK(shared_bytes, cudaErrorInvalidValue);
    SIM_TRY(sim_kernel(func, &kernel));
    SIM_TRY(SIM_DRV(cuOccupancyAvailableDynamicSMemPerBlock, shared_bytes, (CUfunction)kernel, blocks,
                    block_size));
    return cudaSuccess;
}
