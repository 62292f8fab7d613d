/*
 * The driver as the simulated runtime has it (sim/embedded/entry.h says how it is reached). Done
 * once per process, in the first call of any exported function; the outcome is kept. Owns the driver table,
 * which is read-only afterwards.
 */
#include <pthread.h>
#include <string.h>

#include "sim/cudart/runtime.h"
#include "sim/embedded/entry.h"

struct sim_driver sim_driver[2];
unsigned long long sim_driver_absent;

static pthread_once_t once = PTHREAD_ONCE_INIT;
static cudaError_t outcome = cudaErrorInsufficientDriver;
static int driver_version;

/* The slots are function pointers of many types; memcpy fills them without pretending that they are one. */
static void ask_into(void *slot, void *slot_per_thread, const char *name, int version, int version_per_thread)
{
    void *function = sim_entry_ask(name, version, 0);

    memcpy(slot, &function, sizeof(function));
    if (version_per_thread)
        function = sim_entry_ask(name, version_per_thread, CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM);
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

static void open_driver(void)
{
    __typeof__(&cuInit) init = sim_entry_open("cuda");
    __typeof__(&cuDriverGetVersion) get_version;

    if (!init)
        return;
    get_version = (__typeof__(get_version))sim_entry_ask("cuDriverGetVersion", 2020, 0);
    fill_table();
    if (!get_version || get_version(&driver_version) != CUDA_SUCCESS || driver_version < SIM_CUDART * 1000)
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
    return (cudaError_t)sim_entry_look_up(name, function_p, version, flags, status_p);
}
