/*
 * Products of cuBLASLt: handles, one algorithm, which needs no workspace, and the kernel. A cublasHandle_t is
 * taken for a handle as well, as documented, so that what a handle is made of is not looked at.
 */
#include <stdlib.h>
#include <string.h>

#include "sim/cublas/cublas.h"

enum { ALGORITHM = 1 }; /* the only one */

struct cublasLtContext {
    int unused;
};

SIM_API cublasStatus_t cublasLtCreate(cublasLtHandle_t *handle_p)
{
    if (!handle_p)
        return CUBLAS_STATUS_INVALID_VALUE;
    SIM_TRY(sim_runtime());
    *handle_p = calloc(1, sizeof **handle_p);
    return *handle_p ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_ALLOC_FAILED;
}

SIM_API cublasStatus_t cublasLtDestroy(cublasLtHandle_t handle)
{
    if (!handle)
        return CUBLAS_STATUS_NOT_INITIALIZED;
    free(handle);
    return CUBLAS_STATUS_SUCCESS;
}

static void choose(cublasLtMatmulAlgo_t *algo)
{
    memset(algo, 0, sizeof *algo);
    algo->data[0] = ALGORITHM;
}

SIM_API cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t handle, cublasLtMatmulDesc_t product,
                                                      cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                                                      cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
                                                      cublasLtMatmulPreference_t preference, int wanted,
                                                      cublasLtMatmulHeuristicResult_t *results, int *count_p)
{
    if (!handle)
        return CUBLAS_STATUS_NOT_INITIALIZED;
    if (!product || !a || !b || !c || !d || !preference || !results || !count_p || wanted <= 0)
        return CUBLAS_STATUS_INVALID_VALUE;
    memset(&results[0], 0, sizeof results[0]);
    choose(&results[0].algo);
    results[0].wavesCount = 1;
    *count_p = 1;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulAlgoGetIds(cublasLtHandle_t, int, int, int, int, int, int, int, int *, int *);
SIM_API cublasStatus_t cublasLtMatmulAlgoGetIds(cublasLtHandle_t handle, int compute, int scale, int a, int b,
                                                int c, int d, int wanted, int *ids, int *count_p)
{
    (void)compute, (void)scale, (void)a, (void)b, (void)c, (void)d;
    if (!handle)
        return CUBLAS_STATUS_NOT_INITIALIZED;
    if (wanted < 0 || (wanted && !ids) || (!wanted && !count_p))
        return CUBLAS_STATUS_INVALID_VALUE;
    if (wanted)
        ids[0] = ALGORITHM;
    if (count_p)
        *count_p = 1;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulAlgoInit(cublasLtHandle_t, int, int, int, int, int, int, int,
                                      cublasLtMatmulAlgo_t *);
SIM_API cublasStatus_t cublasLtMatmulAlgoInit(cublasLtHandle_t handle, int compute, int scale, int a, int b,
                                              int c, int d, int id, cublasLtMatmulAlgo_t *algo)
{
    (void)compute, (void)scale, (void)a, (void)b, (void)c, (void)d;
    if (!handle)
        return CUBLAS_STATUS_NOT_INITIALIZED;
    if (!algo || id != ALGORITHM)
        return CUBLAS_STATUS_INVALID_VALUE;
    choose(algo);
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmulAlgoCheck(cublasLtHandle_t, cublasLtMatmulDesc_t, cublasLtMatrixLayout_t,
                                       cublasLtMatrixLayout_t, cublasLtMatrixLayout_t, cublasLtMatrixLayout_t,
                                       const cublasLtMatmulAlgo_t *, cublasLtMatmulHeuristicResult_t *);
SIM_API cublasStatus_t cublasLtMatmulAlgoCheck(cublasLtHandle_t handle, cublasLtMatmulDesc_t product,
                                               cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                                               cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
                                               const cublasLtMatmulAlgo_t *algo,
                                               cublasLtMatmulHeuristicResult_t *result)
{
    if (!handle)
        return CUBLAS_STATUS_NOT_INITIALIZED;
    if (!product || !a || !b || !c || !d || !algo || !result || algo->data[0] != ALGORITHM)
        return CUBLAS_STATUS_INVALID_VALUE;
    memset(result, 0, sizeof *result);
    result->algo = *algo;
    result->wavesCount = 1;
    return CUBLAS_STATUS_SUCCESS;
}

/* An algorithm is configured in room that it has for that; this one heeds nothing of it. */
cublasStatus_t cublasLtMatmulAlgoConfigSetAttribute(cublasLtMatmulAlgo_t *, int, const void *, size_t);
SIM_API cublasStatus_t cublasLtMatmulAlgoConfigSetAttribute(cublasLtMatmulAlgo_t *algo, int attribute,
                                                            const void *value, size_t bytes)
{
    (void)attribute;
    return algo && value && bytes ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_INVALID_VALUE;
}

cublasStatus_t cublasLtMatmulAlgoConfigGetAttribute(const cublasLtMatmulAlgo_t *, int, void *, size_t,
                                                    size_t *);
SIM_API cublasStatus_t cublasLtMatmulAlgoConfigGetAttribute(const cublasLtMatmulAlgo_t *algo, int attribute,
                                                            void *value, size_t bytes, size_t *written_p)
{
    int id = ALGORITHM;

    if (!algo || (bytes && !value) || (!bytes && !written_p))
        return CUBLAS_STATUS_INVALID_VALUE;
    if (written_p)
        *written_p = bytes ? bytes : sizeof id;
    if (bytes)
        memset(value, 0, bytes);
    if (attribute == 0 && bytes == sizeof id)
        memcpy(value, &id, sizeof id);
    return CUBLAS_STATUS_SUCCESS;
}

/* Numbers of attributes and their values: cublasLtMatmulDescAttributes_t, cublasLtMatrixLayoutAttribute_t,
 * cublasLtEpilogue_t. */
enum { SCALE_TYPE = 1, POINTER_MODE, TURN_A, TURN_B, TURN_C, EPILOGUE = 7, BIAS };
enum { TYPE, ORDER, ROWS, COLUMNS, LD, COUNT, STEP };
enum { EPILOGUE_NONE, EPILOGUE_DEFAULT, EPILOGUE_BIAS = 4 };

static struct sim_matrix matrix_of(const void *memory, cublasLtMatrixLayout_t layout)
{
    return (struct sim_matrix){memory, (int64_t)sim_said(layout, LD), (int64_t)sim_said(layout, STEP)};
}

/* True if the description says no more than what is computed. */
static bool is_plain(cublasLtMatmulDesc_t product, const cublasLtMatrixLayout_t *layouts)
{
    uint64_t epilogue = sim_said(product, EPILOGUE);

    if (epilogue != EPILOGUE_NONE && epilogue != EPILOGUE_DEFAULT && epilogue != EPILOGUE_BIAS)
        return false;
    if (sim_said(product, POINTER_MODE) > CUBLAS_POINTER_MODE_DEVICE || sim_said(product, TURN_C))
        return false;
    for (unsigned i = 0; i < 4; i++)
        if (sim_said(layouts[i], ORDER) || sim_said(layouts[i], TYPE) != sim_said(product, SCALE_TYPE) ||
            sim_said(layouts[i], COUNT) != sim_said(layouts[3], COUNT))
            return false;
    return true;
}

SIM_API cublasStatus_t cublasLtMatmul(cublasLtHandle_t handle, cublasLtMatmulDesc_t product,
                                      const void *alpha, const void *A, cublasLtMatrixLayout_t a,
                                      const void *B, cublasLtMatrixLayout_t b, const void *beta,
                                      const void *C, cublasLtMatrixLayout_t c, void *D,
                                      cublasLtMatrixLayout_t d, const cublasLtMatmulAlgo_t *algo,
                                      void *workspace, size_t workspace_bytes, CUstream stream)
{
    (void)workspace, (void)workspace_bytes;
    if (!handle)
        return CUBLAS_STATUS_NOT_INITIALIZED;
    if (!product || !alpha || !beta || !a || !b || !c || !d || (algo && algo->data[0] != ALGORITHM))
        return CUBLAS_STATUS_INVALID_VALUE;
    const cublasLtMatrixLayout_t layouts[] = {a, b, c, d};
    struct sim_gemm gemm = {.type = is_plain(product, layouts) ? (int)sim_said(d, TYPE) : -1,
                            .turn_a = sim_said(product, TURN_A) != 0,
                            .turn_b = sim_said(product, TURN_B) != 0,
                            .factors_there = sim_said(product, POINTER_MODE) == CUBLAS_POINTER_MODE_DEVICE,
                            .m = (int64_t)sim_said(d, ROWS),
                            .n = (int64_t)sim_said(d, COLUMNS),
                            .count = (int64_t)sim_said(d, COUNT),
                            .alpha = alpha,
                            .beta = beta,
                            .a = matrix_of(A, a),
                            .b = matrix_of(B, b),
                            .c = matrix_of(C, c),
                            .d = matrix_of(D, d)};
    uint64_t arguments[SIM_MULTIPLY_ARGUMENTS];

    gemm.k = (int64_t)sim_said(a, gemm.turn_a ? ROWS : COLUMNS);
    if (sim_said(product, EPILOGUE) == EPILOGUE_BIAS)
        gemm.bias = (const void *)(uintptr_t)sim_said(product, BIAS);
    SIM_TRY(sim_runtime());
    return sim_launch(stream, sim_compute(&gemm, arguments) ? arguments : NULL);
}

cublasStatus_t cublasLtMatrixTransform(cublasLtHandle_t, cublasLtMatrixTransformDesc_t, const void *,
                                       const void *, cublasLtMatrixLayout_t, const void *, const void *,
                                       cublasLtMatrixLayout_t, void *, cublasLtMatrixLayout_t, CUstream);
SIM_API cublasStatus_t cublasLtMatrixTransform(cublasLtHandle_t handle,
                                               cublasLtMatrixTransformDesc_t transform, const void *alpha,
                                               const void *A, cublasLtMatrixLayout_t a, const void *beta,
                                               const void *B, cublasLtMatrixLayout_t b, void *C,
                                               cublasLtMatrixLayout_t c, CUstream stream)
{
    (void)A, (void)B, (void)C, (void)a, (void)b, (void)beta, (void)alpha;
    if (!handle)
        return CUBLAS_STATUS_NOT_INITIALIZED;
    if (!transform || !c)
        return CUBLAS_STATUS_INVALID_VALUE;
    SIM_TRY(sim_runtime());
    return sim_launch(stream, NULL);
}

static size_t capacity = 8192;

cublasStatus_t cublasLtHeuristicsCacheGetCapacity(size_t *);
SIM_API cublasStatus_t cublasLtHeuristicsCacheGetCapacity(size_t *capacity_p)
{
    if (!capacity_p)
        return CUBLAS_STATUS_INVALID_VALUE;
    *capacity_p = __atomic_load_n(&capacity, __ATOMIC_RELAXED);
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtHeuristicsCacheSetCapacity(size_t);
SIM_API cublasStatus_t cublasLtHeuristicsCacheSetCapacity(size_t entries)
{
    __atomic_store_n(&capacity, entries, __ATOMIC_RELAXED);
    return CUBLAS_STATUS_SUCCESS;
}
