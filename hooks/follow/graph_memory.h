/* graph_memory.h - memory of graphs' allocation nodes: who allocates is a launch, on the device, and nobody
 * calls for it.
 *
 * Floor 3. A node has its address from when it is made, or captured; memory is behind it from a launch until
 * it is freed, and nodes share what the driver keeps for graphs. So a node is no block. What a launch
 * allocates and no node of the same graph frees is the program's to free: a block at the node's address, from
 * the launch on (graph_execs.h), that may leak. How much a device keeps for graphs the driver tells, asked
 * whenever the program has waited, ended a graph, or trims that memory; what is no block is recorded as
 * pieces of kind `graph`. How much of it is *used* says nothing of who has to free it: a driver counts all of
 * it there, freed or not (docs/user/hardware.md). Both have the name and the stack of the calls that made the
 * nodes: pieces those of the newest that may be meant, since of which nodes they are no one tells. Only
 * devices for which a node was seen are asked about, with the thread's capture mode relaxed, so that no
 * capture breaks. */
#ifndef MS_HOOKS_FOLLOW_GRAPH_MEMORY_H
#define MS_HOOKS_FOLLOW_GRAPH_MEMORY_H

#include "hooks/dispatch.h"

/** True once a node was seen. */
extern _Atomic bool ms_graph_memory_any;

/** After a success: whether what the call allocated in stream order became a node of a graph, since the
 * stream captures. */
bool ms_graph_memory_captured(const struct ms_call *call);
/** The call has made a node with this address, of call->args.bytes of the device's memory; inside its
 * hook scope. */
void ms_graph_memory_node(const struct ms_call *call, uint64_t address, int device);
/** True if a node was seen with exactly this address. */
bool ms_graph_memory_is_node(uint64_t address);
/** True if such a node was seen, and the record has never had a block of it there. */
bool ms_graph_memory_is_unknown(uint64_t address);
/** Before a free: whether it becomes a node, since the stream captures. It frees nothing by itself. */
bool ms_graph_memory_freed_by_node(const struct ms_call *call);
/** Memory at a node's address was freed by a call. */
void ms_graph_memory_freed(uint64_t address);
/** Asks the driver how much it keeps, and records that. Inside a hook scope. */
void ms_graph_memory_query(void);

/* The vendor has answered the program's own call with `status`; each in a hook scope of its own. */

/** A wait, or the end of a graph, may have changed how much the device keeps: it is asked again. */
void ms_graph_memory_moment(int status);
/** An executable graph was made of `graph`, or is no more. */
void ms_graph_memory_made(int status, const struct ms_gpu *gpu, uint64_t exec, uint64_t graph);
void ms_graph_memory_ended(int status, uint64_t exec);
/** It was launched. */
void ms_graph_memory_launched(uint64_t exec);

/** Memory that a launch was found to need, and that is reserved until the driver has taken it. */
struct ms_graph_launch {
    uint64_t bytes;
    int device;
};
/** Under a limit, before a call of `row` launches it: reserves as much as its largest allocation takes beyond
 * what the device keeps for graphs. False: there is no room, which is remembered, and the driver is not to be
 * asked. Outside a hook scope; may wait. */
bool ms_graph_memory_launch_begins(unsigned row, const struct ms_gpu *gpu, uint64_t exec, const void *frame,
                                   const void *caller, struct ms_graph_launch *launch_p);
/** Behind the launch, whatever the driver answered: what it took is counted as it says. */
void ms_graph_memory_launch_ends(int status, const struct ms_graph_launch *launch);

#endif
