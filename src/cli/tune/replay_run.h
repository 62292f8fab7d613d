/* replay_run.h - a course replayed under settings, in children with the shipped library on the simulated
 * driver.
 *
 * Floor 5. No figure depends on the machine's speed: the replayer's threads take turns and queue no work,
 * calls are counted by the simulated driver, and time is what a real device takes for such calls (costs.def).
 */
#ifndef MS_CLI_TUNE_REPLAY_RUN_H
#define MS_CLI_TUNE_REPLAY_RUN_H

#include "cli/tune/course.h"

/** A course in a file without a name, which all replays of it read. */
struct ms_replay {
    int fd;
    size_t count;
    unsigned devices;
};

/* A replay: of which events, on which device, under which settings. */
struct ms_replay_order {
    const struct ms_replay *replay;
    const char *settings; /* NAME=value, separated by spaces; "": the defaults */
    uint64_t device_bytes;
    size_t first, last; /* events */
    size_t warm;        /* calls from this event on are told apart; SIZE_MAX: none */
};

struct ms_replay_sums {
    uint64_t calls; /* that take device memory, give it back or map it */
    uint64_t waits; /* that wait for the device; a free does both */
    uint64_t ns;    /* what they take, by costs.def, and those that ask or record events */
};

struct ms_replay_result {
    bool completed;
    size_t refused; /* the first event for which there was no memory */
    uint64_t peak;  /* of what was taken of the device that most was taken of */
    unsigned device;
    struct ms_replay_sums sums, steady;
};

/** 0, or -1 after an error line. */
int ms_replay_open(const struct ms_course *course, struct ms_replay *replay);
void ms_replay_close(struct ms_replay *replay);

/** Called as each is done, in any order. */
typedef void (*ms_replay_done_func_t)(void *arg, size_t index);

/** All of them, as many at a time as there are processors. Returns 0, or -1 after an error line: then no
 * child is left. */
int ms_replay_all(const struct ms_replay_order *orders, struct ms_replay_result *results, size_t count,
                  ms_replay_done_func_t done, void *arg);

/** Nanoseconds that so many calls of a function take, which take or give back so many bytes together: by
 * costs.def; 0 for a function that has no row. */
uint64_t ms_replay_cost(const char *function, uint64_t calls, uint64_t bytes);
/** The file that says what calls cost, for people. */
extern const char ms_replay_costs_of[];

#endif
