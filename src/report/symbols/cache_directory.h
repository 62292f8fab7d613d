/* cache_directory.h - where the command keeps what it can make again: below $XDG_CACHE_HOME or ~/.cache.
 *
 * Floor 4, command line only. */
#ifndef MS_REPORT_SYMBOLS_CACHE_DIRECTORY_H
#define MS_REPORT_SYMBOLS_CACHE_DIRECTORY_H

#include <stdbool.h>
#include <stddef.h>

/** The directory memshim there, and `below` in it ("" for none, else "/NAME"), made with what is missing
 * above it. False where there is none, or one of them is not this user's. */
bool ms_cache_directory(const char *below, char *path, size_t bytes);

#endif
