/*
 * The driver, a context, and the two kernels that stand for all of the library's: one that touches nothing
 * and one that computes. Loaded at their first use, for good: the driver has them in each context in which
 * they are launched.
 */
#include <pthread.h>

#include "sim/cublas/cublas.h"

static const char image[] =
    ".version 7.0\n.target sm_70\n.address_size 64\n.visible .entry cublas_product()\n{\n\tret;\n}\n"
    ".visible .entry memsim_multiply()\n{\n\tret;\n}\n"; /* its arguments are multiply.h's business */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static CUkernel product, multiply;

cublasStatus_t sim_cuda(CUresult status)
{
    switch (status) {
    case CUDA_SUCCESS:
        return CUBLAS_STATUS_SUCCESS;
    case CUDA_ERROR_OUT_OF_MEMORY:
        return CUBLAS_STATUS_ALLOC_FAILED;
    case CUDA_ERROR_INVALID_VALUE:
        return CUBLAS_STATUS_INVALID_VALUE;
    default:
        return CUBLAS_STATUS_EXECUTION_FAILED;
    }
}

cublasStatus_t sim_runtime(void)
{
    if (sim_driver_open("cublas") || sim_driver_context() != CUDA_SUCCESS)
        return CUBLAS_STATUS_NOT_INITIALIZED;
    return CUBLAS_STATUS_SUCCESS;
}

static CUresult load(CUkernel *kernel_p, bool computes)
{
    static CUlibrary library;
    CUresult status = CUDA_SUCCESS;

    pthread_mutex_lock(&lock);
    if (!product) {
        status = library ? CUDA_SUCCESS
                         : SIM_DRV(cuLibraryLoadData, &library, image, NULL, NULL, 0, NULL, NULL, 0);
        if (status == CUDA_SUCCESS)
            status = SIM_DRV(cuLibraryGetKernel, &multiply, library, "memsim_multiply");
        if (status == CUDA_SUCCESS)
            status = SIM_DRV(cuLibraryGetKernel, &product, library, "cublas_product");
    }
    *kernel_p = computes ? multiply : product;
    pthread_mutex_unlock(&lock);
    return status;
}

cublasStatus_t sim_launch(CUstream stream, const uint64_t *arguments)
{
    void *parameters[SIM_MULTIPLY_ARGUMENTS];
    CUkernel kernel;
    CUresult status = load(&kernel, arguments != NULL);

    for (unsigned i = 0; arguments && i < SIM_MULTIPLY_ARGUMENTS; i++)
        parameters[i] = (void *)(uintptr_t)&arguments[i];
    if (status == CUDA_SUCCESS)
        status = SIM_DRV(cuLaunchKernel, (CUfunction)kernel, 1, 1, 1, 1, 1, 1, 0, stream,
                         arguments ? parameters : NULL, NULL);
    return status == CUDA_SUCCESS ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_EXECUTION_FAILED;
}
