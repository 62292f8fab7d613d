/* python_life.h - whether the interpreter is still the one that it was, and its code objects those that they
 * were.
 *
 * Floor 1, for src/unwind/python*.c alone. From 3.12 on each code object has a number that its interpreter
 * gives to no other; but another interpreter of the process gives the same ones, and so does this one when it
 * is finalised and initialised again, in the same place and for objects that may lie in the same places. The
 * main interpreter has one life from its initialisation to its end, and the numbers of one life tell its code
 * objects apart. Its end is told by Py_AtExit, where a function of ours is registered once in each life.
 *
 * Up to 3.11 nothing in a code object tells it from another one that was made in its place, with strings in
 * the places of its strings. But every one that goes is let go by one function, which PyCode_Type names
 * (tp_dealloc): a function of ours is put there, which counts and goes on to the interpreter's. Frames keep
 * their code objects alive, so as long as none went, all that are remembered are what they were. */
#ifndef MS_UNWIND_PYTHON_PYTHON_LIFE_H
#define MS_UNWIND_PYTHON_PYTHON_LIFE_H

#include <stdatomic.h>

#include "unwind/native/memory.h"
#include "unwind/python/python_find.h"

/** Which life this is: each has another number. 0: not known, as nobody has said when it ends. */
extern _Atomic uint64_t ms_python_life;
/** The main interpreter of that life. */
extern _Atomic uintptr_t ms_python_life_main;

/** Registers the end of the life that has begun, unless that was done. Only in a thread that holds the
 * interpreter's lock, as Py_AtExit wants it; not on the way of a hit. */
void ms_python_life_watch(const struct ms_python_interpreter *interpreter);

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
