/* serve.h - calls that are answered from memshim's own pool (src/pool) instead of by the vendor.
 *
 * Floor 3. A driver hook whose row is SERVED asks here first, before anything is set up for the vendor's
 * call: so a hit costs neither a call frame nor a second lookup. The answer is `true` with a status for the
 * program, or `false`: then the vendor answers the call as it stands, and it is followed. Whatever the vendor
 * would refuse is passed, so that the refusal is its own.
 *
 * serve.c is the way of a request and of a free; serve_context.c knows which contexts are served;
 * serve_policy.c is the pool's beginning, its policy, and what it tells; serve_wait.c a free that waits;
 * serve_oom.c says why there was no memory. */
#ifndef MS_HOOKS_SERVE_SERVE_H
#define MS_HOOKS_SERVE_SERVE_H

#include "hooks/dispatch.h"
#include "hooks/init.h"
#include "record/footprint/pools.h"
#include "pool/clock/captures.h"
#include "pool/api/pool.h"

/* serve_policy.c */

/** True if anything is served in this process: MEMSHIM_MODE=pool. False until ms_serve_start(). */
extern MS_HIDDEN _Atomic bool ms_serve_on;
static inline bool ms_serve_is_on(void)
{
    return atomic_load_explicit(&ms_serve_on, memory_order_relaxed);
}
/** True if anything is served and this call, which is not of memshim's own, may have to do with it. */
static inline bool ms_serve_matters(void)
{
    return ms_thread.depth == 0 && ms_init_active() && ms_serve_is_on();
}
/** MEMSHIM_FREE=strict; from ms_serve_start() on. */
extern MS_HIDDEN bool ms_serve_strictly;
/** Once, when memshim starts; again, with `again`, in a fork child, whose heaps are not its own. */
void ms_serve_start(bool again);
/** Writes into the diagnostics what is known of the pool only at the end: before the report is written. */
void ms_serve_finish(void);
/** The program waited: a good moment for the figures of the pool to be as they are, now and then. */
void ms_serve_refresh(void);
/** From now on whatever can be exported to another process is an allocation of the vendor's
 * (ipc_transport.c). */
void ms_serve_export_whole(void);
/** From now on blocks of 2 MiB and more begin at multiples of that, unless MEMSHIM_ALIGN says otherwise: what
 * registers memory with another device is loaded (ipc_transport.c). */
void ms_serve_align_pages(void);
/** From now on blocks of MEMSHIM_SINGLE_MIN and more are: the program has exported something, and may export
 * these. */
void ms_serve_large_whole(void);
/** Which tool that looks for memory errors, or is injected by the driver, is at work: NULL if none. */
const char *ms_serve_tool(void);

/* serve_context.c */

/** The contexts that are known. `handle` is written last, and taken back first; entries never move. */
enum { MS_SERVED_CONTEXTS = 64 }; /* power of two; a process with more has the rest followed */
enum ms_served_state { MS_SERVED_UNCHECKED, MS_SERVED_CHECKING, MS_SERVED_YES, MS_SERVED_NO };
struct ms_served_context {
    _Atomic uint64_t handle;
    _Atomic int state; /* enum ms_served_state */
    _Atomic int pitch_state;
    _Atomic uint32_t pitch_calls;
    _Atomic uint64_t pitch;
};
extern MS_HIDDEN struct ms_served_context ms_served_contexts[MS_SERVED_CONTEXTS];
static inline unsigned ms_served_slot(uint64_t handle)
{
    return (unsigned)((handle >> 4) * 0x9e3779b97f4a7c15u >> 58) % MS_SERVED_CONTEXTS;
}
/** The usual answer of ms_serve_context: it was checked, lies where it is looked for first, and nothing is
 * captured in it. False proves nothing. */
static inline bool ms_serve_context_is_ordinary(uint64_t handle)
{
    const struct ms_served_context *c = &ms_served_contexts[ms_served_slot(handle)];

    return MS_LIKELY(handle && atomic_load_explicit(&c->handle, memory_order_acquire) == handle &&
                     atomic_load_explicit(&c->state, memory_order_acquire) == MS_SERVED_YES &&
                     !ms_captures_in(handle));
}
/** True if this context is served. The first call for a context checks that the driver does what the pool
 * builds on. Inside a hook scope. */
bool ms_serve_context(const struct ms_gpu *gpu, uint64_t context, int device);
/** The driver's rule for pitched rows in this context, the current one, on `device`: a row takes the next
 * multiple. 0 if it is not that simple, or not known yet. */
uint64_t ms_serve_pitch(const struct ms_gpu *gpu, uint64_t context, int device, unsigned element_bytes);
/** This context shares another's memory: not served. */
void ms_serve_context_foreign(uint64_t context);
/** Around the end of a context. */
void ms_serve_context_ending(uint64_t context);
void ms_serve_context_ended(uint64_t context, bool dead);
/** A call in this context returned `status`: after an error that stays, it is not served any more. */
void ms_serve_status(uint64_t context, int status);
/** True once any context has ended: the runtime may go on with one that is dead. */
extern MS_HIDDEN _Atomic bool ms_serve_one_has_ended;
/** True once any context has shown an error that stays: the driver is asked then before a block is freed. */
extern MS_HIDDEN _Atomic bool ms_serve_one_is_down;
static inline bool ms_serve_any_down(void)
{
    return atomic_load_explicit(&ms_serve_one_is_down, memory_order_relaxed);
}
/** The program was answered just now, or has waited, and something is due: it has rested (base/clock.h), and
 * what it does not need goes back; or other processes have asked for what is free in it. Inside a hook scope,
 * no lock held. */
enum { MS_SERVE_RESTED = 1, MS_SERVE_ASKED = 2 };
extern MS_HIDDEN _Atomic uint32_t ms_serve_due;
void ms_serve_see_to_due(void);
static inline void ms_serve_see_to(void)
{
    if (MS_UNLIKELY(atomic_load_explicit(&ms_serve_due, memory_order_relaxed)))
        ms_serve_see_to_due();
}
/** As ms_serve_context, but without asking the driver: false for a context that was not checked yet. */
bool ms_serve_context_is_served(uint64_t context);

/* serve_oom.c */

/** A request that was refused: `bytes`, 0 where only the vendor knows how many, in the order of `stream`, or
 * of none. */
#define MS_OOM_NO_STREAM UINT64_MAX
struct ms_oom_asked {
    enum ms_asked kind;
    int device;
    uint64_t bytes, stream;
    /* of an inner block: what its allocator has of the device, what of it nobody has, and whether it maps
     * that piece by piece */
    uint64_t cache_bytes, cache_free_bytes;
    bool is_expandable;
};
/** Returns what the pool and the driver know about the lack of memory for it. */
struct ms_oom_view ms_serve_oom_view(const struct ms_gpu *gpu, const struct ms_oom_asked *asked);

/** Before the vendor is asked for memory that is not served: what the pool keeps goes back as far as the
 * program would have had that to itself natively. In a hook scope; calls the vendor. */
void ms_serve_before_growth(const struct ms_call *call);
/** The driver has refused a call for want of memory. True if some was given back, and it is
 * worth asking again: until it is false, or the driver has some. `room` is zeroed before the first time. */
bool ms_serve_make_room(unsigned row, const struct ms_gpu *gpu, const struct ms_args *args,
                        struct ms_room *room);
/** As ms_serve_make_room, of a call that was not put to the vendor yet, inside its hook scope; and the device
 * that it is about. */
bool ms_serve_make_room_in_call(const struct ms_call *call, struct ms_room *room);
int ms_serve_device_of_call(const struct ms_call *call);

/* serve.c: what the wrappers ask. */

/** In a runtime's hook, which hands down the driver and no function, an answer is a success, and costs
 * nothing of the driver's: an error is the runtime's to tell and to remember. */
static inline bool ms_serve_at_hand(const struct ms_target *driver)
{
    return !driver->real;
}
static inline enum ms_pool_how ms_serve_how(const struct ms_target *driver)
{
    return ms_serve_at_hand(driver) ? MS_POOL_AT_HAND : MS_POOL_ANYHOW;
}

bool ms_serve_ALLOC(unsigned row, const struct ms_target *target, const void *frame, const void *caller,
                    const struct ms_args *args, int *status_p);
/** A request with flags is for memory of another kind, which the vendor alone has. */
static inline bool ms_serve_ALLOC_FLAGS(unsigned row, const struct ms_target *target, const void *frame,
                                        const void *caller, const struct ms_args *args, int *status_p)
{
    return !args->flags && ms_serve_ALLOC(row, target, frame, caller, args, status_p);
}
bool ms_serve_PITCH(unsigned row, const struct ms_target *target, const void *frame, const void *caller,
                    const struct ms_args *args, int *status_p);
bool ms_serve_FREE(unsigned row, const struct ms_target *target, const void *frame, const void *caller,
                   const struct ms_args *args, int *status_p);
bool ms_serve_FREE_ASYNC(unsigned row, const struct ms_target *target, const void *frame, const void *caller,
                         const struct ms_args *args, int *status_p);
/** serve_stream.c: requests in stream order, and frees of what one of them got. */
bool ms_serve_ALLOC_ASYNC(unsigned row, const struct ms_target *target, const void *frame, const void *caller,
                          const struct ms_args *args, int *status_p);
bool ms_serve_free_ordered(unsigned row, const struct ms_target *target, const void *frame,
                           const void *caller, const struct ms_args *args, int *status_p);
/** serve_mempool.c: what the driver has done to a pool. */
void ms_serve_mempool_made(const struct ms_gpu *gpu, const struct ms_args *args);
void ms_serve_mempool_set(const struct ms_args *args);
/** Frees that came while this thread was inside memshim's own code (a signal handler's), and had to be
 * dropped. */
uint64_t ms_serve_dropped_frees(void);

/** The runtime was asked to free this, and will ask the driver: long enough before that for what is not in
 * the cache. */
static inline void ms_serve_expect_free(uint64_t address)
{
    if (address != ms_pool_latest_address && ms_init_owner())
        ms_ledger_expect(ms_pool_expect_free(address));
}

/* serve_wait.c: the free, which has its answer, waits until there is less pending. Not inside a hook scope:
 * the program's signal handlers may free meanwhile. */
void ms_serve_wait(const struct ms_pool_wait *wait);

static inline bool ms_serve_nothing(unsigned row, const struct ms_target *target, const void *frame,
                                    const void *caller, const struct ms_args *args, int *status_p)
{
    (void)row, (void)target, (void)frame, (void)caller, (void)args, (void)status_p;
    return false;
}

/* serve_mapped.c: the pool's memory has no handle for the program. */
bool ms_serve_HANDLE_RETAIN(unsigned row, const struct ms_target *target, const void *frame,
                            const void *caller, const struct ms_args *args, int *status_p);
bool ms_serve_HANDLE_UNMAP(unsigned row, const struct ms_target *target, const void *frame,
                           const void *caller, const struct ms_args *args, int *status_p);

#endif
