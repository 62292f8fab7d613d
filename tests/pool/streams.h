/* streams.h - a driver of streams, pools and events that tests of stream-ordered memory hold in their hands.
 *
 * Each stream has a number of things that were issued to it, and of those that are done. For every 512 bytes
 * it keeps which stream used them last, and when: memory that is given to a stream, or back to the driver,
 * while another may still be at it is counted as a hazard. Addresses of the driver's come back when nobody is
 * at them any more. One thread at a time. */
#ifndef MS_TESTS_POOL_STREAMS_H
#define MS_TESTS_POOL_STREAMS_H

#include <stdbool.h>
#include <stdint.h>

#include "checks.h"
#include "vendor/gpu.h"
#include "pool/stream/stream.h"

enum { MODEL_STREAMS = 16, MODEL_POOLS = 4 };

struct model {
    uint64_t capacity, used, total; /* total: what the device says it has; 0: 8 GiB */
    uint64_t all_calls, fail_at;    /* the n-th call fails */
    int fail_status;
    uint64_t allocs, frees, events, queries, context_events, waits;
    uint64_t host_waits, early_waits; /* of the host's for events; for such as were not over */
    uint64_t hazards, unknown_frees, destroyed_captures, wrong_context, stale_handles;
    uint64_t unit;            /* what a pool takes of the device at least; 0: it does not say what it has */
    bool rounds;              /* it takes whole units alone */
    uint64_t offset;          /* memory of the driver's begins so far behind a page */
    void (*on_call)(void);    /* before every call */
    void (*meanwhile)(void);  /* what another thread does while memory is asked for the next time */
    void (*on_leaving)(void); /* before a segment goes back the next time */
};
extern struct model model;
extern uint64_t model_segments;

/** A driver with a default pool and no streams but the legacy one; and the pool on it with its defaults. Who
 * wants another driver changes what it has before its first stream. */
struct ms_gpu *model_fresh(uint64_t capacity);
extern struct ms_pool_policy model_policy;
extern uint64_t model_keep;
/** A stream's handle; handles come back, identities do not. 0 without room. */
uint64_t model_stream(void);
/** Under the pool's own watch, as hooks do it. */
void model_destroy_stream(uint64_t handle);
void model_issue(uint64_t handle);
#define MODEL_ALL UINT64_MAX /* streams, those that have ended too */
void model_finish(uint64_t handle);
bool model_is_done(uint64_t handle);
void model_capture(uint64_t handle, bool begin);
/** A pool of the program's, told to memshim. */
uint64_t model_pool(void);
void model_destroy_pool(uint64_t pool);
void model_set_current(uint64_t pool);
/** The stream is given this memory, or has used it just now. */
void model_given(uint64_t handle, uint64_t address, uint64_t bytes);
void model_used(uint64_t handle, uint64_t address, uint64_t bytes);
/** A block is freed on the stream, which the program has put behind whatever was done to it. */
void model_freed(uint64_t handle, uint64_t address, uint64_t bytes, uint64_t requested);
/** How many things of `other`'s the stream waits for, of those that were issued. */
uint64_t model_waits_for(uint64_t handle, uint64_t other);
uint64_t model_issued(uint64_t handle);
/** The context dies; another is current then. */
void model_kill_context(void);
/** What the pool holds of the device, by the driver's own account. */
uint64_t model_reserved(uint64_t pool);
/** Whether the driver has given all of this. */
bool model_has(uint64_t address, uint64_t bytes);
/** Allocations that the driver believes are live. */
uint64_t model_live(void);

#endif
