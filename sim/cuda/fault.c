/*
 * Costs and faults of the driver's functions (rules.c has how they are asked for), and the count of calls
 * that are not simulated.
 *
 * Every exported function passes sim_fault_enter while sim_armed is set; it is cleared after the first call
 * if nothing was asked for, so that the usual price is one load. No lock.
 */
#include <pthread.h>
#include <string.h>

#include "sim/cuda/rules.h"
#include "sim/cuda/sim.h"

static const char *const fn_names[] = {
#define X(name, version, twin, symbol) #symbol,
#include "sim/cuda/exports.def"
#undef X
    SIM_RULES_WORK};

_Static_assert(sizeof fn_names / sizeof *fn_names == SIM_FN_COUNT &&
                   SIM_FN_COUNT - SIM_FN_KERNEL == SIM_RULES_WORK_COUNT,
               "names and numbers go together");

static const char *const foreign[] = {"cuda", "nccl", "hip", "acl", NULL};
static const struct sim_rules driver = {fn_names, SIM_FN_KERNEL, 999, foreign, "driver"};

atomic_int sim_armed = 1;
static pthread_once_t read_once = PTHREAD_ONCE_INIT;
static atomic_ullong unsupported[SIM_FN_COUNT];

static void read_environment(void)
{
    sim_rules_read(&driver);
    sim_card_read();
    if (!sim_rules_asked())
        atomic_store_explicit(&sim_armed, 0, memory_order_release);
}

/** Reads the environment if that has not happened yet. */
void sim_fault_read(void)
{
    pthread_once(&read_once, read_environment);
}

CUresult sim_fault_enter(enum sim_fn fn)
{
    sim_fault_read();
    if (sim_rules_cost(fn))
        sim_spend(sim_rules_cost(fn));
    return sim_rules_has_faults() || sim_config.counts ? (CUresult)sim_rules_count(fn) : CUDA_SUCCESS;
}

/** The nanoseconds that MEMSIM_COST gives to work on a stream. */
uint64_t sim_fault_cost(enum sim_fn fn)
{
    return sim_rules_cost(fn);
}

/** True if MEMSIM_* asks for anything of work of this kind: time, or that it fails. */
bool sim_fault_asked(enum sim_fn fn)
{
    return sim_rules_has_faults() || sim_rules_cost(fn);
}

/** The status with which this piece of work on a stream is to fail, or 0. */
CUresult sim_fault_work(enum sim_fn fn)
{
    return sim_rules_has_faults() ? (CUresult)sim_rules_count(fn) : CUDA_SUCCESS;
}

/** For programs that measure: how often the driver function of this name was called so far, if MEMSIM_COUNT
 * is 1; behind the name, "moves" is how often such a call took of a device's capacity or gave back, and
 * "bytes" how much. Or "used_bytes" and "peak_bytes" of the first device, and "others_bytes" that other
 * processes have of it; of another device with its number behind. -1 for any other name. */
__attribute__((visibility("default"))) long long memsim_count(const char *name)
{
    long long bytes = sim_device_count(name);

    if (bytes >= 0)
        return bytes;
    sim_fault_read();
    return sim_rules_told(name);
}

/** Counts a call of a function that is not simulated, and notes it in MEMSIM_LOG. */
CUresult sim_unsupported(enum sim_fn fn)
{
    sim_rules_note(fn, 1 + atomic_fetch_add_explicit(&unsupported[fn], 1, memory_order_relaxed));
    return CUDA_ERROR_NOT_SUPPORTED;
}
