/*
 * costs.h: what single calls of the vendor's libraries cost, by size. Used by `facts` (question 6) and by
 * `costs`.
 */
#ifndef MS_TESTS_GPU_COSTS_H
#define MS_TESTS_GPU_COSTS_H

#include "kit.h"

struct cost_call {
    const char *name;
    unsigned
        batch; /* calls per measurement; more than one only where nothing has to be prepared or put away */
    bool sized;
    void (*prepare)(size_t bytes);
    int (*call)(size_t bytes);
    void (*undo)(size_t bytes);
};

struct cost_figures {
    double median_ns, p90_ns, least_ns;
    unsigned count;
};

extern const struct cost_call cost_calls[];
extern const size_t cost_sizes[];
extern const size_t cost_size_count, cost_call_count;

/** Makes what the calls work on; a device must be current. */
void cost_begin(void);

/** Measures; ends early after `most_ms`. Returns 0, or the status of a call that failed. */
int cost_measure(const struct cost_call *call, size_t bytes, unsigned repetitions, unsigned most_ms,
                 struct cost_figures *figures);

#endif
