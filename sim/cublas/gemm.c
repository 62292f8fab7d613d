/*
 * Products whose arguments are looked at, since they may be computed (compute.c): of float and double
 * matrices, one or several one behind the other, and of matrices whose type is an argument.
 */
#include "sim/cublas/cublas.h"

#define FUNCTION(name, parameters, body)                                                                     \
    SIM_API cublasStatus_t name parameters;                                                                  \
    SIM_API cublasStatus_t name parameters                                                                   \
    {                                                                                                        \
        return body;                                                                                         \
    }

static cublasStatus_t run(cublasHandle_t handle, struct sim_gemm gemm)
{
    uint64_t arguments[SIM_MULTIPLY_ARGUMENTS];

    SIM_TRY(sim_handle(handle));
    gemm.factors_there = handle->pointer_mode == CUBLAS_POINTER_MODE_DEVICE;
    return sim_product(handle, true, sim_compute(&gemm, arguments) ? arguments : NULL);
}

/* The type of all three, or -1: nothing is computed. */
static int one_type(int a, int b, int c)
{
    return a == b && b == c ? a : -1;
}

#define GEMM(of, step_a, step_b, step_c, number_of)                                                          \
    (struct sim_gemm)                                                                                        \
    {                                                                                                        \
        .type = (of), .turn_a = turn_a != 0, .turn_b = turn_b != 0, .m = m, .n = n, .k = k,                  \
        .count = (number_of), .alpha = alpha, .beta = beta, .a = {A, lda, step_a}, .b = {B, ldb, step_b},    \
        .c = {C, ldc, step_c}, .d = {                                                                        \
            C,                                                                                               \
            ldc,                                                                                             \
            step_c                                                                                           \
        }                                                                                                    \
    }
#define SHAPE(number) cublasHandle_t handle, int turn_a, int turn_b, number m, number n, number k

#define PLAIN(name, of, type, number)                                                                        \
    FUNCTION(name,                                                                                           \
             (SHAPE(number), const type *alpha, const type *A, number lda, const type *B, number ldb,        \
              const type *beta, type *C, number ldc),                                                        \
             run(handle, GEMM(of, 0, 0, 0, 1)))
#define STRIDED(name, of, type, number)                                                                      \
    FUNCTION(name,                                                                                           \
             (SHAPE(number), const type *alpha, const type *A, number lda, long long step_a, const type *B,  \
              number ldb, long long step_b, const type *beta, type *C, number ldc, long long step_c,         \
              number count),                                                                                 \
             run(handle, GEMM(of, step_a, step_b, step_c, count)))
#define TYPED(name, number)                                                                                  \
    FUNCTION(                                                                                                \
        name,                                                                                                \
        (SHAPE(number), const void *alpha, const void *A, int type_a, number lda, const void *B, int type_b, \
         number ldb, const void *beta, void *C, int type_c, number ldc, int compute, int algorithm),         \
        ((void)compute, (void)algorithm, run(handle, GEMM(one_type(type_a, type_b, type_c), 0, 0, 0, 1))))
#define TYPED_STRIDED(name, number)                                                                          \
    FUNCTION(name,                                                                                           \
             (SHAPE(number), const void *alpha, const void *A, int type_a, number lda, long long step_a,     \
              const void *B, int type_b, number ldb, long long step_b, const void *beta, void *C,            \
              int type_c, number ldc, long long step_c, number count, int compute, int algorithm),           \
             ((void)compute, (void)algorithm,                                                                \
              run(handle, GEMM(one_type(type_a, type_b, type_c), step_a, step_b, step_c, count))))

PLAIN(cublasSgemm_v2, CUDA_R_32F, float, int)
PLAIN(cublasSgemm_v2_64, CUDA_R_32F, float, int64_t)
PLAIN(cublasDgemm_v2, CUDA_R_64F, double, int)
PLAIN(cublasDgemm_v2_64, CUDA_R_64F, double, int64_t)
STRIDED(cublasSgemmStridedBatched, CUDA_R_32F, float, int)
STRIDED(cublasSgemmStridedBatched_64, CUDA_R_32F, float, int64_t)
STRIDED(cublasDgemmStridedBatched, CUDA_R_64F, double, int)
STRIDED(cublasDgemmStridedBatched_64, CUDA_R_64F, double, int64_t)
TYPED(cublasGemmEx, int)
TYPED(cublasGemmEx_64, int64_t)
TYPED_STRIDED(cublasGemmStridedBatchedEx, int)
TYPED_STRIDED(cublasGemmStridedBatchedEx_64, int64_t)
