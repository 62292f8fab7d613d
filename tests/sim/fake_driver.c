/*
 * A libcuda.so.1 that is nothing but the lookup: it writes down every name the runtime asks for and answers
 * with functions of its own. Built as tests/sim/fake/libcuda.so.1 for runtime_lookup alone, which reads the
 * notes through fake_log(). Environment: FAKE_VERSION what cuDriverGetVersion answers, FAKE_INIT what cuInit
 * answers, FAKE_MISSING=1 leaves out everything but the start.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fake_driver.h"
#include "vendor/abi/cuda_driver.h"
#include "vendor/abi/cuda_driver_fn.h"

static struct fake_request requests[FAKE_MAX];
static int count;
static int inits;

static int setting(const char *name, int otherwise)
{
    const char *value = getenv(name);

    return value ? atoi(value) : otherwise;
}

static void note(const char *name, int version, unsigned long long flags, int route)
{
    struct fake_request *request = &requests[count];

    if (count == FAKE_MAX)
        return;
    snprintf(request->name, sizeof(request->name), "%s", name);
    request->version = version;
    request->flags = (int)flags;
    request->route = route;
    count++;
}

const struct fake_request *fake_log(int *count_p)
{
    *count_p = count;
    return requests;
}

int fake_inits(void)
{
    return inits;
}

static CUresult fake_init(unsigned int flags)
{
    (void)flags;
    inits++;
    return (CUresult)setting("FAKE_INIT", 0);
}

static CUresult fake_version(int *version)
{
    *version = setting("FAKE_VERSION", 13000);
    return CUDA_SUCCESS;
}

static CUresult fake_device_count(int *devices)
{
    *devices = 3;
    return CUDA_SUCCESS;
}

static CUresult second_lookup(const char *name, void **function, int version, cuuint64_t flags,
                              CUdriverProcAddressQueryResult *status);

static CUresult old_lookup(const char *name, void **function, int version, cuuint64_t flags)
{
    return second_lookup(name, function, version, flags, NULL);
}

static void *answer(const char *name, int version)
{
    if (strcmp(name, "cuInit") == 0)
        return (void *)fake_init;
    if (strcmp(name, "cuDriverGetVersion") == 0)
        return (void *)fake_version;
    if (strcmp(name, "cuGetProcAddress") == 0)
        return version >= 12000 ? (void *)second_lookup : (void *)old_lookup;
    if (strcmp(name, "cuDeviceGetCount") == 0 && !setting("FAKE_MISSING", 0))
        return (void *)fake_device_count;
    return NULL;
}

static CUresult lookup(const char *name, void **function, int version, cuuint64_t flags, int route,
                       CUdriverProcAddressQueryResult *status)
{
    note(name, version, flags, route);
    *function = answer(name, version);
    if (status)
        *status = *function ? CU_GET_PROC_ADDRESS_SUCCESS : CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
    return *name ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

static CUresult second_lookup(const char *name, void **function, int version, cuuint64_t flags,
                              CUdriverProcAddressQueryResult *status)
{
    return lookup(name, function, version, flags, FAKE_SECOND, status);
}

CUresult cuGetProcAddress_v2(const char *name, void **function, int version, cuuint64_t flags,
                             CUdriverProcAddressQueryResult *status)
{
    return lookup(name, function, version, flags, FAKE_FIRST, status);
}
