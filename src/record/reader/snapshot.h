/* snapshot.h - a consistent copy of the ledger, for the report.
 *
 * Floor 2. Taken while the pool stands still and with every lock of the record held, so that figures, pieces
 * and rows are of one moment and all sums add up; read without any. Its memory is one private mapping, never
 * malloc. */
#ifndef MS_RECORD_READER_SNAPSHOT_H
#define MS_RECORD_READER_SNAPSHOT_H

#include <stddef.h>

#include "record/footprint/balance.h"
#include "record/live/inner.h"
#include "record/live/invalid_frees.h"
#include "record/phases/phases.h"
#include "record/footprint/footprints.h"
#include "record/live/uses.h"

struct ms_snapshot_site {
    /* Of all shards, as of the snapshot; kept_peak_bytes: at the peak of the interval that is measured. */
    struct ms_site site;
    uint64_t live_first_ns, live_last_ns; /* when its live blocks were born */
    uint64_t owed_bytes, owed_count;      /* of what is live for graphs: what the program has to free */
    struct ms_estimate live_estimate;     /* as site.estimate, of what is live */
    uint32_t row;                         /* in the record, by which a trace knows it */
    bool max_is_bound; /* of several shards: site.max_bytes is no less than the most that it ever held */
};

struct ms_snapshot_device {
    struct ms_account account;
    uint64_t freed_count;  /* of all kinds */
    uint64_t *timeline;    /* timeline_count values, or NULL if nothing ever lived there */
    uint64_t *reserved;    /* likewise of the pool's segments and followed blocks together */
    uint64_t *pending;     /* likewise of what the pool has pending */
    uint64_t served_bytes; /* of the live bytes, from the pool */
    bool has_pool;
    struct ms_pool_figures pool;
    uint64_t peak_held_bytes; /* of the pool's segments and followed blocks together */
    bool has_balance[MS_BALANCE_MOMENTS];
    uint64_t driver_rounding_bytes; /* now (granules.h) */
    uint32_t balance_missed[MS_BALANCE_MISSES];
    struct ms_balance balances[MS_BALANCE_MOMENTS];
    uint64_t left_out_bytes, left_out_count; /* of the live blocks: those that `blocks` has no room for */
};

/** All that the program has of the device: the pool's segments, and what the vendor made for it. */
static inline uint64_t ms_snapshot_held(const struct ms_snapshot_device *device)
{
    uint64_t live = device->account.device.live_bytes, served = device->served_bytes;

    return device->pool.reserved_bytes + (live > served ? live - served : 0);
}

/** The live blocks of a layer, by device, space and key; the largest ones if there were too many. Their sites
 * are places. */
struct ms_snapshot_blocks {
    struct ms_block *list;
    uint64_t count, total, room;
};

/** A segment of the pool's and the pieces in it: none if it was not the pool that told of it. */
struct ms_snapshot_segment {
    struct ms_segment_record record;
    uint32_t first_piece, pieces, pieces_left_out;
};

struct ms_snapshot_piece {
    uint64_t offset, bytes, requested;
    uint32_t block; /* in `told`, + 1; 0: the record knows no block there */
    uint8_t state;  /* enum ms_piece_state */
};

struct ms_snapshot {
    uint64_t now_ns;
    bool consistent; /* false: a lock was not to be had, and some figures may be of different moments */
    struct ms_events_copy events;
    struct ms_counts *counts; /* of each function */
    uint32_t counts_count;
    struct ms_snapshot_device devices[MS_ACCOUNTS]; /* by ms_account_number() */
    struct ms_amount kinds[MS_KIND_COUNT];
    struct ms_snapshot_site *sites; /* those of the outer layer come first */
    uint32_t site_count, outer_sites;
    uint32_t *places; /* in `sites`, of each row of the record */
    uint32_t row_count;
    struct ms_snapshot_blocks blocks[MS_LAYERS];
    struct ms_heap_row *heaps; /* copies of those that are there */
    uint32_t heap_count;
    struct ms_stream_figures *flows;
    uint32_t flow_count, flow_room;
    struct ms_snapshot_segment *segments;
    uint32_t segment_count, segment_room;
    struct ms_snapshot_piece *pieces;
    uint32_t piece_count, piece_room;
    struct ms_block *told; /* blocks of the pool's, by their pieces. Their sites are places */
    uint32_t told_count, told_room;
    struct ms_invalid_free_row *invalid_frees; /* with sites as the record numbers them */
    uint32_t misfree_count;
    struct ms_footprint_row *footprints;
    uint32_t footprint_count, footprint_room;
    struct ms_phases_told phases;            /* with sites as the record numbers them */
    struct ms_lives_told lives;              /* likewise; nothing without MEMSHIM_USES */
    unsigned timeline_count, timeline_shift; /* buckets of 1 << shift nanoseconds */
    void *memory;
    size_t memory_bytes;
};

/** The place in `sites` of the site with this number in the record; UINT32_MAX if it has none. */
static inline uint32_t ms_snapshot_place(const struct ms_snapshot *snapshot, uint32_t number)
{
    return number < snapshot->row_count ? snapshot->places[number] : UINT32_MAX;
}

/** The place of that site in its layer's own list; UINT32_MAX if it is none of that layer, as a damaged file
 * may have it. */
static inline uint32_t ms_snapshot_layer_place(const struct ms_snapshot *snapshot, enum ms_layer layer,
                                               uint32_t number)
{
    uint32_t place = ms_snapshot_place(snapshot, number);
    if (place >= snapshot->site_count || (place >= snapshot->outer_sites) != (layer == MS_LAYER_INNER))
        return UINT32_MAX;
    return place < snapshot->outer_sites ? place : place - snapshot->outer_sites;
}

/** Returns 0, or -1 without memory. Keeps at most so many blocks, and inner ones, the largest. Waits at most
 * about a second for each kind of lock. */
int ms_snapshot_take(struct ms_snapshot *snapshot, uint64_t blocks_max, uint64_t inner_max);
void ms_snapshot_release(struct ms_snapshot *snapshot);

#endif
