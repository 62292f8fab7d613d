/* phases.h - who may tell of phases, and when: the one way from an interface to the record.
 *
 * Floor 3, for phases.c and nvtx.c. */
#ifndef MS_HOOKS_PHASES_H
#define MS_HOOKS_PHASES_H

#include <stdbool.h>

#include "hooks/init.h"
#include "hooks/section.h"
#include "ledger/phases.h"

/** Whether this call counts: not where memshim is inert, nor for a signal handler above code of ours, whose
 * ranges begin and end unseen. Then the section is entered. */
static inline bool ms_phases_enter(struct ms_section *section)
{
    if (ms_thread.depth > 0 || !ms_init_active())
        return false;
    ms_section_enter(section);
    return true;
}

#endif
