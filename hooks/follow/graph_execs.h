/* graph_execs.h - what an executable graph does with memory, by its nodes when it is made.
 *
 * Floor 3. What a launch leaves to the program: memory that its nodes allocate and do not free, and memory of
 * other graphs that they free. Graphs in which every allocation has its free, as most have, are not kept.
 *
 * And for MEMSHIM_USES, which memory of the pool's it was given: copies, fills and arguments of kernels in
 * its nodes. Memory of theirs that has ended by a launch is used after its free. What is changed in it
 * afterwards nobody can read: then nothing is said of it any more. */
#ifndef MS_HOOKS_FOLLOW_GRAPH_EXECS_H
#define MS_HOOKS_FOLLOW_GRAPH_EXECS_H

#include <stdbool.h>

#include "hooks/follow/uses.h"
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
/** The largest piece of memory that one of its nodes allocates, and the device that it is of: so much a
 * launch needs, whatever its nodes share. 0 if none does, or nobody saw. */
uint64_t ms_graph_largest(uint64_t exec, int *device_p);
/** Fills in up to MS_OWED_AT_ONCE of the things that a launch does, from number `from` on, frees first.
 * Returns how many; fewer than that are the last. */
unsigned ms_graph_owed(uint64_t exec, unsigned from, struct ms_owed *owed);

/** `exec` was made of `graph`. Asks the driver for the nodes; inside a hook scope, no lock held. */
void ms_graph_uses_made(const struct ms_gpu *gpu, uint64_t exec, uint64_t graph);
/** A node of it was given this address. */
void ms_graph_uses_add(uint64_t exec, uint64_t address, enum ms_invalid_free_rule rule);
/** It is no more, or is another. */
void ms_graph_uses_ended(uint64_t exec);
/** It was launched by a call before which `begun` was the latest event: some of what it was given and had
 * ended by then, at most `most`. Returns how many. */
unsigned ms_graph_uses_launched(uint64_t exec, uint64_t begun, struct ms_invalid_free *invalid_frees,
                                unsigned most);

#endif
