/*
 * Statuses: texts, the last error, and the count of calls that are not simulated. The last error is the process's, as the
 * real library's is. Allocates nothing.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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
    unsigned long long nth = __atomic_add_fetch(calls, 1, __ATOMIC_RELAXED);
    const char *path = secure_getenv("MEMSIM_LOG");
    int saved_errno = errno, length, file;
    char line[160];

    if (path && *path) {
        length = snprintf(line, sizeof(line), "%d unsupported %s %llu\n", (int)getpid(), name, nth);
        file = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
        if (file >= 0) {
            if (write(file, line, (size_t)length) < 0)
                fprintf(stderr, "memsim: cannot write %s\n", path);
            close(file);
        }
        errno = saved_errno;
    }
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
