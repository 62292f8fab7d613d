/* pool.h - memory for the program, carved from what the vendor gave.
 *
 * Floor 2. Knows nothing of hooks or of the record: who serves calls asks here, and an observer hears of
 * segments. Any function may be called from any thread, inside a hook scope of memshim's own code (guard
 * closed, cancellation deferred). errno is kept, nothing is taken from malloc. The vendor is called through
 * vendor/gpu.h only, with no lock of ours held but a heap's fence lock, and never in a way that can wait for
 * the device without a bound.
 *
 * A *heap* is the memory of one context in one of its lives. Every byte that the vendor gave a heap lies in a
 * *segment* (a chunk that is carved, or a single), and every byte of a segment has exactly one state (struct
 * ms_pool_parts). Contexts are named by the vendor's handle. */
#ifndef MS_POOL_API_POOL_H
#define MS_POOL_API_POOL_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/compiler.h"

#include "base/store/figures.h"
#include "vendor/gpu.h"

/** When a freed block may be used again: MEMSHIM_FREE. */
enum ms_pool_free_rule { MS_POOL_FENCE, MS_POOL_STRICT, MS_POOL_IMMEDIATE };
/** The blocks that may share a chunk: MEMSHIM_PACK. SMALL: those below `single_min_bytes`, from 2 MiB on at
 * multiples of `align_bytes`. */
enum ms_pool_pack { MS_POOL_PACK_SMALL, MS_POOL_PACK_ALL, MS_POOL_PACK_NONE };

/** Every policy; sizes of MEMSHIM_* in percent were resolved per device by the caller through `size_of`. */
struct ms_pool_policy {
    enum ms_pool_free_rule free_rule;
    enum ms_pool_pack pack;
    bool poison_alloc, poison_free;
    bool vmm;          /* MEMSHIM_BACKING=vmm: memory is handles that are mapped, unless it has to be whole */
    bool export_whole; /* MEMSHIM_IPC=native: what could be exported is a single; may change while calls go on
                        */
    bool large_whole;  /* what has `single_min_bytes` or more is a single, always; may change as well */
    uint64_t align_bytes; /* MEMSHIM_ALIGN, from 64 KiB to 2 MiB; may rise while calls go on */
    bool keep_is_set;     /* MEMSHIM_KEEP, by whoever started the program */
    uint64_t oom_wait_ms;
    /** The quota learns how much may be taken of a device (quota.h), once. NULL: anything. No lock held. */
    void (*learn_limit)(const struct ms_gpu *gpu, int device);
    /** Bytes of a size option on a device of `total_bytes`: 'P'realloc, 'K'eep, 'S'ingle; 'B'ound of the
     * pending list (UINT64_MAX for none), of so many bytes of live memory. */
    uint64_t (*size_of)(char option, uint64_t total_bytes);
    /** Others are asked for memory on a device, once for a request that was refused: true if it is worth
     * asking the vendor again. NULL: there are none. No lock held; may wait. */
    bool (*ask_others)(const struct ms_gpu *gpu, int device, uint64_t bytes);
};

/** Functions by which the pool tells of changes. Called without a lock of the pool's, in the thread that
 * caused it. */
struct ms_pool_observer {
    void (*segment_added)(const struct ms_segment_record *segment);
    void (*segment_removed)(const struct ms_segment_record *segment);
    /** The device's figures changed by a call of the vendor's. */
    void (*figures)(int device, const struct ms_pool_figures *figures);
    /** One line for the report: the pool stands down for a context, an invariant did not hold ... */
    void (*note)(const char *line);
    /** One line for the user too: something that was asked for cannot be. */
    void (*warn)(const char *line);
};

/** Once, before the first request. Both structures stay the caller's and must live on. */
void ms_pool_init(const struct ms_pool_policy *policy, const struct ms_pool_observer *observer);

/** A block as the program sees it. */
struct ms_pool_block {
    uint64_t address, requested, granted;
    uint64_t context, segment_address, segment_bytes;
    int device;
    enum ms_pool_tier tier;
    uint32_t record_id; /* of whoever records, see ms_pool_set_record_id */
    uint64_t id;        /* unique over the process's life, for CU_POINTER_ATTRIBUTE_BUFFER_ID */
    bool whole;         /* it is an allocation of the vendor's: handles, ranges and exports of it are true */
    bool vmm;           /* it lies in memory that is mapped by handle */
    bool pinned;
    bool ordered;  /* given in the order of a stream: stream.h */
    bool in_order; /* of a free: behind a stream, so that the program does not expect to wait */
    /* of a free, when it has ended: more than MEMSHIM_LIMBO may be pending, see ms_pool_wait_begin */
    bool over;
    /* The pool's own: how the second half of a call finds again what the first half found. */
    void *own_heap;
    uint64_t own_item;
    uint32_t own_life;
};

enum ms_pool_verdict {
    MS_POOL_SERVED,
    MS_POOL_PASSED, /* not ours: the vendor answers the call as it stands */
    MS_POOL_REFUSED /* `status_p` is the program's answer */
};

/** How a call may be answered: by whatever it takes; or only with what is at hand, where PASSED means that
 * nothing has happened. Of the vendor that wants an event at most, and it waits for nothing. Frees at hand
 * are told apart by whether the block was given in the order of a stream. */
enum ms_pool_how { MS_POOL_ANYHOW, MS_POOL_AT_HAND, MS_POOL_AT_HAND_ORDERED };

/** The program has rested: memshim was not called for a second. Gives back what is kept, but for a part, on
 * devices that have nothing to do. No lock held; calls the vendor, waits for nothing. */
void ms_pool_rested(void);
/** How many bytes may stay cached on a device through a rest, beside MEMSHIM_KEEP, where `live` bytes are
 * live. Pure. */
uint64_t ms_pool_rest_allowance(uint64_t live);

/** The pitch that the vendor gives a row of `width` bytes; 0 if it cannot be asked without waiting for the
 * device, or refuses. The calling thread's context is `context`, on `device`. Allocates one row and gives it
 * back. */
uint64_t ms_pool_try_pitch(const struct ms_gpu *gpu, uint64_t context, int device, uint64_t width,
                           unsigned element_bytes);

/** Memory for the calling thread's current context, which must be `context` and on `device`; `gpu` is the
 * library that the call goes to. PASSED for 0 bytes, and for a context that is not served. REFUSED is the
 * vendor's own status after the fallback chain, above all out of memory. May call the vendor, with capture
 * mode relaxed. */
enum ms_pool_verdict ms_pool_alloc(const struct ms_gpu *gpu, uint64_t context, int device, uint64_t bytes,
                                   enum ms_pool_how how, struct ms_pool_block *block_p, int *status_p);
/** Sets the record id that the record wants back when the block is freed; `block` is as ms_pool_alloc filled
 * it. Before the program knows the address. */
void ms_pool_set_record_id(const struct ms_pool_block *block, uint32_t record_id);

/** The block at `address` is about to be freed: its records, each of which leads to the next, are on their
 * way into the cache while the caller has other things to do. Returns its record id as it seems to be, 0 if
 * there is none; nothing follows from that. */
uint32_t ms_pool_expect_free(uint64_t address);
/** The address that this thread got latest, whose records are still in the processor's cache. */
extern MS_TLS uint64_t ms_pool_latest_address;

/** First half of a free: from here on the block is dead to the program, and nobody else gets it. PASSED if
 * the address lies in no segment of ours; REFUSED with the vendor's code for an address inside one that is
 * not a live block's first (double and interior frees). */
enum ms_pool_verdict ms_pool_free_begin(uint64_t address, enum ms_pool_how how, struct ms_pool_block *block_p,
                                        int *status_p);
/** Second half: into the pending list, or whatever the rule is. Under `strict` waits for the device as the
 * vendor's free does, and returns the vendor's status for the program. Sets `over`. */
int ms_pool_free_end(struct ms_pool_block *block);

/** The wait of a free that left more than MEMSHIM_LIMBO pending (pending.c). begin: right after the free, as
 * the first thing; false if there is nothing to wait for, or what there is cannot be waited for. It is then
 * looked at now and then, until a look returns true: within a second, or MEMSHIM_OOM_WAIT_MS if that is less.
 * Between two looks nothing of the pool's is held, and its context may end. Each calls the vendor. */
struct ms_pool_wait {
    void *own_heap;
    uint64_t own_epoch, own_until_ns;
    uint32_t own_life, own_generation;
};
bool ms_pool_wait_begin(const struct ms_pool_block *block, struct ms_pool_wait *wait_p);
bool ms_pool_wait_poll(const struct ms_pool_wait *wait);
/** A block of `context` is to be freed in the order of `stream`, perhaps another context's: what is in it now
 * is over before the next fence of `context` is. Returns a status for the program: where it is not 0, the
 * block stays. Calls the vendor, waits for nothing. No lock held. */
int ms_pool_order_after(const struct ms_gpu *gpu, uint64_t stream, uint64_t context);
/** A stream of ours in `context` is about to wait for work of another context, which no free is to wait
 * for. */
void ms_pool_joined(uint64_t context);
/** A green context begins on `device`, and shares the memory of `primary` there (0: which that is, is not
 * known): no free in that context waits before it ends. Takes no lock. */
void ms_pool_green(int device, uint64_t primary);
/** The primary context of `device` is this one; 0: it has ended, and green contexts of it with it. Takes no
 * lock. */
void ms_pool_primary(int device, uint64_t primary);

/** The live block that `address` lies in. */
bool ms_pool_find(uint64_t address, struct ms_pool_block *block_p);
/** True if the address lies in a segment of ours at all. */
bool ms_pool_owns(uint64_t address);
/** A live block was exported, registered, captured: it is not recycled after its free before every pin is
 * undone. A whole block that was ever pinned then goes back to the vendor and is never recycled: whoever
 * still holds a handle to it must not reach the next block. */
bool ms_pool_pin(uint64_t address);
void ms_pool_unpin(uint64_t address);

/** Around a call by which the program waits for everything in `context`: what was freed before it began is
 * free afterwards, and idle memory is given back. `mark` is what begin returned. */
uint64_t ms_pool_sync_begin(uint64_t context);
void ms_pool_sync_end(uint64_t context, uint64_t mark, int status);

/** Around the vendor's begin and end of a capture at a stream of the context, and around the end of a stream:
 * no fence is recorded meanwhile, and none at all while a capture is open in the context. `open`: whether one
 * that began at the stream is now. */
void ms_pool_capture_enter(uint64_t context);
void ms_pool_capture_leave(uint64_t context, uint64_t stream, bool open);
/** Between the two, before a capture is begun: whoever was told that none is open, and waits for a device, is
 * given the time to enter the driver, where that call destroys captures. A bounded rest, and mostly none. */
void ms_pool_capture_begins(void);
/** For a call of the program's that natively waits for what is under way in its context, and that the vendor
 * is not asked for. With a capture open nothing is waited for. No lock held. */
void ms_pool_wait_for_work(const struct ms_gpu *gpu, uint64_t context, int device);
/** Graphs of a capture keep the addresses they saw: what was live during one is not given back while `count`s
 * add up to more than 0. */
void ms_pool_graph_alive(uint64_t context, int count);
/** So many graphs of captures died with their context, behind ms_stream_context_died. */
void ms_pool_graphs_lost(int count);

/** Streams of the context can have work and take no event of ours: where there is no fence over it, none
 * closes. */
void ms_pool_unreachable(uint64_t context);
/** As ms_pool_unreachable, of every context that there is or comes: a stream was made for a device that
 * nobody tells. */
void ms_pool_streams_lost(void);

/** A context on `device` was given access to the memory of `context`, or gave it up. */
void ms_pool_peer(uint64_t context, int device, bool allowed);

/** Before a context is destroyed or reset; its heap takes no more requests. Then what became of it: dead, and
 * all its segments are gone without a call of the vendor's, or alive after all. */
void ms_pool_context_ending(uint64_t context);
void ms_pool_context_ended(uint64_t context, bool dead);
/** The context is not served any more (a sticky error, a surprise); what is live stays known. `why` is one
 * line. */
void ms_pool_stand_down(uint64_t context, const char *why);

/** The bytes that we could give back on the device, for cudaMemGetInfo (may record an event to find out). */
uint64_t ms_pool_reclaimable(int device);

/** The state that is kept over several tries for one request, zeroed before the first. `ended` is
 * ms_driver_frees_ended(), as it was before the vendor was asked, where that is known. */
struct ms_room {
    uint64_t deadline, ended;
    bool asked; /* other processes */
};
/** All that is idle goes back, for memory of another kind: also what streams keep and what graphs may know,
 * and without waiting for a quiet moment. With `wait`, if it is nothing, what waits for the device is waited
 * for, and what another thread is just giving back. Whether the vendor is to be asked again; if not there is
 * no more to come. No lock held; may sleep. */
bool ms_room_make(int device, bool wait, struct ms_room *room);
/** So much of what is idle goes back, or all of it, for other processes; without waiting for a quiet moment.
 * Returns the bytes. No lock held. */
uint64_t ms_pool_give_back(int device, uint64_t bytes);
/** Before the vendor is asked for `bytes` of memory that is not served: what is vacant goes back, as far as
 * the device would lack it natively, too. No lock held; calls the vendor, waits for no work. */
void ms_keep_before_followed(int device, uint64_t bytes);

/** Nothing in the pool changes until ms_pool_go, which the same thread calls soon: its figures (here and in
 * stream.h) and its pieces are of one moment then, and asking for them takes no lock. Calls of other threads
 * that need the pool wait so long. Bounded: false, and nothing has happened, if a lock was not to be had in
 * all of `timeout_ms`. Locks are those of ranks POOL_LEASE to POOL_TABLES; allocates nothing. */
bool ms_pool_stop(unsigned timeout_ms);
void ms_pool_go(void);

/** Figures; of one moment while the pool is stopped, else consistent where no call is going on. */
void ms_pool_figures(int device, struct ms_pool_figures *figures_p);
/** The bytes that are reserved, together with those that are being asked of the vendor, or given back, just
 * now. */
uint64_t ms_pool_charged(int device);
/** How often that has changed; and whether there may be memory that no figure has yet, or no longer. */
uint64_t ms_pool_changes(int device);
bool ms_pool_is_growing(int device);

/** The pieces that lie in the segments now, in order of addresses within each: for the report, and for
 * checks. `live` blocks carry their record id. Calls nobody but `tell`, and holds locks of the pool's while
 * it does. */
void ms_pool_walk(void (*tell)(void *arg, const struct ms_piece_record *piece), void *arg);

#endif
