/* snapshot_pool.h - the pool's part of a snapshot; for snapshot.c alone.
 *
 * Floor 2. In the order of a snapshot: stop the pool, lock the record, figures, count, make room, copy,
 * unlock, go. */
#ifndef MS_RECORD_READER_SNAPSHOT_POOL_H
#define MS_RECORD_READER_SNAPSHOT_POOL_H

#include "record/reader/snapshot.h"

/** Before any lock of the record: whether the pool stands still now, and tells. False as well where there is
 * none to tell (`*has_source_p` false): then the rows of the record are all that there is. */
bool ms_snapshot_pool_stop(unsigned timeout_ms, bool *has_source_p);
void ms_snapshot_pool_go(void);

/* Under the locks of pools.c and of all blocks. */
/** While the pool stands still: its figures become rows of the record, as of snapshot->now_ns. */
void ms_snapshot_pool_figures(struct ms_snapshot *snapshot);
/** How much room it takes: the `_room` members. */
void ms_snapshot_pool_count(struct ms_snapshot *snapshot, bool is_told);
/** Fills that room; the places of sites are known. */
void ms_snapshot_pool_copy(struct ms_snapshot *snapshot, bool is_told);

#endif
