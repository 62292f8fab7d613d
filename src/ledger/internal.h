/* internal.h - what the files of the ledger know of each other; nobody else includes it.
 *
 * Floor 2. Locks: a block's shard (MS_RANK_BLOCKS) is held around every change of a block and of the totals
 * it counts in, so that whoever holds all shards sees sums that add up; inside it the lock of the device's
 * account (MS_RANK_SITE). */
#ifndef MS_LEDGER_INTERNAL_H
#define MS_LEDGER_INTERNAL_H

#include <stdatomic.h>

#include "base/lock.h"
#include "ledger/ledger.h"

enum {
    MS_SHARDS = 64,
    MS_ACCOUNTS = MS_DEVICES_MAX + 1, /* one per device, and one for memory of none */
    MS_SITES_MAX = 1 << 17,
    MS_SIZE_CLASSES = 48,
    MS_OOM_MAX = 64,
    MS_OOM_TOP_SITES = 5,
    MS_BLIND_SPOTS_MAX = 64,
    MS_BLIND_SPOT_BYTES = 256,
    MS_CONTEXTS_DIED_MAX = 64,
};

struct ms_amount {
    uint64_t live_bytes, live_count, peak_live_bytes, total_bytes, total_count;
};

/* Everything allocated by one api on one device from one stack.
 *
 * at_peak_bytes: what the site held when its account last rose to a new peak. It is not written at each peak
 * (there may be as many peaks as sites, and each would visit them all) but before the site's next change: as
 * long as `peak_seen` differs from the account's `peaks`, the site has not changed since that peak, and holds
 * now what it held then. */
struct ms_site {
    ms_stack_id stack;
    int16_t device;
    uint16_t api;
    uint8_t kind;
    uint64_t total_bytes, total_count, free_count;
    uint64_t live_bytes, live_count;
    uint64_t max_bytes; /* the most it ever held */
    uint64_t at_peak_bytes, peak_seen;
    uint64_t rounding_bytes;             /* bytes - requested, over live blocks */
    uint64_t died_bytes, died_count;     /* went with their context */
    uint64_t lifetime_ns_sum;            /* of those that were freed */
    uint64_t first_ns, last_ns;          /* of its allocations */
    uint32_t size_hist[MS_SIZE_CLASSES]; /* [k]: 2^k <= bytes < 2^(k+1); 0 counts in [0] */
};

/* One device's totals, under its lock. */
struct ms_account {
    struct ms_amount device; /* the kinds that take the device's own memory, together */
    struct ms_amount kinds[MS_KIND_COUNT];
    uint64_t peak_ns, peaks; /* when the peak was, how often it rose */
    uint32_t *site_index;    /* hash table of site numbers, this device's alone */
    uint32_t site_slots, site_count;
    struct ms_timeline *timeline;
};

/* sites.c: accounts and sites. A block's site is UINT32_MAX where the table was full. */
struct ms_account *ms_account_of(int device);
void ms_account_lock(const struct ms_account *account);
bool ms_account_lock_within(const struct ms_account *account, unsigned timeout_ms);
void ms_account_unlock(const struct ms_account *account);
/** Counts a block in; returns its site. Under the block's shard. */
uint32_t ms_account_add(const struct ms_block *block);
/** Why a block is no longer live: freed by the program, gone with its context, or freed unseen. */
enum ms_block_end { MS_BLOCK_FREED, MS_BLOCK_DIED, MS_BLOCK_UNSEEN };
/** Takes a block out of the live totals and counts its end, at `now_ns`. Under its shard. */
void ms_account_remove(const struct ms_block *block, enum ms_block_end end, uint64_t now_ns);
/** The opposite, after a refused free: as if it had never been begun. Under its shard. */
void ms_account_restore(const struct ms_block *block);
uint32_t ms_site_count(void);
struct ms_site *ms_site_at(uint32_t site);
/** at_peak_bytes as of now. Under the account's lock. */
uint64_t ms_site_at_peak(const struct ms_account *account, const struct ms_site *site);
uint64_t ms_sites_dropped(void);
/** Amounts of one kind over all devices; only for kinds that are not device memory. */
void ms_kind_amount(enum ms_kind kind, struct ms_amount *amount_p);
/** Fills at most MS_OOM_TOP_SITES sites that hold most on the device, largest first; returns how many. */
unsigned ms_account_top_sites(int device, uint32_t *sites, uint64_t *bytes);
void ms_accounts_reset(void);

/* blocks.c: the live blocks. */
/** All shards in order; false if one could not be had within `timeout_ms` in all (it is read without, then).
 */
bool ms_blocks_lock_all(unsigned timeout_ms);
void ms_blocks_unlock_all(void);
/** Under all shards. */
uint64_t ms_blocks_count(void);
void ms_blocks_each(void (*visit)(void *arg, const struct ms_block *block), void *arg);
uint64_t ms_blocks_dropped(void);
uint64_t ms_blocks_replaced(void);
void ms_blocks_reset(void);

/* timeline.c: the most that was live in each stretch of time, under the account's lock. */
/** The number of stretches kept; before the first note. */
void ms_timeline_configure(unsigned buckets);
/** The live bytes became `live` at `now_ns`, having been `before` until then. */
void ms_timeline_note(struct ms_timeline **timeline_p, uint64_t now_ns, uint64_t before, uint64_t live);
/** How long one stretch is by now, as a power of two of nanoseconds; 0 if there is none. */
unsigned ms_timeline_shift(const struct ms_timeline *timeline);
/** Copies the stretches up to `now_ns` at the coarser `shift`; returns how many. `live` is the value since
 * the last note. */
unsigned ms_timeline_copy(const struct ms_timeline *timeline, unsigned shift, uint64_t now_ns, uint64_t live,
                          uint64_t *values, unsigned max);
unsigned ms_timeline_buckets(void);

/* events.c: what is counted besides blocks. */
struct ms_api_count {
    _Atomic uint64_t calls, bytes, failures;
} __attribute__((aligned(64)));

struct ms_oom {
    uint64_t t_ns, requested, live_bytes;
    ms_stack_id stack;
    int16_t device;
    uint16_t api;
    uint32_t top_count;
    uint32_t top_sites[MS_OOM_TOP_SITES];
    uint64_t top_bytes[MS_OOM_TOP_SITES];
};

/* A context that died with blocks in it. */
struct ms_context_died {
    uint64_t context, t_ns, bytes, count;
    int device;
};

const struct ms_api_info *ms_events_apis(unsigned *count_p);
const struct ms_api_count *ms_events_api_count(unsigned api);
void ms_events_touch(void);
void ms_events_context_died(const struct ms_context_died *death);
/** The i-th by age, false past the last; `*lost_p` were overwritten. */
bool ms_events_oom(unsigned i, struct ms_oom *oom_p, uint64_t *lost_p);
bool ms_events_death(unsigned i, struct ms_context_died *death_p, uint64_t *lost_p);
const char *ms_events_blind_spot(unsigned i);
uint64_t ms_events_route(enum ms_route route);
uint64_t ms_events_divergent(void);
uint64_t ms_events_unseen_frees(void);
bool ms_events_device(int device, struct ms_device_info *info_p);
/** The start of time anew. */
void ms_events_reset(void);

#endif
