/* init.h - whether memshim acts in this process.
 *
 * Nothing happens before the first hooked call: a process that never touches a GPU reads no variable, maps
 * nothing and opens nothing. */
#ifndef MS_HOOKS_INIT_H
#define MS_HOOKS_INIT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/compiler.h"

enum ms_init_state { MS_INIT_UNSTARTED, MS_INIT_ACTIVE, MS_INIT_INERT };
extern _Atomic int ms_init_state;
/** A word that is 0 where the record is a forked parent's, and as long as there is none. */
extern MS_HIDDEN _Atomic uint32_t *_Atomic ms_init_owner_word;
bool ms_init_active_slowly(void);

/** True if this process, and not a parent that was forked, owns the record: memshim is active then. */
static inline bool ms_init_owner(void)
{
    return atomic_load_explicit(atomic_load_explicit(&ms_init_owner_word, memory_order_acquire),
                                memory_order_relaxed) != 0;
}

/** True if calls are recorded in this process. The first call starts memshim; in a fork child it starts over,
 * empty. */
static inline bool ms_init_active(void)
{
    return MS_LIKELY(ms_init_owner()) || ms_init_active_slowly();
}

/** True in a child of fork whose parent had called a function with a row. */
bool ms_init_is_forked(void);

/** dlsym(RTLD_NEXT) was asked for this row: the answer cannot be replaced, and for the driver's functions
 * that hides calls. */
void ms_init_note_next(int row);

/** True if there is anything to report: a recorded call, or a vendor's library loaded where something was out
 * of sight. */
bool ms_init_saw_gpu(void);

/** Before the report is written: note what is known only at the end. */
void ms_init_finish(void);

/** The status that the program gave to exit(); -1 if it did not say. */
int ms_init_exit_code(void);

#endif
