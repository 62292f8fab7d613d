/* python_deaths.h - whether a code object went since frames were remembered, where code objects have no
 * number.
 *
 * Floor 1, for src/unwind/python*.c alone. Up to 3.11 nothing in a code object tells it from another one that
 * was made in its place, with strings in the places of its strings. But every one that goes is let go by one
 * function, which PyCode_Type names (tp_dealloc): a function of ours is put there, which counts and goes on
 * to the interpreter's. Frames keep their code objects alive, so as long as none went, all that are
 * remembered are what they were. */
#ifndef MS_UNWIND_PYTHON_PYTHON_DEATHS_H
#define MS_UNWIND_PYTHON_PYTHON_DEATHS_H

#include <stdatomic.h>

#include "unwind/native/memory.h"
#include "unwind/python/python_find.h"

/** Code objects that went, and one. */
extern _Atomic uint64_t ms_python_death_count;
/** The word of PyCode_Type whose function is ours; 0: none is. */
extern _Atomic uintptr_t ms_python_death_slot;

/** Lets go of a code object, for the interpreter: counts, and calls what was there. */
void ms_python_count_death(void *code);

/** Begins to count, in an interpreter whose code objects have no number, unless that was done for one: the
 * process's first such interpreter. The thread need not hold its lock: who lets go of a code object that a
 * frame of the thread holds now does so after the thread has taken that lock. Not on the way of a hit. */
void ms_python_deaths_watch(const struct ms_python_interpreter *interpreter);

/** A count that is another once a code object of this interpreter went. 0 where that is not known: nobody
 * counts, or the program put a function of its own in the place of ours. Some loads. */
static inline MS_RAW uint64_t ms_python_deaths(const struct ms_python_interpreter *interpreter)
{
    uintptr_t slot = atomic_load_explicit(&ms_python_death_slot, memory_order_acquire);
    if (slot != interpreter->symbols.code_type + MS_PYTHON_TYPE_DEALLOC || interpreter->layout.code_version ||
        __atomic_load_n((const uintptr_t *)slot, __ATOMIC_RELAXED) != (uintptr_t)ms_python_count_death)
        return 0;
    return atomic_load_explicit(&ms_python_death_count, memory_order_acquire);
}

#endif
