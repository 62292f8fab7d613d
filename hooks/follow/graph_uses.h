/* graph_uses.h - which memory of the pool's an executable graph was given: copies, fills and arguments of
 * kernels in its nodes, for MEMSHIM_USES.
 *
 * Floor 3. Its nodes are gone through when it is made, and what of their memory has ended by a launch is used
 * after its free. What is changed in it afterwards nobody can read: then nothing is said of it any more. */
#ifndef MS_HOOKS_FOLLOW_GRAPH_USES_H
#define MS_HOOKS_FOLLOW_GRAPH_USES_H

#include "hooks/follow/uses.h"

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
