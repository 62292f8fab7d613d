/*
 * A weak body for every exported function. The rooms that simulate a function define it strongly; what is
 * left answers "not supported" and is counted. The vendor's prototypes are not seen here: a body that reads
 * no argument serves all.
 */
#define MEMSIM_STUBS
#include <stdatomic.h>

enum stub_fn {
#define X(name, version, twin, symbol) STUB_FN_##symbol,
#include "sim/cuda/exports.def"
#undef X
};

extern atomic_int sim_armed;
int sim_fault_enter(int fn);
int sim_unsupported(int fn);

#define X(base, version, twin, name)                                                                         \
    int name(void);                                                                                          \
    __attribute__((weak, visibility("default"))) int name(void)                                              \
    {                                                                                                        \
        int status =                                                                                         \
            atomic_load_explicit(&sim_armed, memory_order_relaxed) ? sim_fault_enter(STUB_FN_##name) : 0;    \
                                                                                                             \
        return status ? status : sim_unsupported(STUB_FN_##name);                                            \
    }
#include "sim/cuda/exports.def"
