/* lease.h - what threads have at hand: leases of a heap's cache, with magazines of small blocks and what was
 * freed of others; see lease.c.
 *
 * Floor 2, the pool's cache, above its bytes and its clock. Ranks and who may hold what are in internal.h. */
#ifndef MS_POOL_CACHE_LEASE_H
#define MS_POOL_CACHE_LEASE_H

#include "base/bias.h"
#include "base/count.h"
#include "pool/cache/bag.h"
#include "pool/clock/epochs.h"
#include "pool/space/extents.h"
#include "pool/space/tier.h"

enum { MS_LEASES = 32 };

/** Blocks of a class. */
struct ms_magazine {
    struct ms_bag *ready, *freed;
};

/** A thread's cache for as long as it holds the lock. Counters are summed over all leases; each may wrap
 * below zero. */
struct ms_lease {
    struct ms_bias lock;
    uint64_t bags; /* magazines that may have a bag, by bits */
    uint64_t serial, serial_end;
    _Atomic uint64_t requested, granted; /* of live blocks */
    uint64_t unweighed;                  /* went into limbo, and the heap does not know yet */
    _Atomic uint64_t allocs, frees, hits[MS_TIER_COUNT];
    struct ms_bag *runs; /* blocks without a class that were freed in one epoch */
    struct ms_magazine magazines[MS_CLASSES];
} MS_CACHELINE;

/** A heap's. What is not in a lease is under the heap's lock. */
struct ms_cache {
    /* The heap's own: its lock, what it has of bytes, and when what is freed is over. */
    struct ms_lock *lock;
    struct ms_extents *extents;
    struct ms_fence *fence;
    /* Bags that no lease holds, oldest first. */
    struct ms_bag *limbo, **limbo_end;
    /* Leases that have bags of classes, and of runs, by bits; changed under the lease's lock, looked at
     * without. */
    _Atomic uint32_t with_bags, with_runs;
    _Atomic uint64_t runs_over; /* what was over when bags of runs were emptied last: an epoch */
    struct ms_lease leases[MS_LEASES];
};

extern MS_TLS uint32_t ms_last_lease;  /* index + 1 */
extern _Atomic uint64_t ms_leases_met; /* of those from here on no thread ever had one, in any heap */
struct ms_lease *ms_lease_lock_another(struct ms_cache *cache);
/** Lease locked, nothing ready: out of what was freed, if that is over by now; else NULL. */
struct ms_slot *ms_lease_take_exchanged(struct ms_cache *cache, struct ms_magazine *m);
/** A lease of the cache, locked. */
static inline struct ms_lease *ms_lease_lock(struct ms_cache *cache)
{
    uint32_t last = ms_last_lease;
    if (MS_LIKELY(last && ms_bias_try(&cache->leases[last - 1].lock, MS_BIAS_LEASE)))
        return &cache->leases[last - 1];
    return ms_lease_lock_another(cache);
}
static inline void ms_lease_unlock(struct ms_lease *lease)
{
    ms_bias_unlock(&lease->lock, MS_BIAS_LEASE);
}
/** Lease locked: a block that is ready, else NULL; none is that has no class. */
static inline struct ms_slot *ms_lease_take(struct ms_cache *cache, struct ms_lease *lease,
                                            const struct ms_request *request)
{
    if (request->class_index == MS_NO_CLASS)
        return NULL;
    struct ms_magazine *m = &lease->magazines[request->class_index];
    struct ms_bag *bag = m->ready;
    uint32_t left = bag ? bag->count : 0;
    if (MS_UNLIKELY(!left))
        return ms_lease_take_exchanged(cache, m);
    struct ms_slot *slot = bag->items[--left];
    bag->count = left;
    if (MS_LIKELY(left))
        __builtin_prefetch(bag->items[left - 1], 1); /* for the next request */
    return slot;
}
/** Lease locked, takes the heap's lock: from memory that the heap has already, else NULL. */
struct ms_slot *ms_lease_refill(struct ms_cache *cache, struct ms_lease *lease,
                                const struct ms_request *request);
/** Heap's lock held: a block without a class, out of what no lease has; or NULL. */
struct ms_slot *ms_lease_carve(struct ms_cache *cache, const struct ms_request *request);
/** ... that need not be a segment of its own, of what was found to fit it (ms_run_fit). */
struct ms_slot *ms_lease_carve_fit(struct ms_cache *cache, const struct ms_request *request,
                                   const struct ms_fit *fit);
/** Lease locked: a block that was freed and may be handed out at once. */
void ms_lease_put_ready(struct ms_cache *cache, struct ms_lease *lease, struct ms_slot *slot);
/** Everything that leases hold goes back to where it came from; what is not retired, into the heap's
 * limbo. */
void ms_lease_flush(struct ms_cache *cache);
/** ... of blocks without a class, as far as it is over. */
void ms_lease_flush_runs(struct ms_cache *cache);
/** Whether that may find something: more is over than when it was done last. */
static inline bool ms_lease_may_flush_runs(const struct ms_cache *cache)
{
    uint64_t done = ms_fence_done(cache->fence);
    return done == UINT64_MAX || done != atomic_load_explicit(&cache->runs_over, memory_order_relaxed);
}
/** Bags of the heap's limbo that are retired. Heap's lock held. */
void ms_limbo_retire(struct ms_cache *cache);
/** Lease locked, with a serial left: the slot becomes a live block. */
static MS_INLINE void ms_slot_bear(struct ms_lease *lease, struct ms_slot *slot, uint64_t requested,
                                   uint64_t granted, uint32_t ticket)
{
    atomic_store_explicit(&slot->requested, requested, memory_order_relaxed);
    atomic_store_explicit(&slot->ticket, ticket, memory_order_relaxed);
    atomic_store_explicit(&slot->stamp, lease->serial++ << MS_STATE_BITS | MS_SLOT_LIVE,
                          memory_order_release);
    ms_count(&lease->requested, requested);
    ms_count(&lease->granted, granted);
    ms_count(&lease->allocs, 1);
}
/** Lease locked: it has something that is worth a visit for whoever is short of memory. */
static MS_INLINE void ms_lease_tell(_Atomic uint32_t *leases, const struct ms_cache *cache,
                                    const struct ms_lease *lease)
{
    _Static_assert(MS_LEASES <= 32, "a bit for each");
    uint32_t bit = 1u << (lease - cache->leases);
    if (!(atomic_load_explicit(leases, memory_order_relaxed) & bit))
        atomic_fetch_or_explicit(leases, bit, memory_order_release);
}
/** Lease locked: a block that was freed, and whose state says so, into a bag that has room for it. */
static inline void ms_bag_add(struct ms_bag *bag, struct ms_slot *slot, uint64_t epoch)
{
    bag->epoch = epoch;
    bag->items[bag->count++] = slot;
}
static inline void ms_bag_put(struct ms_bag *bag, struct ms_slot *slot, uint64_t epoch)
{
    ms_slot_set(slot, MS_SLOT_LIMBO);
    ms_bag_add(bag, slot, epoch);
}
/** Lease locked: a block that was freed, in the epoch that is open. */
void ms_lease_put_somewhere(struct ms_cache *cache, struct ms_lease *lease, struct ms_slot *slot);
static MS_INLINE void ms_lease_put(struct ms_cache *cache, struct ms_lease *lease, struct ms_slot *slot)
{
    unsigned class_index = slot->run->class_index;
    struct ms_bag *bag = class_index < MS_CLASSES ? lease->magazines[class_index].freed : NULL;
    if (MS_LIKELY(bag && bag->count < MS_BAG_ITEMS)) {
        ms_bag_put(bag, slot, ms_fence_tag(cache->fence));
        return;
    }
    ms_lease_put_somewhere(cache, lease, slot);
}
/** Lease locked: what it has freed that limbo was not told of, if that is worth it; else 0. */
static MS_INLINE uint64_t ms_lease_worth_telling(struct ms_lease *lease)
{
    uint64_t bytes = lease->unweighed;
    if (MS_LIKELY(bytes < MS_LIMBO_WEIGH_BYTES))
        return 0;
    lease->unweighed = 0;
    return bytes;
}
/** With all locks held: slots in magazines get the state that is true where epochs up to `done` are over.
 * Returns the bytes in limbo. */
uint64_t ms_lease_settle(struct ms_cache *cache, uint64_t done);

#endif
