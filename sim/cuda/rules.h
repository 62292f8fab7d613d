/*
 * Costs, faults and counts by name, as MEMSIM_COST, MEMSIM_FAIL and MEMSIM_COUNT ask for them: the part that
 * every simulated library has, whatever its functions are called. fault.c has the driver's, front.c those of
 * libraries that stand on its rooms.
 */
#ifndef MEMSIM_CUDA_RULES_H
#define MEMSIM_CUDA_RULES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** Whose rules: the names of the library's functions, by number, and behind them those of work on streams
 * (SIM_RULES_WORK). */
struct sim_rules {
    const char *const *names;
    unsigned count;
    unsigned long long status_most;
    const char *const *foreign; /* how names begin that other simulated libraries judge; ends with NULL */
    const char *owner;          /* "driver", for complaints */
};

/* Work on streams, in the order of the names behind the functions; the last is a cost only, nanoseconds per
 * KiB moved. */
#define SIM_RULES_WORK       "kernel", "copy", "memset", "copy_kib"
#define SIM_RULES_WORK_COUNT 4

/** Reads the environment; once, before anything else here is called. Keeps the pointer. */
void sim_rules_read(const struct sim_rules *rules);
/** True if anything was asked for that each call has to look at. */
bool sim_rules_asked(void);
bool sim_rules_has_faults(void);
uint64_t sim_rules_cost(unsigned fn);
/** Counts a call, or a piece of work. Returns the status with which it is to fail, or 0. */
int sim_rules_count(unsigned fn);
/** The count that memsim_count tells of "NAME", "NAME moves" or "NAME bytes"; -1 for anything else. */
long long sim_rules_told(const char *name);
/** The call that this thread is in took so much of a device's capacity, or gave it back. */
void sim_rules_moved(size_t bytes);
int sim_rules_find(const char *name, size_t length);
/** Notes in MEMSIM_LOG a call of something that is not simulated; `nth` counts them. */
void sim_rules_note(unsigned fn, unsigned long long nth);
/** As sim_rules_note, for a function that is in no table. */
void sim_rules_note_name(const char *name, unsigned long long nth);

#endif
