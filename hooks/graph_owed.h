/* graph_owed.h - what a launch of an executable graph leaves to the program: memory that its nodes allocate
 * and do not free, and memory of other graphs that they free.
 *
 * Floor 3. Known from the graph's nodes when it is made; graphs in which every allocation has its free, as
 * most have, are not kept. */
#ifndef MS_HOOKS_GRAPH_OWED_H
#define MS_HOOKS_GRAPH_OWED_H

#include <stdbool.h>

#include "gpu/gpu.h"

/** An executable graph was made of `graph`. Asks the driver for the nodes; inside a section, no lock held. */
void ms_graph_owed_made(const struct ms_gpu *gpu, uint64_t exec, uint64_t graph);
/** It is no more. */
void ms_graph_owed_ended(uint64_t exec);
/** What a launch does, one after the other: `*is_free_p` says whether it frees or allocates what is at the
 * address. `number` counts from 0. Returns the address, 0 behind the last. */
uint64_t ms_graph_owed(uint64_t exec, unsigned number, bool *is_free_p);
void ms_graph_owed_reset(void);

#endif
