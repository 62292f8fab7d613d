/*
 * Graphs and captures, between graph.c (nodes and what they wait for), graphnode.c and graphany.c (what
 * programs put into nodes), capture.c (streams whose work becomes nodes), graphexec.c (instantiating and
 * launching), graphmem.c (memory that a graph takes and gives back) and the rooms whose work stands in nodes.
 *
 * Everything here is under one lock, the graphs', outside all others but the contexts'. Programs must not use
 * one graph from two threads at a time; the lock keeps the simulator whole when they do.
 */
#ifndef MEMSIM_CUDA_GRAPH_H
#define MEMSIM_CUDA_GRAPH_H

#include "sim/cuda/sim.h"

struct sim_graph_memory;
struct sim_choice;

struct CUgraphNode_st {
    struct sim_object object;
    struct CUgraph_st *graph;
    struct CUgraphNode_st *next; /* in the order in which they were added */
    CUgraphNodeType type;
    struct CUgraphNode_st **after; /* what it waits for; owned, like the data of its edges */
    CUgraphEdgeData *edges;
    size_t after_count;
    struct sim_op *work;             /* what a launch runs copies of; NULL in a node that is only an order */
    struct CUctx_st *ctx;            /* referenced: where it runs; NULL: where the graph is launched */
    struct CUevent_st *event;        /* of a node that records or waits for one; referenced */
    struct CUgraph_st *child;        /* owned */
    struct sim_graph_memory *memory; /* of a node that allocates or frees; referenced */
    struct sim_choice *choice;       /* of a conditional node; owned */
    unsigned long long id, origin;   /* its own, and that of the node whose clone it is */
    size_t place;                    /* scratch: its place in an order */
};

struct CUgraph_st {
    struct sim_object object;
    struct CUgraphNode_st *nodes, **end;
    size_t count;
    bool has_memory, owned;           /* it allocates or frees; it belongs to a parent's node */
    bool has_choice;                  /* it has a conditional node */
    struct CUgraph_st *parent;        /* of a conditional node's body: the graph of that node */
    struct sim_condition *conditions; /* handles that were made for it */
    unsigned instances;               /* graphs made ready to run from it that are alive */
    struct sim_user_share *users;
};

/* graph.c */
void sim_graph_lock(void);
void sim_graph_unlock(void);
struct CUgraph_st *sim_graph_new(void);
void sim_graph_end(struct CUgraph_st *graph);
struct CUgraph_st *sim_graph_copy(const struct CUgraph_st *graph);
/** The live node behind a handle, not referenced: it lives while the lock is held. */
struct CUgraphNode_st *sim_node_find(CUgraphNode handle);
/** Adds a node that waits for others of its graph; takes work. The lock is held. */
CUresult sim_node_add(struct CUgraph_st *graph, CUgraphNodeType type, const CUgraphNode *after,
                      const CUgraphEdgeData *edges, size_t count, struct sim_op *work,
                      struct CUgraphNode_st **node_p);
/** Orders the nodes so that each comes after what it waits for; a list to free, or NULL (memory, or a circle:
 * *status_p). */
struct CUgraphNode_st **sim_graph_sort(const struct CUgraph_st *graph, CUresult *status_p);
bool sim_graph_mark(const struct CUgraph_st *graph, const CUgraphNode *from, size_t count);

/* userobj.c: what a graph keeps alive; with the lock held. */
void sim_user_copy(struct CUgraph_st *to, const struct CUgraph_st *from);
void sim_user_drop(struct CUgraph_st *graph);

/* graphcond.c: handles of values, and nodes that run by them; with the lock held. */
void sim_condition_drop(struct CUgraph_st *graph);
/** True if a handle of the graph's has no node. */
bool sim_condition_unused(const struct CUgraph_st *graph);
/** Makes a conditional node's bodies, empty graphs of which the program is told. */
CUresult sim_choice_make(CUDA_CONDITIONAL_NODE_PARAMS *params, struct CUgraph_st *graph,
                         struct sim_choice **choice_p);
void sim_choice_end(struct sim_choice *choice);
void sim_choice_params(const struct CUgraphNode_st *node, CUDA_CONDITIONAL_NODE_PARAMS *params);
/** The body that a launch runs; NULL: none. */
const struct CUgraph_st *sim_choice_body(const struct sim_choice *choice);
/** True if its bodies hold only what bodies may. */
bool sim_choice_is_allowed(const struct sim_choice *choice);

/* capture.c, captureapi.c */

struct sim_capture {
    struct sim_capture *next; /* of all */
    unsigned long long id, thread;
    CUstreamCaptureMode mode;
    struct sim_queue *origin;
    struct sim_member *members;
    struct sim_member *gone;  /* whose queues ended; what they did last has to come back all the same */
    struct CUgraph_st *graph; /* referenced */
    bool into_given;          /* the program's own graph */
    bool broken;
};

/* A queue that is captured. */
struct sim_member {
    struct sim_member *next; /* of the same capture */
    struct sim_capture *capture;
    struct sim_queue *queue; /* referenced; NULL of one that is gone */
    CUgraphNode *front;      /* what the next work waits for; owned, like the edges */
    CUgraphEdgeData *edges;
    size_t count;
};

/* The capture in which an event was recorded, and the nodes that the event stands for. */
struct sim_captured {
    unsigned long long capture;
    CUgraphNode *nodes;
    size_t count;
};

CUresult sim_capture_check_work(struct sim_queue *queue);
CUresult sim_capture_check_idle(struct sim_queue *queue);
CUresult sim_capture_refuse(struct sim_queue *queue, CUresult status);
CUresult sim_capture_add(struct sim_queue *queue, struct sim_op *work);
CUresult sim_capture_record(struct sim_queue *queue, struct sim_captured *captured);
CUresult sim_capture_join(struct sim_queue *queue, const struct sim_captured *captured);
bool sim_capture_break(unsigned long long id);
CUresult sim_capture_begin(struct sim_queue *queue, CUstreamCaptureMode mode, struct CUgraph_st *graph,
                           const CUgraphNode *front, const CUgraphEdgeData *edges, size_t count);
CUresult sim_capture_end(struct sim_queue *queue, CUgraph *graph_p);
bool sim_capture_move(struct sim_member *member, const CUgraphNode *nodes, const CUgraphEdgeData *edges,
                      size_t count);
bool sim_capture_legacy(struct sim_queue *queue);
/** Adds a node of any kind behind what the queue has captured; the callback adds it, with the lock held. */
CUresult sim_capture_append(struct sim_queue *queue,
                            CUresult (*add)(struct CUgraph_st *graph, const CUgraphNode *after, size_t count,
                                            struct sim_queue *queue, void *data,
                                            struct CUgraphNode_st **node_p),
                            void *data);

/* graphnode.c: what a node is made of, from what programs say of it. */
struct sim_parts {
    struct sim_op *work;
    struct CUctx_st *ctx;
    struct CUevent_st *event;
    struct CUgraph_st *child;
    struct sim_graph_memory *memory;
    struct sim_choice *choice;
};

/** Makes the parts of a node for a graph; fills in what the program is told. The lock is held. */
CUresult sim_parts_make(CUgraphNodeParams *params, struct CUgraph_st *graph, struct sim_parts *parts);
void sim_parts_drop(struct sim_parts *parts);
/** The parameters of a node, in the terms of its type. The lock is held. */
void sim_node_params(const struct CUgraphNode_st *node, CUgraphNodeParams *params);
CUresult sim_node_put(struct CUgraph_st *graph, const CUgraphNode *after, const CUgraphEdgeData *edges,
                      size_t count, CUgraphNodeParams *params, struct CUgraphNode_st **node_p);
CUresult sim_graph_add(CUgraphNode *node_p, CUgraph handle, const CUgraphNode *after,
                       const CUgraphEdgeData *edges, size_t count, CUgraphNodeParams *params);
CUresult sim_node_get(CUgraphNode handle, CUgraphNodeType type, CUgraphNodeParams *params);
CUresult sim_node_set(CUgraphNode handle, CUgraphNodeParams *params);
/* graphupdate.c */
CUresult sim_exec_set(CUgraphExec exec, CUgraphNode node, CUgraphNodeParams *params);

/* event.c */
CUresult sim_event_record(struct CUevent_st *event, struct sim_queue *queue, struct sim_ticket **tickets,
                          size_t count);
CUresult sim_event_add_wait(struct CUevent_st *event, struct sim_op *op);
CUresult sim_event_record_context(struct CUctx_st *ctx, struct CUevent_st *event);
CUresult sim_event_wait_context(struct CUctx_st *ctx, struct CUevent_st *event);
struct CUctx_st *sim_event_context(const struct CUevent_st *event);

/* launch.c, copyshape.c, memset.c, hostfn.c, memop.c: work from what a node says, and back. The context is
 * where it runs. */
CUresult sim_kernel_work(const CUDA_KERNEL_NODE_PARAMS *params, struct CUctx_st *ctx, struct sim_op **work_p);
void sim_kernel_params(const struct sim_op *work, CUDA_KERNEL_NODE_PARAMS *params);
CUresult sim_copy_work(const CUDA_MEMCPY3D *params, struct CUctx_st *ctx, struct sim_op **work_p);
CUresult sim_copy_described(const struct sim_copy *copy, const CUDA_MEMCPY3D *params,
                            const struct CUctx_st *ctx, struct sim_op **work_p);
void sim_copy_params(const struct sim_op *work, CUDA_MEMCPY3D *params);
CUresult sim_fill_work(const CUDA_MEMSET_NODE_PARAMS *params, struct CUctx_st *ctx, struct sim_op **work_p);
void sim_fill_params(const struct sim_op *work, CUDA_MEMSET_NODE_PARAMS *params);
CUresult sim_host_work(const CUDA_HOST_NODE_PARAMS *params, struct sim_op **work_p);
void sim_host_params(const struct sim_op *work, CUDA_HOST_NODE_PARAMS *params);
CUresult sim_batch_work(const CUDA_BATCH_MEM_OP_NODE_PARAMS *params, struct sim_op **work_p);
void sim_batch_params(const struct sim_op *work, CUDA_BATCH_MEM_OP_NODE_PARAMS *params);

/* graphmem.c */
CUresult sim_graph_memory_new(const CUDA_MEM_ALLOC_NODE_PARAMS *params, const struct CUgraph_st *graph,
                              struct sim_graph_memory **memory_p);
struct sim_graph_memory *sim_graph_memory_ref(struct sim_graph_memory *memory);
void sim_graph_memory_put(struct sim_graph_memory *memory);
CUdeviceptr sim_graph_memory_address(const struct sim_graph_memory *memory);
/** The graph memory that begins at an address, not referenced; NULL if it is not one. Takes the memory
 * lock. */
struct sim_graph_memory *sim_graph_memory_at(CUdeviceptr address);
void sim_graph_memory_params(const struct sim_graph_memory *memory, CUDA_MEM_ALLOC_NODE_PARAMS *params);
/** True if a node of this graph may free it; from then on none but it does. */
bool sim_graph_memory_claim(struct sim_graph_memory *memory, const struct CUgraph_st *graph);
void sim_graph_memory_disclaim(struct sim_graph_memory *memory, const struct CUgraph_st *graph);
/** Work that takes or gives the memory when its turn comes, for one launch; NULL when memory ran out. */
struct sim_op *sim_graph_memory_op(struct sim_graph_memory *memory, bool take);
/** At a launch, for each node in turn: reserves what will be taken, notes what will be given; 1 if it must
 * not be. */
CUresult sim_graph_memory_launch(struct sim_graph_memory *memory, bool take);
/** Takes that back for a launch that came to nothing. */
void sim_graph_memory_relent(struct sim_graph_memory *memory, bool take);
/** True if it was allocated by a launch and is not yet being freed. */
bool sim_graph_memory_is_out(const struct sim_graph_memory *memory);
/** Frees it in the order of a queue, as cuMemFreeAsync does, or at once. */
CUresult sim_graph_memory_free_later(struct sim_graph_memory *memory, struct sim_queue *queue);
CUresult sim_graph_memory_free_now(struct sim_graph_memory *memory);

#endif
