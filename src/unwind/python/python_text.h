/* python_text.h - strings of the interpreter, copied as UTF-8.
 *
 * Floor 1, for src/unwind/python*.c alone. No lock, no allocation. */
#ifndef MS_UNWIND_PYTHON_PYTHON_TEXT_H
#define MS_UNWIND_PYTHON_PYTHON_TEXT_H

#include "unwind/python/python_find.h"
#include "unwind/python/python_read.h"

/** Copies the string at `at`, NUL-terminated, cut between two characters where it is longer. Half surrogates
 * and NULs within are U+FFFD. False if it is no string of a form that code objects have. */
bool ms_python_text(const struct ms_python_interpreter *interpreter, struct ms_python_reader *reader,
                    uintptr_t at, char *into, size_t bytes);

#endif
