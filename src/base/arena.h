/* arena.h - memory for memshim's own tables, straight from mmap.
 *
 * Floor 0. Never malloc: the caller may be malloc, or hold its lock across fork. Memory is zeroed, aligned to
 * 64 bytes and never returned to the system (tables are append-only); thread safe without a lock that
 * outlives the call. */
#ifndef MS_BASE_ARENA_H
#define MS_BASE_ARENA_H

#include <stddef.h>

/** NULL when the system refuses; callers then count what they drop. */
void *ms_arena_alloc(size_t bytes);

/** Bytes taken from the system so far. */
size_t ms_arena_bytes(void);

/** Forget everything, in a fork child that starts empty: the next call maps anew. The old mapping is left
 * alone. */
void ms_arena_reset(void);

#endif
