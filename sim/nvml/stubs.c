/*
 * Functions that the real library exports and the simulator lacks: each answers that it is not supported, as
 * a card does that has no such thing, and is counted (MEMSIM_LOG). No prototypes are known here, on purpose:
 * a stub reads no argument.
 */
#include "sim/log.h"

enum { NOT_SUPPORTED = 3 };

int sim_nvml_ready(void);

static int unsupported(const char *name, unsigned long long *calls)
{
    int result = sim_nvml_ready();

    if (result)
        return result;
    sim_log_call(name, calls);
    return NOT_SUPPORTED;
}

#define SIMULATED(name)
#define UNSUPPORTED(name)                                                                                    \
    int name(void) __attribute__((visibility("default")));                                                   \
    int name(void)                                                                                           \
    {                                                                                                        \
        static unsigned long long calls;                                                                     \
                                                                                                             \
        return unsupported(#name, &calls);                                                                   \
    }
#include "sim/nvml/exports.def"
