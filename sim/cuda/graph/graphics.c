/*
 * Functions for graphics, which programs that can draw are linked with. There is no graphics: each answers
 * "not supported" and is counted (MEMSIM_LOG). The vendor's prototypes are not seen here: a body that reads
 * no argument serves all. They have no costs or faults.
 */
#include <stdatomic.h>

void sim_fault_read(void);
void sim_rules_note_name(const char *name, unsigned long long nth);

enum { NOT_SUPPORTED = 801 };

static int unsupported(const char *name, atomic_ullong *calls)
{
    sim_fault_read();
    sim_rules_note_name(name, 1 + atomic_fetch_add_explicit(calls, 1, memory_order_relaxed));
    return NOT_SUPPORTED;
}

#define X(name)                                                                                              \
    int name(void);                                                                                          \
    __attribute__((visibility("default"))) int name(void)                                                    \
    {                                                                                                        \
        static atomic_ullong calls;                                                                          \
                                                                                                             \
        return unsupported(#name, &calls);                                                                   \
    }
#include "sim/cuda/graphics.def"
