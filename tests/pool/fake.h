/* fake.h - a driver of a few hundred lines that tests of the pool hold in their hands.
 *
 * It counts memory against a capacity, hands out addresses that nobody touches, and keeps for each context
 * how much work was issued and how much of it is done: an event is done when the work that was issued before
 * its record is. Any call can be made to fail. Threads may call it. It is no simulator: sim is, and the
 * pool runs on that in tests/hooks. */
#ifndef MS_TESTS_POOL_FAKE_H
#define MS_TESTS_POOL_FAKE_H

#include <stdbool.h>
#include <stdint.h>

#include "checks.h"
#include "base/at_fork.h"
#include "vendor/gpu.h"
#include "pool/api/pool.h"

enum { A_STREAM = 0x1000 }; /* a handle, for calls that name one and do nothing with it */

enum fake_call {
    FAKE_ALLOC,
    FAKE_FREE,
    FAKE_RANGE,
    FAKE_EVENT_CREATE,
    FAKE_CTX_RECORD,
    FAKE_RECORD,
    FAKE_QUERY,
    FAKE_SYNC,
    FAKE_RESERVE,
    FAKE_ADDRESS_FREE,
    FAKE_CREATE,
    FAKE_RELEASE,
    FAKE_MAP,
    FAKE_UNMAP,
    FAKE_ACCESS,
    FAKE_CALLS
};

struct fake_context {
    uint64_t issued, done;
    int captures;
    int device;
    bool dead;
    uint64_t live; /* allocations of the vendor's in it */
    struct fake_context *next;
};

struct fake {
    uint64_t capacity;    /* per device, whoever made it */
    uint64_t total_bytes; /* what it says of itself */
    uint64_t used[MS_DEVICES_MAX];
    uint64_t leaving[MS_DEVICES_MAX]; /* freed in a stream that the host has not waited for since */
    uint64_t calls[FAKE_CALLS], all_calls;
    uint64_t fail_at; /* the n-th call of all fails ... */
    enum fake_call failed_call;
    int fail_status; /* ... with this */
    uint64_t destroyed_captures, blocking_frees, wrong_context, unknown_frees;
    uint64_t small_allocs; /* of less than a page: the pool has no use for them */
    /* while the thread's capture mode is not relaxed: they could destroy another thread's capture */
    uint64_t loud_calls;
    bool moves; /* work gets done while somebody looks at it: at the third look */
    uint64_t looks;
    uint64_t capturing;            /* a stream that captures, */
    uint64_t takes_in;             /* ... and one that does unseen: events in it are no events outside */
    bool small_align;              /* allocations lie on 512 bytes only */
    bool other_range;              /* it says that they are shorter than they are */
    uint64_t others;               /* what another process has of the device */
    uint64_t granularity;          /* of handles */
    uint64_t handle_most_bytes;    /* not 0: there are none that are longer */
    uint64_t longest_handle_bytes; /* that there was */
    uint64_t ranges, handles, unmaps, vmm_errors; /* reserved and held now; all; calls that are never right */
};
extern struct fake fake;

/** A driver; with or without an event over a context. Starts from nothing. */
const struct ms_gpu *fake_start(uint64_t capacity, bool context_events);
struct fake_context *fake_context(int device);
/** The calling thread's current context. */
void fake_set_current(struct fake_context *context);
/** Work that is pending until fake_finish. */
void fake_issue(struct fake_context *context);
void fake_finish(struct fake_context *context);
/** Everything in it is gone. */
void fake_kill(struct fake_context *context);
/** Devices that may reach the page, as bits. */
uint64_t fake_access(uint64_t address);
/** For fake_vmm.c. Lock held: whether this call is to fail; whether the current context has work. */
void fake_lock(void);
void fake_unlock(void);
bool fake_count(enum fake_call call);
bool fake_is_busy(void);
void fake_vmm_start(struct ms_gpu *gpu);
/** What happens whenever an event is asked for, if anything; outside the fake's lock. */
extern void (*fake_on_query)(void);
/** ... and in a free in a stream. */
extern void (*fake_on_return)(void);
/** Allocations that the vendor believes are live, in all contexts. */
uint64_t fake_live(void);

/** Policies for tests: the defaults, changeable. */
struct fake_sizes {
    uint64_t limit, prealloc, keep, single_min, pending; /* limbo: 0 for no bound */
};
extern struct fake_sizes fake_sizes;
extern struct ms_pool_policy fake_policy;
/** Segments and lines that the observer heard of. */
extern uint64_t fake_segments, fake_notes;
extern char fake_last_note[256];
/** Memory is to be made of handles: the default of fake_fresh. */
extern bool fake_vmm;
/** Forgets the pool and the driver, and sets both up with the default policy. */
const struct ms_gpu *fake_fresh(uint64_t capacity);

#endif
