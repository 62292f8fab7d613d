/* init.h - whether memshim acts in this process.
 *
 * Nothing happens before the first hooked call: a process that never touches a GPU reads no variable, maps nothing and opens
 * nothing. */
#ifndef MS_HOOKS_INIT_H
#define MS_HOOKS_INIT_H

#include <stdbool.h>

/** True if calls are recorded in this process. The first call starts memshim; in a fork child it starts over, empty. */
bool ms_init_active(void);

/** True if this process, and not a parent that was forked, owns the record. */
bool ms_init_owner(void);

/** dlsym(RTLD_NEXT) was asked for this row: the answer cannot be replaced, and for the driver's functions that hides calls. */
void ms_init_note_next(int row);

/** Whether there is anything to report: a recorded call, or a vendor's library loaded where something was out of sight. */
bool ms_init_saw_gpu(void);

/** Before the report is written: note what is known only at the end. */
void ms_init_finish(void);

/** What the program gave to exit(); -1 if it did not say. */
int ms_init_exit_code(void);

#endif
