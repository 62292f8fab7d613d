/*
 * Vectors and matrices between host and device: each is a copy of rows, a vector's of one element each. These
 * functions have no handle; who names no stream waits.
 */
#include "sim/cublas/cublas.h"

struct side {
    CUmemorytype type;
    const void *p;
    size_t pitch;
};

static cublasStatus_t copy(size_t width, size_t rows, struct side from, struct side to, bool wait,
                           CUstream stream)
{
    CUDA_MEMCPY2D op = {.srcMemoryType = from.type,
                        .dstMemoryType = to.type,
                        .srcPitch = from.pitch,
                        .dstPitch = to.pitch,
                        .WidthInBytes = width,
                        .Height = rows};

    SIM_TRY(sim_runtime());
    if (from.type == CU_MEMORYTYPE_HOST) {
        op.srcHost = from.p;
        op.dstDevice = (uintptr_t)to.p;
    } else {
        op.srcDevice = (uintptr_t)from.p;
        op.dstHost = (void *)(uintptr_t)to.p;
    }
    if (!width || !rows)
        return CUBLAS_STATUS_SUCCESS;
    CUresult status = wait ? SIM_DRV(cuMemcpy2D_v2, &op) : SIM_DRV(cuMemcpy2DAsync_v2, &op, stream);
    return status == CUDA_SUCCESS ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_MAPPING_ERROR;
}

static cublasStatus_t vector(bool up, int64_t n, int64_t bytes, const void *x, int64_t incx, void *y,
                             int64_t incy, bool wait, CUstream stream)
{
    if (n < 0 || bytes <= 0 || incx <= 0 || incy <= 0)
        return CUBLAS_STATUS_INVALID_VALUE;
    struct side from = {up ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE, x, (size_t)(incx * bytes)},
                to = {up ? CU_MEMORYTYPE_DEVICE : CU_MEMORYTYPE_HOST, y, (size_t)(incy * bytes)};
    return copy((size_t)bytes, (size_t)n, from, to, wait, stream);
}

/* Columns lie one behind the other. */
static cublasStatus_t matrix(bool up, int64_t rows, int64_t columns, int64_t bytes, const void *a,
                             int64_t lda, void *b, int64_t ldb, bool wait, CUstream stream)
{
    if (rows < 0 || columns < 0 || bytes <= 0 || lda <= 0 || ldb <= 0 || lda < rows || ldb < rows)
        return CUBLAS_STATUS_INVALID_VALUE;
    struct side from = {up ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE, a, (size_t)(lda * bytes)},
                to = {up ? CU_MEMORYTYPE_DEVICE : CU_MEMORYTYPE_HOST, b, (size_t)(ldb * bytes)};
    return copy((size_t)(rows * bytes), (size_t)columns, from, to, wait, stream);
}

#define COPIES(suffix, number)                                                                               \
    SIM_API cublasStatus_t cublasSetVector##suffix(number, number, const void *, number, void *, number);    \
    SIM_API cublasStatus_t cublasSetVector##suffix(number n, number bytes, const void *x, number incx,       \
                                                   void *y, number incy)                                     \
    {                                                                                                        \
        return vector(true, n, bytes, x, incx, y, incy, true, NULL);                                         \
    }                                                                                                        \
    SIM_API cublasStatus_t cublasGetVector##suffix(number, number, const void *, number, void *, number);    \
    SIM_API cublasStatus_t cublasGetVector##suffix(number n, number bytes, const void *x, number incx,       \
                                                   void *y, number incy)                                     \
    {                                                                                                        \
        return vector(false, n, bytes, x, incx, y, incy, true, NULL);                                        \
    }                                                                                                        \
    SIM_API cublasStatus_t cublasSetVectorAsync##suffix(number, number, const void *, number, void *,        \
                                                        number, CUstream);                                   \
    SIM_API cublasStatus_t cublasSetVectorAsync##suffix(number n, number bytes, const void *x, number incx,  \
                                                        void *y, number incy, CUstream stream)               \
    {                                                                                                        \
        return vector(true, n, bytes, x, incx, y, incy, false, stream);                                      \
    }                                                                                                        \
    SIM_API cublasStatus_t cublasGetVectorAsync##suffix(number, number, const void *, number, void *,        \
                                                        number, CUstream);                                   \
    SIM_API cublasStatus_t cublasGetVectorAsync##suffix(number n, number bytes, const void *x, number incx,  \
                                                        void *y, number incy, CUstream stream)               \
    {                                                                                                        \
        return vector(false, n, bytes, x, incx, y, incy, false, stream);                                     \
    }                                                                                                        \
    SIM_API cublasStatus_t cublasSetMatrix##suffix(number, number, number, const void *, number, void *,     \
                                                   number);                                                  \
    SIM_API cublasStatus_t cublasSetMatrix##suffix(number rows, number columns, number bytes, const void *a, \
                                                   number lda, void *b, number ldb)                          \
    {                                                                                                        \
        return matrix(true, rows, columns, bytes, a, lda, b, ldb, true, NULL);                               \
    }                                                                                                        \
    SIM_API cublasStatus_t cublasGetMatrix##suffix(number, number, number, const void *, number, void *,     \
                                                   number);                                                  \
    SIM_API cublasStatus_t cublasGetMatrix##suffix(number rows, number columns, number bytes, const void *a, \
                                                   number lda, void *b, number ldb)                          \
    {                                                                                                        \
        return matrix(false, rows, columns, bytes, a, lda, b, ldb, true, NULL);                              \
    }                                                                                                        \
    SIM_API cublasStatus_t cublasSetMatrixAsync##suffix(number, number, number, const void *, number,        \
                                                        void *, number, CUstream);                           \
    SIM_API cublasStatus_t cublasSetMatrixAsync##suffix(number rows, number columns, number bytes,           \
                                                        const void *a, number lda, void *b, number ldb,      \
                                                        CUstream stream)                                     \
    {                                                                                                        \
        return matrix(true, rows, columns, bytes, a, lda, b, ldb, false, stream);                            \
    }                                                                                                        \
    SIM_API cublasStatus_t cublasGetMatrixAsync##suffix(number, number, number, const void *, number,        \
                                                        void *, number, CUstream);                           \
    SIM_API cublasStatus_t cublasGetMatrixAsync##suffix(number rows, number columns, number bytes,           \
                                                        const void *a, number lda, void *b, number ldb,      \
                                                        CUstream stream)                                     \
    {                                                                                                        \
        return matrix(false, rows, columns, bytes, a, lda, b, ldb, false, stream);                           \
    }

COPIES(, int)
COPIES(_64, int64_t)
