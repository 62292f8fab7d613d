/*
 * Events, between event.c (their life and recording) and eventwait.c (waiting for them). A recording is a set
 * of tickets and the time at which they were over, or a place in a capture. An event holds its latest one;
 * work that waits for an earlier one keeps waiting for that.
 */
#ifndef MEMSIM_CUDA_EVENT_H
#define MEMSIM_CUDA_EVENT_H

#include "sim/cuda/graph/graph.h"

struct sim_recording {
    atomic_uint refs;
    atomic_ullong ns; /* 0 until it happened */
    struct sim_ticket *tickets;
    size_t count;
    struct sim_known *known; /* what the queue knew; owned */
    unsigned known_count;
    struct sim_captured captured; /* of a recording in a capture; the list is its own */
};

/* An event that several processes record and wait for. */
struct sim_shared;

struct CUevent_st {
    struct sim_object object;
    struct sim_shared *shared; /* NULL in an event of this process alone; owned */
    struct CUctx_st *ctx;      /* referenced */
    unsigned flags;
    struct sim_recording *last; /* under the events' lock */
};

/* ipcevent.c */
struct sim_shared *sim_shared_new(void);
void sim_shared_end(struct sim_shared *shared);
/** A recording begins: its number. */
uint64_t sim_shared_begin(struct sim_shared *shared);
/** It is over. */
void sim_shared_done(struct sim_shared *shared, uint64_t number);
/** The number of the latest recording, and whether one is over, or will never be, as its process is gone. */
uint64_t sim_shared_latest(const struct sim_shared *shared);
bool sim_shared_over(const struct sim_shared *shared, uint64_t number);
/** Lets a queue wait for the latest recording. */
CUresult sim_shared_wait(struct CUevent_st *event, struct sim_queue *queue);

/** An event in a context, not yet a valid handle; NULL when memory ran out. */
struct CUevent_st *sim_event_new(struct CUctx_st *ctx, unsigned flags);
/** A recording with as many references; NULL when memory ran out. */
struct sim_recording *sim_recording_new(unsigned refs);
void sim_recording_put(struct sim_recording *recording);
/** The event's latest recording, referenced; NULL if there is none. */
struct sim_recording *sim_recording_of(struct CUevent_st *event);
/** Makes a recording, whose reference it takes, the event's latest. */
void sim_recording_set(struct CUevent_st *event, struct sim_recording *recording);
bool sim_recording_over(const struct sim_recording *recording);
/** Lets work wait for a recording; false when memory ran out. */
bool sim_recording_tickets(const struct sim_recording *recording, struct sim_op *op);

#endif
