/*
 * Names of statuses, versions, and the log, which is always empty. In both libraries, under their two
 * prefixes.
 */
#include <stdio.h>

#include "sim/cublas/cublas.h"

static const struct {
    const char *name, *text;
} statuses[] = {
    [CUBLAS_STATUS_SUCCESS] = {"CUBLAS_STATUS_SUCCESS", "the operation completed successfully"},
    [CUBLAS_STATUS_NOT_INITIALIZED] = {"CUBLAS_STATUS_NOT_INITIALIZED", "the library was not initialized"},
    [CUBLAS_STATUS_ALLOC_FAILED] = {"CUBLAS_STATUS_ALLOC_FAILED", "the resource allocation failed"},
    [CUBLAS_STATUS_INVALID_VALUE] = {"CUBLAS_STATUS_INVALID_VALUE",
                                     "an invalid value was used as an argument"},
    [CUBLAS_STATUS_ARCH_MISMATCH] = {"CUBLAS_STATUS_ARCH_MISMATCH",
                                     "an absent device architectural feature is required"},
    [CUBLAS_STATUS_MAPPING_ERROR] = {"CUBLAS_STATUS_MAPPING_ERROR", "an access to GPU memory space failed"},
    [CUBLAS_STATUS_EXECUTION_FAILED] = {"CUBLAS_STATUS_EXECUTION_FAILED",
                                        "the GPU program failed to execute"},
    [CUBLAS_STATUS_INTERNAL_ERROR] = {"CUBLAS_STATUS_INTERNAL_ERROR", "an internal operation failed"},
    [CUBLAS_STATUS_NOT_SUPPORTED] = {"CUBLAS_STATUS_NOT_SUPPORTED", "the functionality is not supported"},
    [CUBLAS_STATUS_LICENSE_ERROR] = {"CUBLAS_STATUS_LICENSE_ERROR",
                                     "an error appeared when checking current licensing"},
};

static bool is_known(cublasStatus_t status)
{
    return (size_t)status < sizeof statuses / sizeof statuses[0] && statuses[status].name;
}

static cublasStatus_t property(int which, int *value_p)
{
    static const int parts[] = {SIM_MAJOR, SIM_MINOR, SIM_PATCH};

    if (!value_p || which < 0 || which > 2)
        return CUBLAS_STATUS_INVALID_VALUE;
    *value_p = parts[which];
    return CUBLAS_STATUS_SUCCESS;
}

#define COMMON(prefix)                                                                                       \
    const char *prefix##GetStatusName(cublasStatus_t);                                                       \
    const char *prefix##GetStatusString(cublasStatus_t);                                                     \
    cublasStatus_t prefix##GetProperty(int, int *);                                                          \
    size_t prefix##GetCudartVersion(void);                                                                   \
    SIM_API const char *prefix##GetStatusName(cublasStatus_t status)                                         \
    {                                                                                                        \
        return is_known(status) ? statuses[status].name : "<unknown>";                                       \
    }                                                                                                        \
    SIM_API const char *prefix##GetStatusString(cublasStatus_t status)                                       \
    {                                                                                                        \
        return is_known(status) ? statuses[status].text : "<unknown>";                                       \
    }                                                                                                        \
    SIM_API cublasStatus_t prefix##GetProperty(int which, int *value_p)                                      \
    {                                                                                                        \
        return property(which, value_p);                                                                     \
    }                                                                                                        \
    SIM_API size_t prefix##GetCudartVersion(void)                                                            \
    {                                                                                                        \
        return SIM_CUDART_VERSION;                                                                           \
    }

#ifdef SIM_LT
COMMON(cublasLt)

SIM_API size_t cublasLtGetVersion(void)
{
    return SIM_MAJOR * 10000 + SIM_MINOR * 100 + SIM_PATCH;
}

#define QUIET(name, parameters)                                                                              \
    cublasStatus_t cublasLtLogger##name parameters;                                                          \
    SIM_API cublasStatus_t cublasLtLogger##name parameters                                                   \
    {                                                                                                        \
        return CUBLAS_STATUS_SUCCESS;                                                                        \
    }
QUIET(SetCallback, (void (*callback)(int, const char *, const char *) __attribute__((unused))))
QUIET(SetFile, (FILE * file __attribute__((unused))))
QUIET(OpenFile, (const char *path __attribute__((unused))))
QUIET(SetLevel, (int level __attribute__((unused))))
QUIET(SetMask, (int mask __attribute__((unused))))
QUIET(ForceDisable, (void))
#else
COMMON(cublas)

static void (*logger)(const char *);

SIM_API cublasStatus_t cublasGetVersion_v2(cublasHandle_t handle, int *version_p)
{
    (void)handle;
    if (!version_p)
        return CUBLAS_STATUS_INVALID_VALUE;
    *version_p = SIM_MAJOR * 10000 + SIM_MINOR * 100 + SIM_PATCH;
    return CUBLAS_STATUS_SUCCESS;
}

SIM_API cublasStatus_t cublasLoggerConfigure(int on, int to_stdout, int to_stderr, const char *file)
{
    (void)on, (void)to_stdout, (void)to_stderr, (void)file;
    return CUBLAS_STATUS_SUCCESS;
}

SIM_API cublasStatus_t cublasSetLoggerCallback(void (*callback)(const char *))
{
    logger = callback;
    return CUBLAS_STATUS_SUCCESS;
}

SIM_API cublasStatus_t cublasGetLoggerCallback(void (**callback_p)(const char *))
{
    if (!callback_p)
        return CUBLAS_STATUS_INVALID_VALUE;
    *callback_p = logger;
    return CUBLAS_STATUS_SUCCESS;
}
#endif
