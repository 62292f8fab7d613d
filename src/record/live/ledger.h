/* ledger.h - the observer's contract: what hooks (and later the pool) tell the record, and what the report
 * reads.
 *
 * Floor 2. Every function here may be called from any thread inside a hook: no malloc, no vendor call, errno
 * untouched, short locks only. What they record lies in the tables of base/store/store.h, and so in the
 * ledger's file. */
#ifndef MS_RECORD_LIVE_LEDGER_H
#define MS_RECORD_LIVE_LEDGER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"
#include "base/compiler.h"
#include "base/count.h"
#include "base/devices.h"
#include "base/store/store.h"
#include "base/thread/slow_path.h"
#include "record/footprint/pools.h"
#include "unwind/stack.h"

/** The kind of memory that a block is. Only the kinds that take the device's own memory count towards a
 * device's live bytes. */
enum ms_kind {
    MS_KIND_DEVICE, /* cuMemAlloc and its relatives */
    MS_KIND_ASYNC,  /* stream-ordered, from a memory pool */
    MS_KIND_MANAGED,
    MS_KIND_ARRAY,
    MS_KIND_HANDLE,     /* physical memory behind a VMM handle */
    MS_KIND_GRAPH,      /* owned by a graph's allocation node */
    MS_KIND_INNER,      /* a piece of such memory that an allocator of the program's gave on (inner.h) */
    MS_KIND_PINNED,     /* host memory of the driver's */
    MS_KIND_REGISTERED, /* host memory of the program's, registered */
    MS_KIND_IMPORTED,   /* another process's or another interface's memory, mapped here */
    MS_KIND_COUNT
};

/** True if it counts towards a device: in its layer. */
static inline bool ms_kind_is_device(enum ms_kind kind)
{
    return kind <= MS_KIND_INNER;
}
/** True if it is memory of a device that the vendor gave, and so of the outer layer. */
static inline bool ms_kind_is_vendors(enum ms_kind kind)
{
    return kind <= MS_KIND_GRAPH;
}

/** Names are looked up by these: one address can be a pointer, an array handle or a VMM handle at once. */
enum ms_space {
    MS_SPACE_ADDRESS,
    MS_SPACE_HANDLE,
    MS_SPACE_ARRAY,
    MS_SPACE_EXTERNAL,
    MS_SPACE_INNER, /* the address of an inner block, which may be its segment's, too */
    MS_SPACE_COUNT
};

/** One live block; `key` in `space` identifies it. */
struct ms_block {
    uint64_t key;
    uint64_t bytes;     /* what the vendor was asked for (pitch included) */
    uint64_t requested; /* what the program asked for */
    uint64_t context;   /* the vendor's context id; blocks die with it unless `outlives_context` */
    uint64_t stream;    /* handle as the program gave it; 0 for none or default. Of an inner block its name */
    uint64_t born_ns;   /* ms_ledger_now(), filled in by ms_ledger_alloc */
    uint64_t freed_ns;  /* likewise by ms_ledger_free_begin */
    ms_stack_id stack;
    uint32_t site;   /* filled in by ms_ledger_alloc */
    uint32_t thread; /* kernel's thread id */
    int16_t device;
    uint16_t api; /* row number, ms_api_info */
    uint8_t space;
    uint8_t kind;
    bool outlives_context;
    bool is_served; /* filled in by ms_ledger_alloc and ms_ledger_serve */
};

/** One row, as the hooks know it; registered once so that this floor need not look it up. */
struct ms_api_info {
    const char *name;
    const char *family; /* "cuda_driver", "hip" ... */
};

/** `apis` stays the caller's and must live on. What was recorded before (by a constructor older than ours) is
 * kept, but for the counts of calls, whose rows could not be known. Reads MEMSHIM_TIMELINE. */
void ms_ledger_init(const struct ms_api_info *apis, unsigned count);

/** Nanoseconds since the ledger began, CLOCK_MONOTONIC. */
uint64_t ms_ledger_now_slowly(void);
/* 0: before it began, and where time stands still. */
extern MS_HIDDEN _Atomic uint64_t ms_ledger_running_since_ns;
static inline uint64_t ms_ledger_now(void)
{
    uint64_t start = atomic_load_explicit(&ms_ledger_running_since_ns, memory_order_relaxed), now;
    if (MS_UNLIKELY(!start))
        return ms_ledger_now_slowly();
    now = ms_clock_ns();
    return MS_LIKELY(now > start) ? now - start : 0;
}

/** As ms_ledger_now, for a thread's own copy of the clock. */
static inline void ms_ledger_clock(struct ms_clock_own *own)
{
    ms_clock_own_take(own, atomic_load_explicit(&ms_ledger_running_since_ns, memory_order_relaxed));
}

/** Describe a device (a number of base/devices.h) the first time one of its blocks is seen; later calls for
 * it are ignored. */
struct ms_device_info {
    char name[128];
    uint8_t uuid[16];
    uint64_t total_bytes;
    uint64_t granularity_bytes;
};
void ms_ledger_device(int device, const struct ms_device_info *info);
bool ms_ledger_device_known(int device);

/** The vendor made a block. Copies `block`. A key that is already live replaces the old block, which is
 * counted (its free was never seen). */
void ms_ledger_alloc(const struct ms_block *block);

/** The program is about to free a block: take it out, before the vendor can hand its address out again.
 * Returns false if the key was never seen (counted by the caller through ms_ledger_unseen_free once the
 * vendor accepted it). */
bool ms_ledger_free_begin(enum ms_space space, uint64_t key, struct ms_block *block_p);
/** From now on the record is reported: frees are late. `tell` (may be NULL) hears how many there were, each
 * time. */
void ms_ledger_reported(void (*tell)(uint64_t late_frees));
/** The vendor refused what began (what it accepts was counted then): the block lives on as if nothing had
 * happened. */
void ms_ledger_free_abort(const struct ms_block *block);
/** The block has so many bytes from now on, and is the same. False if it was never seen. */
bool ms_ledger_resize(enum ms_space space, uint64_t key, uint64_t bytes);
/** An inner block has that name from now on, by its place in the texts (record/phases/phases.h), in place of
 * one that it had. False if it was never seen. */
bool ms_ledger_name(enum ms_space space, uint64_t key, uint32_t name);
/** The vendor accepted a free of something never seen. */
void ms_ledger_unseen_free(void);

/** The fault for which a free was refused: it was about a block that had been freed before, or the inside of
 * a live one. And the faults of what else was done with memory that it is not there for. */
enum ms_invalid_free_rule {
    MS_INVALID_FREE_NONE,
    MS_INVALID_FREE_DOUBLE,
    MS_INVALID_FREE_INTERIOR,
    MS_INVALID_FREE_USED,   /* what is freed is copied, or filled (uses.h), */
    MS_INVALID_FREE_GIVEN,  /* or given to a kernel, which may not touch it */
    MS_INVALID_FREE_HOST,   /* what is registered as device memory is none, */
    MS_INVALID_FREE_BEYOND, /* or is longer than its block */
    MS_INVALID_FREE_LEFT,   /* what is registered: counted for as long as it is */
    MS_INVALID_FREE_FORKED  /* a call that the vendor refused since the process came by fork */
};
/** True if it is a use of freed memory, which has the stack of the free. */
static inline bool ms_invalid_free_is_use(unsigned rule)
{
    return rule == MS_INVALID_FREE_USED || rule == MS_INVALID_FREE_GIVEN;
}
struct ms_invalid_free {
    enum ms_invalid_free_rule rule;
    enum ms_space space;
    uint64_t given;        /* what the program gave: the key, or a handle that the caller puts there */
    uint64_t begin, bytes; /* the block */
    uint32_t site;
    int16_t device;
    ms_stack_id freed_stack; /* of a use */
    uint64_t block_bytes;    /* where `bytes` is what was registered: the block's; 0: not known */
};
/** A free of `key` was refused, and is not in the record any more, or never was: what it was about, as far as
 * the record still has it. False if nothing is known, or somebody has the key by now. `released`: the key
 * lives on, and nothing may free it any more (a handle whose references are all given back). Goes through the
 * whole record, so for refused frees alone, and not for ever (LOOKS_MAX in invalid_frees.c). No lock held. */
bool ms_ledger_invalid_free_find(enum ms_space space, uint64_t key, bool released,
                                 struct ms_invalid_free *misfree_p);
/** Counts one for the report, of a call of `api` from `stack`. Returns where; 0 without room. */
uint32_t ms_ledger_invalid_free(const struct ms_invalid_free *invalid_free, uint16_t api, ms_stack_id stack);
/** The fault that was counted at `where`, of `bytes`, is over. */
void ms_ledger_invalid_free_undone(uint32_t where, uint64_t bytes);

/** memshim's own pool made a block, which it finds again by itself: recorded as any other, but without an
 * entry in the index of keys, so that neither ms_ledger_find nor ms_ledger_free_begin know of it. Copies
 * `block`. Returns a record id, or 0 if there was no room for it (which is counted). */
uint32_t ms_ledger_serve(const struct ms_block *block);
/** The block of that record id is about to go, as it seems: its row is on its way into the cache. Any number
 * will do. */
static inline void ms_ledger_expect(uint32_t record_id)
{
    if (MS_LIKELY(record_id))
        __builtin_prefetch(MS_ROWS(BLOCKS, char) + (uint64_t)(record_id - 1) * MS_TABLE_BLOCKS_ROW_BYTES, 1);
}
/** The block of that record id went. `key` tells it from another one that has the record id by now: a block
 * may have died with its context. False, and nothing done, if it is not live, and for record id 0. `block_p`
 * may be NULL. */
bool ms_ledger_unserve(uint32_t record_id, uint64_t key, struct ms_block *block_p);

/** src/fastpath has the same for a thread that holds the lock of the shard which it has at hand
 * (base/thread/fast_cache.h). */
struct ms_bias;
struct ms_shard;
/** The shard in which the calling thread counts what is on the device; its lock is returned. */
struct ms_bias *ms_ledger_shard(int device, struct ms_shard **shard_p);

/** A copy of the live block with exactly this key; false if there is none. */
bool ms_ledger_find(enum ms_space space, uint64_t key, struct ms_block *block_p);

/** A context died and took its blocks with it (those that do not outlive it). */
void ms_ledger_context_died(uint64_t context);

/** The inner blocks of that context were freed with it. Goes through the whole record. */
void ms_ledger_heap_ended(uint64_t context);

/** A call of class alloc/free/... under row `api` returned; `served` from the pool; bytes is what it asked
 * for (0 for frees). */
void ms_ledger_call(uint16_t api, bool succeeded, bool served, uint64_t bytes);
/** The calls of one function that a thread, or those that share a set, counted: a row of the ledger
 * (counts.c). */
struct ms_counts {
    _Atomic uint64_t calls, bytes, failures, served;
};
/** This thread's rows, of all functions that were registered; NULL until its first call, and where it shares
 * others. */
extern MS_TLS struct ms_counts *ms_counts_own;
/** As ms_ledger_call, of a call of a registered function that succeeded, and was served, by who has found
 * `rows` already: ms_counts_own. */
static MS_INLINE void ms_ledger_call_counted(struct ms_counts *rows, uint16_t api, uint64_t bytes)
{
    if (MS_UNLIKELY(!rows)) {
        ms_ledger_call(api, true, true, bytes);
        return;
    }
    ms_count(&rows[api].calls, 1);
    ms_count(&rows[api].served, 1);
    if (!__builtin_constant_p(bytes) || bytes)
        ms_count(&rows[api].bytes, bytes);
}
static inline void ms_ledger_call_answered(uint16_t api, uint64_t bytes)
{
    ms_ledger_call_counted(ms_counts_own, api, bytes);
}
/** There was no memory: remembered for oom[]. */
void ms_ledger_oom(uint16_t api, int device, uint64_t requested, ms_stack_id stack,
                   const struct ms_oom_view *view);
/** Why the vendor last refused this thread memory since an allocator of the program's last gave or took a
 * piece in it; MS_OOM_UNKNOWN if it did not. */
enum ms_oom_cause ms_ledger_refused(void);
/** It had it then, when that allocator asked again: a segment of `least` to `most` bytes, or what is mapped
 * piece by piece. From now on the vendor has refused it nothing. */
void ms_ledger_refused_answered(uint64_t least, uint64_t most);
/** Bytes of the device that are live, whoever gave them. */
uint64_t ms_ledger_live(int device);

/** How the program reached an entry point: the report's coverage.routes. */
enum ms_route { MS_ROUTE_EXPORTED, MS_ROUTE_DLSYM, MS_ROUTE_GET_PROC, MS_ROUTE_COUNT };
void ms_ledger_route(enum ms_route route);
/** A lookup answered with a pointer that no export of the library has. */
void ms_ledger_divergent(void);
/** Something that cannot be seen, one line; each distinct line is kept once (at most 64). */
void ms_ledger_blind_spot(const char *line);

/** journal.c: what there is to do before something is recorded. */
void ms_ledger_touch_slowly(void);

/** Something is about to be recorded: the first time, the record gets its file (MEMSHIM_DIR). With no lock
 * held. */
static inline void ms_ledger_touch(void)
{
    if (ms_slow_path(MS_SLOW_PATH_RECORD))
        ms_ledger_touch_slowly();
}
/** True if anything was ever recorded: a process that never touched a GPU writes no report. */
bool ms_ledger_touched(void);

#endif
