/*
 * The part of cuBLAS's interface that the simulated one and its tests need: types, statuses and the
 * prototypes of functions that are more than a product. Names, values and layouts are those of cuBLAS 12
 * and 13; nothing of the vendor's headers is needed.
 */
#ifndef MS_VENDOR_ABI_CUBLAS_H
#define MS_VENDOR_ABI_CUBLAS_H

#include <stddef.h>
#include <stdint.h>

#include "vendor/abi/cuda_driver.h"

typedef enum {
    CUBLAS_STATUS_SUCCESS = 0,
    CUBLAS_STATUS_NOT_INITIALIZED = 1,
    CUBLAS_STATUS_ALLOC_FAILED = 3,
    CUBLAS_STATUS_INVALID_VALUE = 7,
    CUBLAS_STATUS_ARCH_MISMATCH = 8,
    CUBLAS_STATUS_MAPPING_ERROR = 11,
    CUBLAS_STATUS_EXECUTION_FAILED = 13,
    CUBLAS_STATUS_INTERNAL_ERROR = 14,
    CUBLAS_STATUS_NOT_SUPPORTED = 15,
    CUBLAS_STATUS_LICENSE_ERROR = 16
} cublasStatus_t;

enum { CUBLAS_POINTER_MODE_HOST = 0, CUBLAS_POINTER_MODE_DEVICE = 1 };

/** cudaDataType, as far as results have one. */
enum {
    CUDA_R_32F = 0,
    CUDA_R_64F = 1,
    CUDA_R_16F = 2,
    CUDA_C_32F = 4,
    CUDA_C_64F = 5,
    CUDA_C_16F = 6,
    CUDA_R_16BF = 14,
    CUDA_C_16BF = 15
};

typedef struct cublasContext *cublasHandle_t;
typedef struct cublasLtContext *cublasLtHandle_t;

typedef struct {
    uint64_t data[8];
} cublasLtMatmulAlgo_t;

typedef struct {
    cublasLtMatmulAlgo_t algo;
    size_t workspaceSize;
    cublasStatus_t state;
    float wavesCount;
    int reserved[4];
} cublasLtMatmulHeuristicResult_t;

/** Objects whose fields only the library knows: a program makes them here, or has the room for them itself.
 */
typedef struct cublasLtObject *cublasLtMatmulDesc_t, *cublasLtMatrixLayout_t, *cublasLtMatmulPreference_t,
    *cublasLtMatrixTransformDesc_t;

/** cublasLtMatmulPreferenceAttributes_t */
enum { CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES = 1 };

#ifdef __cplusplus
extern "C" {
#endif

cublasStatus_t cublasCreate_v2(cublasHandle_t *);
cublasStatus_t cublasDestroy_v2(cublasHandle_t);
cublasStatus_t cublasGetVersion_v2(cublasHandle_t, int *);
cublasStatus_t cublasGetProperty(int, int *);
size_t cublasGetCudartVersion(void);
const char *cublasGetStatusName(cublasStatus_t);
const char *cublasGetStatusString(cublasStatus_t);
cublasStatus_t cublasSetStream_v2(cublasHandle_t, CUstream);
cublasStatus_t cublasGetStream_v2(cublasHandle_t, CUstream *);
cublasStatus_t cublasSetWorkspace_v2(cublasHandle_t, void *, size_t);
cublasStatus_t cublasSetPointerMode_v2(cublasHandle_t, int);
cublasStatus_t cublasGetPointerMode_v2(cublasHandle_t, int *);
cublasStatus_t cublasSetAtomicsMode(cublasHandle_t, int);
cublasStatus_t cublasGetAtomicsMode(cublasHandle_t, int *);
cublasStatus_t cublasSetMathMode(cublasHandle_t, int);
cublasStatus_t cublasGetMathMode(cublasHandle_t, int *);
cublasStatus_t cublasSetSmCountTarget(cublasHandle_t, int);
cublasStatus_t cublasGetSmCountTarget(cublasHandle_t, int *);
cublasStatus_t cublasSetEmulationStrategy(cublasHandle_t, int);
cublasStatus_t cublasGetEmulationStrategy(cublasHandle_t, int *);
cublasStatus_t cublasLoggerConfigure(int, int, int, const char *);
cublasStatus_t cublasSetLoggerCallback(void (*)(const char *));
cublasStatus_t cublasGetLoggerCallback(void (**)(const char *));

cublasStatus_t cublasLtCreate(cublasLtHandle_t *);
cublasStatus_t cublasLtDestroy(cublasLtHandle_t);
size_t cublasLtGetVersion(void);
cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t *, int, int);
cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t);
cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t, int, const void *, size_t);
cublasStatus_t cublasLtMatmulDescGetAttribute(cublasLtMatmulDesc_t, int, void *, size_t, size_t *);
cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t *, int, uint64_t, uint64_t, int64_t);
cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t);
cublasStatus_t cublasLtMatrixLayoutGetAttribute(cublasLtMatrixLayout_t, int, void *, size_t, size_t *);
cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t *);
cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t);
cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t, int, const void *, size_t);
cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t, cublasLtMatmulDesc_t, cublasLtMatrixLayout_t,
                                              cublasLtMatrixLayout_t, cublasLtMatrixLayout_t,
                                              cublasLtMatrixLayout_t, cublasLtMatmulPreference_t, int,
                                              cublasLtMatmulHeuristicResult_t *, int *);
cublasStatus_t cublasLtMatmul(cublasLtHandle_t, cublasLtMatmulDesc_t, const void *, const void *,
                              cublasLtMatrixLayout_t, const void *, cublasLtMatrixLayout_t, const void *,
                              const void *, cublasLtMatrixLayout_t, void *, cublasLtMatrixLayout_t,
                              const cublasLtMatmulAlgo_t *, void *, size_t, CUstream);

#ifdef __cplusplus
}
#endif

#endif
