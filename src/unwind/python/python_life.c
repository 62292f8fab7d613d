/* python_life.c - noting when the main interpreter ends, and counting the code objects that go.
 *
 * Floor 1. No lock, no allocation. Py_AtExit puts a function into an array of the interpreter's, of which it
 * has room for 32; where there is none left the life stays unknown, and more is compared (python_same.c).
 *
 * PyCode_Type is a static object that the interpreter itself writes to when it starts (PyType_Ready), and no
 * class can be derived from it. memshim is never unloaded, so what stands there stays good; it is never taken
 * back, since a thread may be on its way into it. */
#include "base/compiler.h"
#include "unwind/python/python_life.h"

_Atomic uint64_t ms_python_life;
_Atomic uintptr_t ms_python_life_main;

/* The interpreter (its generation) whose end is told; 0 for none. */
static _Atomic uint64_t watched;
static _Atomic uint64_t lives;

/* Called by the interpreter, in the thread that finalises it, when its objects are gone. */
static void python_life_end(void)
{
    atomic_store_explicit(&ms_python_life, 0, memory_order_release);
    atomic_store_explicit(&watched, 0, memory_order_release);
}

static MS_NOINLINE void watch(const struct ms_python_interpreter *interpreter, uint64_t before)
{
    const struct ms_python_symbols *symbols = &interpreter->symbols;
    if (!atomic_compare_exchange_strong_explicit(&watched, &before, interpreter->generation,
                                                 memory_order_acq_rel, memory_order_relaxed))
        return;
    atomic_store_explicit(&ms_python_life, 0, memory_order_release);
    uintptr_t main = (uintptr_t)symbols->main();
    if (!main || symbols->at_exit(python_life_end) != 0)
        return;
    atomic_store_explicit(&ms_python_life_main, main, memory_order_release);
    atomic_store_explicit(&ms_python_life, atomic_fetch_add_explicit(&lives, 1, memory_order_relaxed) + 1,
                          memory_order_release);
}

void ms_python_life_watch(const struct ms_python_interpreter *interpreter)
{
    uint64_t generation = atomic_load_explicit(&watched, memory_order_acquire);
    if (MS_LIKELY(generation == interpreter->generation) || !interpreter->layout.state_interp ||
        !interpreter->layout.code_version || !interpreter->symbols.main || !interpreter->symbols.at_exit)
        return;
    watch(interpreter, generation);
}

/* --- code objects without a number --- */

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
