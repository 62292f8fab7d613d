/*
 * The interfaces between the rooms of the simulated cuBLAS and cuBLASLt. Both libraries are built once for
 * each version (SIM_CUBLAS).
 *
 * launch.c puts a kernel on a stream and compute.c says what one computes, in both; handle.c has handles,
 * their state and their workspaces, product.c what is one kernel, gemm.c products whose arguments are looked
 * at, result.c what gives a number back, copy.c vectors and matrices between host and device, status.c names
 * and versions, stubs.c what is not simulated; lt.c multiplies and lt_object.c describes.
 *
 * No product touches memory, unless it is to be computed: a matrix has afterwards what was in it. The kernel
 * that is launched stands where the real one would, so that order, captures and time are as with it.
 *
 * A row of exports.def and lt_exports.def says how a function is answered: UNSUPPORTED (not simulated:
 * answers NOT_SUPPORTED, and is logged), SIMULATED (by a function of its own), PRODUCT and GEMM (a kernel;
 * the second has a workspace), SCALARS (on the host, which is left as it is), DOT, NORM, DOT_EX, NORM_EX,
 * INDEX_EX (a kernel and a number: the type of lengths, the number's bytes), GELS, GEQRF, GETRS (a kernel,
 * and a status on the host).
 */
#ifndef SIM_CUBLAS_CUBLAS_H
#define SIM_CUBLAS_CUBLAS_H

#include <stdbool.h>

#include "vendor/abi/cublas.h"
#include "sim/cuda/code/multiply.h"
#include "sim/embedded/driver.h"

#define SIM_API __attribute__((visibility("default")))

/* The releases whose names are exported. */
#if SIM_CUBLAS == 12
enum { SIM_MAJOR = 12, SIM_MINOR = 9, SIM_PATCH = 3, SIM_CUDART_VERSION = 12090 };
#else
enum { SIM_MAJOR = 13, SIM_MINOR = 4, SIM_PATCH = 1, SIM_CUDART_VERSION = 13020 };
#endif

#define SIM_TRY(expression)                                                                                  \
    do {                                                                                                     \
        cublasStatus_t result_ = (expression);                                                               \
        if (result_ != CUBLAS_STATUS_SUCCESS)                                                                \
            return result_;                                                                                  \
    } while (0)

/* launch.c */

/** The driver is there, and the thread has a context. */
cublasStatus_t sim_runtime(void);
/** A kernel on the stream, in the context that is current: one that computes, with its arguments, or if there
 * are none one that touches nothing. */
cublasStatus_t sim_launch(CUstream stream, const uint64_t *arguments);
/** `status` of the driver's in the library's terms. */
cublasStatus_t sim_cuda(CUresult status);

/* handle.c */

enum { SIM_HANDLE_MAGIC = 0x626c6173 };

/** One thread at a time uses a handle. */
struct cublasContext {
    unsigned magic;
    CUcontext context;
    CUstream stream;
    CUdeviceptr pool; /* the workspaces that the library has for itself */
    size_t pool_bytes;
    CUdeviceptr workspace; /* the program's; 0: the library's own */
    int pointer_mode, atomics_mode, math_mode, sm_count, emulation;
};

/** NOT_INITIALIZED for what is no handle; its context is current afterwards. */
cublasStatus_t sim_handle(cublasHandle_t handle);

/* product.c */

/** A kernel on the handle's stream, with what it computes or NULL. With `workspace`, in a capture that has no
 * workspace of the program's, between an allocation and a free of the stream's. */
cublasStatus_t sim_product(cublasHandle_t handle, bool workspace, const uint64_t *arguments);

/* compute.c: in both libraries. */

struct sim_matrix {
    const void *memory;
    int64_t stride, step; /* from column to column, from matrix to matrix, in elements */
};

/** D = alpha A B + beta C + bias, `count` times; what is turned is transposed first. */
struct sim_gemm {
    int type; /* of all matrices and factors; one that is not computed: any other */
    bool turn_a, turn_b, factors_there;
    int64_t m, n, k, count;
    const void *alpha, *beta, *bias;
    struct sim_matrix a, b, c, d;
};

/** True if the product is computed; then `arguments` (SIM_MULTIPLY_ARGUMENTS) are the kernel's. */
bool sim_compute(const struct sim_gemm *gemm, uint64_t *arguments);

/* lt_object.c */

/** The value that a description gives an attribute, a number of up to 64 bits; 0 if nothing was said. */
uint64_t sim_said(const struct cublasLtObject *object, int attribute);

#endif
