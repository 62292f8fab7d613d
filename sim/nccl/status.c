/*
 * Statuses: texts, the last error, and the count of calls that are not simulated. The last error is the
 * process's, as the real library's is. Allocates nothing.
 */
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>

#include "sim/log.h"
#include "sim/nccl/nccl.h"

/* The release whose names are exported: exports.def. */
enum { VERSION = 23007 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char last_error[1024];

ncclResult_t sim_fail(ncclResult_t result, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    pthread_mutex_lock(&lock);
    vsnprintf(last_error, sizeof(last_error), format, args);
    pthread_mutex_unlock(&lock);
    va_end(args);
    return result;
}

ncclResult_t sim_unsupported(const char *name, unsigned long long *calls)
{
    sim_log_call(name, calls);
    return sim_fail(ncclInternalError, "%s is not simulated", name);
}

SIM_NCCL(const char *, GetErrorString, (ncclResult_t result))
{
    static const char *const texts[ncclNumResults] = {
        [ncclSuccess] = "no error",
        [ncclUnhandledCudaError] = "unhandled cuda error (run with NCCL_DEBUG=INFO for details)",
        [ncclSystemError] = "unhandled system error (run with NCCL_DEBUG=INFO for details)",
        [ncclInternalError] = "internal error - please report this issue to the NCCL developers",
        [ncclInvalidArgument] = "invalid argument (run with NCCL_DEBUG=WARN for details)",
        [ncclInvalidUsage] = "invalid usage (run with NCCL_DEBUG=WARN for details)",
        [ncclRemoteError] = "remote process exited or there was a network error",
        [ncclInProgress] = "NCCL operation in progress",
    };

    return (unsigned)result < ncclNumResults ? texts[result] : "unknown result code";
}

SIM_NCCL(const char *, GetLastError, (ncclComm_t comm))
{
    (void)comm;
    return last_error;
}

SIM_NCCL(ncclResult_t, GetVersion, (int *version))
{
    if (!version)
        return sim_fail(ncclInvalidArgument, "ncclGetVersion : version argument is NULL");
    *version = VERSION;
    return ncclSuccess;
}
