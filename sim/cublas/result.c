/*
 * Functions that give a number back: it is 0, since nothing is computed. On the host it is there when the
 * call returns, so that the stream has been waited for; on the device it is written in the stream's order.
 * And functions that have a status on the host besides: all is well there.
 */
#include <string.h>

#include "sim/cublas/cublas.h"

static cublasStatus_t give(cublasHandle_t handle, void *result, size_t bytes)
{
    SIM_TRY(sim_product(handle, false, NULL));
    if (!result)
        return CUBLAS_STATUS_INVALID_VALUE;
    if (handle->pointer_mode == CUBLAS_POINTER_MODE_DEVICE)
        return sim_cuda(SIM_DRV(cuMemsetD8Async, (uintptr_t)result, 0, bytes, handle->stream));
    SIM_TRY(sim_cuda(SIM_DRV(cuStreamSynchronize, handle->stream)));
    memset(result, 0, bytes);
    return CUBLAS_STATUS_SUCCESS;
}

static cublasStatus_t give_type(cublasHandle_t handle, void *result, int type)
{
    static const unsigned char bytes[] = {
        [CUDA_R_32F] = 4,  [CUDA_R_64F] = 8, [CUDA_R_16F] = 2,  [CUDA_C_32F] = 8,
        [CUDA_C_64F] = 16, [CUDA_C_16F] = 4, [CUDA_R_16BF] = 2, [CUDA_C_16BF] = 4};

    if (type < 0 || (size_t)type >= sizeof bytes || !bytes[type])
        return CUBLAS_STATUS_NOT_SUPPORTED;
    return give(handle, result, bytes[type]);
}

static cublasStatus_t well(cublasHandle_t handle, int *info)
{
    SIM_TRY(sim_handle(handle));
    if (!info)
        return CUBLAS_STATUS_INVALID_VALUE;
    *info = 0;
    return sim_product(handle, false, NULL);
}

#define FUNCTION(name, parameters, body)                                                                     \
    SIM_API cublasStatus_t name parameters;                                                                  \
    SIM_API cublasStatus_t name parameters                                                                   \
    {                                                                                                        \
        return body;                                                                                         \
    }
#define UNUSED            __attribute__((unused))
#define VECTOR(v, number) const void *v UNUSED, number inc##v UNUSED
#define TYPED(v, number)  const void *v UNUSED, int type_##v UNUSED, number inc##v UNUSED
#define HANDLE(number)    cublasHandle_t handle, number n UNUSED

#define DOT(name, number, bytes)                                                                             \
    FUNCTION(name, (HANDLE(number), VECTOR(x, number), VECTOR(y, number), void *result),                     \
             give(handle, result, bytes))
#define NORM(name, number, bytes)                                                                            \
    FUNCTION(name, (HANDLE(number), VECTOR(x, number), void *result), give(handle, result, bytes))
#define DOT_EX(name, number)                                                                                 \
    FUNCTION(name, (HANDLE(number), TYPED(x, number), TYPED(y, number), void *result, int type),             \
             give_type(handle, result, type))
#define NORM_EX(name, number)                                                                                \
    FUNCTION(name, (HANDLE(number), TYPED(x, number), void *result, int type),                               \
             give_type(handle, result, type))
#define INDEX_EX(name, number, bytes)                                                                        \
    FUNCTION(name, (HANDLE(number), TYPED(x, number), void *result), give(handle, result, bytes))
#define GELS(name)                                                                                           \
    FUNCTION(name,                                                                                           \
             (cublasHandle_t handle, int trans UNUSED, int m UNUSED, int n UNUSED, int nrhs UNUSED,          \
              void *a UNUSED, int lda UNUSED, void *c UNUSED, int ldc UNUSED, int *info),                    \
             well(handle, info))
#define GEQRF(name)                                                                                          \
    FUNCTION(name,                                                                                           \
             (cublasHandle_t handle, int m UNUSED, int n UNUSED, void *a UNUSED, int lda UNUSED,             \
              void *tau UNUSED, int *info),                                                                  \
             well(handle, info))
#define GETRS(name)                                                                                          \
    FUNCTION(name,                                                                                           \
             (cublasHandle_t handle, int trans UNUSED, int n UNUSED, int nrhs UNUSED, const void *a UNUSED,  \
              int lda UNUSED, const int *pivots UNUSED, void *b UNUSED, int ldb UNUSED, int *info),          \
             well(handle, info))
#include "sim/cublas/rows.def"
