/* stream_arena.h - what the files behind stream.h share: stream.c, mempool.c, stream_arena.c,
 * arena_source.c, arena_share.c, cross_free.c.
 *
 * Floor 2, for src/pool/ alone. One lock over streams, pools, and what waits for events (`ms_streams_lock`).
 * It is held across calls of the vendor's that record or ask an event, or free in stream order, none of which
 * waits; streams end, and captures begin and end, under it too, so that a handle that is found under it is
 * good. It comes before every lock of internal.h. Records are kept for ever. */
#ifndef MS_POOL_STREAM_STREAM_ARENA_H
#define MS_POOL_STREAM_STREAM_ARENA_H

#include "pool/clock/fence_timeline.h"
#include "pool/api/internal.h"
#include "pool/stream/stream.h"

enum { MS_STREAM_LEGACY = 1, MS_STREAM_PER_THREAD = 2, MS_CROSS_BATCH_ITEMS = 60 };

#define MS_STREAM_OURS UINT64_MAX /* the identity of a stream that memshim made */

struct ms_stream_arena;
struct ms_cross_batch;

struct ms_stream {
    _Atomic uint64_t handle; /* 0: it has ended */
    _Atomic uint64_t id;     /* 0: the driver has not been asked yet, nor for the device */
    int device;
    uint32_t thread; /* of a thread's own stream */
    struct ms_fence_timeline time;
    struct ms_stream_arena *_Atomic arenas;
    struct ms_cross_batch *batches, **batches_end, *latest; /* what waits for it: see cross_free.c */
    struct ms_stream *next_waiting;                         /* of those for which something waits */
    uint64_t returning; /* bytes on their way to the device, see driver_frees.c */
    int returns_to;     /* the device that they are of */
    struct ms_stream *next_returning;
    struct ms_stream *_Atomic next; /* in its bucket */
    struct ms_stream *next_of_all;
};

struct ms_mempool {
    _Atomic uint64_t handle; /* 0: the program destroyed it */
    /* A record is used again for another pool, while whoever goes through all of them may look at it. */
    const struct ms_gpu *_Atomic gpu;
    _Atomic int device;
    _Atomic bool served, by_program;
    _Atomic bool opportunistic, internal; /* the pool's own rules of reuse */
    _Atomic bool bounded;                 /* it has a maxSize */
    _Atomic bool is_devices;              /* its memory is a device's own: not the host's, nor managed */
    _Atomic bool marked;                  /* see arena_share.c; never taken back */
    _Atomic uint64_t threshold;
    _Atomic uint64_t used, used_high;
    _Atomic uint64_t freed;  /* given back to it, and perhaps not by it */
    _Atomic uint64_t held;   /* bytes of segments */
    _Atomic uint64_t number; /* of all that there ever were */
    struct ms_stream_arena *_Atomic arenas;
    /* arena_source.c: what is known of how the driver takes memory for it. */
    _Atomic bool tried;
    _Atomic uint64_t unit;               /* what it takes for little; 0: not known, or no more than a page */
    _Atomic uint64_t held_peak, churned; /* churned: given back to be asked for again */
    _Atomic bool padded;                 /* the driver does not begin its memory on pages */
};

/** A stream arena without a stream belongs to nobody until `over`, and then to whoever comes first. */
struct ms_stream_arena {
    struct ms_heap *heap;
    struct ms_mempool *_Atomic pool;
    struct ms_stream *_Atomic stream;
    _Atomic uint64_t latest, context;   /* the identity of the stream that had it last, and its context */
    _Atomic uint64_t crossed, borrowed; /* frees on other streams; blocks of other stream arenas */
    _Atomic uint64_t waited;            /* blocks that its stream waits for on the device */
    /* arena_source.c: what other streams were given anew while as much lay idle here, and the most of it that
     * lay here at one of those times */
    _Atomic uint64_t grown_beside, hoarded;
    _Atomic uint64_t before[MS_STREAM_FIGURES]; /* counts, as they were when it became this pool's */
    struct ms_waits *_Atomic waits;             /* NULL: its frees are not marked */
    struct ms_stream *anyone;                   /* see ms_cross_free_behind_all */
    bool over;                                  /* nothing is under way in its memory */
    _Atomic bool idle;                          /* nothing is under way in what is given back now */
    _Atomic uint32_t leaving; /* threads that are giving back what lay in it, in the order of its stream */
    struct ms_stream_arena *_Atomic next_of_stream, *_Atomic next_of_pool;
};

/** The first of its stream arenas; the rest by `next_of_pool`. */
static inline struct ms_stream_arena *ms_mempool_arenas(const struct ms_mempool *pool)
{
    return atomic_load_explicit(&pool->arenas, memory_order_acquire);
}

/** A block came, or went. Drivers count what was asked for, not what it is rounded up to
 * (docs/user/hardware.md).
 */
static MS_INLINE void ms_mempool_count_alloc(struct ms_mempool *pool, uint64_t bytes)
{
    ms_raise(&pool->used_high, atomic_fetch_add_explicit(&pool->used, bytes, memory_order_relaxed) + bytes);
}
/** False if the program has destroyed the pool: what is vacant in it is to be given back. */
static MS_INLINE bool ms_mempool_count_free(struct ms_mempool *pool, uint64_t requested)
{
    atomic_fetch_sub_explicit(&pool->used, requested, memory_order_relaxed);
    return MS_LIKELY(atomic_load_explicit(&pool->handle, memory_order_relaxed) != 0);
}

/** Blocks that are free, or a stream arena that is nobody's, as soon as a point is reached. */
struct ms_cross_batch {
    struct ms_cross_batch *next, **link; /* of its stream's, points rising */
    struct ms_stream *stream;
    uint64_t point;                /* of the latest of its frees */
    struct ms_stream_arena *arena; /* of a stream that ended */
    bool exact;                    /* its mark was recorded right behind the free of all that is in it */
    uint64_t bytes;
    uint32_t count;
    struct ms_slot *items[MS_CROSS_BATCH_ITEMS];
};

/* stream.c */
extern struct ms_lock ms_streams_lock;
/** Threads end without a word, and their streams with them. Without the lock. */
void ms_stream_notice_ends(void);
/** Lock held. Whether the calling thread can put something into the stream without harm to a capture. */
bool ms_stream_reachable(const struct ms_stream *stream);
/** Lock held. An event in the stream, for its latest point; false if there cannot be one. */
bool ms_stream_mark(struct ms_stream *stream);
/** The one of this handle that was seen made, or met, and has not ended; none of the default ones. Without
 * the lock it may end. */
struct ms_stream *ms_stream_seen(uint64_t handle);
/** Lock held. A record for a stream that only the driver knows; NULL without memory. */
struct ms_stream *ms_stream_unnamed(const struct ms_gpu *gpu, uint64_t context);
/** Lock held. The record of a stream that memshim made for itself, for which no fence waits; NULL without
 * memory. */
struct ms_stream *ms_stream_ours(const struct ms_gpu *gpu, uint64_t context, int device, CUstream handle);
static inline bool ms_stream_is_ours(const struct ms_stream *stream)
{
    return atomic_load_explicit(&stream->id, memory_order_relaxed) == MS_STREAM_OURS;
}
/** Of the context, those for which its fences wait, one after another (the first: NULL): all but the default
 * ones and ours. Lock of the context's fence held, under which streams begin and end. */
const struct ms_stream *ms_stream_next_in(uint64_t context, const struct ms_stream *after);
/** How many there ever were. */
extern _Atomic uint32_t ms_stream_count;
/** Goes on whenever a stream or a pool has ended, or another pool may be the current one: what was found by a
 * handle before may be another's. */
extern MS_HIDDEN _Atomic uint64_t ms_stream_changes;
/** Lock held. Nothing of some kind waits for it any more. */
void ms_stream_left(struct ms_stream *stream);
/** How the driver is told which stream. */
static inline CUstream ms_stream_handle(const struct ms_stream *stream)
{
    return (CUstream)(uintptr_t)atomic_load_explicit(&stream->handle, memory_order_relaxed);
}

/* mempool.c */
/** The pool that a request names, for a stream of this device; one that was not seen being made is a device's
 * own, or not served. NULL if there is none. May call the vendor. */
struct ms_mempool *ms_mempool_named(const struct ms_gpu *gpu, int device, uint64_t pool);
/** Asks the driver to give the device what the pool holds beyond that. A pool that was destroyed is let
 * be. */
void ms_mempool_trim_to(const struct ms_mempool *pool, uint64_t keep_bytes);
/** The current pool of a device; NULL if it is not served. May call the vendor. */
struct ms_mempool *ms_mempool_current(const struct ms_gpu *gpu, int device);
struct ms_mempool *ms_mempool_at(uint32_t index);
/** Bytes that the driver takes at a time for the pool, at most. */
static inline uint64_t ms_mempool_unit(const struct ms_mempool *pool)
{
    uint64_t unit = atomic_load_explicit(&pool->unit, memory_order_relaxed);
    return unit ? unit : MS_STREAM_ARENA_UNIT_MOST_BYTES;
}
/** The context is gone, and with it, where the vendor has it so, the pools of its device: what was taken of
 * them is nobody's any more. The streams' lock held. */
void ms_mempools_context_died(uint64_t context);

/* stream_arena.c */
/** The stream arena of the pool that a request names, if there is one, and it is served. May call the
 * vendor. */
struct ms_stream_arena *ms_stream_arena_of(struct ms_stream *stream, uint64_t pool);
/** Lock held: the stream ends; its stream arenas belong to nobody, and to anybody when its work is over. */
void ms_stream_arena_detach_all(struct ms_stream *stream, bool over);
/** A block went, by whatever way; without a lock. */
void ms_stream_arena_count_free(struct ms_stream_arena *arena, uint64_t requested);

/* cross_free.c: lock held, but where it says otherwise. */
/** Frees a dying block when the stream gets there. Without the lock. */
void ms_cross_free_later(struct ms_stream *stream, const struct ms_pool_block *block);
/** Frees a dying block when the device has done all that it has to do now, in whatever stream: where the
 * vendor's free waits for that. Without the lock. */
void ms_cross_free_behind_all(const struct ms_pool_block *block);
/** No block of the heap waits any more: its memory is gone. */
void ms_cross_free_forget(const struct ms_heap *heap);
/** The stream arena waits for the end of what its stream has to do, which ends. False without memory for
 * that: it waits for ever. Then the end, behind all its stream arenas. */
bool ms_cross_free_arena_ends(struct ms_stream *stream, struct ms_stream_arena *arena);
void ms_cross_free_stream_ends(struct ms_stream *stream);
/** The stream is gone with its context: everything is over. */
void ms_cross_free_stream_died(struct ms_stream *stream);
/** Looks at all events, and closes what is open where that can be done. Returns whether anything went home.
 * Without the lock. */
bool ms_cross_free_collect(void);
/** True if any batch waits. */
bool ms_cross_free_pending(void);
/** True if nothing is under way in the context of the stream arena's stream; false if that cannot be told.
 * Takes the lock. */
bool ms_cross_free_context_is_idle(const struct ms_stream_arena *arena);

/** A block of up to `most` bytes for the request that waits for an event: what the stream arena's own stream
 * freed; or what others did, and the stream is made to wait. NULL if there is none. Without the lock. */
struct ms_slot *ms_cross_free_take(struct ms_stream_arena *arena, const struct ms_request *request,
                                   uint64_t most, bool of_others);

/* arena_source.c: no lock held, but where it says otherwise. */
/** A block of memory that the driver's pool gives; NULL with its status. */
struct ms_slot *ms_stream_arena_grow(struct ms_heap *heap, const struct ms_request *request, int *status_p);
/** The bytes that the driver's pool has of the device, and those of them that it counts as used; false if it
 * does not say. */
bool ms_mempool_figures(const struct ms_mempool *pool, uint64_t *reserved_p, uint64_t *used_p);
/** True if nothing is under way in the stream arena's memory: by an event, or because nobody has it. The
 * streams' lock held. */
bool ms_stream_arena_is_idle(struct ms_stream_arena *arena);
/** Gives back what is vacant in the stream arenas of a pool, up to `bytes` or a little more. */
uint64_t ms_stream_arena_give_back(struct ms_mempool *pool, uint64_t bytes);

/* arena_share.c: lock held, but where it says otherwise. */
/** The device may be getting short: from now on others may wait for frees. Without the lock. */
void ms_wait_weigh(struct ms_stream_arena *arena);
/** The stream arena has a stream, the work of the one before being over. */
void ms_wait_bound(struct ms_stream_arena *arena);
/** Before a block of a stream arena whose frees are marked is anybody's again; after the driver gave a
 * segment. Without the lock. */
void ms_wait_note_free(struct ms_stream_arena *arena, const struct ms_pool_block *block);
void ms_wait_note_growth(struct ms_stream_arena *arena, uint64_t address, uint64_t bytes);
/** True if the memory in [begin, end) is known to be free for everybody. */
bool ms_wait_is_over(const struct ms_stream_arena *arena, uint64_t begin, uint64_t end);
/** The stream waits on the device for the point, which has to be exact; not for one that is reached. */
bool ms_wait_order(struct ms_stream *stream, struct ms_fence_timeline *time, uint64_t point);
/** When the driver has no more memory: a block behind what still uses it, as far as the pool's rules allow.
 * Without the lock. */
struct ms_slot *ms_wait_take(struct ms_stream_arena *arena, const struct ms_request *request);

/** Memory that is vacant in a stream arena, and will do for the request, is the other's from now on: false if
 * there is nothing, or something is under way there. No lock held. */
bool ms_stream_arena_move(struct ms_stream_arena *from, struct ms_stream_arena *to,
                          const struct ms_request *request);

#endif
