/*
 * Functions that the real library exports and the simulator lacks: each answers ncclInternalError and is
 * counted (MEMSIM_LOG). No prototypes are known here, on purpose: a stub reads no argument.
 */
int sim_unsupported(const char *name, unsigned long long *calls);

#define SIMULATED(name)
#define UNSUPPORTED(name)                                                                                    \
    extern int nccl##name(void) __attribute__((weak, alias("pnccl" #name), visibility("default")));          \
    extern int pnccl##name(void) __attribute__((visibility("default")));                                     \
    int pnccl##name(void)                                                                                    \
    {                                                                                                        \
        static unsigned long long calls;                                                                     \
                                                                                                             \
        return sim_unsupported("nccl" #name, &calls);                                                        \
    }
#include "sim/nccl/exports.def"

/* There is no logging whose settings could change. */
void pncclResetDebugInit(void) __attribute__((visibility("default")));
void ncclResetDebugInit(void) __attribute__((weak, alias("pncclResetDebugInit"), visibility("default")));
void ncclResetDebugInitInternal(void) __attribute__((visibility("default")));

void pncclResetDebugInit(void)
{
}

void ncclResetDebugInitInternal(void)
{
}
