/* real.h - the C library behind what world.c puts in its place, for the engine itself. */
#ifndef MS_TESTS_SCHEDULES_REAL_H
#define MS_TESTS_SCHEDULES_REAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** Zeroed memory for the engine; ends the program if there is none. */
void *real_map(void *at, size_t bytes);
void real_unmap(void *at, size_t bytes);
/** The same at this address alone. */
void *real_map_at(void *at, size_t bytes);
/** Zeroed memory that children of fork() share. */
void *real_map_shared(size_t bytes);
/** The pages can be read, and where `writable` written to. */
void real_protect(void *at, size_t bytes, bool writable);
/** Into a file of the engine's own; ends the program if that fails. */
void real_write(int file, const void *bytes, size_t count, uint64_t offset);
void real_close(int file);
uint64_t real_clock_ns(void);

#endif
