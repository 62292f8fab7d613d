/* python_life.h - whether the interpreter is still the one that it was.
 *
 * Floor 1, for src/unwind/python*.c alone. From 3.12 on each code object has a number that its interpreter
 * gives to no other; but another interpreter of the process gives the same ones, and so does this one when it
 * is finalised and initialised again, in the same place and for objects that may lie in the same places. The
 * main interpreter has one life from its initialisation to its end, and the numbers of one life tell its code
 * objects apart. Its end is told by Py_AtExit, where a function of ours is registered once in each life. */
#ifndef MS_UNWIND_PYTHON_PYTHON_LIFE_H
#define MS_UNWIND_PYTHON_PYTHON_LIFE_H

#include <stdatomic.h>

#include "unwind/python/python_find.h"

/** Which life this is: each has another number. 0: not known, as nobody has said when it ends. */
extern _Atomic uint64_t ms_python_life;
/** The main interpreter of that life. */
extern _Atomic uintptr_t ms_python_life_main;

/** Registers the end of the life that has begun, unless that was done. Only in a thread that holds the
 * interpreter's lock, as Py_AtExit wants it; not on the way of a hit. */
void ms_python_life_watch(const struct ms_python_interpreter *interpreter);

#endif
