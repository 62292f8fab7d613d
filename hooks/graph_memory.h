/* graph_memory.h - memory of graphs' allocation nodes: who allocates is a launch, on the device, and nobody
 * calls for it.
 *
 * Floor 3. A node has its address from when it is made, or captured; memory is behind it from a launch until
 * it is freed, and nodes share what the driver keeps for graphs. So no block is recorded for a node. What a
 * device keeps for graphs the driver tells, and it is recorded as blocks of kind `graph`: whenever the
 * program has waited, ended a graph, or trims that memory. Only devices for which a node was seen are asked
 * about, with the thread's capture mode relaxed, so that no capture breaks. */
#ifndef MS_HOOKS_GRAPH_MEMORY_H
#define MS_HOOKS_GRAPH_MEMORY_H

#include "hooks/dispatch.h"

/** Whether a node was ever seen. */
extern _Atomic bool ms_graph_memory_any;

/** After a success: whether what the call allocated in stream order became a node of a graph, since the
 * stream captures. */
bool ms_graph_memory_captured(const struct ms_call *call);
/** A node with this address; memory of the device. Inside a section. */
void ms_graph_memory_node(const struct ms_gpu *gpu, uint64_t address, int device);
/** Whether a node was seen with exactly this address: its frees are no frees of blocks. */
bool ms_graph_memory_is_node(uint64_t address);
/** Asks the driver how much it keeps, and records that. Inside a section. */
void ms_graph_memory_look(void);
/** Likewise for what the vendor has answered with `status`; in a section of its own. */
void ms_graph_memory_moment(int status);
void ms_graph_memory_reset(void);

#endif
