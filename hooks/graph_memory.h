/* graph_memory.h - memory of graphs' allocation nodes: who allocates is a launch, on the device, and nobody
 * calls for it.
 *
 * Floor 3. A node has its address from when it is made, or captured; memory is behind it from a launch until
 * it is freed, and nodes share what the driver keeps for graphs. So a node is no block. What a device keeps
 * for graphs the driver tells, and how much of it is in use: whenever the program has waited, ended a graph,
 * or trims that memory. In use after a wait is what no node of the graph frees: it is the program's to free,
 * and recorded as blocks at the nodes' addresses, which may leak. The rest is recorded as pieces of kind
 * `graph`. Both have the name and the stack of the calls that made the nodes: of the newest that may be
 * meant, since of which nodes it is no one tells. Only devices for which a node was seen are asked about,
 * with the thread's capture mode relaxed, so that no capture breaks. */
#ifndef MS_HOOKS_GRAPH_MEMORY_H
#define MS_HOOKS_GRAPH_MEMORY_H

#include "hooks/dispatch.h"

/** Whether a node was ever seen. */
extern _Atomic bool ms_graph_memory_any;

/** After a success: whether what the call allocated in stream order became a node of a graph, since the
 * stream captures. */
bool ms_graph_memory_captured(const struct ms_call *call);
/** The call has made a node with this address, of call->args.bytes of the device's memory; inside its
 * section. */
void ms_graph_memory_node(const struct ms_call *call, uint64_t address, int device);
/** True if a node was seen with exactly this address. */
bool ms_graph_memory_is_node(uint64_t address);
/** True if such a node was seen, and the record has never had a block of it there. */
bool ms_graph_memory_is_unknown(uint64_t address);
/** Before a free: whether it becomes a node, since the stream captures. It frees nothing by itself. */
bool ms_graph_memory_freed_by_node(const struct ms_call *call);
/** Memory at a node's address was freed, or will be by whatever launches a node. */
enum ms_graph_free { MS_GRAPH_FREE_AT_ONCE, MS_GRAPH_FREE_IN_ORDER, MS_GRAPH_FREE_BY_NODE };
void ms_graph_memory_freed(uint64_t address, enum ms_graph_free how);
/** Asks the driver how much it keeps, and records that. Inside a section. */
void ms_graph_memory_look(void);
/** Likewise for what the vendor has answered with `status`; in a section of its own. `is_over`: the program
 * has waited for all that was given to the context. */
void ms_graph_memory_moment(int status, bool is_over);
void ms_graph_memory_reset(void);

#endif
