/* balance.h - what of a device is in use, as its driver says, and whose that is: the terms of one equation,
 * each byte in one of them, at the moments at which the driver was asked.
 *
 * Floor 2. Told by the hooks, in sections of theirs. Rows lie in a table of base/store/store.h:
 * docs/internals/ledger-format.md. One short lock; allocates rows only. */
#ifndef MS_RECORD_FOOTPRINT_BALANCE_H
#define MS_RECORD_FOOTPRINT_BALANCE_H

#include "record/live/internal.h"

/** Of the moments at which the driver was asked: the one when most was in use, and the latest. */
enum ms_balance_moment { MS_BALANCE_PEAK, MS_BALANCE_LATEST, MS_BALANCE_MOMENTS };

struct ms_balance {
    uint64_t asked_ns;
    uint64_t in_use_bytes, total_bytes; /* as the driver says */
    struct ms_parts parts;              /* of the pool's memory, all that the vendor gave for it */
    uint64_t followed_bytes;            /* live blocks that the vendor made, but for managed ones */
    uint64_t driver_rounding_bytes;     /* beyond these in their granules (granules.h) */
    uint64_t driver_cached_bytes;       /* of the vendor's own pools, beyond what lies in them */
    uint64_t contexts_bytes;            /* what the driver took for contexts and modules, as it was seen to */
    uint64_t untracked_bytes;           /* in use, and none of these */
    uint64_t
        managed_bytes; /* no term: live managed memory, any part of which may be among what is untracked */
    uint64_t neighbours_bytes; /* no term: of what is untracked, what processes have that share the device */
    uint32_t is_inferred;      /* one of the terms is */
};

/** Why there is no answer to a question. */
enum ms_balance_miss {
    MS_BALANCE_NEVER_STILL, /* some thread's call, which may change the answer, was under way */
    MS_BALANCE_MORE_HELD,   /* the driver says that less is in use than is held */
    MS_BALANCE_MISSES
};

struct MS_CACHELINE ms_balance_row {
    _Atomic uint32_t sequence;                  /* odd while it is written; 0: nobody was asked */
    _Atomic uint32_t missed[MS_BALANCE_MISSES]; /* of the latest alone: questions without an answer */
    struct ms_balance balance;
};
_Static_assert(sizeof(struct ms_balance_row) == MS_TABLE_BALANCES_ROW_BYTES, "a row of the ledger");

/** All that this process is known to hold of a device. */
static inline uint64_t ms_balance_known(const struct ms_balance *balance)
{
    const struct ms_parts *p = &balance->parts;
    return p->requested + p->rounding + p->pending + p->cached + p->stranded + p->pinned +
           balance->followed_bytes + balance->driver_rounding_bytes + balance->driver_cached_bytes +
           balance->contexts_bytes;
}
/** Bytes in use beyond those that are known are untracked. False where they are less than nothing. */
bool ms_balance_close(struct ms_balance *balance);

/** Takes what is more than is in use out of what was inferred of the driver; false where that is not
 * enough. */
bool ms_balance_close_less(struct ms_balance *balance);

/** Bytes of the device's blocks that the vendor made, managed ones too. */
uint64_t ms_balance_beside(int device);
/** Blocks that the vendor made come and go: whatever of them takes the device's memory by itself. */
void ms_balance_follow(const struct ms_block_row *row, uint64_t now_ns);
void ms_balance_unfollow(const struct ms_block_row *row, uint64_t now_ns);
uint64_t ms_ledger_followed(int device);
/** The part of ms_ledger_followed that lies in the vendor's own pools. */
uint64_t ms_ledger_followed_in_pools(int device);
/** Live managed memory, of all devices together: where its pages lie nobody tells. */
uint64_t ms_ledger_managed(void);
/** Others' memory that is mapped here: of what is in use, so much is known not to be this process's. */
uint64_t ms_ledger_imported(int device);

/** The driver was asked. */
void ms_ledger_balance(int device, const struct ms_balance *balance);
/** The driver was asked, and there is no answer. */
void ms_ledger_balance_missed(int device, enum ms_balance_miss miss);
uint32_t ms_balance_missed(int device, enum ms_balance_miss miss);
/** False if it never was, or the row was being written. */
bool ms_balance_read(int device, enum ms_balance_moment moment, struct ms_balance *balance_p);
/** In a loaded record: what is live is followed. */
void ms_balance_adopt(void);
/** In a loaded record: a row whose terms are not what is in use is of no use. */
void ms_balance_clean(void);

#endif
