/* files.h - the files that the tasks see; files.c. */
#ifndef MS_TESTS_SCHEDULES_FILES_H
#define MS_TESTS_SCHEDULES_FILES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** The one directory that there is. */
#define FILES_DIRECTORY "/ledgers"

/** For world.c's mmap: memory takes the place of [offset, offset + bytes) of the file. */
bool files_map(void *at, size_t bytes, int fd, uint64_t offset);
/** All memory that stands for parts of files. */
void files_each_mapped(void (*visit)(void *at, size_t bytes));

/** Copies a file out, to a real one of that name. */
void files_keep(const char *path, const char *real_path);

/** Called, where they are set, after a file was written to by a call, and when a part of one was mapped. */
extern void (*files_changed)(void);
extern void (*files_mapped)(void *at, size_t bytes);

#endif
