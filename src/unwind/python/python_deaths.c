/* python_deaths.c - counting the code objects that go.
 *
 * Floor 1. No lock, no allocation. PyCode_Type is a static object that the interpreter itself writes to when
 * it starts (PyType_Ready), and no class can be derived from it. memshim is never unloaded, so what stands
 * there stays good; it is never taken back, since a thread may be on its way into it. */
#include "config.h"

#include "unwind/python/python_deaths.h"

_Atomic uint64_t ms_python_death_count = 1;
_Atomic uintptr_t ms_python_death_slot;

/* The interpreter's own function. */
static void (*_Atomic let_go)(void *code);
static _Atomic bool is_taken;

void ms_python_count_death(void *code)
{
    atomic_fetch_add_explicit(&ms_python_death_count, 1, memory_order_release);
    atomic_load_explicit(&let_go, memory_order_acquire)(code);
}

void ms_python_deaths_watch(const struct ms_python_interpreter *interpreter)
{
    uintptr_t slot = interpreter->symbols.code_type + MS_PYTHON_TYPE_DEALLOC, function;
    if (interpreter->layout.code_version || atomic_load_explicit(&is_taken, memory_order_relaxed) ||
        !ms_memory_copy(slot, &function, sizeof function) || !function ||
        atomic_exchange_explicit(&is_taken, true, memory_order_acq_rel))
        return;
    atomic_store_explicit(&let_go, (void (*)(void *))function, memory_order_release);
    __atomic_store_n((uintptr_t *)slot, (uintptr_t)ms_python_count_death, __ATOMIC_RELEASE);
    atomic_store_explicit(&ms_python_death_slot, slot, memory_order_release);
}
