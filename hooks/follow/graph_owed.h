/* graph_owed.h - what a launch of an executable graph leaves to the program: memory that its nodes allocate
 * and do not free, and memory of other graphs that they free.
 *
 * Floor 3. Known from the graph's nodes when it is made; graphs in which every allocation has its free, as
 * most have, are not kept. */
#ifndef MS_HOOKS_FOLLOW_GRAPH_OWED_H
#define MS_HOOKS_FOLLOW_GRAPH_OWED_H

#include <stdbool.h>

#include "vendor/gpu.h"

/** Memory that a launch frees, or allocates and leaves. */
struct ms_owed {
    uint64_t address;
    bool is_free;
};
enum { MS_OWED_AT_ONCE = 64 };

/** An executable graph was made of `graph`. Asks the driver for the nodes; inside a hook scope, no lock
 * held. */
void ms_graph_owed_made(const struct ms_gpu *gpu, uint64_t exec, uint64_t graph);
/** It is no more. */
void ms_graph_owed_ended(uint64_t exec);
/** Fills in up to MS_OWED_AT_ONCE of the things that a launch does, from number `from` on, frees first.
 * Returns how many; fewer than that are the last. */
unsigned ms_graph_owed(uint64_t exec, unsigned from, struct ms_owed *owed);

#endif
