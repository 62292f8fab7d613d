/*
 * What the real libraries export and the simulator lacks: answers CUBLAS_STATUS_NOT_SUPPORTED and is counted
 * (MEMSIM_LOG). Knows no prototypes, on purpose: a stub reads no argument. SIM_EXPORTS is the library's list.
 */
#include "sim/cublas/cublas.h"

#define UNSUPPORTED(name)                                                                                    \
    SIM_API cublasStatus_t name(void);                                                                       \
    SIM_API cublasStatus_t name(void)                                                                        \
    {                                                                                                        \
        static unsigned long long calls;                                                                     \
                                                                                                             \
        sim_driver_unsupported(#name, &calls);                                                               \
        return CUBLAS_STATUS_NOT_SUPPORTED;                                                                  \
    }
#define SIMULATED(name)
#define PRODUCT(name)
#define GEMM(name)
#define SCALARS(name)
#define DOT(name, number, bytes)
#define NORM(name, number, bytes)
#define DOT_EX(name, number)
#define NORM_EX(name, number)
#define INDEX_EX(name, number, bytes)
#define GELS(name)
#define GEQRF(name)
#define GETRS(name)
#include SIM_EXPORTS
