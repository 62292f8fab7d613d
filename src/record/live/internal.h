/* internal.h - what the files of the ledger know of each other; nobody else includes it but the report.
 *
 * Floor 2. The structures are rows of the tables in base/store/store.h, and so of the file:
 * docs/internals/ledger-format.md. Locks: a block's stripe (MS_RANK_BLOCKS) around what concerns its entry
 * in the index of keys; inside it those of its account: MS_RANK_PEAK for what its shards have in common,
 * and MS_RANK_SITE for each shard (shards.h): who holds all of them sees sums that add up. */
#ifndef MS_RECORD_LIVE_INTERNAL_H
#define MS_RECORD_LIVE_INTERNAL_H

#include <stdatomic.h>

#include "base/compiler.h"
#include "base/lock.h"
#include "base/store/store.h"
#include "record/live/ledger.h"
#include "record/footprint/pools.h"
#include "record/live/rows.h"

/* accounts.c: what is live on each device, and ever was. Where the table of sites is full, a block's site is
 * the one without a stack of its device, function and kind; UINT32_MAX where even that has no row. */
/** The tables have memory from now on; without it accounts are kept aside. */
void ms_accounts_open(void);
/** The device's row in shard 0, which has its peak. */
struct ms_account *ms_account_of(int device);
/** The totals of account `number` over all shards, under its locks. The peak of a kind is exact as long as
 * there is one shard, and else at most that of its shards together. */
void ms_account_sum(unsigned number, struct ms_account *sum_p);
/** All locks of all accounts, or of one; false if one could not be had within `timeout_ms`, which is then
 * done without. */
bool ms_accounts_lock_all(unsigned timeout_ms);
void ms_accounts_unlock_all(void);
void ms_account_lock(int device);
void ms_account_unlock(int device);
/** Bytes of the device's own memory that are live. */
uint64_t ms_account_live(int device);
/** True if what the shards may come to hold without asking adds up to no more than the peak. Under the
 * account's locks. */
bool ms_account_is_bounded(unsigned number);
/** Counts a block in that is found by its key, as born at `now_ns`, and gives it a row that says so: returns
 * the row + 1, or 0 without room. Under the block's stripe. */
uint32_t ms_account_add(const struct ms_block *block, uint64_t now_ns);
/** The opposite of a removal, after a refused free: as if it had never been begun. Also of a block that has
 * another size now, `grown_bytes` more. */
uint32_t ms_account_restore(const struct ms_block *block, uint64_t grown_bytes);
/** The block of the row - 1 went, at `now_ns`: its row says so, and its end is counted. False, and nothing
 * is done, if it is not a live block of `space`, `key` and `context` (0: of any), which must be `served` or
 * not. Under its stripe, if it has an entry there. `block_p` may be NULL. */
bool ms_account_remove(uint32_t block_row, enum ms_space space, uint64_t key, bool served, uint64_t context,
                       enum ms_block_end end, uint64_t now_ns, struct ms_block *block_p);
/** Amounts of one kind over all devices; only for kinds that are not device memory. */
void ms_kind_amount(enum ms_kind kind, struct ms_amount *amount_p);
/** Fills at most MS_OOM_TOP_SITES sites that hold most on the device, largest first; returns how many. */
unsigned ms_account_top_sites(int device, uint32_t *sites, uint64_t *bytes);

/* sites.c */
uint32_t ms_site_count(void);
/** NULL for a site that does not exist, or is not whole yet. */
struct ms_site *ms_site_at(uint32_t site);
/** at_peak_bytes as of now, of a device that has risen to a new peak `peaks` times, be it its own or that of
 * an interval. Under the locks of its account. */
static inline uint64_t ms_site_at_peak(uint64_t peaks, const struct ms_site *site)
{
    return site->peak_seen == peaks ? site->at_peak_bytes : site->live_bytes;
}
/** The bytes that a site held at the device's own peak, by the device's row in shard 0. */
static inline uint64_t ms_site_at_device_peak(const struct ms_account *account, const struct ms_site *site)
{
    return account->device_peaks == account->peaks ? ms_site_at_peak(account->peaks, site)
                                                   : site->kept_peak_bytes;
}
/** True if what a site holds rose in at least three quarters of the spans after the one in which it began, of
 * which there must be five, and has not fallen by more than a quarter since. marks[] must be up to date. */
bool ms_site_is_growing(const struct ms_site *site);
/** Of what was freed altogether: the most that it held, if that rose likewise through a second or more, in a
 * hundred blocks or more, and until the last eighth of the run; else 0. marks[] must be up to date. */
uint64_t ms_site_grew(const struct ms_site *site);
/** How long spans are at `now_ns`, a power of two. */
unsigned ms_span_shift(uint64_t now_ns);
/** The latest time of which the row knows: it may be the only one that does, where its process was killed. */
uint64_t ms_site_latest_ns(const struct ms_site *site);
/** Of a copy: no mark is of a time behind `now_ns`, and where spans are others than then none is known. */
void ms_site_cut_marks(struct ms_site *site, uint64_t now_ns);
/** Adds another shard's figures of the same site; marks[] of both must be up to date. */
void ms_site_merge(struct ms_site *sum, const struct ms_site *site);
uint64_t ms_sites_dropped(void);
/** How many allocations counted at a site without a stack, for want of a row for theirs. */
uint64_t ms_sites_merged(void);

/* rows.c */
/** The live block of a record id; false if there is none. */
bool ms_blocks_read(uint32_t record_id, struct ms_block *block_p);
void ms_blocks_each(void (*visit)(void *arg, const struct ms_block *block), void *arg);
uint64_t ms_blocks_count(enum ms_layer layer);
uint64_t ms_blocks_dropped(void);

/* blocks.c: finding a block by its key. */
/** After a block went, `found`: one more late free, where the record is reported. With nothing locked. */
extern MS_HIDDEN atomic_bool ms_blocks_reported;
void ms_blocks_count_late(void);
static inline void ms_blocks_look_if_late(bool found)
{
    if (MS_UNLIKELY(atomic_load_explicit(&ms_blocks_reported, memory_order_relaxed)) && found)
        ms_blocks_count_late();
}
/** All stripes in order; false if one could not be had within `timeout_ms` in all (it is read without,
 * then). */
bool ms_blocks_lock_all(unsigned timeout_ms);
void ms_blocks_unlock_all(void);
uint64_t ms_blocks_replaced(void);

/* history.c: the most that was live in each bucket of time, under the account's lock. */
struct ms_history {
    uint32_t shift, last;
    uint64_t values[];
};
enum { MS_HISTORY_CHANGING = 128 }; /* in `shift`: values are on their way */
/** The number of buckets kept; before the first note. */
void ms_history_configure(unsigned buckets);
/** The timeline of an account's live bytes; made if `create`. NULL if there is none, or no memory. */
struct ms_history *ms_history_of(unsigned account, bool create);
/** The timeline of what the program holds of it, the pool's segments and blocks that the vendor made, or of
 * what the pool has pending; both under the lock of pools.c. */
enum ms_series { MS_SERIES_LIVE, MS_SERIES_RESERVED, MS_SERIES_PENDING, MS_SERIES_COUNT };
struct ms_history *ms_history_of_series(enum ms_series series, unsigned account, bool create);
/** The live bytes became `live` at `now_ns`, having been `before` until then. NULL takes no notes. */
void ms_history_note(struct ms_history *timeline, uint64_t now_ns, uint64_t before, uint64_t live);
/** When its latest bucket ends. */
uint64_t ms_history_until(const struct ms_history *timeline);
/** How long one bucket is by now, as a power of two of nanoseconds; 0 if there is none. */
unsigned ms_history_shift(const struct ms_history *timeline);
/** Copies the buckets up to `now_ns` at the coarser `shift`; returns how many. `live` is the value since
 * the last note. */
unsigned ms_history_copy(const struct ms_history *timeline, unsigned shift, uint64_t now_ns, uint64_t live,
                         uint64_t *values, unsigned max);
unsigned ms_history_buckets(void);
/** In a reader: takes the timelines of that many buckets that were read, as far as they are whole. */
void ms_history_adopt(unsigned count);

/* pools.c: the pool's figures and segments. */
struct MS_CACHELINE ms_pool_row {
    _Atomic uint64_t sequence; /* odd while it is written */
    uint64_t latest_ns;
    struct ms_pool_figures record;
    _Atomic uint64_t peak_held_bytes; /* with what is followed; there without a record, too */
};
_Static_assert(sizeof(struct ms_pool_row) == MS_TABLE_POOLS_ROW_BYTES, "a row of the ledger");

struct MS_CACHELINE ms_stream_arena_row {
    _Atomic uint64_t sequence; /* odd while it is written */
    uint64_t latest_ns;
    struct ms_stream_figures record;
};
_Static_assert(sizeof(struct ms_stream_arena_row) == MS_TABLE_STREAM_ARENAS_ROW_BYTES, "a row of the ledger");

enum { MS_SEGMENT_NEVER, MS_SEGMENT_THERE, MS_SEGMENT_GONE };
struct MS_CACHELINE ms_segment_row {
    struct ms_segment_record record;
    uint64_t born_ns;
    uint32_t next; /* this process's own */
    _Atomic uint32_t state;
};
_Static_assert(sizeof(struct ms_segment_row) == MS_TABLE_SEGMENTS_ROW_BYTES, "a row of the ledger");

/** As ms_ledger_pool and ms_ledger_stream_arena, under the lock. */
void ms_pools_put(int device, const struct ms_pool_figures *record, uint64_t now_ns);
void ms_stream_arenas_put(uint32_t i, const struct ms_stream_figures *record, uint64_t now_ns);
/** The bytes of the device's blocks that are the vendor's own (ms_balance_beside) have become so many, by
 * `change`, modulo 2^64. Takes no lock where that changes nothing of the course of time. */
void ms_pools_beside(int device, uint64_t now_ns, uint64_t beside_bytes, uint64_t change);
/** The most that pool and those had at once. */
uint64_t ms_pools_held_most(int device);
/** False if nothing was ever reserved on the device. */
bool ms_pools_read(int device, struct ms_pool_figures *record_p);
/** False past the last. */
bool ms_stream_arenas_read(uint32_t i, struct ms_stream_figures *record_p);
/** The i-th row: NULL if it has no segment; `*past_p` past the last. */
const struct ms_segment_row *ms_segments_at(uint64_t i, bool *past_p);
bool ms_pools_lock_within(unsigned timeout_ms);
void ms_pools_unlock(void);

/* events.c: what is counted besides blocks. */
struct MS_CACHELINE ms_api_row {
    char name[48], family[16];
};
_Static_assert(sizeof(struct ms_api_row) == MS_TABLE_APIS_ROW_BYTES, "a row of the ledger");

/* counts.c: calls of one function, as one thread counts them. */
_Static_assert(sizeof(struct ms_counts) == MS_TABLE_COUNTS_ROW_BYTES, "a row of the ledger");
/** From now on calls are counted. */
void ms_counts_open(unsigned apis);
/** Of all threads; false past the last function. */
bool ms_counts_sum(unsigned api, struct ms_counts *sum_p);

struct MS_CACHELINE ms_oom {
    _Atomic uint64_t number; /* the n-th ever has n + 1; 0 while it is written */
    uint64_t t_ns, requested, live_bytes;
    ms_stack_id stack;
    int16_t device;
    uint16_t api;
    uint32_t top_count;
    uint32_t top_sites[MS_OOM_TOP_SITES];
    uint64_t top_bytes[MS_OOM_TOP_SITES];
    uint64_t reserved_bytes, largest_free_bytes, limbo_bytes;
    uint32_t cause;         /* enum ms_oom_cause */
    uint32_t fragmentation; /* enum ms_oom_fragmentation */
    uint32_t phase;         /* the row of the phase in which it was, + 1 */
    uint32_t site_count;    /* rows of the table of what sites held */
    uint64_t site_first;    /* the number of the first of them, of all there ever were (oom_sites.c) */
    uint64_t free_bytes, total_bytes, taken_bytes;
    struct ms_parts parts;
    struct ms_oom_fit fit;
    uint64_t followed_bytes, driver_rounding_bytes, driver_cached_bytes;
    uint32_t is_inferred, is_one_moment; /* what is in use, and whose */
    uint32_t asked;                      /* enum ms_asked */
    uint32_t thread;
    uint32_t refused; /* of the inner layer: so many rows before it of its thread are the vendor's refusals of
                       * the memory that it asked for */
    uint32_t is_answered; /* an allocator of the program's own asked again, and had it */
};
_Static_assert(sizeof(struct ms_oom) == MS_TABLE_OOMS_ROW_BYTES, "a row of the ledger");

/* The bytes that a site held when there was no memory. Rows are used again, in turns: `number` is which one
 * it is of all there ever were, + 1. */
struct ms_oom_site {
    _Atomic uint64_t number;
    uint64_t bytes;
    uint32_t site, unused;
};
_Static_assert(sizeof(struct ms_oom_site) == MS_TABLE_OOM_SITES_ROW_BYTES, "a row of the ledger");
/* oom_sites.c */
/** Writes down what each site of the device holds, into the row. */
void ms_oom_note_sites(struct ms_oom *oom);
/** The k-th of them, by no order; false past the last, and of those that are no longer there. */
bool ms_oom_site_at(const struct ms_oom *oom, uint32_t k, uint32_t *site_p, uint64_t *bytes_p);
/** The site with its bytes, for each that holds memory of the device, under its locks. */
void ms_account_each_site(int device, void (*tell)(void *arg, uint32_t site, uint64_t bytes), void *arg);

/* A context that died with blocks in it. */
struct MS_CACHELINE ms_context_died {
    _Atomic uint64_t number; /* as above */
    uint64_t context, t_ns, bytes, count;
    int32_t device;
};
_Static_assert(sizeof(struct ms_context_died) == MS_TABLE_DEATHS_ROW_BYTES, "a row of the ledger");

struct MS_CACHELINE ms_device_row {
    struct ms_device_info info;
    _Atomic uint64_t known;
};
_Static_assert(sizeof(struct ms_device_row) == MS_TABLE_DEVICES_ROW_BYTES, "a row of the ledger");

/** NULL past the last. */
const struct ms_api_row *ms_events_api(unsigned api);
const char *ms_events_api_name(unsigned api);
void ms_events_touch(void);
void ms_events_context_died(const struct ms_context_died *death);
/** Copies of what the rings hold, oldest first, and how many they held before. */
struct ms_events_copy {
    struct ms_oom ooms[MS_OOM_MAX];
    struct ms_context_died deaths[MS_CONTEXTS_DIED_MAX];
    unsigned oom_count, death_count;
    uint64_t lost_ooms, lost_deaths;
    uint64_t unseen_frees;
};
/** Returns whether the lock was to be had within `timeout_ms`; without it the copy has no rows. */
bool ms_events_copy(struct ms_events_copy *copy_p, unsigned timeout_ms);
const char *ms_events_blind_spot(unsigned i);
bool ms_events_device(int device, struct ms_device_info *info_p);
/** In a reader: time stands still. */
void ms_events_freeze(uint64_t now_ns);
bool ms_events_frozen(void);
/** When time began, CLOCK_MONOTONIC. */
uint64_t ms_events_started_ns(void);

#endif
