/*
 * One weak function for every name the real library exports. Where another file has the function, that one is
 * linked; what is left answers cudaErrorNotSupported and is counted (MEMSIM_LOG). Knows no prototypes, on
 * purpose: a stub reads no argument.
 */
#include "vendor/abi/cuda_runtime.h"
#include "sim/cudart/export.h"
#include "sim/versions.h"

cudaError_t sim_fail(cudaError_t status);
cudaError_t sim_unsupported(const char *name, unsigned long long *calls);

#define STUB(name)                                                                                           \
    SIM_API __attribute__((weak)) cudaError_t name(void);                                                    \
    cudaError_t name(void)                                                                                   \
    {                                                                                                        \
        static unsigned long long calls;                                                                     \
                                                                                                             \
        return sim_fail(sim_unsupported(#name, &calls));                                                     \
    }
#define EXPORT(name, first, last) SIM_WITHIN(first, last, STUB(name))
#include "sim/cudart/exports.def"
