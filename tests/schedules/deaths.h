/* deaths.h - signals that kill; deaths.c. */
#ifndef MS_TESTS_SCHEDULES_DEATHS_H
#define MS_TESTS_SCHEDULES_DEATHS_H

#include <signal.h>

/** A handler: a task that dies fails its schedule, which ends here; else the signal kills. */
void death_by(int signal, siginfo_t *info, void *context);

#endif
