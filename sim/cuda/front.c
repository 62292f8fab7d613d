/*
 * The file in fault.c's place where another vendor's library is built on these rooms (front.h): the rooms'
 * own functions are never armed; work on streams takes the time and the faults that the library's rules give.
 * No lock.
 */
#include "sim/cuda/front.h"

#include <pthread.h>
#include <string.h>

#include "sim/cuda/books.h"
#include "sim/cuda/sim.h"
#include "sim/cuda/device/usage.h"

atomic_int sim_armed; /* never: the rooms' functions are called by the library alone */
static atomic_int front_armed = 1;
static pthread_once_t read_once = PTHREAD_ONCE_INIT;
static atomic_ullong unsupported;

/* Who finds it disarmed passes without waiting for this function: that is said last, when the rooms can be
 * used. */
static void read_environment(void)
{
    sim_rules_read(&sim_front);
    cuInit(0);
    if (!sim_rules_asked())
        atomic_store_explicit(&front_armed, 0, memory_order_release);
}

void sim_fault_read(void)
{
    pthread_once(&read_once, read_environment);
}

int sim_front_enter(unsigned fn)
{
    if (!atomic_load_explicit(&front_armed, memory_order_acquire))
        return 0;
    sim_fault_read();
    if (sim_rules_cost(fn))
        sim_spend(sim_rules_cost(fn));
    return sim_rules_has_faults() || sim_config.counts ? sim_rules_count(fn) : 0;
}

/* Work on streams has its numbers behind the library's functions, in the same order as behind the
 * driver's. */
static unsigned work(enum sim_fn fn)
{
    return sim_front.count + (unsigned)(fn - SIM_FN_KERNEL);
}

CUresult sim_fault_enter(enum sim_fn fn)
{
    (void)fn;
    return CUDA_SUCCESS;
}

uint64_t sim_fault_cost(enum sim_fn fn)
{
    return fn >= SIM_FN_KERNEL ? sim_rules_cost(work(fn)) : 0;
}

bool sim_fault_asked(enum sim_fn fn)
{
    return fn >= SIM_FN_KERNEL && (sim_rules_has_faults() || sim_rules_cost(work(fn)));
}

CUresult sim_fault_work(enum sim_fn fn)
{
    return fn >= SIM_FN_KERNEL && sim_rules_has_faults() ? (CUresult)sim_rules_count(work(fn)) : CUDA_SUCCESS;
}

void sim_front_unsupported(unsigned fn)
{
    sim_fault_read();
    sim_rules_note(fn, 1 + atomic_fetch_add_explicit(&unsupported, 1, memory_order_relaxed));
}

CUresult sim_unsupported(enum sim_fn fn)
{
    (void)fn;
    return CUDA_ERROR_NOT_SUPPORTED;
}

/** As the driver's: how often the library's function of this name was called, if MEMSIM_COUNT is 1, or bytes
 * of the first device. */
__attribute__((visibility("default"))) long long memsim_count(const char *name)
{
    long long bytes = sim_device_count(name);

    if (bytes >= 0)
        return bytes;
    sim_fault_read();
    return sim_rules_told(name);
}

/* The driver's management library is not told what these devices are used for. */
void sim_usage_bytes(int ordinal, uint64_t used_bytes)
{
    (void)ordinal;
    (void)used_bytes;
}

void sim_usage_context(int ordinal, int more)
{
    (void)ordinal;
    (void)more;
}

const char *sim_books_world(void)
{
    return sim_front.owner;
}
