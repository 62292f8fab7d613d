/* internal.h - what the files above the pool's rooms share: heaps, and the functions between them.
 *
 * Floor 2, for src/pool/ and its tests alone. Locks, in the order in which they are taken: a heap's fence
 * (which may be held across a vendor call), a thread cache's, the heap's, the tables'. What a heap has of
 * bytes, of epochs and at hand are parts of it, whose functions know no heap (space/, clock/, cache/). */
#ifndef MS_POOL_API_INTERNAL_H
#define MS_POOL_API_INTERNAL_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "quota/quota.h"
#include "base/thread/bias.h"
#include "base/compiler.h"
#include "base/count.h"
#include "base/lock.h"
#include "pool/policy/budget.h"
#include "pool/cache/tcache.h"
#include "pool/clock/captures.h"
#include "pool/fence/fence.h"
#include "pool/api/figures.h"
#include "pool/fence/pending.h"
#include "pool/policy/params.h"
#include "pool/api/pool.h"
#include "pool/space/pagemap.h"
#include "pool/source/source.h"
#include "pool/space/extents.h"
#include "pool/space/tables.h"

enum { MS_HEAPS = 256 };

struct ms_heap;

/** FLOW: of a stream and a pool, see stream_arena.h; its context is 0. */
enum ms_heap_state {
    MS_HEAP_NONE,
    MS_HEAP_BLANK,
    MS_HEAP_SERVING,
    MS_HEAP_ENDING,
    MS_HEAP_DOWN,
    MS_HEAP_STREAM_ARENA
};

struct ms_stream_arena;

struct ms_heap {
    _Atomic uint64_t context;
    _Atomic uint32_t state; /* enum ms_heap_state */
    _Atomic uint32_t life;
    _Atomic int device;
    const struct ms_gpu *gpu; /* of its last life, once it served */
    const struct ms_source *source;
    struct ms_stream_arena *arena;           /* NULL: of a context */
    _Atomic uint64_t away_bytes, away_count; /* of a stream arena: freed on other streams, and not over */
    /* what was over when the pool was stopped: an event may end at any time (stop.c) */
    uint64_t stopped_done;
    _Atomic uint32_t visitors; /* threads of other contexts that work on it; its end waits for them */
    uint64_t keep_bytes, single_min_bytes, total_bytes;
    _Atomic bool preallocated, known; /* known: its first memory was looked at */
    _Atomic int failed_status;        /* the vendor's, that stood it down and is yet to be told of */
    _Atomic uint32_t returning;       /* threads that wait for what they put there */
    struct ms_backing *backing;       /* of MEMSHIM_BACKING=vmm: kept for its lives to come; see mapped.h */
    _Atomic uint32_t backing_state;   /* enum ms_backing_state */

    struct ms_fence fence;
    struct ms_pending pending_sums;

    struct ms_lock lock MS_CACHELINE;
    struct ms_extents extents;
    _Atomic uint64_t
        ceiling_bytes; /* what was reserved on the device when the vendor refused last; 0: it never did */
    uint64_t reserved_bytes, peak_reserved_bytes;
    struct ms_budget budget;
    _Atomic uint64_t pinned_bytes;
    struct ms_parts peak_parts;
#define MS_COUNT(name, told, meaning) _Atomic uint64_t name;
#include "base/store/figures.def"
    struct ms_cache cache;
};

/** Whose bytes they are. */
static inline const struct ms_heap *ms_heap_with(const struct ms_extents *extents)
{
    return (const struct ms_heap *)((const char *)extents - offsetof(struct ms_heap, extents));
}

extern MS_HIDDEN const struct ms_pool_policy *ms_policy;
extern const struct ms_pool_observer *ms_observer;
extern struct ms_heap *_Atomic ms_heaps[MS_HEAPS];
extern _Atomic uint32_t ms_heap_count;

/* pool.c */
/** A request of this heap, which serves or is a stream arena's. */
enum ms_pool_verdict ms_heap_serve(struct ms_heap *heap, uint64_t bytes, enum ms_pool_how how,
                                   struct ms_pool_block *block_p, int *status_p);
/** A block that lies at hand (fallback.c), whoever it is given to; or NULL. */
struct ms_slot *ms_heap_slot_at_hand(struct ms_heap *heap, uint64_t bytes);
/** The slot becomes a live block; takes a thread cache's lock. */
void ms_heap_give(struct ms_heap *heap, struct ms_slot *slot, uint64_t requested,
                  struct ms_pool_block *block_p);
/** One line for the report. */
void ms_pool_note(const char *line);
void ms_pool_warn(const char *line);

/* heap.c */
/** It serves no longer, which its state says already: what threads have at hand of it (hit.c) is void. */
void ms_heap_revoke(struct ms_heap *heap);
/** As ms_heap_revoke, of all heaps of contexts. */
void ms_heap_revoke_all(void);
/** The bytes that the device has left, as far as is known; near the end of its memory, waste is worth more
 * than calls to the vendor. Heap's lock held. */
uint64_t ms_heap_left(const struct ms_heap *heap);
/** Changes where all heaps are new ones: in a fork child. */
uint32_t ms_heap_generation(void);
extern MS_TLS struct ms_heap *ms_last_heap;
struct ms_heap *ms_heap_find(uint64_t context);
/** The heap of a context; NULL if it has none. */
static inline struct ms_heap *ms_heap_of(uint64_t context)
{
    struct ms_heap *heap = ms_last_heap;
    if (MS_LIKELY(heap && context && atomic_load_explicit(&heap->context, memory_order_acquire) == context))
        return heap;
    return ms_heap_find(context);
}
/** The heap of a context, made if need be, without anything in it: for what is told of a context before its
 * first allocation. */
struct ms_heap *ms_heap_known(uint64_t context);
/** The heap of a context, made ready to serve; NULL if it cannot be. Calls the vendor. */
struct ms_heap *ms_heap_make(const struct ms_gpu *gpu, uint64_t context, int device);
/** A heap that is a stream arena's, for ever; NULL if there are too many. */
struct ms_heap *ms_heap_for_stream_arena(const struct ms_gpu *gpu, int device, struct ms_stream_arena *arena);
/** The next of the table's that serves on `device`, from `*next_p` on, which begins with 0; until
 * ms_heap_leave its context is not ended. NULL: there are no more. */
struct ms_heap *ms_heap_ref(uint32_t *next_p, int device);
void ms_heap_leave(struct ms_heap *heap);
/** The memory of a stream arena's heap is gone, without a call of the vendor's: it has none. */
void ms_heap_lose(struct ms_heap *heap);
/** The next of the table's that serves or did, or is a stream arena's; from `*next_p` on, which begins with
 * 0. NULL: there are no more. */
struct ms_heap *ms_heap_next(uint32_t *next_p);
/** An allocation of the vendor's that began then is over. */
void ms_heap_took(struct ms_heap *heap, uint64_t begin_ns);
/** The bytes that the program has of the heap: as it asked for them, and as they were granted. Of about now,
 * where the heap is not locked. */
struct ms_live {
    uint64_t requested, granted;
};
struct ms_live ms_heap_live(const struct ms_heap *heap);
/** Every lock of the heap but its fence's, so that nothing moves in it; nothing to do for who has stopped the
 * pool. */
void ms_heap_lock_all(struct ms_heap *heap);
void ms_heap_unlock_all(struct ms_heap *heap);
/** Under which heaps come to be. */
extern struct ms_lock ms_heap_table_lock;
struct ms_device {
    _Atomic uint64_t reserved_bytes; /* and what is being asked of the vendor just now */
    _Atomic uint64_t changes;        /* of that: how many there were */
    _Atomic int32_t growing;         /* requests to the vendor whose memory no figure has yet */
    /* Bytes that threads are about to ask of the vendor: for blocks that do not count as live yet, and as
     * memory that is not in reserved_bytes yet. */
    _Atomic uint64_t asked_live_bytes, asked_reserved_bytes;
    /* Keeping and giving back: see keep.c. others_bytes is one more than the least that others had. */
    _Atomic uint64_t peak_live_bytes, trimmed_bytes, learned_bytes, learned_ns, others_bytes, alone_until_ns;
    /* Under the lock of figures.c: what heaps left behind whose contexts died, and the peak. */
    struct ms_pool_figures gone;
    uint64_t peak_reserved_bytes;
    struct ms_parts peak_parts;
    /* blocks for which there is memory now, and which no thread cache counts yet */
    uint64_t coming_requested, coming_granted;
};
extern struct ms_device ms_devices[MS_DEVICES_MAX];

/** True if each block of the context's memory is to be an allocation of the vendor's. */
static MS_INLINE bool ms_heap_gives_whole(const struct ms_heap *heap)
{
    return MS_UNLIKELY(__atomic_load_n(&ms_policy->export_whole, __ATOMIC_RELAXED) ||
                       ms_policy->pack == MS_POOL_PACK_NONE) &&
           !heap->source->packed;
}

/* stop.c */
/** The epoch up to which everything was over when the pool was stopped, or, while it is not stopped, is over
 * now. */
uint64_t ms_stop_done(const struct ms_heap *heap);

/* rules.c */
extern const struct ms_extent_rules ms_extent_rules;

/* segment.c */
/** Calls the vendor, with no lock held. A segment is vacant, and comes with the heap's lock held, so that the
 * caller is the first to use it; without one no lock is held and `status_p` is the vendor's. `asked`: what
 * ms_device_ask counts of it, which is answered then. */
struct ms_segment *ms_segment_new(struct ms_heap *heap, uint64_t bytes, uint64_t asked, int *status_p);
/** After ms_vacant_remove: unlinks it, under the heap's lock; then give it to the vendor without, as many as
 * there are. In a stream of the heap's own, polled for a while, so that the vendor's free waits for nothing;
 * with `quiet` what cannot go so by that free. What cannot go at all is vacant as it was. Returns the
 * bytes. */
void ms_segment_unlink(struct ms_heap *heap, struct ms_segment *segment);
uint64_t ms_segment_return(struct ms_heap *heap, struct ms_segment *const *segments, uint32_t count,
                           bool quiet);
/** The other way: as vacant. Heap's lock held. */
void ms_segment_link(struct ms_heap *heap, struct ms_segment *segment);
/** A segment that was unlinked, and stays, is vacant and found again. No lock held. */
void ms_segment_attach(struct ms_heap *heap, struct ms_segment *segment);
/** The context is gone, no call of the vendor's: all segments, found by nobody any more. All locks of the
 * heap held. */
struct ms_segment *ms_segment_detach_all(struct ms_heap *heap);
/** The records of detached segments go, without a lock. */
void ms_segment_retire(const struct ms_heap *heap, struct ms_segment *all);
/** Counts memory of the pool's before the vendor is asked for it, if the quota has room (quota.h), but for
 * what of it is counted already; once the vendor has answered, what it gave of it; and back. */
bool ms_device_charge(int device, uint64_t bytes, uint64_t counted_bytes);
void ms_device_settle(int device, uint64_t charged, uint64_t given);
void ms_device_refund(int device, uint64_t bytes);
/** The calling thread is about to ask the vendor for `reserved` bytes, for a block of `live`, which others
 * that decide at this moment count; until the memory was charged, or refused; until the block is live, or
 * was refused. */
void ms_device_ask(int device, uint64_t live, uint64_t reserved);
void ms_device_answered(int device, uint64_t reserved);
void ms_device_unask(int device, uint64_t live);
/** From before the charge until the figures have it; pages that are given back one by one, too. */
void ms_device_grows(int device, bool begins);
/** Notes that the vendor had no memory (`refused`), or had some: where the device ends is known only then,
 * and not for long. */
void ms_segment_note_ceiling(struct ms_heap *heap, bool refused);
/** Gives memory back where nobody waits for it (source.h): how many of them, from the first on. */
uint32_t ms_segment_give_aside(struct ms_heap *heap, struct ms_segment *const *segments, uint32_t count);
/** Judges what a status of the vendor's means for the heap: an error that stays stands it down. */
void ms_segment_check_status(struct ms_heap *heap, int status);

/* fence.c: the rest is in fence.h */
/** True if a capture is open in the context; of memory in stream order, in any. */
static inline bool ms_fence_captured(const struct ms_heap *heap)
{
    return ms_captures_in(atomic_load_explicit(&heap->context, memory_order_relaxed));
}

/** How a block is had, and what of it counts. */
static MS_INLINE enum ms_pool_tier ms_tier_of(const struct ms_extent *extent)
{
    if (atomic_load_explicit(&extent->segment->use, memory_order_relaxed) == MS_SEGMENT_DEDICATED)
        return MS_TIER_DEDICATED;
    if (MS_UNLIKELY(extent->segment->backing &&
                    extent->slot_bytes >= extent->segment->heap->single_min_bytes))
        return MS_TIER_DEDICATED;
    return extent->slot_bytes <= MS_TIER_SLAB_BYTES ? MS_TIER_SLAB : MS_TIER_EXTENT;
}

/* fallback.c */
/** A slot for the request, by whatever it takes; NULL with the program's status. */
struct ms_slot *ms_fallback_alloc(struct ms_heap *heap, const struct ms_request *request, int *status_p);

/** As ms_fallback_alloc, but by the first step alone, which neither waits nor asks the vendor for memory;
 * NULL if that is not enough. */
struct ms_slot *ms_fallback_at_hand(struct ms_heap *heap, const struct ms_request *request);

/** A slot of what the heap has. No lock held. */
struct ms_slot *ms_fallback_from_heap(struct ms_heap *heap, const struct ms_request *request);

/* grow.c: no lock held; NULL with the vendor's status. */
/** A block of more memory, as much as the heap should grow by. */
struct ms_slot *ms_grow(struct ms_heap *heap, const struct ms_request *request, int *status_p);
/** A block of no more memory than the request needs; and of a segment of `bytes`, of which `asked` was
 * announced. */
struct ms_slot *ms_grow_least(struct ms_heap *heap, const struct ms_request *request, int *status_p);
struct ms_slot *ms_grow_by(struct ms_heap *heap, const struct ms_request *request, uint64_t bytes,
                           uint64_t asked, int *status_p);
/** MEMSHIM_PREALLOC, once in a heap's life. */
void ms_grow_preallocated(struct ms_heap *heap);

/* keep.c */
/** Vacant segments go back to the vendor, at least `bytes` if there are so many, if the context is quiet.
 * Returns the bytes. */
uint64_t ms_keep_give_back(struct ms_heap *heap, uint64_t bytes, bool quiet_known);
/** The program waited for the context: what is idle on its device goes back, but for MEMSHIM_KEEP. */
void ms_keep_at_sync(struct ms_heap *heap);
/** The bytes that MEMSHIM_KEEP leaves to the pools of a device, beside what contexts and buffers keep of
 * it. */
uint64_t ms_keep_left(int device);
/** True if something could go back as soon as the context is quiet. */
bool ms_keep_waits(struct ms_heap *heap);
/** Memory is short on a device: what is idle in contexts goes back, then what streams keep, then other
 * libraries' buffers, until it comes to `bytes`; also what graphs may know, and without a quiet moment.
 * Returns the bytes. No lock held. */
uint64_t ms_keep_make_room(int device, uint64_t bytes);
/** Before the vendor is asked for what ms_device_ask has announced, as a chunk or for one block: gives back
 * what is too much on the device, of whatever kind of memory. */
void ms_keep_before_growth(struct ms_heap *heap, bool chunk);

/* poison.c: no lock held. */
/** False if the fill is still to come: the block may not be handed out. */
bool ms_poison_alloc(struct ms_heap *heap, uint64_t address, uint64_t bytes);
/** Fills a block that is freed and that nothing is under way in, and waits for the fill: false if it is not
 * done in time. */
bool ms_poison_fill_freed(struct ms_heap *heap, uint64_t address, uint64_t bytes);
void ms_poison_free(struct ms_heap *heap, uint64_t address, uint64_t bytes);
/** In the stream that a block is given to, or freed on; it is not capturing. */
void ms_poison_ordered(const struct ms_gpu *gpu, uint64_t stream, uint64_t address, uint64_t bytes,
                       bool freed);

/* pins.c */
uint32_t ms_pins_of(uint64_t address);
void ms_pins_forget(uint64_t address, uint64_t bytes);
/** Thread cache locked: a block is freed. True if a pin holds it; else nothing remembers it any more. */
bool ms_pins_hold(struct ms_heap *heap, struct ms_slot *slot, uint64_t address);
extern MS_HIDDEN _Atomic uint32_t ms_pin_count;
static inline bool ms_pins_any(void)
{
    return atomic_load_explicit(&ms_pin_count, memory_order_relaxed) > 0;
}

/** The segment that just holds it. */
static inline uint64_t ms_request_pages(const struct ms_request *request)
{
    return ms_round_up(request->granted, MS_PAGE_BYTES);
}

#endif
