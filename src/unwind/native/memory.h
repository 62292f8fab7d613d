/* memory.h - reading memory that may not be there: stacks and unwind tables of somebody else's process.
 *
 * Floor 1, for src/unwind alone. No lock, no allocation. Nothing here faults, whatever the address; errno is
 * not preserved, the walk saves it once. */
#ifndef MS_UNWIND_NATIVE_MEMORY_H
#define MS_UNWIND_NATIVE_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"

enum { MS_PAGE_BYTES = 4096 /* the smallest there is */ };

/** Addresses [lo, hi) that can be read. */
struct ms_range {
    uintptr_t lo, hi;
};

/** Copy out of this process's memory; false if any of it cannot be read. One system call. */
bool ms_memory_copy(uintptr_t address, void *into, size_t bytes);

/** True if the eight bytes at `address` can be read. One system call. */
bool ms_memory_readable(uintptr_t address);

/** True if all of [lo, hi) can be read. A system call for every 16 pages. */
bool ms_memory_is_run(uintptr_t lo, uintptr_t hi);

/** The range that can be read from `address` upwards, as far as is known: on a thread's own stack all of it,
 * which is found out once per thread and page, as that memory stays while the thread lives; elsewhere
 * (alternate stacks, coroutines) the rest of the page, asked for each time. Empty if it cannot be read. */
struct ms_range ms_memory_range(uintptr_t address);

/** The upper end of the calling thread's own stack; 0 where it is not known (yet). */
uintptr_t ms_memory_stack_end(void);

#endif
