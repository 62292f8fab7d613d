/* uses_replay.h - by how much the peak would fall if memory came later or went earlier: MEMSHIM_USES.
 *
 * Floor 4. Runs in the process too, when the report is written: no malloc, one private mapping. Lives
 * (record/live/uses.h) are intervals of one sequence of numbers. All of them are gone through in order, once
 * as they were, and once for each site that held idle memory at the peak, as if its lives had begun with
 * their first use, or ended with their last, or had not been: what then is the peak is counted anew, and
 * never told from sums. */
#ifndef MS_REPORT_FINDINGS_USES_REPLAY_H
#define MS_REPORT_FINDINGS_USES_REPLAY_H

#include "record/reader/snapshot.h"

enum ms_idle { MS_IDLE_NEVER, MS_IDLE_LATE, MS_IDLE_EARLY, MS_IDLES };

/** The memory that a site held at the peak of a device without a use: before the first, after the last, or at
 * all. */
struct ms_idle_site {
    uint32_t site; /* a place in the snapshot's sites */
    int16_t device;
    uint8_t idle; /* enum ms_idle */
    bool exact;   /* every use was seen */
    uint64_t bytes, count;
    uint64_t byte_events; /* bytes x numbers of the sequence, over which they were idle */
    uint64_t falls_bytes; /* so much lower would the peak be */
};

/** Pinned memory of a site: all that its blocks were, and how far into them uses went. */
struct ms_idle_pinned {
    uint32_t site;
    bool exact;
    uint64_t bytes, reach_bytes, count;
};

enum { MS_IDLE_SITES_MAX = 64, MS_IDLE_PINNED_MAX = 64 };

struct ms_replay {
    bool told; /* false: there are no lives, not all of them, or nothing to count them in */
    uint32_t site_count, pinned_count;
    struct ms_idle_site sites[MS_IDLE_SITES_MAX];
    struct ms_idle_pinned pinned[MS_IDLE_PINNED_MAX];
};

void ms_replay(const struct ms_snapshot *snapshot, struct ms_replay *replay);

#endif
