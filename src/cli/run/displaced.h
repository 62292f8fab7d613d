/* displaced.h - which files of a program's own the simulated libraries stood in for.
 *
 * Floor 5. What displaces them is preloaded into every process of a run (sim/displace), and works in a
 * directory of the run's. */
#ifndef MS_CLI_RUN_DISPLACED_H
#define MS_CLI_RUN_DISPLACED_H

/** Make the directory, put it first in LD_LIBRARY_PATH, and name it in MEMSIM_DISPLACE. Returns its path,
 * malloc's; NULL where there can be none: then names that wheels made up are not displaced. */
char *ms_displaced_begin(void);
/** One line on standard error for each file, however many processes told of it. `directory` may be NULL. */
void ms_displaced_print(const char *directory);
/** Remove the directory and let go of its path. */
void ms_displaced_end(char *directory);

#endif
