/* steps.h - the steps of a course that repeat, by its phases or found in the trace itself.
 *
 * Floor 5. Pure, but for memory of malloc's. */
#ifndef MS_CLI_TUNE_STEPS_H
#define MS_CLI_TUNE_STEPS_H

#include "cli/tune/course.h"

struct ms_steps {
    size_t count;  /* how many; 0: nothing repeats */
    size_t first;  /* the event with which the first begins; what is before is warm-up */
    size_t length; /* events of one, on average where they are phases */
};

/** Finds what repeats up to the course's last quarter: the same requests and frees in the same order, or,
 * where sizes vary, requests of the same call sites. */
void ms_steps_find(const struct ms_course *course, struct ms_steps *steps);

#endif
