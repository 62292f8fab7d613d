/* tcache.c - caches that threads borrow.
 *
 * A heap has a fixed number of them, each under its own lock. A thread tries the one it had last and goes on
 * to the next if that is held, so nothing belongs to a thread: it may end or be cancelled at any time, and
 * whoever needs memory can empty all of them. A magazine holds blocks of one class in two batches: `ready`,
 * and `freed`, which is tagged with the newest epoch in it. Once that is retired the batches change places as
 * a whole: retirement costs nothing per block. Blocks without a class are given as their heap fits them best,
 * so a thread cache has only one batch of those, of what was freed in one epoch: what a free waits for
 * (pending.c) is then there to be used, and lies together with its neighbours. Batches that overflow wait in
 * the heap's pending list, and go back to the thread cache that they came from, if it asks for one in
 * time. */
#include "pool/cache/tcache.h"

enum { BATCHES_LOOKED_AT = 24, RECORDS_AHEAD = 6, NEIGHBOURS_AHEAD = 3 };
/* Slots of two cache lines are one thread's, as far as that goes. */
enum { TOGETHER = 4 };

MS_TLS uint32_t ms_last_tcache;
_Atomic uint64_t ms_tcaches_met;
static _Atomic uint32_t next_tcache;

struct ms_tcache *ms_tcache_lock_another(struct ms_cache *cache)
{
    if (!ms_last_tcache)
        ms_last_tcache = atomic_fetch_add_explicit(&next_tcache, 1, memory_order_relaxed) % MS_TCACHES + 1;
    struct ms_tcache *tcache = &cache->tcaches[ms_last_tcache - 1];
    for (uint32_t i = 0; i < MS_TCACHES; i++) {
        uint32_t other = (ms_last_tcache - 1 + i) % MS_TCACHES;
        ms_raise(&ms_tcaches_met, other + 1);
        if (ms_bias_try(&cache->tcaches[other].lock, MS_BIAS_TCACHE)) {
            ms_last_tcache = other + 1;
            return &cache->tcaches[other];
        }
    }
    ms_bias_lock(&tcache->lock, MS_BIAS_TCACHE);
    return tcache;
}

static bool retired(const struct ms_cache *cache, const struct ms_batch *batch)
{
    return batch->epoch <= ms_fence_done(cache->fence);
}

static struct ms_slot *pop(struct ms_batch *batch)
{
    return batch && batch->count ? batch->items[--batch->count] : NULL;
}

static void release_slot(struct ms_cache *cache, struct ms_slot *slot)
{
    struct ms_extent *extent = slot->extent;
    if (extent->class_index != MS_NO_CLASS) {
        ms_slab_put(cache->extents, slot);
        return;
    }
    ms_slot_set(slot, MS_SLOT_FREE);
    if (atomic_load_explicit(&extent->segment->use, memory_order_relaxed) == MS_SEGMENT_DEDICATED)
        ms_dedicated_put(cache->extents, extent);
    else
        ms_extent_put(cache->extents, extent);
}

struct ms_slot *ms_tcache_take_exchanged(struct ms_cache *cache, struct ms_magazine *m)
{
    struct ms_batch *batch = m->freed;
    if (!batch || !batch->count || !retired(cache, batch))
        return NULL;
    m->freed = m->ready;
    m->ready = batch;
    return pop(batch);
}

/* Blocks that lie far from each other: what of each is looked at comes out of memory while those before it
 * are put away. */
static void release_items(struct ms_cache *cache, struct ms_batch *batch)
{
    uint32_t count = batch->count;
    for (uint32_t i = 0; i < count; i++) {
        if (i + RECORDS_AHEAD < count)
            ms_extent_fetch(batch->items[i + RECORDS_AHEAD]);
        if (i + NEIGHBOURS_AHEAD < count)
            ms_extent_fetch_neighbours(batch->items[i + NEIGHBOURS_AHEAD]->extent);
        release_slot(cache, batch->items[i]);
    }
    batch->count = 0;
}

static void release_batch(struct ms_cache *cache, struct ms_batch *batch)
{
    release_items(cache, batch);
    ms_batch_drop(batch);
}

/* Heap's lock held; `thread cache` NULL: of none. In the order of epochs, so that none is held up by a later
 * one: nearly always at the end. */
static void batch_to_pending(struct ms_cache *cache, const struct ms_tcache *tcache, struct ms_batch *batch)
{
    _Static_assert(offsetof(struct ms_batch, next) == 0, "the end of the list is the last bag's address");
    batch->tcache = (uint16_t)(tcache ? tcache - cache->tcaches : MS_TCACHES);
    batch->class_index = batch->items[0]->extent->class_index;
    struct ms_batch **place = cache->pending_end;
    if (cache->pending && ((struct ms_batch *)place)->epoch > batch->epoch) {
        for (place = &cache->pending; (*place)->epoch <= batch->epoch; place = &(*place)->next)
            ;
    }
    batch->next = *place;
    *place = batch;
    if (!batch->next)
        cache->pending_end = &batch->next;
}

/* Heap's lock held. It is pending no longer. */
static struct ms_batch *leave_pending(struct ms_cache *cache, struct ms_batch **link)
{
    struct ms_batch *batch = *link;
    *link = batch->next;
    if (!*link)
        cache->pending_end = link;
    batch->next = NULL;
    return batch;
}

void ms_pending_retire(struct ms_cache *cache)
{
    uint64_t done = ms_fence_done(cache->fence);
    while (cache->pending && cache->pending->epoch <= done)
        release_batch(cache, leave_pending(cache, &cache->pending));
}

/* Heap's lock held. Among the oldest that are retired, one of this class: what it holds goes round without a
 * visit to its spans. The thread cache's own, if there is one: what another thread wrote of each block is
 * still with that one's processor. */
static struct ms_batch *retired_of_class(struct ms_cache *cache, const struct ms_tcache *tcache,
                                         uint32_t class_index)
{
    uint64_t done = ms_fence_done(cache->fence);
    struct ms_batch **link = &cache->pending, **found = NULL;
    for (int i = 0; i < BATCHES_LOOKED_AT && *link && (*link)->epoch <= done; i++, link = &(*link)->next) {
        if ((*link)->class_index != class_index)
            continue;
        if ((*link)->tcache == tcache - cache->tcaches)
            return leave_pending(cache, link);
        if (!found)
            found = link;
    }
    return found ? leave_pending(cache, found) : NULL;
}

/* Heap's lock held. */
static void empty(struct ms_cache *cache, const struct ms_tcache *tcache, struct ms_magazine *m)
{
    if (m->ready)
        release_batch(cache, m->ready);
    if (m->freed && (!m->freed->count || retired(cache, m->freed)))
        release_batch(cache, m->freed);
    else if (m->freed)
        batch_to_pending(cache, tcache, m->freed);
    m->ready = m->freed = NULL;
}

/* Heap's lock held. What is not over stays where it is. */
static void release_runs(struct ms_cache *cache, struct ms_tcache *tcache)
{
    if (tcache->extents && retired(cache, tcache->extents))
        release_items(cache, tcache->extents);
}

static void has_batch(struct ms_cache *cache, struct ms_tcache *tcache, uint32_t class_index)
{
    tcache->batches |= (uint64_t)1 << class_index;
    ms_tcache_tell(&cache->with_batches, cache, tcache);
}

struct ms_slot *ms_tcache_carve(struct ms_cache *cache, const struct ms_request *request)
{
    if (request->single)
        return ms_dedicated_take(cache->extents, request->granted);
    struct ms_fit fit = ms_extent_fit(cache->extents, request->granted, request->align);
    return ms_tcache_carve_fit(cache, request, &fit);
}

struct ms_slot *ms_tcache_carve_fit(struct ms_cache *cache, const struct ms_request *request,
                                    const struct ms_fit *fit)
{
    if (request->large)
        return ms_large_take(cache->extents, fit, request);
    struct ms_extent *extent = ms_extent_take_fit(cache->extents, fit, request->granted, request->align);
    return extent ? &extent->only : NULL;
}

/* Heap's lock held. What goes round is no more than one batch holds, so that it fits when all of it is
 * freed. */
static void tcache_fill(struct ms_cache *cache, struct ms_magazine *m, uint32_t class_index)
{
    struct ms_batch *batch = m->ready ? m->ready : (m->ready = ms_batch_new());
    if (!batch)
        return;
    uint32_t around = batch->count + (m->freed ? m->freed->count : 0);
    uint32_t room = around + TOGETHER < MS_BATCH_ITEMS ? MS_BATCH_ITEMS - around : TOGETHER;
    room -= room % TOGETHER;
    ms_pending_retire(cache);
    batch->count += ms_slab_take(cache->extents, class_index, batch->items + batch->count, room);
}

struct ms_slot *ms_tcache_refill(struct ms_cache *cache, struct ms_tcache *tcache,
                                 const struct ms_request *request)
{
    if (request->class_index == MS_NO_CLASS) {
        ms_lock(cache->lock);
        release_runs(cache, tcache);
        ms_pending_retire(cache);
        struct ms_slot *slot = ms_tcache_carve(cache, request);
        ms_unlock(cache->lock);
        return slot;
    }
    struct ms_magazine *m = &tcache->magazines[request->class_index];
    ms_lock(cache->lock);
    if (m->ready && m->freed && m->freed->count > MS_BATCH_ITEMS - TOGETHER) {
        batch_to_pending(cache, tcache, m->freed); /* as it would soon */
        m->freed = m->ready;                       /* which is empty */
        m->ready = NULL;
    }
    struct ms_batch *batch = retired_of_class(cache, tcache, request->class_index);
    if (batch && m->ready)
        ms_batch_drop(m->ready);
    if (batch)
        m->ready = batch;
    else
        tcache_fill(cache, m, request->class_index);
    ms_unlock(cache->lock);
    if (m->ready)
        has_batch(cache, tcache, request->class_index);
    return pop(m->ready);
}

/* A whole block that others may still have a handle to: no magazine may hand it out again. */
static void put_apart(struct ms_cache *cache, struct ms_slot *slot)
{
    struct ms_batch *batch = ms_batch_new();
    ms_slot_set(slot, MS_SLOT_PENDING);
    if (!batch)
        return; /* no host memory: the block stays pending for ever */
    batch->epoch = ms_fence_tag(cache->fence);
    batch->items[batch->count++] = slot;
    ms_lock(cache->lock);
    batch_to_pending(cache, NULL, batch);
    ms_unlock(cache->lock);
}

static void put_run(struct ms_cache *cache, struct ms_tcache *tcache, struct ms_slot *slot, uint64_t epoch)
{
    struct ms_batch *batch = tcache->extents;
    if (batch && batch->count && (batch->count == MS_BATCH_ITEMS || batch->epoch != epoch)) {
        ms_lock(cache->lock);
        release_runs(cache, tcache);
        if (batch->count) {
            batch_to_pending(cache, tcache, batch);
            batch = NULL;
        }
        ms_unlock(cache->lock);
    }
    if (!batch)
        batch = tcache->extents = ms_batch_new();
    if (!batch)
        return; /* no host memory: the block stays pending for ever */
    ms_batch_put(batch, slot, epoch);
    ms_tcache_tell(&cache->with_runs, cache, tcache);
}

void ms_tcache_put_somewhere(struct ms_cache *cache, struct ms_tcache *tcache, struct ms_slot *slot)
{
    uint32_t class_index = slot->extent->class_index;
    if (class_index == MS_NO_CLASS) {
        if (slot->extent->segment->release)
            put_apart(cache, slot);
        else
            put_run(cache, tcache, slot, ms_fence_tag(cache->fence));
        return;
    }
    struct ms_magazine *m = &tcache->magazines[class_index];
    struct ms_batch *batch = m->freed;
    if (batch && batch->count == MS_BATCH_ITEMS) {
        if (retired(cache, batch) && (!m->ready || !m->ready->count)) {
            m->freed = m->ready;
            m->ready = batch;
        } else {
            ms_lock(cache->lock);
            batch_to_pending(cache, tcache, batch);
            ms_unlock(cache->lock);
            m->freed = NULL;
        }
        batch = m->freed;
    }
    if (MS_UNLIKELY(!batch)) {
        batch = m->freed = ms_batch_new();
        if (!batch)
            return; /* no host memory: the block stays pending for ever */
        has_batch(cache, tcache, class_index);
    }
    ms_batch_put(batch, slot, ms_fence_tag(cache->fence));
}

void ms_tcache_put_ready(struct ms_cache *cache, struct ms_tcache *tcache, struct ms_slot *slot)
{
    uint32_t class_index = slot->extent->class_index;
    if (MS_UNLIKELY(slot->extent->segment->release)) {
        put_apart(cache, slot);
        return;
    }
    ms_slot_set(slot, MS_SLOT_READY);
    if (class_index != MS_NO_CLASS) {
        struct ms_magazine *m = &tcache->magazines[class_index];
        if (MS_UNLIKELY(!m->ready)) {
            m->ready = ms_batch_new();
            has_batch(cache, tcache, class_index);
        }
        if (m->ready && m->ready->count < MS_BATCH_ITEMS) {
            m->ready->items[m->ready->count++] = slot;
            return;
        }
    }
    ms_lock(cache->lock);
    release_slot(cache, slot);
    ms_unlock(cache->lock);
}

/* Thread cache and heap locked. */
static void empty_classes(struct ms_cache *cache, struct ms_tcache *tcache)
{
    for (; tcache->batches; tcache->batches &= tcache->batches - 1)
        empty(cache, tcache, &tcache->magazines[__builtin_ctzll(tcache->batches)]);
}

/* Blocks that another thread is only just putting into its cache come later. */
static void flush_each(struct ms_cache *cache, _Atomic uint32_t *tcaches,
                       void (*flush)(struct ms_cache *, struct ms_tcache *))
{
    uint32_t left = atomic_load_explicit(tcaches, memory_order_acquire);
    for (; left; left &= left - 1) {
        struct ms_tcache *tcache = &cache->tcaches[__builtin_ctz(left)];
        ms_bias_lock(&tcache->lock, MS_BIAS_TCACHE);
        ms_lock(cache->lock);
        flush(cache, tcache);
        bool empty = tcaches == &cache->with_batches || !tcache->extents || !tcache->extents->count;
        if (empty)
            atomic_fetch_and_explicit(tcaches, ~(left & -left), memory_order_relaxed);
        ms_unlock(cache->lock);
        ms_bias_unlock_visited(&tcache->lock, MS_BIAS_TCACHE);
    }
    ms_lock(cache->lock);
    ms_pending_retire(cache);
    ms_unlock(cache->lock);
}

void ms_tcache_flush_runs(struct ms_cache *cache)
{
    atomic_store_explicit(&cache->runs_over, ms_fence_done(cache->fence), memory_order_relaxed);
    flush_each(cache, &cache->with_runs, release_runs);
}

void ms_tcache_flush(struct ms_cache *cache)
{
    flush_each(cache, &cache->with_batches, empty_classes);
    ms_tcache_flush_runs(cache);
}

/* Returns the bytes pending. */
static uint64_t settle_batch(struct ms_batch *batch, bool ready, uint64_t done)
{
    uint64_t bytes = 0;
    bool free = ready || batch->epoch <= done;
    for (uint32_t i = 0; i < batch->count; i++) {
        ms_slot_set(batch->items[i], free ? MS_SLOT_READY : MS_SLOT_PENDING);
        bytes += batch->items[i]->extent->slot_bytes;
    }
    return free ? 0 : bytes;
}

static uint64_t settle_tcache(struct ms_tcache *tcache, uint64_t done)
{
    uint64_t pending = tcache->extents ? settle_batch(tcache->extents, false, done) : 0;
    for (uint32_t k = 0; k < MS_CLASSES; k++) {
        struct ms_magazine *m = &tcache->magazines[k];
        if (m->ready)
            settle_batch(m->ready, true, done);
        if (m->freed)
            pending += settle_batch(m->freed, false, done);
    }
    return pending;
}

uint64_t ms_tcache_settle(struct ms_cache *cache, uint64_t done)
{
    uint64_t pending = 0;
    uint32_t left = atomic_load_explicit(&cache->with_batches, memory_order_relaxed) |
                    atomic_load_explicit(&cache->with_runs, memory_order_relaxed);
    for (; left; left &= left - 1)
        pending += settle_tcache(&cache->tcaches[__builtin_ctz(left)], done);
    for (struct ms_batch *batch = cache->pending; batch; batch = batch->next)
        pending += settle_batch(batch, false, done);
    return pending;
}
