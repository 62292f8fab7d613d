/*
 * Looking up driver functions for the program, through the same cuGetProcAddress the runtime uses itself, so
 * that whoever replaced that pointer answers here too.
 */
#include "sim/cudart/runtime.h"

static cudaError_t entry_point(int half, const char *name, void **function, int version,
                               unsigned long long flags, enum cudaDriverEntryPointQueryResult *status)
{
    CUdriverProcAddressQueryResult found = CU_GET_PROC_ADDRESS_SUCCESS;

    SIM_TRY(sim_runtime());
    SIM_CHECK(name && function, cudaErrorInvalidValue);
    SIM_CHECK(flags <= cudaEnablePerThreadDefaultStream, cudaErrorInvalidValue);
    if (flags == cudaEnableDefault && half == SIM_PER_THREAD)
        flags = cudaEnablePerThreadDefaultStream;
    SIM_TRY(sim_driver_lookup(name, function, version, flags, &found));
    if (status)
        *status = (enum cudaDriverEntryPointQueryResult)found;
    return cudaSuccess;
}

static cudaError_t by_version(int half, const char *name, void **function, unsigned int version,
                              unsigned long long flags, enum cudaDriverEntryPointQueryResult *status)
{
    return entry_point(half, name, function, (int)version, flags, status);
}

SIM_TWINS(cudaGetDriverEntryPoint, _ptsz, entry_point,
          (const char *name, void **function, unsigned long long flags,
           enum cudaDriverEntryPointQueryResult *status),
          name, function, SIM_CUDART_VERSION, flags, status)
SIM_TWINS(cudaGetDriverEntryPointByVersion, _ptsz, by_version,
          (const char *name, void **function, unsigned int version, unsigned long long flags,
           enum cudaDriverEntryPointQueryResult *status),
          name, function, version, flags, status)

/* The tables behind this call are private to the vendor; what asks for them cannot run on the simulator. */
SIM_API cudaError_t cudaGetExportTable(const void **table, const cudaUUID_t *id)
{
    static unsigned long long calls;

    (void)table;
    (void)id;
    return sim_fail(sim_unsupported(__func__, &calls));
}
