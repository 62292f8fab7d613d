/* objects_index.h - from an address to the row of the object that lies there, or lay there last; private to
 * objects*.c.
 *
 * Floor 0. A tree over pages whose parts come from the arena and stay. Written under the lock of objects.c,
 * read without one. */
#ifndef MS_BASE_OBJECTS_OBJECTS_INDEX_H
#define MS_BASE_OBJECTS_OBJECTS_INDEX_H

#include <stdbool.h>
#include <stdint.h>

#define MS_OBJECTS_NONE UINT32_MAX

/** The newest row at this address; MS_OBJECTS_NONE. */
uint32_t ms_objects_index_find(uint64_t address);

/** Calls `visit` with the newest row of each page in [start, end) that has one; it may come several times. */
void ms_objects_index_each(uint64_t start, uint64_t end, void (*visit)(void *arg, uint32_t row), void *arg);

/** From now on this row is the newest in [start, end). False, and it is in part, without memory, or where
 * addresses are too far up or too many. */
bool ms_objects_index_put(uint64_t start, uint64_t end, uint32_t row);

/** Forgets everything. */
void ms_objects_index_reset(void);

#endif
