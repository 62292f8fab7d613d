/* every.h - all schedules of a small program with so many preemptions; every.c. */
#ifndef MS_TESTS_SCHEDULES_EVERY_H
#define MS_TESTS_SCHEDULES_EVERY_H

#include "engine.h"

struct every {
    unsigned preemptions;
    uint64_t most;                                /* schedules, at most */
    bool reduces;                                 /* leaves out what commutes */
    bool wants_ends;                              /* counts the states of memory that are left */
    bool (*run)(const struct schedule *schedule); /* whether it failed */
    struct outcome *outcome;
    uint64_t (*end)(void); /* a hash of what it has left */
    /* What came of it. */
    uint64_t schedules, cut, ends, ends_sum;
    bool found, all; /* `all`: there are no more */
};

/** Once, before anything is frozen. */
void every_prepare(void);
/** What failed is in `plan`, which has room for CHOICES. */
void every_schedule(struct every *every, struct choice *plan, unsigned *plan_count_p);

#endif
