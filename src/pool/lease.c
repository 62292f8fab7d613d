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

#include "pool/internal.h"
#include "pool/lease.h"

enum { BAGS_LOOKED_AT = 24, RECORDS_AHEAD = 6, NEIGHBOURS_AHEAD = 3 };
/* Slots of two cache lines are one thread's, as far as that goes. */
enum { TOGETHER = 4 };

MS_TLS uint32_t ms_last_lease;
_Atomic uint64_t ms_leases_met;
static _Atomic uint32_t next_lease;

struct ms_lease *ms_lease_lock_another(struct ms_heap *heap)
{
    if (!ms_last_lease)
        ms_last_lease = atomic_fetch_add_explicit(&next_lease, 1, memory_order_relaxed) % MS_LEASES + 1;
    struct ms_lease *lease = &heap->leases[ms_last_lease - 1];
    for (uint32_t i = 0; i < MS_LEASES; i++) {
        uint32_t other = (ms_last_lease - 1 + i) % MS_LEASES;
        ms_raise(&ms_leases_met, other + 1);
        if (ms_bias_try(&heap->leases[other].lock, MS_BIAS_LEASE)) {
            ms_last_lease = other + 1;
            return &heap->leases[other];
        }
    }
    ms_bias_lock(&lease->lock, MS_BIAS_LEASE);
    return lease;
}

static bool retired(const struct ms_heap *heap, const struct ms_bag *bag)
{
    return bag->epoch <= ms_fence_done(heap);
}

static struct ms_slot *pop(struct ms_bag *bag)
{
    return bag && bag->count ? bag->items[--bag->count] : NULL;
}

static void release_slot(struct ms_heap *heap, struct ms_slot *slot)
{
    struct ms_run *run = slot->run;
    if (run->class_index != MS_NO_CLASS) {
        ms_slab_put(&heap->extents, slot);
        return;
    }
    ms_slot_set(slot, MS_SLOT_FREE);
    if (atomic_load_explicit(&run->segment->use, memory_order_relaxed) == MS_SEGMENT_SINGLE)
        ms_single_put(&heap->extents, run);
    else
        ms_run_put(&heap->extents, run);
}

struct ms_slot *ms_lease_take_exchanged(struct ms_heap *heap, struct ms_magazine *m)
{
    struct ms_bag *bag = m->freed;
    if (!bag || !bag->count || !retired(heap, bag))
        return NULL;
    m->freed = m->ready;
    m->ready = bag;
    return pop(bag);
}

/* Blocks that lie far from each other: what of each is looked at comes out of memory while those before it
 * are put away. */
static void release_items(struct ms_heap *heap, struct ms_bag *bag)
{
    uint32_t count = bag->count;
    for (uint32_t i = 0; i < count; i++) {
        if (i + RECORDS_AHEAD < count)
            ms_run_fetch(bag->items[i + RECORDS_AHEAD]);
        if (i + NEIGHBOURS_AHEAD < count)
            ms_run_fetch_neighbours(bag->items[i + NEIGHBOURS_AHEAD]->run);
        release_slot(heap, bag->items[i]);
    }
    bag->count = 0;
}

static void release_bag(struct ms_heap *heap, struct ms_bag *bag)
{
    release_items(heap, bag);
    ms_bag_drop(bag);
}

/* Heap's lock held; `lease` NULL: of none. In the order of epochs, so that none is held up by a later one:
 * nearly always at the end. */
static void bag_to_limbo(struct ms_heap *heap, const struct ms_lease *lease, struct ms_bag *bag)
{
    _Static_assert(offsetof(struct ms_bag, next) == 0, "the end of the list is the last bag's address");
    bag->lease = (uint16_t)(lease ? lease - heap->leases : MS_LEASES);
    bag->class_index = bag->items[0]->run->class_index;
    struct ms_bag **place = heap->limbo_end;
    if (heap->limbo && ((struct ms_bag *)place)->epoch > bag->epoch) {
        for (place = &heap->limbo; (*place)->epoch <= bag->epoch; place = &(*place)->next)
            ;
    }
    bag->next = *place;
    *place = bag;
    if (!bag->next)
        heap->limbo_end = &bag->next;
}

/* Heap's lock held. It is in limbo no longer. */
static struct ms_bag *leave_limbo(struct ms_heap *heap, struct ms_bag **link)
{
    struct ms_bag *bag = *link;
    *link = bag->next;
    if (!*link)
        heap->limbo_end = link;
    bag->next = NULL;
    return bag;
}

void ms_limbo_retire(struct ms_heap *heap)
{
    uint64_t done = ms_fence_done(heap);
    while (heap->limbo && heap->limbo->epoch <= done)
        release_bag(heap, leave_limbo(heap, &heap->limbo));
}

/* Heap's lock held. Among the oldest that are retired, one of this class: what it holds goes round without a
 * visit to its spans. The lease's own, if there is one: what another thread wrote of each block is still with
 * that one's processor. */
static struct ms_bag *retired_of_class(struct ms_heap *heap, const struct ms_lease *lease,
                                       uint32_t class_index)
{
    uint64_t done = ms_fence_done(heap);
    struct ms_bag **link = &heap->limbo, **found = NULL;
    for (int i = 0; i < BAGS_LOOKED_AT && *link && (*link)->epoch <= done; i++, link = &(*link)->next) {
        if ((*link)->class_index != class_index)
            continue;
        if ((*link)->lease == lease - heap->leases)
            return leave_limbo(heap, link);
        if (!found)
            found = link;
    }
    return found ? leave_limbo(heap, found) : NULL;
}

/* Heap's lock held. */
static void empty(struct ms_heap *heap, const struct ms_lease *lease, struct ms_magazine *m)
{
    if (m->ready)
        release_bag(heap, m->ready);
    if (m->freed && (!m->freed->count || retired(heap, m->freed)))
        release_bag(heap, m->freed);
    else if (m->freed)
        bag_to_limbo(heap, lease, m->freed);
    m->ready = m->freed = NULL;
}

/* Heap's lock held. What is not over stays where it is. */
static void release_runs(struct ms_heap *heap, struct ms_lease *lease)
{
    if (lease->runs && retired(heap, lease->runs))
        release_items(heap, lease->runs);
}

static void has_bag(struct ms_heap *heap, struct ms_lease *lease, uint32_t class_index)
{
    lease->bags |= (uint64_t)1 << class_index;
    ms_lease_tell(&heap->with_bags, heap, lease);
}

struct ms_slot *ms_lease_carve(struct ms_heap *heap, const struct ms_request *request)
{
    if (request->single)
        return ms_single_take(&heap->extents, request->granted);
    struct ms_fit fit = ms_run_fit(&heap->extents, request->granted, request->align);
    return ms_lease_carve_fit(heap, request, &fit);
}

struct ms_slot *ms_lease_carve_fit(struct ms_heap *heap, const struct ms_request *request,
                                   const struct ms_fit *fit)
{
    if (request->large)
        return ms_large_take(&heap->extents, fit, request);
    struct ms_run *run = ms_run_take_fit(&heap->extents, fit, request->granted, request->align);
    return run ? &run->only : NULL;
}

/* Heap's lock held. What goes round is no more than one bag holds, so that it fits when all of it is freed.
 */
static void fill(struct ms_heap *heap, struct ms_magazine *m, uint32_t class_index)
{
    struct ms_bag *bag = m->ready ? m->ready : (m->ready = ms_bag_new());
    if (!bag)
        return;
    uint32_t around = bag->count + (m->freed ? m->freed->count : 0);
    uint32_t room = around + TOGETHER < MS_BAG_ITEMS ? MS_BAG_ITEMS - around : TOGETHER;
    room -= room % TOGETHER;
    ms_limbo_retire(heap);
    bag->count += ms_slab_take(&heap->extents, class_index, bag->items + bag->count, room);
}

struct ms_slot *ms_lease_refill(struct ms_heap *heap, struct ms_lease *lease,
                                const struct ms_request *request)
{
    if (request->class_index == MS_NO_CLASS) {
        ms_lock(&heap->lock);
        release_runs(heap, lease);
        ms_limbo_retire(heap);
        struct ms_slot *slot = ms_lease_carve(heap, request);
        ms_unlock(&heap->lock);
        return slot;
    }
    struct ms_magazine *m = &lease->magazines[request->class_index];
    ms_lock(&heap->lock);
    if (m->ready && m->freed && m->freed->count > MS_BAG_ITEMS - TOGETHER) {
        bag_to_limbo(heap, lease, m->freed); /* as it would soon */
        m->freed = m->ready;                 /* which is empty */
        m->ready = NULL;
    }
    struct ms_bag *bag = retired_of_class(heap, lease, request->class_index);
    if (bag && m->ready)
        ms_bag_drop(m->ready);
    if (bag)
        m->ready = bag;
    else
        fill(heap, m, request->class_index);
    ms_unlock(&heap->lock);
    if (m->ready)
        has_bag(heap, lease, request->class_index);
    return pop(m->ready);
}

/* A whole block that others may still have a handle to: no magazine may hand it out again. */
static void put_apart(struct ms_heap *heap, struct ms_slot *slot)
{
    struct ms_bag *bag = ms_bag_new();
    ms_slot_set(slot, MS_SLOT_LIMBO);
    if (!bag)
        return; /* no host memory: the block stays in limbo for ever */
    bag->epoch = ms_fence_tag(heap);
    bag->items[bag->count++] = slot;
    ms_lock(&heap->lock);
    bag_to_limbo(heap, NULL, bag);
    ms_unlock(&heap->lock);
}

static void put_run(struct ms_heap *heap, struct ms_lease *lease, struct ms_slot *slot, uint64_t epoch)
{
    struct ms_bag *bag = lease->runs;
    if (bag && bag->count && (bag->count == MS_BAG_ITEMS || bag->epoch != epoch)) {
        ms_lock(&heap->lock);
        release_runs(heap, lease);
        if (bag->count) {
            bag_to_limbo(heap, lease, bag);
            bag = NULL;
        }
        ms_unlock(&heap->lock);
    }
    if (!bag)
        bag = lease->runs = ms_bag_new();
    if (!bag)
        return; /* no host memory: the block stays in limbo for ever */
    ms_bag_put(bag, slot, epoch);
    ms_lease_tell(&heap->with_runs, heap, lease);
}

void ms_lease_put_somewhere(struct ms_heap *heap, struct ms_lease *lease, struct ms_slot *slot)
{
    uint32_t class_index = slot->run->class_index;
    if (class_index == MS_NO_CLASS) {
        if (slot->run->segment->release)
            put_apart(heap, slot);
        else
            put_run(heap, lease, slot, ms_fence_tag(heap));
        return;
    }
    struct ms_magazine *m = &lease->magazines[class_index];
    struct ms_bag *bag = m->freed;
    if (bag && bag->count == MS_BAG_ITEMS) {
        if (retired(heap, bag) && (!m->ready || !m->ready->count)) {
            m->freed = m->ready;
            m->ready = bag;
        } else {
            ms_lock(&heap->lock);
            bag_to_limbo(heap, lease, bag);
            ms_unlock(&heap->lock);
            m->freed = NULL;
        }
        bag = m->freed;
    }
    if (MS_UNLIKELY(!bag)) {
        bag = m->freed = ms_bag_new();
        if (!bag)
            return; /* no host memory: the block stays in limbo for ever */
        has_bag(heap, lease, class_index);
    }
    ms_bag_put(bag, slot, ms_fence_tag(heap));
}

void ms_lease_put_ready(struct ms_heap *heap, struct ms_lease *lease, struct ms_slot *slot)
{
    uint32_t class_index = slot->run->class_index;
    if (MS_UNLIKELY(slot->run->segment->release)) {
        put_apart(heap, slot);
        return;
    }
    ms_slot_set(slot, MS_SLOT_READY);
    if (class_index != MS_NO_CLASS) {
        struct ms_magazine *m = &lease->magazines[class_index];
        if (MS_UNLIKELY(!m->ready)) {
            m->ready = ms_bag_new();
            has_bag(heap, lease, class_index);
        }
        if (m->ready && m->ready->count < MS_BAG_ITEMS) {
            m->ready->items[m->ready->count++] = slot;
            return;
        }
    }
    ms_lock(&heap->lock);
    release_slot(heap, slot);
    ms_unlock(&heap->lock);
}

/* Lease and heap locked. */
static void empty_classes(struct ms_heap *heap, struct ms_lease *lease)
{
    for (; lease->bags; lease->bags &= lease->bags - 1)
        empty(heap, lease, &lease->magazines[__builtin_ctzll(lease->bags)]);
}

/* What another thread is only just putting there comes later. */
static void flush_each(struct ms_heap *heap, _Atomic uint32_t *leases,
                       void (*flush)(struct ms_heap *, struct ms_lease *))
{
    uint32_t left = atomic_load_explicit(leases, memory_order_acquire);
    for (; left; left &= left - 1) {
        struct ms_lease *lease = &heap->leases[__builtin_ctz(left)];
        ms_bias_lock(&lease->lock, MS_BIAS_LEASE);
        ms_lock(&heap->lock);
        flush(heap, lease);
        bool empty = leases == &heap->with_bags || !lease->runs || !lease->runs->count;
        if (empty)
            atomic_fetch_and_explicit(leases, ~(left & -left), memory_order_relaxed);
        ms_unlock(&heap->lock);
        ms_bias_unlock_visited(&lease->lock, MS_BIAS_LEASE);
    }
    ms_lock(&heap->lock);
    ms_limbo_retire(heap);
    ms_unlock(&heap->lock);
}

void ms_lease_flush_runs(struct ms_heap *heap)
{
    atomic_store_explicit(&heap->runs_over, ms_fence_done(heap), memory_order_relaxed);
    flush_each(heap, &heap->with_runs, release_runs);
}

void ms_lease_flush(struct ms_heap *heap)
{
    flush_each(heap, &heap->with_bags, empty_classes);
    ms_lease_flush_runs(heap);
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

uint64_t ms_lease_settle(struct ms_heap *heap)
{
    uint64_t limbo = 0, done = ms_pool_is_stopped ? heap->stopped_done : ms_fence_done(heap);
    uint32_t left = atomic_load_explicit(&heap->with_bags, memory_order_relaxed) |
                    atomic_load_explicit(&heap->with_runs, memory_order_relaxed);
    for (; left; left &= left - 1)
        limbo += settle_lease(&heap->leases[__builtin_ctz(left)], done);
    for (struct ms_bag *bag = heap->limbo; bag; bag = bag->next)
        limbo += settle_bag(bag, false, done);
    return limbo;
}
