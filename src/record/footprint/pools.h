/* pools.h - what the record holds of memshim's own pool: figures of each device and the segments that the
 * vendor gave; and who can tell what lies in them.
 *
 * Floor 2. Told by the hooks, which hear it from the pool; rare calls (the pool speaks up where it called the
 * vendor). No malloc, no vendor call; one short lock. The rows lie in tables of base/store/store.h:
 * docs/internals/ledger-format.md. */
#ifndef MS_RECORD_FOOTPRINT_POOLS_H
#define MS_RECORD_FOOTPRINT_POOLS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/store/figures.h"

/** Requests for which there was no memory; and what the memory for them is made of. */
enum ms_asked {
    MS_ASKED_UNKNOWN,
#define MS_ASKED_ROW(kind, word, group, told) MS_ASKED_##kind,
#include "record/live/oom.def"
    MS_ASKED_KINDS
};
enum ms_asked_group {
    MS_ASKED_OF_POOL,
    MS_ASKED_OF_CACHE,
    MS_ASKED_OF_DEVICE,
    MS_ASKED_OF_GRAPH,
    MS_ASKED_OF_DRIVER,
    MS_ASKED_OF_MANAGED,
    MS_ASKED_OF_HOST,
    MS_ASKED_OF_ADDRESSES
};
/** The request for a kind of memory (enum ms_kind). */
static inline enum ms_asked ms_asked_of_kind(unsigned kind)
{
    return (enum ms_asked)(MS_ASKED_DEVICE + kind);
}
/** Why there was no memory. */
enum ms_oom_cause {
    MS_OOM_UNKNOWN,
#define MS_OOM_CAUSE_ROW(cause, word) MS_OOM_##cause,
#include "record/live/oom.def"
    MS_OOM_CAUSES
};
/** The kind of fragmentation, where that is the cause. */
enum ms_oom_fragmentation {
    MS_OOM_WHOLE,       /* none */
    MS_OOM_INTERLEAVED, /* what is free lies between live blocks */
    MS_OOM_SEGMENTS,    /* enough is vacant, in several pieces */
    MS_OOM_STREAMS,     /* enough is free, for other streams */
    MS_OOM_FRAGMENTATIONS
};
/** A variable with which the request would have been answered. */
enum ms_oom_policy {
    MS_OOM_NO_POLICY,
    MS_OOM_RAISE_LIMIT,
    MS_OOM_USE_VMM,
    MS_OOM_NO_PREALLOC,
    MS_OOM_EXPANDABLE, /* may have helped: only a run can tell */
    MS_OOM_RAISE_CACHE_LIMIT,
    MS_OOM_POLICIES
};
/** Changes that would have made the request fit: each for itself, as far as it is there. */
struct ms_oom_fit {
    uint64_t free_bytes; /* so much more, freed before; 0 where that would not have done */
    uint64_t value;      /* of the policy */
    uint64_t most_bytes; /* so much could be had as it was; 0: not that */
    uint8_t policy;      /* enum ms_oom_policy */
    bool wait;           /* for what is under way on the device */
};
struct ms_oom_view {
    enum ms_asked asked;
    enum ms_oom_cause cause;
    enum ms_oom_fragmentation fragmentation;
    uint64_t reserved, largest_free, pending;
    uint64_t free, total;                    /* of the device, by the driver; 0 where it was not asked */
    uint64_t taken;                          /* by the driver, for contexts and modules */
    uint64_t followed;                       /* live blocks that the vendor made, but for managed ones */
    uint64_t driver_rounding, driver_cached; /* balance.h */
    bool is_inferred;                        /* these are */
    bool is_one_moment;                      /* these, and what the driver said */
    struct ms_parts parts;
    struct ms_oom_fit fit;
};

/** The i-th of the streams of the program's own pools. */
void ms_ledger_stream_arena(uint32_t i, const struct ms_stream_figures *record);

/** The device's figures are these now. */
void ms_ledger_pool(int device, const struct ms_pool_figures *record);
void ms_ledger_segment_added(const struct ms_segment_record *segment);
void ms_ledger_segment_removed(uint64_t address);

/** Who can say how the pool is at one moment; the record's own rows are as old as what it was told last. */
struct ms_pool_source {
    /** Nothing in the pool changes from now on until `go`, of the same thread; false, and nothing has
     * happened, if that cannot be had in about `timeout_ms`: somebody holds a lock, perhaps this very thread
     * below a signal handler. */
    bool (*stop)(unsigned timeout_ms);
    /** In between, with the record locked as well: call the functions below, no others of the record's that
     * take a lock. `tell_pieces` is called twice and says the same; the pieces of a segment come together, in
     * the order of their offsets, and cover it. */
    void (*tell_figures)(void);
    void (*tell_pieces)(void);
    void (*go)(void);
};
/** NULL: nobody (any more). Stays the caller's and must live on. */
void ms_ledger_set_pool_source(const struct ms_pool_source *source);
void ms_snapshot_put_pool(int device, const struct ms_pool_figures *record);
void ms_snapshot_put_stream_arena(uint32_t i, const struct ms_stream_figures *record);
void ms_snapshot_put_piece(const struct ms_piece_record *piece);

#endif
