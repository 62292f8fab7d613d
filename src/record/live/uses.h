/* uses.h - MEMSHIM_USES: when blocks are used, by copies, fills and the arguments of kernels.
 *
 * Floor 2. Each block that appears gets a *life*, a row of the ledger: when it began, was first used, was
 * last used and ended, by one sequence of numbers over all blocks that come, uses and blocks that go. A use
 * is told by an address, which leads to the life over a map of pages, in a few loads and without a lock; it
 * is said by whoever sees the call (hooks/follow/uses.c). What lives are good for is found out when the
 * report is written (report/findings/uses_replay.h). docs/user/findings.md says what can be seen and what
 * not. */
#ifndef MS_RECORD_LIVE_USES_H
#define MS_RECORD_LIVE_USES_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/compiler.h"
#include "base/store/store.h"
#include "record/live/ledger.h"

/** Lives are kept: from ms_uses_start() on, where MEMSHIM_USES says so. */
extern MS_HIDDEN atomic_bool ms_uses_on;
static inline bool ms_uses_wanted(void)
{
    return MS_UNLIKELY(atomic_load_explicit(&ms_uses_on, memory_order_relaxed));
}

/** The facts about a lifetime that are known besides its numbers. */
enum {
    MS_LIFETIME_GRAPH = 1,    /* a graph may have its address: each launch of one may be a use */
    MS_LIFETIME_HELD = 2,     /* something else has it that kernels read: each launch may be a use */
    MS_LIFETIME_SHARED = 4,   /* others may use it, whom nobody sees */
    MS_LIFETIME_UNMAPPED = 8, /* its uses were not seen, for want of memory or of an address */
    MS_LIFETIME_UNREAD = 16,  /* while it lived there were launches whose arguments could not be read */
};

/** A row of the ledger. */
struct ms_lifetime {
    _Atomic uint32_t state; /* 1 once it says what it is */
    uint32_t site;
    uint64_t address, bytes;
    uint64_t born;
    _Atomic uint64_t first, last; /* use; 0: none */
    _Atomic uint64_t ended;       /* 0: it lives */
    _Atomic uint64_t reach;       /* bytes from its beginning up to the farthest that were used */
    _Atomic uint32_t flags;
    uint32_t unread; /* launches that could not be read, before it */
    int16_t device;
    uint8_t kind;
    uint8_t unused;
    ms_stack_id freed_stack; /* of the free, where it was the pool's; 0 */
};
_Static_assert(sizeof(struct ms_lifetime) == MS_TABLE_LIVES_ROW_BYTES, "a row of the ledger");

/** Counts of all; one row of the ledger. */
struct ms_uses {
    _Atomic uint64_t launches, graph_launches;
    _Atomic uint64_t unread;                  /* launches whose arguments could not be read */
    _Atomic uint64_t last_launch, last_graph; /* their numbers */
    _Atomic uint64_t left_out;   /* blocks without a life, for want of room, or as it was damaged */
    _Atomic uint64_t no_layouts; /* 1: the driver says of no kernel what its parameters are */
    uint64_t unused;
};
_Static_assert(sizeof(struct ms_uses) == MS_TABLE_USES_ROW_BYTES, "a row of the ledger");

/** Once, and again in a fork child, after the options are known: reads MEMSHIM_USES. */
void ms_uses_start(void);
/** The ledger has its file. */
void ms_uses_open(void);

/** A block appeared in row `row` of the table of blocks, or goes from there; with its shard locked. */
void ms_uses_born(uint32_t block_row, const struct ms_block *block);
void ms_uses_ended(uint32_t block_row);

/** A block of the pool's that began here was freed, by this stack. Before anybody else can have the
 * address. */
void ms_uses_freed(uint64_t address, ms_stack_id stack);
/** The number of the latest event; what has ended before has a lower one. */
uint64_t ms_uses_latest(void);
/** Finds what lived at `address` last, if that ended before `begun` and nothing lives there now: a use of the
 * address is told by that. False if there is none. */
bool ms_uses_after(uint64_t address, uint64_t begun, struct ms_invalid_free *misfree_p);
/** Which life the address lies in, or the one that ended there last; 0: none that is known. */
uint32_t ms_uses_life(uint64_t address);
/** As ms_uses_after, of that lifetime, whoever has the address now. */
bool ms_uses_over(uint32_t life, uint64_t address, uint64_t begun, struct ms_invalid_free *misfree_p);
/** The next number: one for each call that uses memory. */
uint64_t ms_uses_number(void);
/** `bytes` from `address` on are used, by the call of that number; UINT64_MAX: nobody knows how many. `flags`
 * are added to the life's. False if no block lies there, or none that is known. */
bool ms_uses_note(uint64_t number, uint64_t address, uint64_t bytes, uint32_t flags);
/** Of what lies there from now on is known besides; no use. */
void ms_uses_mark(uint64_t address, uint32_t flags);
/** A kernel, or a graph, was launched by the call of that number; its arguments could be read or not. */
void ms_uses_launched(uint64_t number, bool is_graph, bool read);
void ms_uses_no_layouts(void);

/** As of a snapshot, whose shards are locked. */
struct ms_lives_told {
    struct ms_uses all;
    struct ms_lifetime *lives; /* sites as the record numbers them; a private mapping */
    uint64_t count;
    size_t bytes;
};
/** Copies all lives; those that live have `last` and `flags` as if they ended now. `count` 0 without memory,
 * or where nothing was asked for. */
void ms_uses_copy(struct ms_lives_told *told);
void ms_uses_release(struct ms_lives_told *told);
/** In a reader of a ledger. */
void ms_uses_clean(void);

#endif
