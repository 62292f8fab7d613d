/* run_list.h - where the reports of a run went: a file in which each of its processes writes the path of its
 * own.
 *
 * Floor 0. `memshim run` looks for reports by the name that it was given; a process that sets a
 * MEMSHIM_REPORT of its own writes elsewhere. The file lies in /dev/shm, $XDG_RUNTIME_DIR or /tmp under a
 * name that has the run's number, which nobody else knows. Paths end with a NUL. No allocation, no lock; bare
 * system calls. */
#ifndef MS_BASE_RUN_LIST_H
#define MS_BASE_RUN_LIST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { MS_RUN_LIST_BYTES = 512 };

/** True while a run's list is there: that is until its `memshim run` has read it. */
bool ms_run_list_is_there(uint64_t id);

/** Makes the list of the run `id`, with mode 0600; its path goes to `path` of MS_RUN_LIST_BYTES. Returns 0,
 * or -1: then what its processes write elsewhere is not found. */
int ms_run_list_make(uint64_t id, char *path);
/** A report of this process was written to `report`, an absolute path. Does nothing where there is no
 * list. */
void ms_run_list_add(uint64_t id, const char *report);

#endif
