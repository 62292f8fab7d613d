/* rundir.h - a directory of one run's, for what its processes find by name; none stays behind.
 *
 * Floor 5. It is in $TMPDIR or /tmp, and locked (flock) as long as this command lives. One whose lock is free
 * and that no process has in its environment is left from a run that was killed: whoever makes the next one
 * removes it. One a process; one caller at a time. */
#ifndef MS_CLI_RUN_RUNDIR_H
#define MS_CLI_RUN_RUNDIR_H

/** The variable of the environment by which a run's processes know theirs. */
#define MS_RUNDIR_VARIABLE "MEMSIM_DISPLACE"

/** Make one. Returns its path, malloc's; NULL where there can be none. The caller sets the variable. */
char *ms_rundir_make(void);
/** Remove it with its files, unlock, and let go of its path, which may be NULL. */
void ms_rundir_remove(char *path);

#endif
