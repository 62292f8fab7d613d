/* See entry.h. Owns the pointer to the lookup, which is read-only once the driver is open. */
#include "sim/embedded/entry.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static __typeof__(&cuGetProcAddress_v2) lookup;

/* Costs and faults belong to the driver's functions, under which every call of a library ends: say so to
 * whoever asks for one of its own, instead of doing nothing. */
static void check_environment(const char *variable, const char *prefix)
{
    const char *value = secure_getenv(variable);
    char *copy = value ? strdup(value) : NULL, *rest = copy, *item;

    while (rest && (item = strsep(&rest, ",")) != NULL) {
        if (strncmp(item, prefix, strlen(prefix)) == 0)
            fprintf(stderr,
                    "memsim: %s=%s: expected the name of a driver function, like cuMemAlloc_v2; ignored\n",
                    variable, item);
    }
    free(copy);
}

__typeof__(&cuInit) sim_entry_open(const char *prefix)
{
    void *handle = dlopen("libcuda.so.1", RTLD_NOW), *found;
    __typeof__(&cuInit) init;

    if (!handle)
        return NULL;
    check_environment("MEMSIM_COST", prefix);
    check_environment("MEMSIM_FAIL", prefix);
    lookup = (__typeof__(lookup))dlsym(handle, "cuGetProcAddress_v2");
    if (!lookup)
        return NULL;
    /* Asked as the real one asks: an empty name first, and the lookup function itself in both its arities. */
    lookup("", &found, 0, 0, NULL);
    init = (__typeof__(init))sim_entry_ask("cuInit", 2000, 0);
    (void)sim_entry_ask("cuGetProcAddress", 11030, 0);
    found = sim_entry_ask("cuGetProcAddress", 12000, 0);
    if (found)
        lookup = (__typeof__(lookup))found;
    return init;
}

void *sim_entry_ask(const char *name, int version, cuuint64_t flags)
{
    void *function = NULL;

    return lookup(name, &function, version, flags, NULL) == CUDA_SUCCESS ? function : NULL;
}

CUresult sim_entry_look_up(const char *name, void **function_p, int version, cuuint64_t flags,
                           CUdriverProcAddressQueryResult *status_p)
{
    return lookup(name, function_p, version, flags, status_p);
}
