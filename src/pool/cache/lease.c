/* lease.c - caches that threads borrow.
 *
 * A heap has a fixed number of them, each under its own lock. A thread tries the one it had last and goes on
 * to the next if that is held, so nothing belongs to a thread: it may end or be cancelled at any time, and
 * whoever needs memory can empty all of them. A magazine holds blocks of one class in two bags: `ready`, and
 * `freed`, which is tagged with the newest epoch in it. Once that is retired the bags change places as a
 * whole: retirement costs nothing per block. Blocks without a class are given as their heap fits them best,
 * so a lease has only one bag of those, of what was freed in one epoch: what a free waits for (limbo.c) is
 * then there to be used, and lies together with its neighbours. Bags that overflow wait in the heap's
 * limbo, and go back to the lease that they came from, if it asks for one in time. */
#include "config.h"

#include "pool/cache/lease.h"

enum { BAGS_LOOKED_AT = 24, RECORDS_AHEAD = 6, NEIGHBOURS_AHEAD = 3 };
/* Slots of two cache lines are one thread's, as far as that goes. */
enum { TOGETHER = 4 };

MS_TLS uint32_t ms_last_lease;
_Atomic uint64_t ms_leases_met;
static _Atomic uint32_t next_lease;

struct ms_lease *ms_lease_lock_another(struct ms_cache *cache)
{
    if (!ms_last_lease)
        ms_last_lease = atomic_fetch_add_explicit(&next_lease, 1, memory_order_relaxed) % MS_LEASES + 1;
    struct ms_lease *lease = &cache->leases[ms_last_lease - 1];
    for (uint32_t i = 0; i < MS_LEASES; i++) {
        uint32_t other = (ms_last_lease - 1 + i) % MS_LEASES;
        ms_raise(&ms_leases_met, other + 1);
        if (ms_bias_try(&cache->leases[other].lock, MS_BIAS_LEASE)) {
            ms_last_lease = other + 1;
            return &cache->leases[other];
        }
    }
    ms_bias_lock(&lease->lock, MS_BIAS_LEASE);
    return lease;
}

static bool retired(const struct ms_cache *cache, const struct ms_bag *bag)
{
    return bag->epoch <= ms_fence_done(cache->fence);
}

static struct ms_slot *pop(struct ms_bag *bag)
{
    return bag && bag->count ? bag->items[--bag->count] : NULL;
}

static void release_slot(struct ms_cache *cache, struct ms_slot *slot)
{
    struct ms_run *run = slot->run;
    if (run->class_index != MS_NO_CLASS) {
        ms_slab_put(cache->extents, slot);
        return;
    }
    ms_slot_set(slot, MS_SLOT_FREE);
    if (atomic_load_explicit(&run->segment->use, memory_order_relaxed) == MS_SEGMENT_SINGLE)
        ms_single_put(cache->extents, run);
    else
        ms_run_put(cache->extents, run);
}

struct ms_slot *ms_lease_take_exchanged(struct ms_cache *cache, struct ms_magazine *m)
{
    struct ms_bag *bag = m->freed;
    if (!bag || !bag->count || !retired(cache, bag))
        return NULL;
    m->freed = m->ready;
    m->ready = bag;
    return pop(bag);
}

/* Blocks that lie far from each other: what of each is looked at comes out of memory while those before it
 * are put away. */
static void release_items(struct ms_cache *cache, struct ms_bag *bag)
{
    uint32_t count = bag->count;
    for (uint32_t i = 0; i < count; i++) {
        if (i + RECORDS_AHEAD < count)
            ms_run_fetch(bag->items[i + RECORDS_AHEAD]);
        if (i + NEIGHBOURS_AHEAD < count)
            ms_run_fetch_neighbours(bag->items[i + NEIGHBOURS_AHEAD]->run);
        release_slot(cache, bag->items[i]);
    }
    bag->count = 0;
}

static void release_bag(struct ms_cache *cache, struct ms_bag *bag)
{
    release_items(cache, bag);
    ms_bag_drop(bag);
}

/* Heap's lock held; `lease` NULL: of none. In the order of epochs, so that none is held up by a later one:
 * nearly always at the end. */
static void bag_to_limbo(struct ms_cache *cache, const struct ms_lease *lease, struct ms_bag *bag)
{
    _Static_assert(offsetof(struct ms_bag, next) == 0, "the end of the list is the last bag's address");
    bag->lease = (uint16_t)(lease ? lease - cache->leases : MS_LEASES);
    bag->class_index = bag->items[0]->run->class_index;
    struct ms_bag **place = cache->limbo_end;
    if (cache->limbo && ((struct ms_bag *)place)->epoch > bag->epoch) {
        for (place = &cache->limbo; (*place)->epoch <= bag->epoch; place = &(*place)->next)
            ;
    }
    bag->next = *place;
    *place = bag;
    if (!bag->next)
        cache->limbo_end = &bag->next;
}

/* Heap's lock held. It is in limbo no longer. */
static struct ms_bag *leave_limbo(struct ms_cache *cache, struct ms_bag **link)
{
    struct ms_bag *bag = *link;
    *link = bag->next;
    if (!*link)
        cache->limbo_end = link;
    bag->next = NULL;
    return bag;
}

void ms_limbo_retire(struct ms_cache *cache)
{
    uint64_t done = ms_fence_done(cache->fence);
    while (cache->limbo && cache->limbo->epoch <= done)
        release_bag(cache, leave_limbo(cache, &cache->limbo));
}

/* Heap's lock held. Among the oldest that are retired, one of this class: what it holds goes round without a
 * visit to its spans. The lease's own, if there is one: what another thread wrote of each block is still with
 * that one's processor. */
static struct ms_bag *retired_of_class(struct ms_cache *cache, const struct ms_lease *lease,
                                       uint32_t class_index)
{
    uint64_t done = ms_fence_done(cache->fence);
    struct ms_bag **link = &cache->limbo, **found = NULL;
    for (int i = 0; i < BAGS_LOOKED_AT && *link && (*link)->epoch <= done; i++, link = &(*link)->next) {
        if ((*link)->class_index != class_index)
            continue;
        if ((*link)->lease == lease - cache->leases)
            return leave_limbo(cache, link);
        if (!found)
            found = link;
    }
    return found ? leave_limbo(cache, found) : NULL;
}

/* Heap's lock held. */
static void empty(struct ms_cache *cache, const struct ms_lease *lease, struct ms_magazine *m)
{
    if (m->ready)
        release_bag(cache, m->ready);
    if (m->freed && (!m->freed->count || retired(cache, m->freed)))
        release_bag(cache, m->freed);
    else if (m->freed)
        bag_to_limbo(cache, lease, m->freed);
    m->ready = m->freed = NULL;
}

/* Heap's lock held. What is not over stays where it is. */
static void release_runs(struct ms_cache *cache, struct ms_lease *lease)
{
    if (lease->runs && retired(cache, lease->runs))
        release_items(cache, lease->runs);
}

static void has_bag(struct ms_cache *cache, struct ms_lease *lease, uint32_t class_index)
{
    lease->bags |= (uint64_t)1 << class_index;
    ms_lease_tell(&cache->with_bags, cache, lease);
}

struct ms_slot *ms_lease_carve(struct ms_cache *cache, const struct ms_request *request)
{
    if (request->single)
        return ms_single_take(cache->extents, request->granted);
    struct ms_fit fit = ms_run_fit(cache->extents, request->granted, request->align);
    return ms_lease_carve_fit(cache, request, &fit);
}

struct ms_slot *ms_lease_carve_fit(struct ms_cache *cache, const struct ms_request *request,
                                   const struct ms_fit *fit)
{
    if (request->large)
        return ms_large_take(cache->extents, fit, request);
    struct ms_run *run = ms_run_take_fit(cache->extents, fit, request->granted, request->align);
    return run ? &run->only : NULL;
}

/* Heap's lock held. What goes round is no more than one bag holds, so that it fits when all of it is freed.
 */
static void fill(struct ms_cache *cache, struct ms_magazine *m, uint32_t class_index)
{
    struct ms_bag *bag = m->ready ? m->ready : (m->ready = ms_bag_new());
    if (!bag)
        return;
    uint32_t around = bag->count + (m->freed ? m->freed->count : 0);
    uint32_t room = around + TOGETHER < MS_BAG_ITEMS ? MS_BAG_ITEMS - around : TOGETHER;
    room -= room % TOGETHER;
    ms_limbo_retire(cache);
    bag->count += ms_slab_take(cache->extents, class_index, bag->items + bag->count, room);
}

struct ms_slot *ms_lease_refill(struct ms_cache *cache, struct ms_lease *lease,
                                const struct ms_request *request)
{
    if (request->class_index == MS_NO_CLASS) {
        ms_lock(cache->lock);
        release_runs(cache, lease);
        ms_limbo_retire(cache);
        struct ms_slot *slot = ms_lease_carve(cache, request);
        ms_unlock(cache->lock);
        return slot;
    }
    struct ms_magazine *m = &lease->magazines[request->class_index];
    ms_lock(cache->lock);
    if (m->ready && m->freed && m->freed->count > MS_BAG_ITEMS - TOGETHER) {
        bag_to_limbo(cache, lease, m->freed); /* as it would soon */
        m->freed = m->ready;                  /* which is empty */
        m->ready = NULL;
    }
    struct ms_bag *bag = retired_of_class(cache, lease, request->class_index);
    if (bag && m->ready)
        ms_bag_drop(m->ready);
    if (bag)
        m->ready = bag;
    else
        fill(cache, m, request->class_index);
    ms_unlock(cache->lock);
    if (m->ready)
        has_bag(cache, lease, request->class_index);
    return pop(m->ready);
}

/* A whole block that others may still have a handle to: no magazine may hand it out again. */
static void put_apart(struct ms_cache *cache, struct ms_slot *slot)
{
    struct ms_bag *bag = ms_bag_new();
    ms_slot_set(slot, MS_SLOT_LIMBO);
    if (!bag)
        return; /* no host memory: the block stays in limbo for ever */
    bag->epoch = ms_fence_tag(cache->fence);
    bag->items[bag->count++] = slot;
    ms_lock(cache->lock);
    bag_to_limbo(cache, NULL, bag);
    ms_unlock(cache->lock);
}

static void put_run(struct ms_cache *cache, struct ms_lease *lease, struct ms_slot *slot, uint64_t epoch)
{
    struct ms_bag *bag = lease->runs;
    if (bag && bag->count && (bag->count == MS_BAG_ITEMS || bag->epoch != epoch)) {
        ms_lock(cache->lock);
        release_runs(cache, lease);
        if (bag->count) {
            bag_to_limbo(cache, lease, bag);
            bag = NULL;
        }
        ms_unlock(cache->lock);
    }
    if (!bag)
        bag = lease->runs = ms_bag_new();
    if (!bag)
        return; /* no host memory: the block stays in limbo for ever */
    ms_bag_put(bag, slot, epoch);
    ms_lease_tell(&cache->with_runs, cache, lease);
}

void ms_lease_put_somewhere(struct ms_cache *cache, struct ms_lease *lease, struct ms_slot *slot)
{
    uint32_t class_index = slot->run->class_index;
    if (class_index == MS_NO_CLASS) {
        if (slot->run->segment->release)
            put_apart(cache, slot);
        else
            put_run(cache, lease, slot, ms_fence_tag(cache->fence));
        return;
    }
    struct ms_magazine *m = &lease->magazines[class_index];
    struct ms_bag *bag = m->freed;
    if (bag && bag->count == MS_BAG_ITEMS) {
        if (retired(cache, bag) && (!m->ready || !m->ready->count)) {
            m->freed = m->ready;
            m->ready = bag;
        } else {
            ms_lock(cache->lock);
            bag_to_limbo(cache, lease, bag);
            ms_unlock(cache->lock);
            m->freed = NULL;
        }
        bag = m->freed;
    }
    if (MS_UNLIKELY(!bag)) {
        bag = m->freed = ms_bag_new();
        if (!bag)
            return; /* no host memory: the block stays in limbo for ever */
        has_bag(cache, lease, class_index);
    }
    ms_bag_put(bag, slot, ms_fence_tag(cache->fence));
}

void ms_lease_put_ready(struct ms_cache *cache, struct ms_lease *lease, struct ms_slot *slot)
{
    uint32_t class_index = slot->run->class_index;
    if (MS_UNLIKELY(slot->run->segment->release)) {
        put_apart(cache, slot);
        return;
    }
    ms_slot_set(slot, MS_SLOT_READY);
    if (class_index != MS_NO_CLASS) {
        struct ms_magazine *m = &lease->magazines[class_index];
        if (MS_UNLIKELY(!m->ready)) {
            m->ready = ms_bag_new();
            has_bag(cache, lease, class_index);
        }
        if (m->ready && m->ready->count < MS_BAG_ITEMS) {
            m->ready->items[m->ready->count++] = slot;
            return;
        }
    }
    ms_lock(cache->lock);
    release_slot(cache, slot);
    ms_unlock(cache->lock);
}

/* Lease and heap locked. */
static void empty_classes(struct ms_cache *cache, struct ms_lease *lease)
{
    for (; lease->bags; lease->bags &= lease->bags - 1)
        empty(cache, lease, &lease->magazines[__builtin_ctzll(lease->bags)]);
}

/* What another thread is only just putting there comes later. */
static void flush_each(struct ms_cache *cache, _Atomic uint32_t *leases,
                       void (*flush)(struct ms_cache *, struct ms_lease *))
{
    uint32_t left = atomic_load_explicit(leases, memory_order_acquire);
    for (; left; left &= left - 1) {
        struct ms_lease *lease = &cache->leases[__builtin_ctz(left)];
        ms_bias_lock(&lease->lock, MS_BIAS_LEASE);
        ms_lock(cache->lock);
        flush(cache, lease);
        bool empty = leases == &cache->with_bags || !lease->runs || !lease->runs->count;
        if (empty)
            atomic_fetch_and_explicit(leases, ~(left & -left), memory_order_relaxed);
        ms_unlock(cache->lock);
        ms_bias_unlock_visited(&lease->lock, MS_BIAS_LEASE);
    }
    ms_lock(cache->lock);
    ms_limbo_retire(cache);
    ms_unlock(cache->lock);
}

void ms_lease_flush_runs(struct ms_cache *cache)
{
    atomic_store_explicit(&cache->runs_over, ms_fence_done(cache->fence), memory_order_relaxed);
    flush_each(cache, &cache->with_runs, release_runs);
}

void ms_lease_flush(struct ms_cache *cache)
{
    flush_each(cache, &cache->with_bags, empty_classes);
    ms_lease_flush_runs(cache);
}

/* Returns the bytes in limbo. */
static uint64_t settle_bag(struct ms_bag *bag, bool ready, uint64_t done)
{
    uint64_t bytes = 0;
    bool free = ready || bag->epoch <= done;
    for (uint32_t i = 0; i < bag->count; i++) {
        ms_slot_set(bag->items[i], free ? MS_SLOT_READY : MS_SLOT_LIMBO);
        bytes += bag->items[i]->run->slot_bytes;
    }
    return free ? 0 : bytes;
}

static uint64_t settle_lease(struct ms_lease *lease, uint64_t done)
{
    uint64_t limbo = lease->runs ? settle_bag(lease->runs, false, done) : 0;
    for (uint32_t k = 0; k < MS_CLASSES; k++) {
        struct ms_magazine *m = &lease->magazines[k];
        if (m->ready)
            settle_bag(m->ready, true, done);
        if (m->freed)
            limbo += settle_bag(m->freed, false, done);
    }
    return limbo;
}

uint64_t ms_lease_settle(struct ms_cache *cache, uint64_t done)
{
    uint64_t limbo = 0;
    uint32_t left = atomic_load_explicit(&cache->with_bags, memory_order_relaxed) |
                    atomic_load_explicit(&cache->with_runs, memory_order_relaxed);
    for (; left; left &= left - 1)
        limbo += settle_lease(&cache->leases[__builtin_ctz(left)], done);
    for (struct ms_bag *bag = cache->limbo; bag; bag = bag->next)
        limbo += settle_bag(bag, false, done);
    return limbo;
}
