/*
 * Code the program loads itself. Libraries and kernels are the driver's handles; a kernel that is given out
 * is noted, because the launch functions accept it in place of a host stub.
 */
#include "sim/cudart/runtime.h"

SIM_API cudaError_t cudaLibraryLoadData(cudaLibrary_t *library, const void *code,
                                        enum cudaJitOption *jit_options, void **jit_values,
                                        unsigned int jit_count, enum cudaLibraryOption *options,
                                        void **values, unsigned int count)
{
    SIM_TRY(sim_context());
    SIM_CHECK(library && code, cudaErrorInvalidValue);
    SIM_TRY(SIM_DRV(cuLibraryLoadData, library, code, (CUjit_option *)jit_options, jit_values, jit_count,
                    (CUlibraryOption *)options, values, count));
    return cudaSuccess;
}

SIM_API cudaError_t cudaLibraryLoadFromFile(cudaLibrary_t *library, const char *path,
                                            enum cudaJitOption *jit_options, void **jit_values,
                                            unsigned int jit_count, enum cudaLibraryOption *options,
                                            void **values, unsigned int count)
{
    SIM_TRY(sim_context());
    SIM_CHECK(library && path, cudaErrorInvalidValue);
    SIM_TRY(SIM_DRV(cuLibraryLoadFromFile, library, path, (CUjit_option *)jit_options, jit_values, jit_count,
                    (CUlibraryOption *)options, values, count));
    return cudaSuccess;
}

SIM_API cudaError_t cudaLibraryUnload(cudaLibrary_t library)
{
    SIM_TRY(sim_context());
    SIM_TRY(SIM_DRV(cuLibraryUnload, library));
    return cudaSuccess;
}

SIM_API cudaError_t cudaLibraryGetKernel(cudaKernel_t *kernel, cudaLibrary_t library, const char *name)
{
    SIM_TRY(sim_context());
    SIM_CHECK(kernel && name, cudaErrorInvalidValue);
    SIM_TRY(SIM_DRV(cuLibraryGetKernel, kernel, library, name));
    sim_kernel_publish(*kernel);
    return cudaSuccess;
}

SIM_API cudaError_t cudaLibraryGetKernelCount(unsigned int *count, cudaLibrary_t library)
{
    SIM_TRY(sim_context());
    SIM_CHECK(count, cudaErrorInvalidValue);
    SIM_TRY(SIM_DRV(cuLibraryGetKernelCount, count, library));
    return cudaSuccess;
}

SIM_API cudaError_t cudaLibraryEnumerateKernels(cudaKernel_t *kernels, unsigned int count,
                                                cudaLibrary_t library)
{
    SIM_TRY(sim_context());
    SIM_CHECK(kernels, cudaErrorInvalidValue);
    SIM_TRY(SIM_DRV(cuLibraryEnumerateKernels, kernels, count, library));
    return cudaSuccess;
}

SIM_API cudaError_t cudaLibraryGetGlobal(void **pointer, size_t *bytes, cudaLibrary_t library,
                                         const char *name)
{
    CUdeviceptr address;

    SIM_TRY(sim_context());
    SIM_CHECK(name, cudaErrorInvalidValue);
    SIM_TRY(SIM_DRV(cuLibraryGetGlobal, &address, bytes, library, name));
    if (pointer)
        *pointer = sim_pointer(address);
    return cudaSuccess;
}

SIM_API cudaError_t cudaLibraryGetManaged(void **pointer, size_t *bytes, cudaLibrary_t library,
                                          const char *name)
{
    CUdeviceptr address;

    SIM_TRY(sim_context());
    SIM_CHECK(name, cudaErrorInvalidValue);
    SIM_TRY(SIM_DRV(cuLibraryGetManaged, &address, bytes, library, name));
    if (pointer)
        *pointer = sim_pointer(address);
    return cudaSuccess;
}

SIM_API cudaError_t cudaLibraryGetUnifiedFunction(void **function, cudaLibrary_t library, const char *name)
{
    SIM_TRY(sim_context());
    SIM_CHECK(function && name, cudaErrorInvalidValue);
    SIM_TRY(SIM_DRV(cuLibraryGetUnifiedFunction, function, library, name));
    return cudaSuccess;
}
