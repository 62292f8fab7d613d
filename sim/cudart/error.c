/*
 * Statuses: the thread's last error, names and texts. The last
 * error is thread-local; an error that spoils the context stays until the device is reset. Allocates nothing,
 * locks nothing.
 */
#include "sim/cudart/runtime.h"
#include "sim/log.h"

static __thread cudaError_t last_error;

static bool is_sticky(cudaError_t status)
{
    switch (status) {
    case cudaErrorECCUncorrectable:
    case cudaErrorNvlinkUncorrectable:
    case cudaErrorContained:
    case cudaErrorIllegalAddress:
    case cudaErrorLaunchTimeout:
    case cudaErrorAssert:
    case cudaErrorHardwareStackError:
    case cudaErrorIllegalInstruction:
    case cudaErrorMisalignedAddress:
    case cudaErrorInvalidAddressSpace:
    case cudaErrorInvalidPc:
    case cudaErrorLaunchFailure:
    case cudaErrorExternalDevice:
        return true;
    default:
        return false;
    }
}

cudaError_t sim_fail(cudaError_t status)
{
    if (status != cudaSuccess && !is_sticky(last_error))
        last_error = status;
    return status;
}

void sim_error_clear(void)
{
    last_error = cudaSuccess;
}

cudaError_t sim_unsupported(const char *name, unsigned long long *calls)
{
    sim_log_call(name, calls);
    return cudaErrorNotSupported;
}

SIM_API cudaError_t cudaGetLastError(void)
{
    cudaError_t status = last_error;

    if (sim_runtime() != cudaSuccess)
        return sim_runtime();
    last_error = cudaSuccess;
    return status;
}

SIM_API cudaError_t cudaPeekAtLastError(void)
{
    return sim_runtime() != cudaSuccess ? sim_runtime() : last_error;
}

SIM_API const char *cudaGetErrorName(cudaError_t error)
{
    switch (error) {
#define ERROR(name, text)                                                                                    \
    case name:                                                                                               \
        return #name;
#include "sim/cudart/error.def"
#undef ERROR
    default:
        return "unrecognized error code";
    }
}

SIM_API const char *cudaGetErrorString(cudaError_t error)
{
    switch (error) {
#define ERROR(name, text)                                                                                    \
    case name:                                                                                               \
        return text;
#include "sim/cudart/error.def"
#undef ERROR
    default:
        return "unrecognized error code";
    }
}
