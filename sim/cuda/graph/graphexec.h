/*
 * Graphs that were made ready to run, between graphexec.c (making and launching them) and graphupdate.c
 * (changing them). One is the program's to use from one thread at a time; its list of nodes is under the
 * graphs' lock.
 */
#ifndef MEMSIM_CUDA_GRAPHEXEC_H
#define MEMSIM_CUDA_GRAPHEXEC_H

#include "sim/cuda/graph/graph.h"

/* A node, flat: child graphs are taken apart between a node that begins them and one that ends them. */
struct sim_step {
    CUgraphNodeType type;
    unsigned long long origin;       /* the node's id; 0 of an end */
    struct sim_op *work;             /* what each launch runs a copy of; owned */
    struct CUctx_st *ctx;            /* referenced; NULL: that of the launch */
    struct CUevent_st *event;        /* referenced */
    struct sim_graph_memory *memory; /* referenced */
    size_t *after, after_count;      /* earlier steps */
    bool disabled;
    unsigned lane; /* 0 is the stream of the launch */
};

struct CUgraphExec_st {
    struct sim_object object;
    struct CUgraph_st *graph; /* what it was made of; referenced, for its count of instances */
    cuuint64_t flags;
    struct sim_step *steps;
    size_t count, room;
    struct sim_queue **lanes; /* beside the stream; the first only where that runs in another context */
    unsigned lane_count;
    struct sim_ticket last; /* of the latest launch; referenced */
};

/** Appends what a graph is to a list of steps, behind those in after. The lock is held. */
CUresult sim_exec_flatten(struct CUgraphExec_st *exec, const struct CUgraph_st *graph, const size_t *after,
                          size_t count);
struct CUgraphExec_st *sim_exec_new(struct CUgraph_st *graph, cuuint64_t flags);
void sim_step_drop(struct sim_step *step);

#endif
