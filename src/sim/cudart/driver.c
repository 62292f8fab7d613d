/*
 * Reaching the driver the way the real runtime does: one dlopen of libcuda.so.1, one dlsym of
 * cuGetProcAddress_v2, and everything else through the pointer that gives, cuGetProcAddress included. Done
 * once per process, in the first call of any exported function; the outcome is kept. Owns the driver table,
 * which is read-only afterwards.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sim/cudart/runtime.h"

struct sim_driver sim_driver[2];
unsigned long long sim_driver_absent;

typedef __typeof__(&cuGetProcAddress_v2) lookup_fn;

static pthread_once_t once = PTHREAD_ONCE_INIT;
static cudaError_t outcome = cudaErrorInsufficientDriver;
static int driver_version;
static lookup_fn lookup;

static void *ask(const char *name, int version, cuuint64_t flags)
{
    void *function = NULL;

    if (lookup(name, &function, version, flags, NULL) != CUDA_SUCCESS)
        return NULL;
    return function;
}

/* The slots are function pointers of many types; memcpy fills them without pretending that they are one. */
static void ask_into(void *slot, void *slot_per_thread, const char *name, int version, int version_per_thread)
{
    void *function = ask(name, version, 0);

    memcpy(slot, &function, sizeof(function));
    if (version_per_thread)
        function = ask(name, version_per_thread, CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM);
    memcpy(slot_per_thread, &function, sizeof(function));
}

static void fill_table(void)
{
    struct sim_driver *legacy = &sim_driver[SIM_LEGACY];
    struct sim_driver *per_thread = &sim_driver[SIM_PER_THREAD];

#define DRIVER(symbol, base, version, version_per_thread)                                                    \
    ask_into(&legacy->symbol, &per_thread->symbol, base, version, version_per_thread);
#include "sim/cudart/driver.def"
#undef DRIVER
}

/* Costs and faults belong to the driver's functions, under which every call of this library ends: say so to whoever asks
 * for one of ours, instead of doing nothing. */
static void check_environment(const char *variable)
{
    const char *value = secure_getenv(variable);
    char *copy = value ? strdup(value) : NULL, *rest = copy, *item;

    while (rest && (item = strsep(&rest, ",")) != NULL) {
        if (strncmp(item, "cuda", 4) == 0)
            fprintf(stderr, "memsim: %s=%s: expected the name of a driver function, like cuMemAlloc_v2; ignored\n",
                    variable, item);
    }
    free(copy);
}

static void open_driver(void)
{
    void *handle = dlopen("libcuda.so.1", RTLD_NOW);
    __typeof__(&cuDriverGetVersion) get_version;
    __typeof__(&cuInit) init;
    void *found;

    if (!handle)
        return;
    check_environment("MEMSIM_COST");
    check_environment("MEMSIM_FAIL");
    lookup = (lookup_fn)dlsym(handle, "cuGetProcAddress_v2");
    if (!lookup)
        return;

    /* Asked as the real one asks: an empty name first, and the lookup function itself in both its arities. */
    lookup("", &found, 0, 0, NULL);
    init = (__typeof__(init))ask("cuInit", 2000, 0);
    (void)ask("cuGetProcAddress", 11030, 0);
    found = ask("cuGetProcAddress", 12000, 0);
    if (found)
        lookup = (lookup_fn)found;
    get_version = (__typeof__(get_version))ask("cuDriverGetVersion", 2020, 0);
    fill_table();

    if (!get_version || get_version(&driver_version) != CUDA_SUCCESS || !init)
        return;
    if (driver_version < SIM_CUDART * 1000)
        return;
    outcome = (cudaError_t)init(0);
}

cudaError_t sim_runtime(void)
{
    pthread_once(&once, open_driver);
    return outcome;
}

int sim_driver_version(void)
{
    pthread_once(&once, open_driver);
    return driver_version;
}

cudaError_t sim_driver_lookup(const char *name, void **function_p, int version, cuuint64_t flags,
                              CUdriverProcAddressQueryResult *status_p)
{
    return (cudaError_t)lookup(name, function_p, version, flags, status_p);
}
