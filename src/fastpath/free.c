/* free.c - a free on the fast path.
 *
 * Floor 2.5. Under the same locks as a request (alloc.c). A block of
 * a context goes into the batch that waits for the epoch that is open; one that its own stream frees is ready
 * for that stream at once. What the pending list is to be told, or a pool that was destroyed gives back,
 * comes behind the locks. */
#include "fastpath/fastpath.h"
#include "fastpath/inside.h"
#include "fastpath/streams.h"
#include "pool/fence/pending.h"
#include "pool/space/address_cache.h"

/* The block that seems to begin at the address: its slot, and where the table has it. */
struct dying {
    uint64_t address, state_word;
    struct ms_slot *slot;
    const struct ms_extent *extent;
    struct ms_address_cache_set *set;
    unsigned way, class_index;
    uint32_t record_id;
};

/* False if it is no live block's. Without a lock: what is read of a slot here may be of long ago, and its
 * records in use for anything since, or cleared; its state word, which no other block ever has, says that it
 * is not, if it is still the same when it is exchanged. */
static MS_UNSYNCHRONIZED_INLINE bool dying_read(struct dying *dying)
{
    const struct ms_slot *slot = dying->slot;
    dying->state_word = atomic_load_explicit(&slot->state_word, memory_order_acquire);
    dying->extent = slot->extent;
    if (MS_UNLIKELY((dying->state_word & MS_STATE_MASK) != MS_SLOT_LIVE))
        return false;
    dying->class_index = dying->extent->class_index;
    return true;
}

/* True if the row has the block, and the shard can count it out by itself: then *site_p is its site. In a
 * row that is another shard's, what is read may be anything. */
static MS_UNSYNCHRONIZED_INLINE bool record_has(struct ms_shard *shard, const struct ms_block_row *row,
                                                uint64_t key, bool is_ordered, uint64_t now_ns,
                                                struct ms_site **site_p)
{
    struct ms_site *site = *site_p = shard->latest_row;
    if (MS_UNLIKELY(!ms_block_row_is_live(row) || row->key != key || row->tags != ms_fast_tags(is_ordered)))
        return false;
    if (MS_LIKELY(row->site == shard->latest_site))
        return ms_totals_past_is_kept(shard, now_ns);
    bool is_peak;
    if (row->site >= ms_table_rows(MS_TABLE_SITES) ||
        (now_ns >= shard->until_ns && !ms_shard_rise(shard, 0, now_ns, &is_peak)))
        return false;
    site = *site_p = ms_site_row(row->site);
    if (site->shard != shard->number || site->device != shard->device)
        return false;
    keep_past(shard, site, now_ns);
    return true;
}

/* Counts out the block that record_has has found, as ms_ledger_unserve does. */
static MS_INLINE void record_out(struct ms_shard *shard, uint32_t thread, uint32_t record_id,
                                 struct ms_block_row *row, struct ms_site *site, bool is_ordered,
                                 uint64_t now_ns)
{
    if (!site)
        __builtin_unreachable();
    if (ms_trace_wanted())
        ms_trace_put_free(record_id - 1, thread, now_ns);
    ms_totals_out(shard, record_id, row, site, ms_fast_kind(is_ordered), MS_BLOCK_FREED, now_ns);
}

/* Inside: the batch that a block without a class goes into, which is of the epoch that is open. */
static MS_UNSYNCHRONIZED struct ms_batch *batch_of_extents(const struct ms_tcache *tcache,
                                                           const struct ms_extent *extent, uint64_t epoch)
{
    struct ms_batch *batch = tcache->extents;
    bool has_room = batch && (!batch->count || (batch->epoch == epoch && batch->count < MS_BATCH_ITEMS));
    return has_room && !extent->segment->release ? batch : NULL;
}

/* Inside: the batch that the block goes into, if that is all there is to do. No segment that holds blocks of
 * a class has to be released, but for one that was given in the order of a stream. */
static MS_UNSYNCHRONIZED_INLINE struct ms_batch *
batch_for(const struct ms_fast_heap *at, const struct dying *dying, bool is_ordered, uint64_t epoch)
{
    const struct ms_extent *extent = dying->extent;
    if (MS_UNLIKELY(extent->segment->heap != at->heap ||
                    ms_extent_address(extent) + dying->slot->index * extent->slot_bytes != dying->address))
        return NULL;
    if (dying->class_index >= MS_CLASSES)
        return is_ordered ? NULL : batch_of_extents(at->tcache, extent, epoch);
    if (is_ordered && extent->segment->release)
        return NULL;
    const struct ms_magazine *m = &at->tcache->magazines[dying->class_index];
    struct ms_batch *batch = is_ordered ? m->ready : m->freed;
    return MS_LIKELY(batch && batch->count < MS_BATCH_ITEMS) ? batch : NULL;
}

/* Inside, all of a free: the record has the block, its slot's state is exchanged, and both take it back. The
 * record id is a guess, too: of that row all is looked at. */
static MS_INLINE bool take_back(const struct ms_thread *me, const struct ms_fast_heap *at,
                                const struct dying *dying, struct ms_block_row *row, bool is_ordered,
                                uint64_t now_ns)
{
    struct ms_tcache *tcache = at->tcache;
    struct ms_slot *slot = dying->slot;
    uint64_t epoch = is_ordered ? 0 : ms_fence_tag(&at->heap->fence);
    struct ms_batch *batch = batch_for(at, dying, is_ordered, epoch);
    struct ms_site *site;
    if (MS_UNLIKELY(!batch || !record_has(at->shard, row, dying->address, is_ordered, now_ns, &site)))
        return false;
    uint64_t live = dying->state_word,
             freed = (live & ~MS_STATE_MASK) | (is_ordered ? MS_SLOT_READY : MS_SLOT_PENDING);
    if (MS_UNLIKELY(!atomic_compare_exchange_strong_explicit(&slot->state_word, &live, freed,
                                                             memory_order_seq_cst, memory_order_relaxed)))
        return false;
    record_out(at->shard, me->tid, dying->record_id, row, site, is_ordered, now_ns);
    uint64_t bytes = dying->extent->slot_bytes;
    ms_batch_add(batch, slot, epoch);
    if (dying->class_index >= MS_CLASSES)
        ms_tcache_tell(&at->heap->cache.with_runs, &at->heap->cache, tcache);
    ms_tcache_count_out(tcache, atomic_load_explicit(&slot->requested, memory_order_relaxed), bytes);
    if (!is_ordered)
        tcache->unweighed += bytes;
    return true;
}

/* True if something may hold the block, or a capture is open. */
static MS_INLINE bool is_held(void)
{
    return MS_UNLIKELY(atomic_load_explicit(&ms_pin_count, memory_order_relaxed) |
                       (uint32_t)atomic_load_explicit(&ms_open_captures, memory_order_relaxed));
}

/* Frees the slot that the table has for the address; `telling_p`: what the pending list is to be told of. */
static MS_INLINE bool free_found(struct ms_thread *me, const struct ms_fast_heap *at,
                                 const struct dying *dying, bool is_ordered, uint64_t *telling_p)
{
    uint64_t now_ns;
    *telling_p = 0;
    if (MS_UNLIKELY(!dying->record_id))
        return false;
    struct ms_block_row *row = ms_block_row_at(dying->record_id - 1);
    __builtin_prefetch(row, 1);
    if (MS_UNLIKELY(!ms_clock_own_ns(&me->fast.clock, &now_ns)))
        return fast_forget(&me->fast);
    MS_KEEP(now_ns);
    if (!fast_enter(me))
        return false;
    bool done = take_back(me, at, dying, row, is_ordered, now_ns);
    if (MS_LIKELY(done)) {
        ms_address_cache_drop(dying->set, dying->way);
        if (!is_ordered)
            *telling_p = ms_tcache_worth_telling(at->tcache);
    }
    fast_leave(me);
    return done;
}

static MS_INLINE enum ms_fast free_of_context(struct ms_thread *me, const struct dying *dying)
{
    uint64_t telling;
    bool done = free_found(me, &me->fast.of_context, dying, false, &telling);
    if (MS_UNLIKELY(telling) &&
        ms_pending_count(me->fast.of_context.heap, dying->extent->slot_bytes, telling))
        return MS_FAST_LOOK;
    return done ? MS_FAST_DONE : MS_FAST_NONE;
}

/* False if the table has no live block for the address. */
static MS_INLINE bool dying_find(struct dying *dying, uint64_t address)
{
    struct ms_address_cache_set *set;
    unsigned way;
    dying->address = address;
    dying->slot = ms_address_cache_find(address, &set, &way);
    if (MS_UNLIKELY(!dying->slot || is_held()) || !dying_read(dying))
        return false;
    dying->set = set;
    dying->way = way;
    dying->record_id = atomic_load_explicit(&set->tickets[way], memory_order_relaxed);
    return true;
}

/* A block without a class, compiled apart: the address alone is handed on, so that nothing of what was found
 * has to lie in memory. */
static MS_NOINLINE enum ms_fast free_of_extents(struct ms_thread *me, uint64_t address)
{
    struct dying dying;
    return dying_find(&dying, address) && dying.class_index >= MS_CLASSES ? free_of_context(me, &dying)
                                                                          : MS_FAST_NONE;
}

enum ms_fast ms_fast_free(struct ms_thread *me, uint64_t address)
{
    struct dying dying;
    if (MS_UNLIKELY(!me->fast.of_context.heap) || !dying_find(&dying, address))
        return MS_FAST_NONE;
    if (MS_UNLIKELY(dying.class_index >= MS_CLASSES))
        return free_of_extents(me, address);
    return free_of_context(me, &dying);
}

enum ms_fast ms_fast_free_ordered(struct ms_thread *me, const struct ms_gpu *gpu, uint64_t address,
                                  uint64_t stream)
{
    const struct ms_fast_stream *of = ms_fast_stream_of(me, gpu, stream);
    struct dying dying;
    uint64_t telling;
    if (MS_UNLIKELY(!of) || !dying_find(&dying, address))
        return MS_FAST_NONE;
    ms_fast_stream_choose(me, of);
    const struct ms_stream_arena *arena = of->at.heap->arena;
    uint64_t requested = atomic_load_explicit(&dying.slot->requested, memory_order_relaxed);
    /* Frees that other streams may wait for are marked by an event. */
    if (MS_UNLIKELY(atomic_load_explicit(&arena->waits, memory_order_relaxed)) ||
        !free_found(me, &of->at, &dying, true, &telling))
        return MS_FAST_NONE;
    return ms_mempool_count_free(arena->pool, requested) ? MS_FAST_DONE : MS_FAST_LOOK;
}

bool ms_fast_look(struct ms_fast_cache *fast, struct ms_pool_wait *wait_p)
{
    struct ms_heap *heap = fast->of_context.heap;
    const struct ms_pool_block block = {.own_heap = heap,
                                        .own_life = atomic_load_explicit(&heap->life, memory_order_acquire)};
    return ms_pending_poll(heap) && ms_pool_wait_begin(&block, wait_p);
}

void ms_fast_look_ordered(struct ms_thread *me, uint64_t stream)
{
    const struct ms_fast_stream *of = ms_fast_stream_at(me, stream);
    ms_stream_arena_give_back(of->at.heap->arena->pool, UINT64_MAX);
}
