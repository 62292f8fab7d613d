/* lease.h - what a thread has at hand: a lease of a heap, with magazines of small and large blocks.
 *
 * Floor 2, the pool's rooms alone. Ranks, who may hold what, and struct ms_lease are in internal.h. */
#ifndef MS_POOL_LEASE_H
#define MS_POOL_LEASE_H

#include "pool/internal.h"

extern MS_TLS uint32_t ms_last_lease;  /* index + 1 */
extern _Atomic uint64_t ms_leases_met; /* of those from here on no thread ever had one, in any heap */
struct ms_lease *ms_lease_lock_another(struct ms_heap *heap);
/** Lease locked, nothing ready: out of what was freed, if that is over by now; else NULL. `single`: as in the
 * request. */
struct ms_slot *ms_lease_take_exchanged(struct ms_heap *heap, struct ms_magazine *m, bool single);
/** The slot if it is a whole segment; otherwise it goes back to where it came from. */
struct ms_slot *ms_lease_whole(struct ms_heap *heap, struct ms_slot *slot);
/** A lease of the heap, locked. */
static inline struct ms_lease *ms_lease_lock(struct ms_heap *heap)
{
    uint32_t last = ms_last_lease;
    if (MS_LIKELY(last && ms_bias_try(&heap->leases[last - 1].lock, MS_BIAS_LEASE)))
        return &heap->leases[last - 1];
    return ms_lease_lock_another(heap);
}
static inline void ms_lease_unlock(struct ms_lease *lease)
{
    ms_bias_unlock(&lease->lock, MS_BIAS_LEASE);
}
/** Lease locked: a block that is ready, else NULL. */
static inline struct ms_slot *ms_lease_take(struct ms_heap *heap, struct ms_lease *lease,
                                            const struct ms_request *request)
{
    struct ms_magazine *m = &lease->magazines[request->magazine];
    if (m->bytes != request->granted)
        return NULL;
    struct ms_bag *bag = m->ready;
    uint32_t left = bag ? bag->count : 0;
    if (MS_UNLIKELY(!left))
        return ms_lease_take_exchanged(heap, m, request->single);
    struct ms_slot *slot = bag->items[--left];
    bag->count = left;
    if (MS_LIKELY(left))
        __builtin_prefetch(bag->items[left - 1], 1); /* for the next request */
    return MS_UNLIKELY(request->single) ? ms_lease_whole(heap, slot) : slot;
}
/** Lease locked, takes the heap's lock: from memory that the heap has already, else NULL. */
struct ms_slot *ms_lease_refill(struct ms_heap *heap, struct ms_lease *lease,
                                const struct ms_request *request);
/** Heap's lock held: a block without a class, out of what no lease has; or NULL. */
struct ms_slot *ms_lease_carve(struct ms_heap *heap, const struct ms_request *request);
/** Lease locked: a block that was freed and may be handed out at once. */
void ms_lease_put_ready(struct ms_heap *heap, struct ms_lease *lease, struct ms_slot *slot);
/** Everything that leases hold goes back to where it came from; what is not retired, into the heap's
 * limbo. */
void ms_lease_flush(struct ms_heap *heap);
/** ... of blocks of at least so many bytes each. */
void ms_lease_flush_from(struct ms_heap *heap, uint64_t bytes);
/** Bags of the heap's limbo that are retired. Heap's lock held. */
void ms_limbo_retire(struct ms_heap *heap);
static inline uint32_t ms_magazine_of(uint64_t granted, uint32_t class_index)
{
    return class_index < MS_CLASSES
               ? class_index
               : MS_CLASSES + (uint32_t)((granted / MS_STEP_BYTES * 0x9e3779b97f4a7c15u) >> 58);
}
/** What a bag gathers (params.def). */
static inline bool ms_bag_is_full(const struct ms_bag *bag, uint64_t bytes)
{
    if (bytes <= MS_SLAB_MAX_BYTES)
        return bag->count >= MS_BAG_ITEMS;
    return bag->count >= MS_BAG_ITEMS || bag->count * bytes >= MS_BAG_BYTES;
}
/** A bag comes out of limbo as a whole. Of large blocks it has those of one epoch, so that none of them waits
 * for a later one: what a free waits for (limbo.c) is then there to be used. */
static inline bool ms_bag_is_of_another(const struct ms_bag *bag, uint64_t bytes, uint64_t epoch)
{
    return bytes > MS_TIER_SLAB_BYTES && bag->count && bag->epoch != epoch;
}
/** What the record and the second half of a free take of one that is freed. */
static MS_INLINE void ms_pool_describe_dying(const struct ms_slot *slot, struct ms_pool_block *block_p)
{
    const struct ms_run *run = slot->run;
    struct ms_heap *heap = run->segment->heap;
    block_p->address = ms_slot_address(slot);
    block_p->requested = atomic_load_explicit(&slot->requested, memory_order_relaxed);
    block_p->granted = run->slot_bytes;
    block_p->ticket = atomic_load_explicit(&slot->ticket, memory_order_relaxed);
    block_p->own_heap = heap;
    block_p->own_item = (uintptr_t)slot;
    block_p->own_life = atomic_load_explicit(&heap->life, memory_order_relaxed);
}
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
void ms_lease_put_somewhere(struct ms_heap *heap, struct ms_lease *lease, struct ms_slot *slot);
/** ... True if there was room in the bag at hand. */
static MS_INLINE bool ms_lease_put(struct ms_heap *heap, struct ms_lease *lease, struct ms_slot *slot)
{
    const struct ms_run *run = slot->run;
    uint64_t bytes = run->slot_bytes;
    struct ms_magazine *m = &lease->magazines[ms_magazine_of(bytes, run->class_index)];
    struct ms_bag *bag = m->freed;
    if (MS_LIKELY(m->bytes == bytes && bag && !ms_bag_is_full(bag, bytes) && !run->segment->release)) {
        uint64_t epoch = ms_fence_tag(heap);
        if (MS_LIKELY(!ms_bag_is_of_another(bag, bytes, epoch))) {
            ms_bag_put(bag, slot, epoch);
            return true;
        }
    }
    ms_lease_put_somewhere(heap, lease, slot);
    return false;
}
/** With all locks held: slots in magazines get the state that is true now. Returns the bytes in limbo. */
uint64_t ms_lease_settle(struct ms_heap *heap);

#endif
