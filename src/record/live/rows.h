/* rows.h - the rows in which blocks, sites and accounts are counted.
 *
 * Floor 2, for the ledger's own files, and for src/fastpath. The structures are rows of
 * the tables in base/store/store.h, and so of the file: docs/internals/ledger-format.md. Every change of a
 * block's row and of the totals it counts in is under the lock of its shard (shards.h). */
#ifndef MS_RECORD_LIVE_ROWS_H
#define MS_RECORD_LIVE_ROWS_H

#include <stdatomic.h>

#include "base/compiler.h"
#include "base/store/store.h"
#include "record/live/ledger.h"

enum {
    MS_STRIPES = 64,
    MS_LAYER_ACCOUNTS = MS_DEVICES_MAX + 1,      /* one per device, and one for memory of none */
    MS_ACCOUNTS = MS_LAYERS * MS_LAYER_ACCOUNTS, /* of all layers, the outer one first */
    MS_SHARDS = MS_TABLE_ACCOUNTS_ROWS / MS_ACCOUNTS,
    MS_SITES_MAX = MS_TABLE_SITES_ROWS,
    /* The last rows are for what has no row of its own: one for each device, function and kind. */
    MS_SITES_OWN_MAX = MS_SITES_MAX - 4096,
    MS_SIZE_CLASSES = 48,
    MS_SPANS = 16,
    MS_SPAN_SHIFT_START = 20, /* a span is about a millisecond at first */
    MS_SPAN_SHIFT_NONE = 62,  /* marks[] are being changed, or not known */
    MS_OOM_MAX = MS_TABLE_OOMS_ROWS,
    MS_OOM_TOP_SITES = 5,
    MS_BLIND_SPOT_BYTES = MS_TABLE_BLIND_SPOTS_ROW_BYTES,
    MS_CONTEXTS_DIED_MAX = MS_TABLE_DEATHS_ROWS,
};

struct ms_amount {
    uint64_t live_bytes, live_count, peak_live_bytes, total_bytes, total_count;
};

/* A block as it lies in the table. It is live if `state` says so, which is written last; the rest of `state`
 * counts the uses of the row, so that a reader sees that one was used again. */
struct ms_block_row {
    uint64_t key, bytes;
    union {
        uint64_t requested;
        uint64_t freed_ns; /* of a free row: what lived there was freed then */
    };
    uint64_t context, stream, born_ns;
    uint32_t site; /* of a free row: still that of what lived there */
    union {
        uint32_t thread;
        uint32_t next; /* of a free row: the next one, + 1 */
    };
    uint16_t api;
    int8_t device;
    uint8_t tags; /* kind, space, outlives_context, is_served */
    _Atomic uint32_t state;
};
_Static_assert(sizeof(struct ms_block_row) == MS_TABLE_BLOCKS_ROW_BYTES, "a row of the ledger");
enum { MS_BLOCK_ROW_FREE, MS_BLOCK_ROW_CHANGING, MS_BLOCK_ROW_LIVE, MS_BLOCK_ROW_STATES = 4 };

enum { MS_BLOCK_ROW_OUTLIVES = 64, MS_BLOCK_ROW_SERVED = 128 };

/* The amount that sampled blocks stand for: bytes, and blocks in 256ths, since a block may stand for a broken
 * number of them. */
struct ms_estimate {
    uint64_t bytes, count_q8;
};

/** Adds what one sampled block of `bytes` stands for. */
static inline void ms_estimate_add(struct ms_estimate *estimate, uint64_t bytes)
{
    uint64_t stands_for = ms_stack_sample_bytes(bytes);
    estimate->bytes += stands_for;
    estimate->count_q8 += bytes ? (stands_for << 8) / bytes : 0;
}

/* Everything allocated by one api on one device from one stack, in one shard (shards.h): a reader adds up
 * those of one `whole`.
 *
 * at_peak_bytes: what the site held when its device last rose to a new peak. It is not written at each peak
 * (there may be as many peaks as sites, and each would visit them all) but before the site's next change: as
 * long as `peak_seen` differs from the device's `peaks`, the site has not changed since that peak, and holds
 * now what it held then. While a phase is open (phases.h) the same words tell what it held at the peak of the
 * interval, and `kept_peak_bytes` keeps what they said of the device's.
 *
 * In the order in which an allocation and a free need it: a cache line each, and one of size_hist. */
struct MS_CACHELINE ms_site {
    ms_stack_id stack;
    int16_t device;
    uint16_t api;
    uint8_t kind, shard;
    uint8_t span_shift,
        span_last;          /* marks[0 .. span_last - 1] are known; a span is 1 << span_shift ns long */
    _Atomic uint32_t state; /* 1 once it says what it is */
    uint64_t live_bytes, live_count;
    uint64_t at_peak_bytes, peak_seen;
    uint64_t max_bytes; /* the most it ever held */
    uint64_t last_ns;   /* of its allocations */
    uint64_t total_bytes, total_count, free_count;
    uint64_t lifetime_ns_sum;                  /* of those that were freed */
    uint64_t rounding_bytes;                   /* bytes - requested, over live blocks */
    uint64_t freed_key, freed_bytes, freed_ns; /* the block that was freed last, for invalid_frees.h */
    uint64_t size_hist[MS_SIZE_CLASSES]; /* [0]: no bytes; [k]: 2^(k-1) <= bytes < 2^k, or more in the last */
    uint64_t marks[MS_SPANS];            /* what it held at the end of each span of the run */
    struct ms_estimate estimate;   /* of all that its stack allocated, where stacks are sampled; else 0 */
    uint32_t whole;                /* the row of shard 0 that says the same; its own number there */
    uint32_t next;                 /* in shard 0: the latest row of another shard, + 1; there: one before */
    uint64_t total_rounding_bytes; /* bytes - requested, over all blocks ever */
    uint64_t first_ns;
    uint64_t died_bytes, died_count; /* went with their context */
    uint64_t kept_peak_bytes;        /* at_peak_bytes of the device's peak, while intervals are measured */
};
_Static_assert(sizeof(struct ms_site) == MS_TABLE_SITES_ROW_BYTES, "a row of the ledger");

/* One device's totals in one shard, under its lock. */
struct MS_CACHELINE ms_account {
    struct ms_amount device; /* the kinds that take the device's own memory, together */
    uint64_t last_ns;        /* of the latest change */
    uint64_t peak_ns,
        peaks; /* when the peak was, how often it rose; with device.peak_live_bytes, in shard 0 */
    struct ms_amount kinds[MS_KIND_COUNT];
    /* In shard 0. `peaks` counts what rises of an interval, too: which of them was the device's peak, how
       much was live in this interval at most, and when. */
    uint64_t device_peaks, interval_peak_bytes, interval_peak_ns;
};
_Static_assert(sizeof(struct ms_account) == MS_TABLE_ACCOUNTS_ROW_BYTES, "a row of the ledger");

/** Why a block is no longer live: freed by the program, gone with its context, or freed unseen. */
enum ms_block_end { MS_BLOCK_FREED, MS_BLOCK_DIED, MS_BLOCK_UNSEEN };

/** The account of a device, of the layer that its number says (ms_device_inner): 0 .. MS_ACCOUNTS - 1; the
 * last one of each layer is that of no device. */
static inline unsigned ms_account_number(int device)
{
    if (MS_LIKELY((unsigned)device < MS_DEVICES_MAX))
        return (unsigned)device;
    if (!ms_device_is_inner(device))
        return MS_DEVICES_MAX;
    return MS_LAYER_ACCOUNTS + ms_account_number(ms_device_plain(device));
}
/** The opposite. */
static inline int ms_account_device(unsigned account)
{
    unsigned number = account % MS_LAYER_ACCOUNTS;
    int device = number < MS_DEVICES_MAX ? (int)number : MS_DEVICE_NONE;
    return account < MS_LAYER_ACCOUNTS ? device : ms_device_inner(device);
}

/** Brings marks[] up to `now_ns`, the site having held `live` since its last change. */
void ms_site_mark_slowly(struct ms_site *site, uint64_t now_ns, uint64_t live);
static inline void ms_site_mark(struct ms_site *site, uint64_t now_ns, uint64_t live)
{
    if (MS_UNLIKELY(now_ns >> site->span_shift > site->span_last))
        ms_site_mark_slowly(site, now_ns, live);
}

/* rows.c: the rows of blocks. */
static inline struct ms_block_row *ms_block_row_at(uint32_t number)
{
    return &MS_ROWS(BLOCKS, struct ms_block_row)[number];
}
static inline unsigned ms_block_row_kind(const struct ms_block_row *block_row)
{
    return block_row->tags & 15;
}
/* There is room for four: an inner block's is told by its kind. */
static inline unsigned ms_block_row_space(const struct ms_block_row *block_row)
{
    return ms_block_row_kind(block_row) == MS_KIND_INNER ? MS_SPACE_INNER : block_row->tags >> 4 & 3;
}
/** The device's number in the block's layer. */
static inline int ms_block_row_device(const struct ms_block_row *block_row)
{
    return ms_block_row_kind(block_row) == MS_KIND_INNER ? ms_device_inner(block_row->device)
                                                         : block_row->device;
}
static inline bool ms_block_row_is_live(const struct ms_block_row *block_row)
{
    return atomic_load_explicit(&block_row->state, memory_order_acquire) % MS_BLOCK_ROW_STATES ==
           MS_BLOCK_ROW_LIVE;
}
/** Writes the state last, and counts the uses. `now` is what the row's word says, which is known. */
static inline uint32_t ms_block_row_set_from(struct ms_block_row *block_row, uint32_t now, unsigned state)
{
    uint32_t uses = now / MS_BLOCK_ROW_STATES + (state == MS_BLOCK_ROW_CHANGING);
    uint32_t word = uses * MS_BLOCK_ROW_STATES + state;
    atomic_store_explicit(&block_row->state, word, memory_order_release);
    return word;
}
static inline uint32_t ms_block_row_set(struct ms_block_row *block_row, unsigned state)
{
    return ms_block_row_set_from(block_row, atomic_load_explicit(&block_row->state, memory_order_relaxed),
                                 state);
}
/** Everything but the state. */
void ms_block_row_read(const struct ms_block_row *block_row, struct ms_block *block_p);

#endif
