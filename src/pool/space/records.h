/* records.h - what the pool knows of bytes: segments, the extents they are carved into, and slots, one for
 * each block.
 *
 * Floor 2, for src/pool/ and its tests alone; knows no GPU and no streams. Whose lock a record is under says
 * its heap. Records are never given back to the system and keep their type, so that who reads one without a
 * lock reads something old at worst, and finds out by the state word. */
#ifndef MS_POOL_SPACE_RECORDS_H
#define MS_POOL_SPACE_RECORDS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"
#include "pool/policy/params.h"

struct ms_backing;
struct ms_heap;
struct ms_extent;

#define MS_PAGE_BYTES      (2 * MS_MIB)  /* of the page map, and the vendor's own */
#define MS_UNIT_BYTES      (64 * MS_KIB) /* what is carved from a chunk has at least this size */
#define MS_STEP_BYTES      ((uint64_t)512)
#define MS_SLAB_MAX_BYTES  (64 * MS_KIB) /* above, a span would have one slot: a run of the exact size */
#define MS_TIER_SLAB_BYTES MS_MIB        /* up to here it counts as the slab tier all the same */

enum {
    MS_CLASSES = 40, /* 8 steps of 512 B, then 8 per doubling up to 64 KiB */
    MS_NO_CLASS = 255
};

/** A state is in the low bits of a slot's state word; above it the serial number of the block. */
enum ms_slot_state {
    MS_SLOT_FREE,    /* in no magazine: in its span's bitmap, or not carved */
    MS_SLOT_READY,   /* in a magazine, or on its way out of one; may be handed out */
    MS_SLOT_PENDING, /* in a magazine or a batch, with an epoch (or ready since, see ms_tcache_settle) */
    MS_SLOT_LIVE,
    MS_SLOT_RETIRING, /* between the halves of a free */
    MS_SLOT_PINNED
};
#define MS_STATE_BITS 3
#define MS_STATE_MASK ((uint64_t)7)

/** One block, live or not. */
struct ms_slot {
    _Atomic uint64_t state_word;
    _Atomic uint64_t requested; /* of a live block; who looks one up reads it as it may be reused */
    struct ms_extent *extent;
    uint32_t index;
    _Atomic uint32_t record_id;
};

/** The state of an extent of a range that no memory of the heap's lies in: see mapped.h. */
enum ms_vacuum {
    MS_VACUUM_NONE,
    MS_VACUUM_HOLE,
    MS_VACUUM_HELD,   /* has memory, and is out of the bins while the vendor is called */
    MS_VACUUM_FILLING /* was a hole; memory is put behind it just now */
};

/** Memory that lies together: free in a chunk, a span of slots, or one block. A request and a free touch the
 * first cache line alone. */
struct ms_extent {
    struct ms_segment *segment;
    _Atomic uint64_t address; /* these two are read without a lock; the rest is steady while a block lives */
    _Atomic uint32_t steps;   /* of 512 bytes */
    uint8_t class_index;      /* MS_NO_CLASS: one block of exact size */
    bool free;
    bool listed;                /* a span with a free slot is in its class's list */
    uint8_t vacuum;             /* enum ms_vacuum: neither free nor in use */
    uint64_t slot_bytes;        /* granted to a block */
    struct ms_slot only;        /* of a block of exact size; a late reader takes no part of a span for one */
    struct {                    /* of a span */
        _Atomic uint64_t slots; /* an array of the tables, and how many: ms_span_slots() */
        uint64_t reciprocal;    /* of slot_bytes / 512, 32 bits of fraction */
        uint32_t used, order;   /* order: of the array of slots */
    } span;
    struct ms_extent *before, *after;  /* in the segment */
    struct ms_extent *next, *previous; /* in the list of a bin, or of spans of the class that have room */
    uint64_t map[16];                  /* free slots of a span */
} MS_CACHELINE;

/** The extent in use that begins in 64 KiB of a chunk, or NULL. */
typedef struct ms_extent *_Atomic ms_unit;

/** NONE: on its way to or from the vendor or another heap, or to be given back: no request may have it. FREE:
 * vacant, for whoever finds it. The others are in use. */
enum ms_segment_use { MS_SEGMENT_NONE, MS_SEGMENT_FREE, MS_SEGMENT_CHUNK, MS_SEGMENT_DEDICATED };

/** One allocation of the vendor's. */
struct ms_segment {
    struct ms_heap *heap;
    uint64_t address, bytes;
    uint64_t base, base_bytes; /* of a stream arena's: what the vendor gave, of which this is the pages */
    ms_unit *_Atomic units;    /* of a chunk; see units.h */
    uint32_t unit_order;
    _Atomic uint32_t use; /* enum ms_segment_use */
    struct ms_extent *first;
    struct ms_backing *backing; /* it is a range of addresses with handles mapped into it */
    bool permanent;             /* PREALLOC */
    bool captured;              /* a graph may know its addresses */
    bool release;               /* its block was exported: back to the vendor, never recycled */
    struct ms_segment *leaving_next;
    struct ms_segment *next, *previous; /* all of a heap, or the free records */
} MS_CACHELINE;

/** Whose memory it is and where it lies. Who looks an address up reads that without a lock, perhaps of a
 * record that becomes another segment's just then; so it is written and read atomically there. */
static inline void ms_segment_place(struct ms_segment *segment, struct ms_heap *heap, uint64_t address,
                                    uint64_t bytes)
{
    __atomic_store_n(&segment->heap, heap, __ATOMIC_RELEASE); /* who finds it finds its locks */
    __atomic_store_n(&segment->address, address, __ATOMIC_RELAXED);
    __atomic_store_n(&segment->bytes, bytes, __ATOMIC_RELAXED);
}

static inline struct ms_heap *ms_segment_heap(const struct ms_segment *segment)
{
    return __atomic_load_n(&segment->heap, __ATOMIC_ACQUIRE);
}

/** True if the address lies in the segment, as far as that can be said without a lock. */
static inline bool ms_segment_covers(const struct ms_segment *segment, uint64_t address)
{
    return address - __atomic_load_n(&segment->address, __ATOMIC_RELAXED) <
           __atomic_load_n(&segment->bytes, __ATOMIC_RELAXED);
}

/** The chunk's units and which of them the address lies in; NULL where there are none (any more). No lock. */
static inline ms_unit *ms_segment_units(const struct ms_segment *segment, uint64_t address, uint64_t *unit_p)
{
    ms_unit *units = atomic_load_explicit(&segment->units, memory_order_acquire);
    uint64_t offset = address - __atomic_load_n(&segment->address, __ATOMIC_RELAXED),
             bytes = __atomic_load_n(&segment->bytes, __ATOMIC_RELAXED);
    atomic_thread_fence(memory_order_acquire);
    *unit_p = offset / MS_UNIT_BYTES;
    bool same = atomic_load_explicit(&segment->units, memory_order_relaxed) == units;
    return offset < bytes && same ? units : NULL;
}

static inline uint64_t ms_least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static inline uint64_t ms_round_up(uint64_t bytes, uint64_t step)
{
    return (bytes + step - 1) / step * step;
}

static inline uint32_t ms_slab_class(uint64_t bytes)
{
    if (bytes <= 8 * MS_STEP_BYTES)
        return bytes ? (uint32_t)((bytes - 1) / MS_STEP_BYTES) : 0;
    uint32_t doubling =
        63 - (uint32_t)__builtin_clzll(bytes - 1); /* 2^doubling < bytes <= 2^(doubling + 1) */
    return 8 + (doubling - 12) * 8 + (uint32_t)((bytes - 1 - ((uint64_t)1 << doubling)) >> (doubling - 3));
}
static inline uint64_t ms_slab_bytes(uint32_t class_index)
{
    if (class_index < 8)
        return (class_index + 1) * MS_STEP_BYTES;
    uint32_t doubling = (class_index - 8) / 8 + 12;
    return ((uint64_t)1 << doubling) + ((uint64_t)((class_index - 8) % 8 + 1) << (doubling - 3));
}

static inline enum ms_slot_state ms_slot_state(const struct ms_slot *slot)
{
    return (enum ms_slot_state)(atomic_load_explicit(&slot->state_word, memory_order_relaxed) &
                                MS_STATE_MASK);
}

static inline void ms_slot_set(struct ms_slot *slot, enum ms_slot_state state)
{
    uint64_t state_word = atomic_load_explicit(&slot->state_word, memory_order_relaxed);
    atomic_store_explicit(&slot->state_word, (state_word & ~MS_STATE_MASK) | state, memory_order_release);
}

static inline uint64_t ms_extent_address(const struct ms_extent *extent)
{
    return atomic_load_explicit(&extent->address, memory_order_relaxed);
}

static inline uint64_t ms_extent_bytes(const struct ms_extent *extent)
{
    return (uint64_t)atomic_load_explicit(&extent->steps, memory_order_relaxed) * MS_STEP_BYTES;
}

static inline void ms_extent_set(struct ms_extent *extent, uint64_t address, uint64_t bytes)
{
    atomic_store_explicit(&extent->address, address, memory_order_relaxed);
    atomic_store_explicit(&extent->steps, (uint32_t)(bytes / MS_STEP_BYTES), memory_order_relaxed);
}

/* Address and number in one word: who looks a block up reads them without a lock, perhaps of an extent that
 * becomes another's just then, and must not take the one's number for the other's. */
enum { MS_SPAN_COUNT_SHIFT = 48 };

static inline void ms_span_set_slots(struct ms_extent *extent, struct ms_slot *slots, uint32_t count)
{
    atomic_store_explicit(&extent->span.slots, (uintptr_t)slots | (uint64_t)count << MS_SPAN_COUNT_SHIFT,
                          memory_order_release);
}

/** NULL and 0 of an extent that is no span any more. */
static inline struct ms_slot *ms_span_slots(const struct ms_extent *extent, uint32_t *count_p)
{
    uint64_t slots = atomic_load_explicit(&extent->span.slots, memory_order_acquire);
    *count_p = (uint32_t)(slots >> MS_SPAN_COUNT_SHIFT);
    return (struct ms_slot *)(uintptr_t)(slots & (((uint64_t)1 << MS_SPAN_COUNT_SHIFT) - 1));
}

static inline uint32_t ms_extent_slot_count(const struct ms_extent *extent)
{
    uint32_t count = 1;
    if (extent->class_index != MS_NO_CLASS)
        ms_span_slots(extent, &count);
    return count;
}

static inline struct ms_slot *ms_extent_slot(struct ms_extent *extent, uint32_t index)
{
    uint32_t count;
    return extent->class_index == MS_NO_CLASS ? &extent->only : &ms_span_slots(extent, &count)[index];
}

/** An extent becomes one block, for whoever took it. */
static inline void ms_extent_make_block(struct ms_extent *extent)
{
    extent->class_index = MS_NO_CLASS;
    extent->slot_bytes = ms_extent_bytes(extent);
    extent->only.extent = extent;
    extent->only.index = 0;
    atomic_store_explicit(&extent->only.state_word, MS_SLOT_READY, memory_order_relaxed);
}

static inline uint64_t ms_slot_address(const struct ms_slot *slot)
{
    return ms_extent_address(slot->extent) + slot->index * slot->extent->slot_bytes;
}

#endif
