/*
 * Functions by name: of this library's own exports. Under the flag for the per-thread default stream a
 * function with such a twin is answered with it.
 */
#include <stdio.h>
#include <string.h>

#include "sim/hip/hip.h"

#if SIM_HIP >= 6
/* hipDriverProcAddressQueryResult */
enum { FOUND, NOT_FOUND, VERSION_TOO_OLD, PER_THREAD = 2 };

#define X(name) __attribute__((visibility("default"))) extern char lookup_##name __asm__(#name);
#include "sim/hip/version.def"
#undef X

static const struct {
    const char *name;
    void *function;
} functions[] = {
#define X(name) {#name, &lookup_##name},
#include "sim/hip/version.def"
#undef X
};

static void *find(const char *name)
{
    for (unsigned i = 0; i < sizeof functions / sizeof functions[0]; i++)
        if (!strcmp(functions[i].name, name))
            return functions[i].function;
    return NULL;
}

static int look_up(const char *symbol, void **function, uint64_t flags, int *status)
{
    char twin[80];
    void *found = NULL;

    if (!symbol || !*symbol || !function || flags > PER_THREAD)
        return hipErrorInvalidValue;
    if (flags == PER_THREAD && snprintf(twin, sizeof twin, "%s_spt", symbol) < (int)sizeof twin)
        found = find(twin);
    if (!found)
        found = find(symbol);
    if (status)
        *status = found ? FOUND : NOT_FOUND;
    *function = found;
    return found ? hipSuccess : hipErrorInvalidValue;
}

HIP_API hipGetProcAddress(const char *symbol, void **function, int version, uint64_t flags,
                          hipDriverProcAddressQueryResult *status)
{
    (void)version;
    HIP_ENTER(hipGetProcAddress);
    return hip_leave(look_up(symbol, function, flags, (int *)status));
}
#endif

#if SIM_HIP >= 7
HIP_API hipGetDriverEntryPoint(const char *symbol, void **function, unsigned long long flags,
                               hipDriverEntryPointQueryResult *status)
{
    HIP_ENTER(hipGetDriverEntryPoint);
    return hip_leave(look_up(symbol, function, flags, (int *)status));
}

HIP_API hipGetDriverEntryPoint_spt(const char *symbol, void **function, unsigned long long flags,
                                   hipDriverEntryPointQueryResult *status)
{
    HIP_ENTER(hipGetDriverEntryPoint_spt);
    return hip_leave(look_up(symbol, function, flags ? flags : PER_THREAD, (int *)status));
}
#endif
