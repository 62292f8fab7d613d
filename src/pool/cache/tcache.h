/* tcache.h - what threads have at hand: thread caches of a heap's cache, with magazines of small blocks and
 * what was freed of others; see tcache.c.
 *
 * Floor 2, the pool's cache, above its bytes and its clock. Ranks and who may hold what are in internal.h. */
#ifndef MS_POOL_CACHE_TCACHE_H
#define MS_POOL_CACHE_TCACHE_H

#include "base/thread/bias.h"
#include "base/count.h"
#include "pool/cache/batch.h"
#include "pool/clock/epochs.h"
#include "pool/space/extents.h"
#include "base/store/figures.h"

enum { MS_TCACHES = 32 };

/** Blocks of a class. */
struct ms_magazine {
    struct ms_batch *ready, *freed;
};

/** A thread's cache for as long as it holds the lock. Counters are summed over all thread caches; each may
 * wrap below zero. */
struct ms_tcache {
    struct ms_bias lock;
    uint64_t batches; /* magazines that may have a batch, by bits */
    uint64_t serial, serial_end;
    _Atomic uint64_t requested, granted; /* of live blocks */
    uint64_t unweighed;                  /* went into the pending list, and the heap does not know yet */
    _Atomic uint64_t allocs, frees, hits[MS_TIER_COUNT];
    struct ms_batch *extents; /* blocks without a class that were freed in one epoch */
    struct ms_magazine magazines[MS_CLASSES];
} MS_CACHELINE;

/** A heap's. What is not in a thread cache is under the heap's lock. */
struct ms_cache {
    /* The heap's own: its lock, what it has of bytes, and when what is freed is over. */
    struct ms_lock *lock;
    struct ms_extents *extents;
    struct ms_fence *fence;
    /* Batches that no thread cache holds, oldest first. */
    struct ms_batch *pending, **pending_end;
    /* Thread caches that have batches of classes, and of extents, by bits; changed under the thread cache's
     * lock, looked at without. */
    _Atomic uint32_t with_batches, with_runs;
    _Atomic uint64_t runs_over; /* what was over when batches of extents were emptied last: an epoch */
    struct ms_tcache tcaches[MS_TCACHES];
};

extern MS_TLS uint32_t ms_last_tcache;  /* index + 1 */
extern _Atomic uint64_t ms_tcaches_met; /* of those from here on no thread ever had one, in any heap */
struct ms_tcache *ms_tcache_lock_another(struct ms_cache *cache);
/** Thread cache locked, nothing ready: out of what was freed, if that is over by now; else NULL. */
struct ms_slot *ms_tcache_take_exchanged(struct ms_cache *cache, struct ms_magazine *m);
/** A thread cache of the cache, locked. */
static inline struct ms_tcache *ms_tcache_lock(struct ms_cache *cache)
{
    uint32_t last = ms_last_tcache;
    if (MS_LIKELY(last && ms_bias_try(&cache->tcaches[last - 1].lock, MS_BIAS_TCACHE)))
        return &cache->tcaches[last - 1];
    return ms_tcache_lock_another(cache);
}
static inline void ms_tcache_unlock(struct ms_tcache *tcache)
{
    ms_bias_unlock(&tcache->lock, MS_BIAS_TCACHE);
}
/** Thread cache locked: a block that is ready, else NULL; none is that has no class. */
static inline struct ms_slot *ms_tcache_take(struct ms_cache *cache, struct ms_tcache *tcache,
                                             const struct ms_request *request)
{
    if (request->class_index == MS_NO_CLASS)
        return NULL;
    struct ms_magazine *m = &tcache->magazines[request->class_index];
    struct ms_batch *batch = m->ready;
    uint32_t left = batch ? batch->count : 0;
    if (MS_UNLIKELY(!left))
        return ms_tcache_take_exchanged(cache, m);
    struct ms_slot *slot = batch->items[--left];
    batch->count = left;
    if (MS_LIKELY(left))
        __builtin_prefetch(batch->items[left - 1], 1); /* for the next request */
    return slot;
}
/** Thread cache locked, takes the heap's lock: from memory that the heap has already, else NULL. */
struct ms_slot *ms_tcache_refill(struct ms_cache *cache, struct ms_tcache *tcache,
                                 const struct ms_request *request);
/** Heap's lock held: a block without a class, out of what no thread cache has; or NULL. */
struct ms_slot *ms_tcache_carve(struct ms_cache *cache, const struct ms_request *request);
/** As ms_tcache_carve, for a block that need not be a segment of its own, of what was found to fit it
 * (ms_extent_fit). */
struct ms_slot *ms_tcache_carve_fit(struct ms_cache *cache, const struct ms_request *request,
                                    const struct ms_fit *fit);
/** Thread cache locked: a block that was freed and may be handed out at once. */
void ms_tcache_put_ready(struct ms_cache *cache, struct ms_tcache *tcache, struct ms_slot *slot);
/** Everything that thread caches hold goes back to where it came from; what is not retired, into the heap's
 * limbo. */
void ms_tcache_flush(struct ms_cache *cache);
/** As ms_tcache_flush, but of blocks without a class alone, as far as their frees are over. */
void ms_tcache_flush_runs(struct ms_cache *cache);
/** True if ms_tcache_flush_runs may find something: more is over than when it was done last. */
static inline bool ms_tcache_may_flush_runs(const struct ms_cache *cache)
{
    uint64_t done = ms_fence_done(cache->fence);
    return done == UINT64_MAX || done != atomic_load_explicit(&cache->runs_over, memory_order_relaxed);
}
/** Batches of the heap's pending list that are retired. Heap's lock held. */
void ms_pending_retire(struct ms_cache *cache);
/** Thread cache locked, with a serial left: the slot becomes a live block. */
static MS_INLINE void ms_slot_activate(struct ms_tcache *tcache, struct ms_slot *slot, uint64_t requested,
                                       uint64_t granted, uint32_t record_id)
{
    atomic_store_explicit(&slot->requested, requested, memory_order_relaxed);
    atomic_store_explicit(&slot->record_id, record_id, memory_order_relaxed);
    atomic_store_explicit(&slot->state_word, tcache->serial++ << MS_STATE_BITS | MS_SLOT_LIVE,
                          memory_order_release);
    ms_count(&tcache->requested, requested);
    ms_count(&tcache->granted, granted);
    ms_count(&tcache->allocs, 1);
}
/** Thread cache locked: a live block of so many bytes is none any more. */
static MS_INLINE void ms_tcache_count_out(struct ms_tcache *tcache, uint64_t requested, uint64_t granted)
{
    ms_count_down(&tcache->requested, requested);
    ms_count_down(&tcache->granted, granted);
    ms_count(&tcache->frees, 1);
}
/** Thread cache locked: it has something that is worth a visit for whoever is short of memory. */
static MS_INLINE void ms_tcache_tell(_Atomic uint32_t *tcaches, const struct ms_cache *cache,
                                     const struct ms_tcache *tcache)
{
    _Static_assert(MS_TCACHES <= 32, "a bit for each");
    uint32_t bit = 1u << (tcache - cache->tcaches);
    if (!(atomic_load_explicit(tcaches, memory_order_relaxed) & bit))
        atomic_fetch_or_explicit(tcaches, bit, memory_order_release);
}
/** Thread cache locked: a block that was freed, and whose state says so, into a batch that has room for
 * it. */
static inline void ms_batch_add(struct ms_batch *batch, struct ms_slot *slot, uint64_t epoch)
{
    batch->epoch = epoch;
    batch->items[batch->count++] = slot;
}
static inline void ms_batch_put(struct ms_batch *batch, struct ms_slot *slot, uint64_t epoch)
{
    ms_slot_set(slot, MS_SLOT_PENDING);
    ms_batch_add(batch, slot, epoch);
}
/** Thread cache locked: a block that was freed, in the epoch that is open. */
void ms_tcache_put_somewhere(struct ms_cache *cache, struct ms_tcache *tcache, struct ms_slot *slot);
static MS_INLINE void ms_tcache_put(struct ms_cache *cache, struct ms_tcache *tcache, struct ms_slot *slot)
{
    unsigned class_index = slot->extent->class_index;
    struct ms_batch *batch = class_index < MS_CLASSES ? tcache->magazines[class_index].freed : NULL;
    if (MS_LIKELY(batch && batch->count < MS_BATCH_ITEMS)) {
        ms_batch_put(batch, slot, ms_fence_tag(cache->fence));
        return;
    }
    ms_tcache_put_somewhere(cache, tcache, slot);
}
/** Thread cache locked: what it has freed that the pending list was not told of, if that is worth it; else
 * 0. */
static MS_INLINE uint64_t ms_tcache_worth_telling(struct ms_tcache *tcache)
{
    uint64_t bytes = tcache->unweighed;
    if (MS_LIKELY(bytes < MS_PENDING_WEIGH_BYTES))
        return 0;
    tcache->unweighed = 0;
    return bytes;
}
/** With all locks held: slots in magazines get the state that is true where epochs up to `done` are over.
 * Returns the bytes pending. */
uint64_t ms_tcache_settle(struct ms_cache *cache, uint64_t done);

#endif
