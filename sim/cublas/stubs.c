/*
 * Functions that the real libraries export and the simulator lacks: each answers CUBLAS_STATUS_NOT_SUPPORTED
 * and is counted (MEMSIM_LOG). No prototypes are known here, on purpose: a stub reads no argument.
 */
#include "sim/cublas/cublas.h"
#include "sim/log.h"

#define UNSUPPORTED(name)                                                                                    \
    SIM_API cublasStatus_t name(void);                                                                       \
    SIM_API cublasStatus_t name(void)                                                                        \
    {                                                                                                        \
        static unsigned long long calls;                                                                     \
                                                                                                             \
        sim_log_call(#name, &calls);                                                                         \
        return CUBLAS_STATUS_NOT_SUPPORTED;                                                                  \
    }
#include "sim/cublas/rows.def"
