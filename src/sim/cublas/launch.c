/*
 * The driver, a context, and the one kernel that stands for all of the library's. Loaded at its first use,
 * for good: the driver has it in each context in which it is launched.
 */
#include <pthread.h>

#include "sim/cublas/cublas.h"

static const char image[] =
    ".version 7.0\n.target sm_70\n.address_size 64\n.visible .entry cublas_product()\n{\n\tret;\n}\n";

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static CUkernel product;

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

static CUresult load(CUkernel *kernel_p)
{
    static CUlibrary library;
    CUresult status = CUDA_SUCCESS;

    pthread_mutex_lock(&lock);
    if (!product) {
        status = library ? CUDA_SUCCESS
                         : SIM_DRV(cuLibraryLoadData, &library, image, NULL, NULL, 0, NULL, NULL, 0);
        if (status == CUDA_SUCCESS)
            status = SIM_DRV(cuLibraryGetKernel, &product, library, "cublas_product");
    }
    *kernel_p = product;
    pthread_mutex_unlock(&lock);
    return status;
}

cublasStatus_t sim_launch(CUstream stream)
{
    CUkernel kernel;
    CUresult status = load(&kernel);

    if (status == CUDA_SUCCESS)
        status = SIM_DRV(cuLaunchKernel, (CUfunction)kernel, 1, 1, 1, 1, 1, 1, 0, stream, NULL, NULL);
    return status == CUDA_SUCCESS ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_EXECUTION_FAILED;
}
