/* python_find.h - the interpreter of this process, and the calling thread's state in it.
 *
 * Floor 1, for src/unwind/python*.c alone. */
#ifndef MS_UNWIND_PYTHON_PYTHON_FIND_H
#define MS_UNWIND_PYTHON_PYTHON_FIND_H

#include "unwind/python/python_layout.h"

struct ms_python_interpreter {
    uintptr_t bias;      /* of the object that it is in */
    uint64_t generation; /* counts those that were found */
    struct ms_python_symbols symbols;
    struct ms_python_layout layout;
};

/** The one whose frames are read; NULL if there is none. What it points to stays. Looks again when objects
 * came or went: then it takes the lock of ms_each_object, else none. */
const struct ms_python_interpreter *ms_python_interpreter(void);

#endif
