/* phases.h - who may tell of phases, and when: the one way from an interface to the record.
 *
 * Floor 3, for phases.c, nvtx.c, roctx.c and mstx.c. */
#ifndef MS_HOOKS_OBSERVE_PHASES_H
#define MS_HOOKS_OBSERVE_PHASES_H

#include <stdatomic.h>
#include <stdbool.h>

#include "hooks/dispatch.h"
#include "hooks/init.h"
#include "hooks/hook_scope.h"
#include "record/phases/phases.h"

/** True if this call counts: not where memshim is inert, nor for a signal handler above code of ours, whose
 * ranges begin and end unseen. Then the hook scope is entered. */
static inline bool ms_phases_enter(struct ms_hook_scope *scope)
{
    if (ms_thread.depth > 0 || !ms_init_active())
        return false;
    ms_hook_scope_enter(scope);
    return true;
}

/** The statement behind it is done where this call counts, inside a hook scope. */
#define MS_PHASES_WITHIN                                                                                     \
    for (struct ms_hook_scope ms_hook_scope_,                                                                \
         *ms_in_ = ms_phases_enter(&ms_hook_scope_) ? &ms_hook_scope_ : NULL;                                \
         ms_in_; ms_hook_scope_leave(ms_in_), ms_in_ = NULL)

/** True if this library came before the C library. A program may inherit a variable by which an interface
 * finds its tool, and no LD_PRELOAD: then the interface alone has loaded this library, and nothing else of it
 * is in force. */
bool ms_phases_is_preloaded(void);

/** A phase of the process for which a vendor's library has a number of its own, never 0. Tables have
 * MS_PHASE_OPENS of them, and whoever has one calls with it alone. No lock. */
struct ms_phase_number {
    _Atomic uint64_t theirs; /* 0: none */
    _Atomic uint64_t phase;
};
/** `theirs` is that phase from now on; nothing happens where it is 0. */
void ms_phase_number_keep(struct ms_phase_number *numbers, uint64_t theirs, uint64_t phase);
/** The phase that is `theirs`, and is so no longer; 0 if there is none. */
uint64_t ms_phase_number_take(struct ms_phase_number *numbers, uint64_t theirs);

/** roctx.c: what a call of a class MS_CLASS_PHASE_* says; `answer` is the vendor's, where that says more. */
void ms_phase_tell(enum ms_class class, const struct ms_args *args, uint64_t answer);

#endif
