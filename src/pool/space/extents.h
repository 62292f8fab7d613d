/* extents.h - a heap's bytes: its segments, and what is free of them.
 *
 * Floor 2, the lowest room of the pool, for src/pool/ and its tests alone: knows no GPU, no streams and no
 * threads. What it has to ask of whoever knows those is a table of functions, its rules. Under the lock of
 * the heap that it is part of, as all functions here are called. */
#ifndef MS_POOL_SPACE_EXTENTS_H
#define MS_POOL_SPACE_EXTENTS_H

#include <string.h>

#include "pool/space/records.h"

enum { MS_EXTENT_ROWS = 32, MS_EXTENT_COLUMNS = 32 };

struct ms_extents;

/** Asked under the same lock; none calls the vendor. Of an extent: only of one in a range (records.h). */
struct ms_extent_rules {
    /** True if a block of `bytes` may be taken of the free extent. */
    bool (*suits)(const struct ms_extent *extent, uint64_t bytes);
    /** The extent is a block from now on. */
    void (*used)(struct ms_extent *extent);
    /** The segment is vacant no more. */
    void (*opened)(struct ms_segment *segment);
    /** The longest vacant segment that may be carved for `bytes`. */
    uint64_t (*may_carve)(const struct ms_extents *extents, uint64_t bytes);
};

struct ms_extents {
    const struct ms_extent_rules *rules;
    struct ms_segment **vacant; /* by size */
    uint32_t vacant_room, vacant_order;
    /* From here on it is of one life of the heap. */
    uint32_t vacant_count;
    uint64_t vacant_bytes;
    struct ms_segment *leaving; /* vacant, and for nobody but the vendor; linked by `leaving_next` */
    uint64_t leaving_bytes;
    struct ms_segment *segments; /* all */
    /* Chunks. */
    uint32_t rows;
    uint32_t columns[MS_EXTENT_ROWS];
    struct ms_extent *bins[MS_EXTENT_ROWS][MS_EXTENT_COLUMNS];
    uint64_t run_free_bytes, run_free_count, chunk_bytes;
    /* Spans with room, by class. */
    struct ms_extent *spans[MS_CLASSES];
    uint32_t span_count[MS_CLASSES];
};

/** A request, and the size, alignment and class that it comes to. */
struct ms_request {
    uint64_t requested, granted;
    uint64_t align;       /* of an extent of its own */
    uint32_t class_index; /* MS_NO_CLASS: that */
    bool single;          /* has to be a segment of its own */
    bool large;           /* is one where it is new, but may come out of another */
};

/* slab.c */
/** Up to `count` slots of the class into `items`; makes a span if there is none with room. */
uint32_t ms_slab_take(struct ms_extents *extents, uint32_t class_index, struct ms_slot **items,
                      uint32_t count);
void ms_slab_put(struct ms_extents *extents, struct ms_slot *slot);

/* extent.c */
/** The place that an extent would be taken of, a free extent or what is vacant, and how long that is; all 0
 * without either. It holds until the lock is let go. */
struct ms_fit {
    struct ms_extent *extent;
    struct ms_segment *vacant;
    uint64_t bytes;
};
struct ms_fit ms_extent_fit(struct ms_extents *extents, uint64_t bytes, uint64_t align);
struct ms_extent *ms_extent_take_fit(struct ms_extents *extents, const struct ms_fit *fit, uint64_t bytes,
                                     uint64_t align);
/** A used extent of `bytes` (a multiple of 512, at least a unit), at a multiple of `align`, from a chunk or
 * from what is vacant and may be carved; NULL if neither has room. */
struct ms_extent *ms_extent_take(struct ms_extents *extents, uint64_t bytes, uint64_t align);
/** The slot of an extent that is taken as by ms_extent_take, for the request. */
struct ms_slot *ms_extent_take_for(struct ms_extents *extents, const struct ms_request *request);
/** As ms_extent_take, but of what is free in [begin, end) of a chunk, from the first byte that is; NULL if
 * there is no room. */
struct ms_extent *ms_extent_take_within(struct ms_extents *extents, struct ms_segment *segment,
                                        uint64_t begin, uint64_t end, uint64_t bytes);
/** Back to its chunk; a chunk that has become empty is vacant. */
void ms_extent_put(struct ms_extents *extents, struct ms_extent *extent);
/** Hints: what ms_extent_put of a slot's run will look at is on its way from memory, the first some blocks
 * before the second, which looks at the extent itself. */
void ms_extent_fetch(const struct ms_slot *slot);
void ms_extent_fetch_neighbours(const struct ms_extent *extent);
/** A vacant segment becomes a chunk. False without memory for tables. */
bool ms_extent_open(struct ms_extents *extents, struct ms_segment *segment);
/** Behind ms_extent_open and what was to be taken there: a chunk of which nothing was taken is vacant
 * again. */
void ms_extent_close(struct ms_extents *extents, struct ms_segment *segment);
/** An extent of a context that is gone: none of its blocks is live any more, and its record is another's. */
void ms_extent_forget(struct ms_extent *extent);
uint64_t ms_extent_largest(const struct ms_extents *extents);
/** The extent that an address of a chunk lies in, if it is in use. Without a lock. */
struct ms_extent *ms_extent_at(const struct ms_segment *segment, uint64_t address);
/** Of a free extent the part at [begin, begin + bytes): neither free nor in use, and in no bin; the rest
 * stays free. Longer than that, or NULL, without memory for tables. */
struct ms_extent *ms_extent_hold(struct ms_extents *extents, struct ms_extent *extent, uint64_t begin,
                                 uint64_t bytes);
/** A held extent is free again, together with what is free beside it. */
void ms_extent_merge(struct ms_extents *extents, struct ms_extent *extent);
/** A new run behind `run`, which keeps its first `bytes`; both in no bin. NULL without memory for tables. */
struct ms_extent *ms_extent_cut(struct ms_extent *extent, uint64_t bytes);

/* dedicated.c */
void ms_vacant_put(struct ms_extents *extents, struct ms_segment *segment);
void ms_vacant_remove(struct ms_extents *extents, struct ms_segment *segment);
/** A vacant segment that may be carved for an extent. */
struct ms_segment *ms_vacant_for_run(struct ms_extents *extents, uint64_t bytes);
/** A block that is a whole segment, if one is vacant that fits. */
struct ms_slot *ms_dedicated_take(struct ms_extents *extents, uint64_t bytes);
/** A large block that need not be a whole segment; `fit`: as ms_extent_fit says. */
struct ms_slot *ms_large_take(struct ms_extents *extents, const struct ms_fit *fit,
                              const struct ms_request *request);
/** A block that is this very segment, which is vacant. */
struct ms_slot *ms_dedicated_open(struct ms_extents *extents, struct ms_segment *segment);
void ms_dedicated_put(struct ms_extents *extents, struct ms_extent *extent);

/** A life of the heap is over: no segment is there any more. */
static inline void ms_extents_clear(struct ms_extents *extents)
{
    const size_t kept = offsetof(struct ms_extents, vacant_count);
    memset((char *)extents + kept, 0, sizeof(*extents) - kept);
}

#endif
