/* merge.h - one stack of a native one and a Python one.
 *
 * Floor 1, for src/stack alone, but for what was noted of the interpreter. */
#ifndef MS_STACK_MERGE_H
#define MS_STACK_MERGE_H

#include <stdatomic.h>
#include <stdint.h>

/** The interpreter as of the latest new stack: its version as PY_VERSION_HEX has it, 0 if there was none, and
 * whether its frames are read. For the record. */
extern _Atomic uint32_t ms_merge_python_version, ms_merge_python_is_read;

#endif
