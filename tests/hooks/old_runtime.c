/*
 * old_runtime.c - a CUDA runtime as they were before version 12, built as libcudart.so.11.0: cudaSetDevice
 * takes effect at the thread's next call that needs a device, and until then the driver's current context is
 * that of the device before.
 */
#include <dlfcn.h>
#include <stddef.h>
#include <stdint.h>

#include "vendor/abi/cuda_driver_fn.h"
#include "vendor/abi/cuda_runtime_fn.h"

static __thread int wanted, bound = -1;

#define DRIVER(function) ((__typeof__(&function))dlsym(dlopen("libcuda.so.1", RTLD_NOW), #function))

static cudaError_t bind_device(void)
{
    CUcontext context = NULL;

    if (bound == wanted)
        return cudaSuccess;
    if (DRIVER(cuInit)(0) != CUDA_SUCCESS ||
        DRIVER(cuDevicePrimaryCtxRetain)(&context, wanted) != CUDA_SUCCESS ||
        DRIVER(cuCtxSetCurrent)(context) != CUDA_SUCCESS)
        return cudaErrorUnknown;
    bound = wanted;
    return cudaSuccess;
}

cudaError_t cudaSetDevice(int device)
{
    wanted = device;
    return cudaSuccess;
}

cudaError_t cudaMalloc(void **p, size_t bytes)
{
    CUdeviceptr address = 0;
    cudaError_t status = bind_device();

    if (status == cudaSuccess)
        status = (cudaError_t)DRIVER(cuMemAlloc_v2)(&address, bytes);
    *p = (void *)(uintptr_t)address;
    return status;
}

cudaError_t cudaFree(void *p)
{
    cudaError_t status = bind_device();

    return status == cudaSuccess && p ? (cudaError_t)DRIVER(cuMemFree_v2)((CUdeviceptr)(uintptr_t)p) : status;
}

cudaError_t cudaRuntimeGetVersion(int *version)
{
    *version = 11080;
    return cudaSuccess;
}

cudaError_t cudaDriverGetVersion(int *version)
{
    return (cudaError_t)DRIVER(cuDriverGetVersion)(version);
}
