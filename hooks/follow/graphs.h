/* graphs.h - graphs that were captured, and what runs them: while one exists, the addresses that it saw are
 * kept.
 *
 * Floor 3. One short lock. */
#ifndef HOOKS_FOLLOW_GRAPHS_H
#define HOOKS_FOLLOW_GRAPHS_H

#include <stdint.h>

/** A graph or an executable graph of this context exists; again is no news. */
void ms_graph_made(uint64_t handle, uint64_t context);
/** Before the vendor hears of it, since handles come back. Returns its context, to be put back if the vendor
 * refuses; 0 if unknown. */
uint64_t ms_graph_ended(uint64_t handle);
/** Returns how many there were. */
unsigned ms_graphs_context_ended(uint64_t context);

#endif
