/* real.h - the C library behind what world.c puts in its place, for the engine itself. */
#ifndef MS_TESTS_SCHEDULES_REAL_H
#define MS_TESTS_SCHEDULES_REAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** Zeroed memory for the engine; ends the program if there is none. */
void *real_map(void *at, size_t bytes);
/** The same at this address alone. */
void *real_map_at(void *at, size_t bytes);
/** A private mapping of a file, over what is there. */
void real_map_file(void *at, size_t bytes, int file);
/** Pages become what they were mapped as. */
void real_drop(void *at, size_t bytes);
/** Zeroed memory that children of fork() share. */
void *real_map_shared(size_t bytes);
/** Parts of what tasks allocate can be read alone: `watched` those, or none of all. */
void real_protect(bool watched, void *at, size_t bytes);
bool real_is_watched(const void *page);
/** The page can be written to, until it is protected again. */
void real_open_page(void *page);
/** Into a file of the engine's own; ends the program if that fails. */
void real_write(int file, const void *bytes, size_t count, uint64_t offset);
void real_truncate(int file, uint64_t bytes);
void real_close(int file);
uint64_t real_clock_ns(void);

#endif
